/* See small.h. */
#include "envd/small.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "envd/state.h"
#include "envd/usage.h"

#define MIB ((uint64_t)1024 * 1024)

static const struct http_field no_store = { STRV("Cache-Control"), STRV("no-store") };

void
small_health(struct call *c, const struct http_head *h UNUSED)
{
	const struct state *s = c->app->state;
	const struct http_field f[] = { no_store, { STRV("X-Envd-State"), STRV("new") } };
	bool fresh = s->require_init && !s->initialised;

	call_reply(c, 204, f, fresh ? 2 : 1, STRV_NONE);
}

static void
reply_json(struct call *c, json_t *m)
{
	const struct http_field f[] = { no_store,
		{ STRV("Content-Type"), STRV("application/json") } };
	char *text = json_text(m);

	json_decref(m);
	call_reply(c, 200, f, ARRAY_LEN(f), strv_of(text));
	xfree(text);
}

void
small_envs(struct call *c, const struct http_head *h UNUSED)
{
	reply_json(c, state_env(c->app->state));
}

void
small_metrics(struct call *c, const struct http_head *h UNUSED)
{
	struct usage_sample s;
	json_t *m = json_object();

	usage_read(c->app->usage, &s);
	json_set_int(m, "ts", clock_wall() / NS_PER_S);
	json_set_int(m, "cpu_count", s.cpu_count);
	/* two decimals */
	json_set(m, "cpu_used_pct", json_real((double)(int64_t)(s.cpu_used_pct * 100 + 0.5) / 100));
	json_set_int(m, "mem_total_mib", (int64_t)(s.mem_total / MIB));
	json_set_int(m, "mem_used_mib", (int64_t)(s.mem_used / MIB));
	json_set_int(m, "mem_total", (int64_t)s.mem_total);
	json_set_int(m, "mem_used", (int64_t)s.mem_used);
	json_set_int(m, "mem_cache", (int64_t)s.mem_cache);
	json_set_int(m, "disk_used", (int64_t)s.disk_used);
	json_set_int(m, "disk_total", (int64_t)s.disk_total);
	reply_json(c, m);
}
