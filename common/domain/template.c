/*
 * Parses the template list field by field, so that a mistake is named where it is, and resolves
 * ids. Patterns: template_pattern.c; references: template_ref.c.
 */
#include "domain/template.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"
#include "domain/template_pattern.h"
#include "kube/kube_obj.h"

#define PORT_DEFAULT 8080
#define TEXT_MAX (16 * 1024) /* of one field */
#define LIST_MAX 256         /* items of args, cmd, envVars, metadata */
#define POOL_SIZE_MAX 10000

#define CPU_DEFAULT "50m"
#define MEMORY_DEFAULT "100Mi"
#define CPU_LIMIT_DEFAULT "2000m"
#define MEMORY_LIMIT_DEFAULT "4000Mi"

struct item {
	struct template t;
	struct template_pattern *pattern; /* NULL: static */
};

struct templates {
	size_t n;
	struct item *item;
	struct map *by_name; /* → struct item, static ones */
};

/* One definition while it is read. */
struct reader {
	const json_t *def;
	const char *name; /* for messages */
	struct err *e;
};

static int bad(const struct reader *r, const char *field, const char *fmt, ...) PRINTF(3, 4);

static int
bad(const struct reader *r, const char *field, const char *fmt, ...)
{
	char what[120];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(r->e, ERR_INVALID, "template '%.64s': field '%s' %s", r->name, field, what);
}

/* A member that is there and not null. */
static const json_t *
member(const struct reader *r, const char *field)
{
	const json_t *v = json_object_get(r->def, field);

	return json_is_null(v) ? NULL : v;
}

/* *ret: copy, or NULL when absent or empty. */
static int
read_text(const struct reader *r, const char *field, char **ret)
{
	const json_t *v = member(r, field);

	if (v == NULL)
		return 0;
	if (!json_is_string(v))
		return bad(r, field, "must be a text");
	if (json_string_length(v) > TEXT_MAX)
		return bad(r, field, "is longer than %d bytes", TEXT_MAX);
	if (json_string_length(v) > 0)
		*ret = xstrdup(json_string_value(v));
	return 0;
}

/* Text of a text, number or boolean; NULL for anything else. */
static char *
scalar_text(const json_t *v)
{
	char number[32];

	if (json_is_string(v))
		return xstrdup(json_string_value(v));
	if (json_is_boolean(v))
		return xstrdup(json_is_true(v) ? "true" : "false");
	if (json_is_integer(v)) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return xstrdup(number);
	}
	if (json_is_real(v)) {
		snprintf(number, sizeof(number), "%.15g", json_real_value(v));
		return xstrdup(number);
	}
	return NULL;
}

/* A list of texts; one text alone is a list of one. NULL when absent or empty. */
static int
read_list(const struct reader *r, const char *field, json_t **ret)
{
	const json_t *v = member(r, field);
	json_t *list;

	if (v == NULL || (json_is_string(v) && json_string_length(v) == 0))
		return 0;
	if (json_is_string(v)) {
		*ret = json_pack("[s]", json_string_value(v));
		return 0;
	}
	if (!json_is_array(v) || json_array_size(v) > LIST_MAX)
		return bad(r, field, "must be a list of at most %d texts", LIST_MAX);
	if (json_array_size(v) == 0)
		return 0;
	list = json_array();
	for (size_t i = 0; i < json_array_size(v); i++) {
		char *text CLEANUP(xfreep) = scalar_text(json_array_get(v, i));

		if (text == NULL || strlen(text) > TEXT_MAX) {
			json_decref(list);
			return bad(r, field, "must be a list of texts");
		}
		json_array_append_new(list, json_string(text));
	}
	*ret = list;
	return 0;
}

