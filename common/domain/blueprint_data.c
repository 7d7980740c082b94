/*
 * What a request says, in its three written forms: the sandbox-data JSON, the annotations, and the
 * data that the blueprint's template sees. Secrets stay out of all of them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/blueprint_int.h"
#include "domain/gotemplate.h"

#define START_CMD_MAX (64 * 1024)
#define LABEL_VALUE_MAX 63
#define REDACTED "[redacted]"

static json_t *
shared(const json_t *v)
{
	return v ? json_incref((json_t *)(uintptr_t)v) : NULL; /* only its count changes */
}

static const char *
or_else(const char *v, const char *dflt)
{
	return v ? v : dflt;
}

/* --- start command --- */

static bool
plain_word(const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	                            "_@%+=:,./-";

	return s[0] != '\0' && strspn(s, plain) == strlen(s);
}

/* Adds the words of a list as a shell would need them to read the same list. */
static void
add_words(struct strbuf *b, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *word = json_string_value(json_array_get(list, i));

		if (word == NULL)
			continue;
		if (b->n > 0)
			strbuf_addc(b, ' ');
		if (plain_word(word)) {
			strbuf_adds(b, word);
			continue;
		}
		strbuf_addc(b, '\'');
		for (; *word != '\0'; word++) {
			if (*word == '\'')
				strbuf_adds(b, "'\\''");
			else
				strbuf_addc(b, *word);
		}
		strbuf_addc(b, '\'');
	}
}

static const json_t *
cmd_of(const struct sandbox_spec *s)
{
	return s->cmd ? s->cmd : s->template->cmd;
}

static const json_t *
args_of(const struct sandbox_spec *s)
{
	return s->args ? s->args : s->template->args;
}

/* envd is the container's program, so cmd and args are what it starts. NULL: nothing. */
static char *
start_command(const struct sandbox_spec *s)
{
	struct strbuf b;
	char *ret;

	if (s->template->start_cmd != NULL)
		return xstrdup(s->template->start_cmd);
	strbuf_init(&b, START_CMD_MAX);
	add_words(&b, cmd_of(s));
	add_words(&b, args_of(s));
	if (b.n == 0 || strbuf_take(&b, &ret, NULL) == -1) {
		strbuf_done(&b);
		return NULL;
	}
	return ret;
}

/* --- sandbox-data --- */

/* Header values that a rule adds to requests are credentials as a rule. */
static void
redact_rules(json_t *rules)
{
	const char *domain;
	json_t *list;

	json_object_foreach (rules, domain, list) {
		for (size_t i = 0; i < json_array_size(list); i++) {
			json_t *transform = json_object_get(json_array_get(list, i), "transform");
			json_t *headers = json_object_get(transform, "headers");
			const char *name;
			json_t *value;

			json_object_foreach (headers, name, value)
				json_object_set_new(headers, name, json_string(REDACTED));
		}
	}
}

static json_t *
network_data(const json_t *network)
{
	json_t *copy = json_deep_copy(network), *proxy = json_object_get(copy, "egressProxy");

	json_object_del(proxy, "password");
	redact_rules(json_object_get(copy, "rules"));
	return copy;
}

/* The servers that were asked for, without their settings, which hold keys. */
static json_t *
mcp_data(const json_t *mcp)
{
	json_t *ret = json_object();
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)mcp, name, value)
		json_set(ret, name, json_object());
	return ret;
}

static json_t *
resources_data(const struct template_resources *res)
{
	json_t *ret = json_object();

	json_set_str(ret, "cpu", res->cpu);
	json_set_str(ret, "memory", res->memory);
	json_set_str(ret, "cpuLimit", res->cpu_limit);
	json_set_str(ret, "memoryLimit", res->memory_limit);
	return ret;
}

