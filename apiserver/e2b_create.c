/*
 * E2B: create, v1 and v2. Everything is checked before anything is made, about in the order of the
 * real server, with messages that name the field.
 */
#include <ctype.h>

#include "apiserver/e2b.h"
#include "apiserver/e2b_json.h"
#include "base/json.h"

enum field_type {
	FIELD_TEXT = 0,
	FIELD_INT,
	FIELD_BOOL,
	FIELD_OBJECT,
	FIELD_TEXTS, /* an object of them */
	FIELD_ARRAY,
	FIELD_TEXT_LIST
};

static const struct {
	const char *name;
	enum field_type type;
	const char *what;
} fields[] = {
	{ "templateID", FIELD_TEXT, "a string" },
	{ "timeout", FIELD_INT, "an integer (seconds)" },
	{ "metadata", FIELD_TEXTS, "an object of strings" },
	{ "envVars", FIELD_TEXTS, "an object of strings" },
	{ "secure", FIELD_BOOL, "true or false" },
	{ "allow_internet_access", FIELD_BOOL, "true or false" },
	{ "autoPause", FIELD_BOOL, "true or false" },
	{ "autoPauseMemory", FIELD_BOOL, "true or false" },
	{ "autoResume", FIELD_OBJECT, "an object" },
	{ "network", FIELD_OBJECT, "an object" },
	{ "volumeMounts", FIELD_ARRAY, "an array" },
	{ "mcp", FIELD_OBJECT, "an object" },
	{ "iam", FIELD_OBJECT, "an object" },
	/* Behind what holds them. */
	{ "autoResume.enabled", FIELD_BOOL, "true or false" },
	{ "network.allowPublicTraffic", FIELD_BOOL, "true or false" },
	{ "network.maskRequestHost", FIELD_TEXT, "a string" },
	{ "network.allowOut", FIELD_TEXT_LIST, "an array of strings" },
	{ "network.denyOut", FIELD_TEXT_LIST, "an array of strings" },
	{ "network.rules", FIELD_OBJECT, "an object" },
	{ "network.egressProxy", FIELD_OBJECT, "an object" },
};

static bool
all_texts(const json_t *v)
{
	const char *key;
	json_t *item;

	if (!json_is_object(v))
		return false;
	json_object_foreach ((json_t *)(uintptr_t)v, key, item)
		if (!json_is_string(item))
			return false;
	return true;
}

static bool
text_list(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_string(json_array_get(v, i)))
			return false;
	return json_is_array(v);
}

static bool
has_type(const json_t *v, enum field_type type)
{
	switch (type) {
	case FIELD_TEXT:
		return json_is_string(v);
	case FIELD_INT:
		return json_is_integer(v);
	case FIELD_BOOL:
		return json_is_boolean(v);
	case FIELD_OBJECT:
		return json_is_object(v);
	case FIELD_TEXTS:
		return all_texts(v);
	case FIELD_ARRAY:
		return json_is_array(v);
	case FIELD_TEXT_LIST:
		return text_list(v);
	}
	return false;
}

static int
check_types(const json_t *body, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *v = json_get(body, fields[i].name);

		if (v != NULL && !has_type(v, fields[i].type))
			return err_set(e, ERR_INVALID, "validation error: '%s' must be %s",
			    fields[i].name, fields[i].what);
	}
	if (json_get_str(body, "templateID") == NULL)
		return err_set(e, ERR_INVALID, "validation error: 'templateID' is required");
	return 0;
}

int
e2b_check_timeout(const struct conf *conf, int64_t timeout, struct err *e)
{
	int64_t limit = conf_int(conf, "MAX_LIFETIME");

	if (timeout == -1 && !conf_bool(conf, "ALLOW_ENDLESS"))
		return err_set(
		    e, ERR_INVALID, "Timeout -1: sandboxes without an end are not allowed here");
	if (timeout < -1 || timeout > INT32_MAX)
		return err_set(e, ERR_INVALID, "validation error: 'timeout' must be at least 0");
	if (limit > 0 && timeout > limit)
		return err_set(e, ERR_INVALID, "Timeout cannot be greater than %lld hours",
		    (long long)limit / 3600);
	return 0;
}

static int
check_pause(const json_t *body, struct err *e)
{
	bool pause = json_get_bool(body, "autoPause", false);
	bool memory = json_get_bool(body, "autoPauseMemory", true);

	if (!memory && !pause)
		return err_set(e, ERR_INVALID, "'autoPauseMemory: false' needs 'autoPause: true'");
	if (!memory && json_get_bool(body, "autoResume.enabled", false))
		return err_set(e, ERR_INVALID, "'autoPauseMemory: false' excludes 'autoResume'");
	return 0;
}

/* A host name or address with an optional port, where ${PORT} stands for the port. */
static bool
host_valid(const char *host)
{
	bool any = false;

	if (!isalnum((unsigned char)host[0]) && host[0] != '$' && host[0] != '[')
		return false;
	for (const char *p = host; *p != '\0'; p++) {
		if (strncmp(p, "${PORT}", 7) == 0)
			p += 6;
		else if (!isalnum((unsigned char)*p) && strchr("-._:[]", *p) == NULL)
			return false;
		any = true;
	}
	return any && strlen(host) <= 253;
}