/* An object of texts (numbers and booleans become texts). NULL when absent. */
static int
read_texts(const struct reader *r, const char *field, json_t **ret)
{
	const json_t *v = member(r, field), *value;
	const char *key;
	json_t *map;

	if (v == NULL)
		return 0;
	if (!json_is_object(v) || json_object_size(v) > LIST_MAX)
		return bad(r, field, "must be an object of at most %d texts", LIST_MAX);
	map = json_object();
	for (void *it = json_object_iter((json_t *)(uintptr_t)v); it != NULL;
	     it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
		char *text CLEANUP(xfreep) = NULL;

		key = json_object_iter_key(it);
		value = json_object_iter_value(it);
		text = scalar_text(value);
		if (text == NULL || strlen(text) > TEXT_MAX) {
			json_decref(map);
			return bad(r, field, "must be an object of texts: see '%.40s'", key);
		}
		json_set_str(map, key, text);
	}
	*ret = map;
	return 0;
}

static int
read_int(const struct reader *r, const char *field, int max, int *ret)
{
	const json_t *v = member(r, field);

	if (v == NULL)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > max)
		return bad(r, field, "must be a number from 1 to %d", max);
	*ret = (int)json_integer_value(v);
	return 0;
}

static int
read_bool(const struct reader *r, const char *field, bool *ret)
{
	const json_t *v = member(r, field);

	if (v == NULL)
		return 0;
	if (!json_is_boolean(v))
		return bad(r, field, "must be true or false");
	*ret = json_is_true(v);
	return 0;
}

static int
read_quantity(const struct reader *r, const char *field, bool cpu, const char *dflt, char **ret)
{
	const json_t *v = member(r, field);
	int64_t n;

	*ret = v == NULL ? xstrdup(dflt) : scalar_text(v);
	if (*ret == NULL ||
	    (cpu ? kube_obj_milli(strv_of(*ret), &n) : kube_obj_units(strv_of(*ret), &n)) == -1)
		return bad(r, field, "must be a quantity such as %s", dflt);
	return 0;
}

static int
read_resources(const struct reader *r, struct template_resources *res)
{
	const json_t *v = member(r, "resources");
	struct reader in = { v, r->name, r->e };

	if (v != NULL && !json_is_object(v))
		return bad(r, "resources", "must be an object");
	if (read_quantity(&in, "cpu", true, CPU_DEFAULT, &res->cpu) == -1 ||
	    read_quantity(&in, "memory", false, MEMORY_DEFAULT, &res->memory) == -1 ||
	    read_quantity(&in, "cpuLimit", true, CPU_LIMIT_DEFAULT, &res->cpu_limit) == -1 ||
	    read_quantity(&in, "memoryLimit", false, MEMORY_LIMIT_DEFAULT, &res->memory_limit) ==
	        -1)
		return -1;
	return 0;
}

static int
read_envd(const struct reader *r, enum envd_mode *ret)
{
	const json_t *v = member(r, "envd");
	const char *text = json_string_value(v);

	if (v == NULL || (text != NULL && strcmp(text, "inject") == 0))
		*ret = ENVD_INJECT;
	else if (text != NULL && strcmp(text, "image") == 0)
		*ret = ENVD_IN_IMAGE;
	else
		return bad(r, "envd", "must be \"image\" or \"inject\"");
	return 0;
}

static int
read_pool(const struct reader *r, struct item *item)
{
	const json_t *v = member(r, "pool"), *size = json_object_get(v, "size");
	struct reader in = { v, r->name, r->e };
	int port = 0;

	if (v == NULL)
		return 0;
	if (!json_is_object(v))
		return bad(r, "pool", "must be an object");
	if (size != NULL &&
	    (!json_is_integer(size) || json_integer_value(size) < 0 ||
	        json_integer_value(size) > POOL_SIZE_MAX))
		return bad(r, "pool.size", "must be a number from 0 to %d", POOL_SIZE_MAX);
	if (item->pattern != NULL && json_integer_value(size) > 0)
		return bad(r, "pool", "is not possible in a dynamic template");
	if (read_int(&in, "probePort", 65535, &port) == -1)
		return -1;
	item->t.pool = json_deep_copy(v);
	return 0;
}

