/*
 * Rendering: template → text with tokens → YAML with the values in place → the parts that we
 * enforce. What a request says in writing is in blueprint_data.c, envd in envd_inject.c.
 */
#include "domain/blueprint.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/yaml.h"
#include "domain/blueprint_int.h"
#include "domain/gotemplate.h"

#define ANNOTATIONS_MAX (256 * 1024) /* Kubernetes' own bound on an object's annotations */
#define GRACE_DEFAULT 2              /* seconds */

struct blueprint {
	struct gotemplate *template;
};

int
blueprint_compile(struct strv text, struct blueprint **ret, struct err *e)
{
	struct gotemplate *t;
	struct blueprint *b;

	if (gotemplate_compile(text, &t, e) == -1)
		return err_wrap(e, "blueprint");
	b = xcalloc(1, sizeof(*b));
	b->template = t;
	*ret = b;
	return 0;
}

void
blueprint_free(struct blueprint *b)
{
	if (b == NULL)
		return;
	gotemplate_free(b->template);
	xfree(b);
}

json_t *
blueprint_as_text(json_t *v)
{
	char number[32];

	if (json_is_string(v))
		return json_incref(v);
	if (v == NULL || json_is_null(v))
		return json_string("");
	if (json_is_boolean(v))
		return json_string(json_is_true(v) ? "true" : "false");
	if (json_is_integer(v))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		snprintf(number, sizeof(number), "%.15g", json_real_value(v));
	else
		return NULL;
	return json_string(number);
}

static json_t *
resolve(struct strv value, bool quoted, bool is_key, void *arg)
{
	json_t *ret = gotemplate_resolve(arg, value, quoted), *text;

	if (ret == NULL || !is_key)
		return ret;
	text = blueprint_as_text(ret);
	json_decref(ret);
	return text;
}

static int
render_yaml(const struct blueprint *b, const struct blueprint_request *r, const char *ns,
    json_t **ret, struct err *e)
{
	json_t *data CLEANUP(json_unrefp) = blueprint_template_data(r, ns);
	struct gotemplate_values *values;
	char *text;
	int rc;

	if (gotemplate_render(b->template, data, &text, &values, e) == -1)
		return err_wrap(e, "blueprint");
	rc = yaml_parse_with(strv_of(text), GOTEMPLATE_OUTPUT_MAX, resolve, values, ret, e);
	if (rc == -1)
		err_wrap(e, "blueprint, as rendered");
	gotemplate_values_free(values);
	xfree(text);
	return rc;
}

/* --- what must hold --- */

/* The object at key, made if it is not there. NULL (and e): it is something else. */
static json_t *
object_at(json_t *in, const char *key, struct err *e)
{
	json_t *v = json_object_get(in, key);

	if (v == NULL || json_is_null(v)) {
		json_set(in, key, json_object());
		v = json_object_get(in, key);
	}
	if (!json_is_object(v)) {
		err_set(e, ERR_INVALID, "blueprint: '%s' must be a mapping", key);
		return NULL;
	}
	return v;
}

/* Every value of the mapping becomes text. Absent is fine. */
static int
texts_only(json_t *in, const char *key, struct err *e)
{
	json_t *map = json_object_get(in, key), *value, *text;
	const char *name;

	if (map == NULL || json_is_null(map))
		return 0;
	if (!json_is_object(map))
		return err_set(e, ERR_INVALID, "blueprint: '%s' must be a mapping", key);
	json_object_foreach (map, name, value) {
		text = blueprint_as_text(value);
		if (text == NULL)
			return err_set(
			    e, ERR_INVALID, "blueprint: '%s' of '%s' must be a text", name, key);
		json_object_set_new(map, name, text);
	}
	return 0;
}

/* Values of env of every container of the list become text. */
static int
env_texts(const json_t *containers, struct err *e)
{
	for (size_t i = 0; i < json_array_size(containers); i++) {
		const json_t *env = json_object_get(json_array_get(containers, i), "env");

		for (size_t j = 0; j < json_array_size(env); j++) {
			json_t *item = json_array_get(env, j), *text;
			json_t *value = json_object_get(item, "value");

			if (value == NULL)
				continue;
			text = blueprint_as_text(value);
			if (text == NULL)
				return err_set(
				    e, ERR_INVALID, "blueprint: values of env must be texts");
			json_object_set_new(item, "value", text);
		}
	}
	return 0;
}

static int
enforce_metadata(json_t *meta, json_t *labels, json_t *annotations, struct err *e)
{
	json_t *l = object_at(meta, "labels", e), *a;

	if (l == NULL || json_object_update(l, labels) == -1 || texts_only(meta, "labels", e) == -1)
		return -1;
	if (annotations == NULL)
		return texts_only(meta, "annotations", e);
	a = object_at(meta, "annotations", e);
	if (a == NULL || json_object_update(a, annotations) == -1)
		return -1;
	return texts_only(meta, "annotations", e);
}

static int
check_size(const json_t *annotations, struct err *e)
{
	size_t size = 0;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)annotations, key, value)
		size += strlen(key) + json_string_length(value);
	if (size > ANNOTATIONS_MAX)
		return err_set(e, ERR_TOO_LARGE,
		    "metadata, environment and settings together have more than %d bytes",
		    ANNOTATIONS_MAX);
	return 0;
}