static int
check_network(const json_t *body, bool secure, struct err *e)
{
	const json_t *net = json_get_obj(body, "network");
	const char *mask = json_get_str(net, "maskRequestHost");

	if (json_get_obj(net, "egressProxy") != NULL)
		return err_set(e, ERR_FORBIDDEN, "'network.egressProxy' is not offered here");
	if (json_object_size(json_get_obj(net, "rules")) > 0)
		return err_set(e, ERR_INVALID, "'network.rules' are not offered here");
	if (!json_get_bool(net, "allowPublicTraffic", true) && !secure)
		return err_set(
		    e, ERR_INVALID, "'network.allowPublicTraffic: false' needs 'secure: true'");
	if (mask != NULL && !host_valid(mask))
		return err_set(e, ERR_INVALID, "'network.maskRequestHost' is no host name");
	/* Never accepted silently: what is asked would not be enforced. */
	if (json_array_size(json_get_arr(net, "allowOut")) > 0 ||
	    json_array_size(json_get_arr(net, "denyOut")) > 0 ||
	    !json_get_bool(body, "allow_internet_access", true))
		return err_set(e, ERR_UNSUPPORTED,
		    "this installation does not restrict a sandbox's outgoing traffic yet");
	return 0;
}

static int
check_env(const json_t *env, struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)env, key, v)
		if (key[0] == '\0' || strchr(key, '=') != NULL)
			return err_set(
			    e, ERR_INVALID, "'envVars' has a name that is empty or contains '='");
	return 0;
}

static int
check_sizes(const json_t *body, struct err *e)
{
	const char *key;
	json_t *v;
	size_t n = 0;

	json_object_foreach ((json_t *)(uintptr_t)json_get_obj(body, "metadata"), key, v)
		n += strlen(key) + json_string_length(v);
	if (n > E2B_METADATA_MAX)
		return err_set(
		    e, ERR_INVALID, "'metadata' is larger than %zu bytes", E2B_METADATA_MAX);
	return 0;
}

static int
check(const struct api_call *c, int64_t timeout, bool secure, struct err *e)
{
	const json_t *body = c->body;

	if (timeout == 0)
		return err_set(e, ERR_INVALID, "Timeout must be greater than 0");
	if (e2b_check_timeout(c->app->conf, timeout, e) == -1 || check_pause(body, e) == -1 ||
	    check_network(body, secure, e) == -1 ||
	    check_env(json_get_obj(body, "envVars"), e) == -1 || check_sizes(body, e) == -1)
		return -1;
	if (json_get_obj(body, "iam") != NULL)
		return err_set(e, ERR_INVALID, "'iam' is not offered here");
	if (json_array_size(json_get_arr(body, "volumeMounts")) > 0)
		return err_set(e, ERR_INVALID, "'volumeMounts': volumes are switched off");
	return 0;
}

/* metadata.idleTimeout in seconds, as the program that users migrate from reads it; anything else
 * is off. */
static int64_t
idle_timeout(const json_t *body)
{
	const char *text = json_member_str(json_get_obj(body, "metadata"), "idleTimeout");
	int64_t n;

	return text != NULL && strv_i64(strv_of(text), 1, INT32_MAX, &n) == 0 ? n : 0;
}

static void
created(const struct sandbox_entry *entry, const struct err *e, void *arg)
{
	struct api_call *c = arg;

	c->op = NULL;
	if (e != NULL)
		api_fail(c, e);
	else
		api_json(c, 201,
		    e2b_json_sandbox(entry->sandbox, settings_install_key(c->app->settings),
		        conf_text(c->app->conf, "SANDBOX_DOMAIN")));
}

static void
create(struct api_call *c, int64_t dflt_timeout, bool always_secure)
{
	const json_t *body = c->body;
	int64_t timeout;
	bool secure;
	struct err e;

	if (check_types(body, &e) == -1) {
		api_fail(c, &e);
		return;
	}
	timeout = json_get_int(body, "timeout", dflt_timeout);
	secure = always_secure || json_get_bool(body, "secure", false);
	if (check(c, timeout, secure, &e) == -1) {
		api_fail(c, &e);
		return;
	}
	c->op = service_create(c->app->service,
	    &(struct create_request){ .tenant = &c->tenant,
	        .template_id = json_get_str(body, "templateID"),
	        .metadata = json_get_obj(body, "metadata"),
	        .env_vars = json_get_obj(body, "envVars"),
	        .network = json_get_obj(body, "network"),
	        .allow_internet = json_get(body, "allow_internet_access"),
	        .mcp = json_get_obj(body, "mcp"),
	        .timeout = timeout,
	        .on_end = json_get_bool(body, "autoPause", false) ? ON_END_PAUSE : ON_END_KILL,
	        .auto_resume = json_get_bool(body, "autoResume.enabled", false),
	        .secure = secure,
	        .idle_after = idle_timeout(body) },
	    created, c);
}

void
e2b_create(struct api_call *c)
{
	create(c, E2B_TIMEOUT_V1, false);
}

void
e2b_create_v2(struct api_call *c)
{
	create(c, E2B_TIMEOUT_V2, true);
}