static int
read_type(const struct reader *r, struct item *item)
{
	const json_t *v = member(r, "type");
	const char *type = json_string_value(v);
	bool dynamic = type != NULL && strcmp(type, "dynamic") == 0;
	struct err e = { 0 };

	if (v != NULL && !dynamic && (type == NULL || (strcmp(type, "static") != 0 && *type)))
		return bad(r, "type", "must be \"dynamic\" or \"static\"");
	if (!dynamic)
		return 0;
	if (read_text(r, "pattern", &item->t.pattern) == -1)
		return -1;
	if (template_pattern_compile(strv_of(item->t.pattern), &item->pattern, &e) == -1)
		return bad(r, "pattern", "is not a usable expression: %.80s", e.msg);
	return 0;
}

static int
read_image(const struct reader *r, struct item *item)
{
	struct err e = { 0 };

	if (read_text(r, "image", &item->t.image) == -1)
		return -1;
	if (item->t.image == NULL)
		return bad(r, "image", "is missing");
	if (item->pattern != NULL) {
		if (template_pattern_check(item->pattern, strv_of(item->t.image), &e) == -1)
			return bad(r, "image", "does not fit: %.80s", e.msg);
	} else if (!image_ref_valid(strv_of(item->t.image))) {
		return bad(r, "image", "is not an image reference");
	}
	return 0;
}

static int
read_fields(const struct reader *r, struct template *t)
{
	t->port = PORT_DEFAULT;
	if (read_text(r, "description", &t->description) == -1 ||
	    read_text(r, "user", &t->user) == -1 || read_text(r, "workdir", &t->workdir) == -1 ||
	    read_text(r, "startCmd", &t->start_cmd) == -1 ||
	    read_text(r, "readyCmd", &t->ready_cmd) == -1 ||
	    read_text(r, "shell", &t->shell) == -1 || read_list(r, "args", &t->args) == -1 ||
	    read_list(r, "cmd", &t->cmd) == -1 || read_texts(r, "envVars", &t->env_vars) == -1 ||
	    read_texts(r, "metadata", &t->metadata) == -1 ||
	    read_int(r, "port", 65535, &t->port) == -1 ||
	    read_bool(r, "noStartupProbe", &t->no_startup_probe) == -1 ||
	    read_envd(r, &t->envd) == -1 || read_resources(r, &t->resources) == -1)
		return -1;
	return 0;
}

static bool
name_valid(struct strv s)
{
	if (s.n == 0 || s.n > TEMPLATE_NAME_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool alnum =
		    (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!alnum && (i == 0 || c == '\0' || strchr("-_.:/", c) == NULL))
			return false;
	}
	return true;
}

static int
read_item(const json_t *def, size_t i, struct item *item, struct err *e)
{
	const char *name = json_string_value(json_object_get(def, "name"));
	struct reader r = { def, name, e };

	if (!json_is_object(def))
		return err_set(e, ERR_INVALID, "template number %zu is not an object", i + 1);
	if (name == NULL || !name_valid(strv_of(name)))
		return err_set(e, ERR_INVALID,
		    "template number %zu: field 'name' must have 1 to %d of [A-Za-z0-9-_.:/]",
		    i + 1, TEMPLATE_NAME_MAX);
	item->t.name = xstrdup(name);
	item->t.raw = json_deep_copy(def);
	if (read_type(&r, item) == -1 || read_image(&r, item) == -1 ||
	    read_fields(&r, &item->t) == -1 || read_pool(&r, item) == -1)
		return -1;
	if (item->t.description == NULL)
		item->t.description = xstrdup("");
	return 0;
}