static json_t *
find_container(json_t *pod_spec, struct err *e)
{
	json_t *list = json_object_get(pod_spec, "containers");

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *c = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(c, "name"));

		if (name != NULL && strcmp(name, CONTAINER_NAME) == 0)
			return c;
	}
	err_set(e, ERR_INVALID, "blueprint: no container is named '%s'", CONTAINER_NAME);
	return NULL;
}

static void
set_default(json_t *object, const char *key, json_t *value)
{
	const json_t *v = json_object_get(object, key);

	if (v == NULL || json_is_null(v))
		json_set(object, key, value);
	else
		json_decref(value);
}

static json_t *
resources(const struct template_resources *r)
{
	return json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "requests", "cpu", r->cpu, "memory",
	    r->memory, "limits", "cpu", r->cpu_limit, "memory", r->memory_limit);
}

static int
enforce_pod(json_t *pod_spec, const struct blueprint_request *r, const struct blueprint_env *env,
    struct err *e)
{
	json_t *container = find_container(pod_spec, e);

	if (container == NULL || texts_only(pod_spec, "nodeSelector", e) == -1)
		return -1;
	set_default(pod_spec, "automountServiceAccountToken", json_false());
	set_default(pod_spec, "terminationGracePeriodSeconds", json_integer(GRACE_DEFAULT));
	set_default(container, "image", json_string(r->spec->image));
	set_default(container, "resources", resources(&r->res));
	if (envd_inject(pod_spec, container, r->spec->template->envd, env->envd_image, e) == -1)
		return -1;
	if (env_texts(json_object_get(pod_spec, "containers"), e) == -1)
		return -1;
	return env_texts(json_object_get(pod_spec, "initContainers"), e);
}

static int
check_kind(const json_t *rs, struct err *e)
{
	const char *version = json_get_str(rs, "apiVersion"), *kind = json_get_str(rs, "kind");

	if (!json_is_object(rs) || version == NULL || strcmp(version, "apps/v1") != 0 ||
	    kind == NULL || strcmp(kind, "ReplicaSet") != 0)
		return err_set(e, ERR_INVALID,
		    "blueprint: must be one object of apiVersion apps/v1 and kind ReplicaSet");
	return 0;
}

static int
enforce(
    json_t *rs, const struct blueprint_request *r, const struct blueprint_env *env, struct err *e)
{
	json_t *labels CLEANUP(json_unrefp) = blueprint_labels(r->spec);
	json_t *ann CLEANUP(json_unrefp) = blueprint_request_annotations(r, env);
	json_t *meta, *spec, *pod, *pod_meta, *pod_spec;

	if (check_kind(rs, e) == -1 || (meta = object_at(rs, "metadata", e)) == NULL ||
	    (spec = object_at(rs, "spec", e)) == NULL ||
	    (pod = object_at(spec, "template", e)) == NULL ||
	    (pod_meta = object_at(pod, "metadata", e)) == NULL ||
	    (pod_spec = object_at(pod, "spec", e)) == NULL)
		return -1;
	json_object_del(rs, "status");
	json_object_del(meta, "generateName");
	json_set_str(meta, "name", r->spec->name);
	json_set_str(meta, "namespace", env->ns);
	json_object_del(pod_meta, "name");
	json_object_del(pod_meta, "namespace");
	if (enforce_metadata(meta, labels, ann, e) == -1 ||
	    enforce_metadata(pod_meta, labels, NULL, e) == -1 ||
	    check_size(json_object_get(meta, "annotations"), e) == -1)
		return -1;
	json_set_int(spec, "replicas", 1);
	json_set(spec, "selector", json_pack("{s:{s:s}}", "matchLabels", LABEL_ID, r->spec->id));
	return enforce_pod(pod_spec, r, env, e);
}

int
blueprint_render(const struct blueprint *b, const struct blueprint_env *env,
    const struct sandbox_spec *spec, json_t **rs, struct err *e)
{
	json_t *tree CLEANUP(json_unrefp) = NULL;
	struct blueprint_request r;
	int rc = -1;

	blueprint_request_init(&r, spec);
	if (render_yaml(b, &r, env->ns, &tree, e) == 0 && enforce(tree, &r, env, e) == 0) {
		*rs = json_incref(tree);
		rc = 0;
	}
	blueprint_request_done(&r);
	return rc;
}

#define SAMPLE_TEMPLATE "[{\"name\":\"sample\",\"image\":\"sample\",\"description\":\"a sample\"}]"

int
blueprint_check(const struct blueprint *b, struct err *e)
{
	json_t *rs CLEANUP(json_unrefp) = NULL;
	struct templates *templates;
	const struct blueprint_env env = { .ns = "sample", .envd_image = "sample", .rev = "" };
	struct sandbox_spec spec = { .id = "isample",
		.name = "sbx-isample",
		.tenant = "sample",
		.template_id = "sample",
		.image = "sample",
		.end_at = TIME_NEVER,
		.timeout = -1 };
	int rc;

	if (templates_parse(STRV(SAMPLE_TEMPLATE), &templates, e) == -1)
		return -1;
	spec.template = templates_at(templates, 0);
	rc = blueprint_render(b, &env, &spec, &rs, e);
	templates_free(templates);
	return rc;
}