static char *
sandbox_data(const struct blueprint_request *r)
{
	json_t *d CLEANUP(json_unrefp) = json_object(), *life = json_object();
	const struct sandbox_spec *s = r->spec;

	json_set(d, "metadata", json_incref(r->metadata));
	json_set_str(d, "template", s->template_id);
	json_set_str(d, "image", s->image);
	json_set_int(d, "port", r->port);
	json_set(d, "resources", resources_data(&r->res));
	json_set_str(life, "onEnd", s->on_end == ON_END_PAUSE ? "pause" : "kill");
	json_set_bool(life, "autoResume", s->auto_resume);
	json_set_int(life, "timeout", s->timeout);
	json_set(d, "lifecycle", life);
	json_set_bool(d, "secure", s->secure);
	if (s->network != NULL)
		json_set(d, "network", network_data(s->network));
	if (s->allow_internet != NULL)
		json_set(d, "allowInternetAccess", shared(s->allow_internet));
	if (s->volume_mounts != NULL)
		json_set(d, "volumeMounts", shared(s->volume_mounts));
	if (json_is_object(s->mcp))
		json_set(d, "mcp", mcp_data(s->mcp));
	json_set_str(d, "user", s->template->user);
	json_set_str(d, "workdir", s->template->workdir);
	json_set_str(d, "startCmd", r->start_cmd);
	json_set_str(d, "readyCmd", s->template->ready_cmd);
	return json_text(d);
}

void
blueprint_request_init(struct blueprint_request *r, const struct sandbox_spec *spec)
{
	const struct template *t = spec->template;

	*r = (struct blueprint_request){ .spec = spec, .res = spec->resources };
	r->port = spec->port > 0 ? spec->port : t->port;
	if (r->res.cpu == NULL)
		r->res.cpu = t->resources.cpu;
	if (r->res.memory == NULL)
		r->res.memory = t->resources.memory;
	if (r->res.cpu_limit == NULL)
		r->res.cpu_limit = t->resources.cpu_limit;
	if (r->res.memory_limit == NULL)
		r->res.memory_limit = t->resources.memory_limit;
	r->metadata = t->metadata ? json_copy(t->metadata) : json_object();
	if (spec->metadata != NULL)
		json_object_update(r->metadata, (json_t *)(uintptr_t)spec->metadata);
	r->start_cmd = start_command(spec);
	r->data = sandbox_data(r);
}

void
blueprint_request_done(struct blueprint_request *r)
{
	json_decref(r->metadata);
	xfree(r->start_cmd);
	xfree(r->data);
}

/* --- labels and annotations --- */

/* A template id as a label value: other characters become '-'. */
static void
set_label(json_t *labels, const char *key, const char *text)
{
	char value[LABEL_VALUE_MAX + 1];
	size_t n = 0;

	for (; *text != '\0' && n < LABEL_VALUE_MAX; text++) {
		char c = *text;
		bool alnum =
		    (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!alnum && n == 0)
			continue;
		value[n++] = alnum || c == '_' || c == '.' ? c : '-';
	}
	while (n > 0 && strchr("-_.", value[n - 1]) != NULL)
		n--;
	value[n] = '\0';
	json_set_str(labels, key, value);
}

json_t *
blueprint_labels(const struct sandbox_spec *spec)
{
	json_t *labels = json_object();

	json_set_str(labels, LABEL_OWNER, OWNER_VALUE);
	json_set_str(labels, LABEL_NAME, spec->name);
	json_set_str(labels, LABEL_ID, spec->id);
	set_label(labels, LABEL_TENANT, or_else(spec->tenant, ""));
	set_label(labels, LABEL_TEMPLATE, spec->template_id);
	json_set_str(labels, LABEL_POOL, spec->pool ? "true" : "false");
	return labels;
}

static void
set_number(json_t *ann, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	json_set_str(ann, key, text);
}