int
templates_parse(struct strv json, struct templates **ret, struct err *e)
{
	json_t *list CLEANUP(json_unrefp) = NULL;
	struct map *names;
	struct templates *t;
	int r = -1;

	if (json_parse(json, TEMPLATES_TEXT_MAX, &list, e) == -1)
		return -1;
	if (!json_is_array(list))
		return err_set(e, ERR_INVALID, "templates must be a JSON array");
	if (json_array_size(list) > TEMPLATES_MAX)
		return err_set(e, ERR_TOO_LARGE, "more than %d templates", TEMPLATES_MAX);
	t = xcalloc(1, sizeof(*t));
	t->by_name = map_new();
	names = map_new();
	t->n = json_array_size(list);
	t->item = xcalloc(t->n + 1, sizeof(*t->item));
	for (size_t i = 0; i < t->n; i++) {
		struct item *item = &t->item[i];

		if (read_item(json_array_get(list, i), i, item, e) == -1)
			goto out;
		if (map_set(names, strv_of(item->t.name), item) != NULL) {
			err_set(e, ERR_INVALID, "template '%.64s' exists twice", item->t.name);
			goto out;
		}
		if (item->pattern == NULL)
			map_set(t->by_name, strv_of(item->t.name), item);
	}
	*ret = t;
	t = NULL;
	r = 0;
out:
	map_free(names, NULL);
	templates_free(t);
	return r;
}

static void
item_done(struct item *item)
{
	struct template *t = &item->t;
	char *texts[] = { t->name, t->image, t->description, t->pattern, t->user, t->workdir,
		t->start_cmd, t->ready_cmd, t->shell, t->resources.cpu, t->resources.memory,
		t->resources.cpu_limit, t->resources.memory_limit };
	json_t *trees[] = { t->args, t->cmd, t->env_vars, t->metadata, t->pool, t->raw };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		xfree(texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		json_decref(trees[i]);
	template_pattern_free(item->pattern);
}

void
templates_free(struct templates *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->n; i++)
		item_done(&t->item[i]);
	map_free(t->by_name, NULL);
	xfree(t->item);
	xfree(t);
}

size_t
templates_count(const struct templates *t)
{
	return t->n;
}

const struct template *
templates_at(const struct templates *t, size_t i)
{
	BUG_ON(i >= t->n);
	return &t->item[i].t;
}

/* 1 found, 0 not, -1 error. */
static int
match_dynamic(const struct templates *t, struct strv id, const struct template **ret, char **image,
    struct err *e)
{
	if (id.n > TEMPLATE_SUBJECT_MAX)
		return 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct item *item = &t->item[i];
		char *text = NULL;
		int r;

		if (item->pattern == NULL)
			continue;
		r = template_pattern_expand(item->pattern, id, strv_of(item->t.image), &text, e);
		if (r == -1)
			return err_wrap(e, "template '%.64s'", item->t.name);
		if (r == 0)
			continue;
		if (!image_ref_valid(strv_of(text))) {
			err_set(e, ERR_INVALID,
			    "template '%.64s' makes no image reference of '" STRV_FMT "'",
			    item->t.name, (int)(id.n < 64 ? id.n : 64), id.p);
			xfree(text);
			return -1;
		}
		*ret = &item->t;
		*image = text;
		return 1;
	}
	return 0;
}

static int
find(const struct templates *t, struct strv id, const struct template **ret, char **image,
    struct err *e)
{
	const struct item *item = map_get(t->by_name, id);

	if (item == NULL)
		return match_dynamic(t, id, ret, image, e);
	*ret = &item->t;
	*image = xstrdup(item->t.image);
	return 1;
}

int
templates_resolve(const struct templates *t, struct strv id, const struct template **ret,
    char **image, struct err *e)
{
	int r = find(t, id, ret, image, e);

	if (r == 0 && id.n > 3 && memcmp(id.p + id.n - 3, "-v1", 3) == 0)
		r = find(t, (struct strv){ id.p, id.n - 3 }, ret, image, e);
	if (r == 0)
		return err_set(e, ERR_NOT_FOUND, "template '" STRV_FMT "' not found",
		    (int)(id.n < 128 ? id.n : 128), id.p ? id.p : "");
	return r == 1 ? 0 : -1;
}
