/* See e2b_json.h. */
#include "apiserver/e2b_json.h"

#include "base/clock.h"
#include "base/json.h"
#include "kube/kube_obj.h"

#define CLIENT_ID "agentsandbox" /* required in answers, meaningless; safe in a host name */
/* "Never ends" for clients that need a date. */
#define FAR_FUTURE "9999-12-31T23:59:59.000000Z"
#define MIB (INT64_C(1024) * 1024)

static void
put_time(json_t *o, const char *key, int64_t at)
{
	char text[TIME_TEXT_MAX];

	if (at != TIME_NEVER)
		time_format(at, 6, text);
	json_set_str(o, key, at == TIME_NEVER ? FAR_FUTURE : text);
}

static void
put_identity(json_t *o, const struct sandbox *s)
{
	json_set_str(o, "templateID", s->template_id);
	json_set_str(o, "alias", s->template_id);
	json_set_str(o, "sandboxID", s->id);
	json_set_str(o, "clientID", CLIENT_ID);
	json_set_str(o, "envdVersion", ENVD_VERSION);
}

static void
put_envd_token(json_t *o, const struct sandbox *s, const struct install_key *key)
{
	char token[TOKEN_LEN + 1];

	if (!s->secure)
		return;
	token_envd(key, strv_of(s->id), token);
	json_set_str(o, "envdAccessToken", token);
}

static void
put_domain(json_t *o, const char *domain)
{
	json_set(o, "domain", domain[0] != '\0' ? json_string(domain) : json_null());
}

json_t *
e2b_json_sandbox(const struct sandbox *s, const struct install_key *key, const char *domain)
{
	json_t *o = json_object();
	char token[TOKEN_LEN + 1];

	put_identity(o, s);
	put_envd_token(o, s, key);
	put_domain(o, domain);
	if (s->private_ingress) {
		token_traffic(key, strv_of(s->id), token);
		json_set_str(o, "trafficAccessToken", token);
	}
	return o;
}

bool
e2b_is_paused(const struct sandbox_entry *e)
{
	return e->state == SANDBOX_PAUSED || e->state == SANDBOX_PAUSING;
}

/* Whole cores, rounded up, and MiB, from the container's limits. */
static void
put_size(json_t *o, const json_t *data)
{
	const char *cpu = json_get_str(data, "resources.cpuLimit");
	const char *memory = json_get_str(data, "resources.memoryLimit");
	int64_t milli = 0, bytes = 0;

	if (cpu == NULL || kube_obj_milli(strv_of(cpu), &milli) == -1)
		milli = 1000;
	if (memory == NULL || kube_obj_units(strv_of(memory), &bytes) == -1)
		bytes = 0;
	json_set_int(o, "cpuCount", milli > 1000 ? (milli + 999) / 1000 : 1);
	json_set_int(o, "memoryMB", bytes / MIB);
	json_set_int(o, "diskSizeMB", 0); /* a pod has the node's disk, without a size of its own */
}

static void
put_metadata(json_t *o, const struct sandbox *s)
{
	json_t *m = json_object();

	for (size_t i = 0; i < s->metadata_n; i++)
		json_set_str(m, s->metadata[i].key, s->metadata[i].value);
	json_set(o, "metadata", m);
}

static json_t *
listed(const struct sandbox_entry *e, const json_t *data)
{
	const struct sandbox *s = e->sandbox;
	bool paused = e2b_is_paused(e);
	json_t *o = json_object();

	put_identity(o, s);
	put_time(o, "startedAt", s->started);
	put_time(o, "endAt", paused ? s->paused_at : s->end_at);
	json_set_str(o, "state", paused ? "paused" : "running");
	put_size(o, data);
	put_metadata(o, s);
	return o;
}

static json_t *
data_of(const struct sandbox *s)
{
	json_t *data;

	return json_parse(strv_of(s->data), strlen(s->data), &data, NULL) == 0 ? data
	                                                                       : json_object();
}

json_t *
e2b_json_listed(const struct sandbox_entry *e)
{
	CLEANUP(json_unrefp) json_t *data = data_of(e->sandbox);

	return listed(e, data);
}

/* Members that are null are left out: in place of a list they break Python's SDK. */
static json_t *
without_nulls(const json_t *o)
{
	json_t *copy = json_deep_copy(o), *v;
	const char *key;
	void *next;

	json_object_foreach_safe(copy, next, key, v) if (json_is_null(v))
	    json_object_del(copy, key);
	return copy;
}

json_t *
e2b_json_detail(const struct sandbox_entry *e, const struct install_key *key, const char *domain)
{
	CLEANUP(json_unrefp) json_t *data = data_of(e->sandbox);
	const struct sandbox *s = e->sandbox;
	const json_t *network = json_get_obj(data, "network");
	json_t *o = listed(e, data), *lifecycle = json_object();

	put_envd_token(o, s, key);
	put_domain(o, domain);
	if (json_get(data, "allowInternetAccess") != NULL)
		json_set_bool(
		    o, "allowInternetAccess", json_get_bool(data, "allowInternetAccess", true));
	if (network != NULL)
		json_set(o, "network", without_nulls(network));
	json_set_bool(lifecycle, "autoResume", s->auto_resume);
	json_set_str(lifecycle, "onTimeout", s->on_end == ON_END_PAUSE ? "pause" : "kill");
	json_set(o, "lifecycle", lifecycle);
	return o;
}