json_t *
blueprint_request_annotations(const struct blueprint_request *r, const struct blueprint_env *env)
{
	const struct sandbox_spec *s = r->spec;
	json_t *ann = json_object();
	char text[TIME_TEXT_MAX];

	json_set_str(ann, ANNOTATION_DATA, r->data);
	json_set_str(ann, ANNOTATION_DESIRED, s->pool ? "warm" : "running");
	json_set_str(ann, ANNOTATION_GENERATION, "1");
	time_format(s->started, 6, text);
	json_set_str(ann, ANNOTATION_STARTED, text);
	if (s->end_at != TIME_NEVER)
		time_format(s->end_at, 6, text);
	json_set_str(ann, ANNOTATION_END, s->end_at != TIME_NEVER ? text : NEVER);
	json_set_str(ann, ANNOTATION_ON_END, s->on_end == ON_END_PAUSE ? "pause" : "kill");
	if (s->idle_after > 0)
		set_number(ann, ANNOTATION_IDLE_AFTER, s->idle_after);
	json_set_str(ann, ANNOTATION_AUTO_RESUME, s->auto_resume ? "true" : "false");
	json_set_str(ann, ANNOTATION_SEALED, s->sealed);
	if (env->rev != NULL && env->rev[0] != '\0')
		json_set_str(ann, ANNOTATION_REV, env->rev);
	return ann;
}

json_t *
blueprint_annotations(const struct blueprint_env *env, const struct sandbox_spec *spec)
{
	struct blueprint_request r;
	json_t *ret;

	blueprint_request_init(&r, spec);
	ret = blueprint_request_annotations(&r, env);
	blueprint_request_done(&r);
	return ret;
}

/* --- the template's data --- */

static json_t *
new_struct(void)
{
	json_t *ret = json_object();

	json_set_bool(ret, GOTEMPLATE_STRUCT, true);
	return ret;
}

static json_t *
shared_or(const json_t *v, json_t *dflt)
{
	if (v == NULL)
		return dflt;
	json_decref(dflt);
	return shared(v);
}

static json_t *
template_object(const struct template *t)
{
	json_t *o = new_struct();

	json_set_str(o, "Name", t->name);
	json_set_str(o, "Image", t->image);
	json_set_str(o, "Description", or_else(t->description, ""));
	json_set_str(o, "Pattern", or_else(t->pattern, ""));
	json_set_str(o, "Type", t->pattern ? "dynamic" : "");
	json_set_str(o, "Shell", or_else(t->shell, ""));
	json_set_int(o, "Port", t->port);
	json_set_bool(o, "NoStartupProbe", t->no_startup_probe);
	json_set(o, "Args", shared_or(t->args, json_array()));
	json_set(o, "Cmd", shared_or(t->cmd, json_array()));
	json_set(o, "EnvVars", shared_or(t->env_vars, json_object()));
	json_set(o, "Metadata", shared_or(t->metadata, json_object()));
	json_set(o, "Pool", shared_or(t->pool, json_null()));
	return o;
}

static json_t *
command_text(const struct sandbox_spec *s)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };

	strbuf_init(&b, START_CMD_MAX);
	add_words(&b, cmd_of(s));
	return json_string(b.n > 0 && !b.failed ? b.p : "");
}

json_t *
blueprint_template_data(const struct blueprint_request *r, const char *ns)
{
	json_t *top = new_struct(), *o = new_struct();
	const struct sandbox_spec *s = r->spec;

	json_set_str(o, "Name", s->name);
	json_set_str(o, "ID", s->id);
	json_set_str(o, "User", or_else(s->tenant, ""));
	json_set_str(o, "Template", s->template_id);
	json_set_str(o, "Image", s->image);
	json_set_int(o, "Port", r->port);
	json_set(o, "Cmd", command_text(s));
	json_set(o, "Args", shared_or(args_of(s), json_array()));
	json_set(o, "EnvVars", shared_or(s->env_vars, json_object()));
	json_set_str(o, "CPU", r->res.cpu);
	json_set_str(o, "Memory", r->res.memory);
	json_set_str(o, "CPULimit", r->res.cpu_limit);
	json_set_str(o, "MemoryLimit", r->res.memory_limit);
	json_set_bool(o, "IsPool", s->pool);
	json_set(o, "Metadata", json_incref(r->metadata));
	json_set(o, "TemplateObj", template_object(s->template));
	json_set_str(top, "Namespace", ns);
	json_set_str(top, "RawData", r->data);
	json_set(top, "Sandbox", o);
	return top;
}
