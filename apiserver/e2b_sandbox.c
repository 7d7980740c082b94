/*
 * E2B: one sandbox (get, kill, timeout, connect, pause). Create is in e2b_create.c, lists in
 * e2b_list.c.
 */
#include "apiserver/e2b.h"
#include "apiserver/e2b_json.h"
#include "base/json.h"

bool
e2b_path_id(struct api_call *c, struct strv *id)
{
	struct strv rest;

	*id = strv_cut(c->param[0], '-', &rest);
	if (sandbox_id_valid(*id) && strv_chr(rest, '-') == -1)
		return true;
	api_fail_with(c, ERR_INVALID, "Invalid sandbox ID");
	return false;
}

static const char *
domain_of(const struct api_call *c)
{
	return conf_text(c->app->conf, "SANDBOX_DOMAIN");
}

/* --- get --- */

static void
got(const struct sandbox_entry *entry, const struct err *e, void *arg)
{
	struct api_call *c = arg;

	c->op = NULL;
	if (e != NULL)
		api_fail(c, e);
	else
		api_json(c, 200,
		    e2b_json_detail(entry, settings_install_key(c->app->settings), domain_of(c)));
}

void
e2b_get(struct api_call *c)
{
	struct strv id;

	if (e2b_path_id(c, &id))
		c->op = service_get(c->app->service, &c->tenant, id, got, c);
}

/* --- calls that answer 204 --- */

static void
done_empty(const struct sandbox_entry *entry UNUSED, const struct err *e, void *arg)
{
	struct api_call *c = arg;

	c->op = NULL;
	if (e != NULL)
		api_fail(c, e);
	else
		api_empty(c, 204);
}

void
e2b_kill(struct api_call *c)
{
	struct strv id;

	if (e2b_path_id(c, &id))
		c->op = service_kill(c->app->service, &c->tenant, id, done_empty, c);
}

void
e2b_pause(struct api_call *c)
{
	struct strv id;

	if (e2b_path_id(c, &id))
		c->op = service_pause(c->app->service, &c->tenant, id, done_empty, c);
}

/* The body's timeout in seconds; false: the call was failed. dflt -2: required. -1 is our extension
 * "never". */
#define REQUIRED (-2)

static bool
body_timeout(struct api_call *c, int64_t dflt, int64_t *ret)
{
	const json_t *v = json_object_get(c->body, "timeout");

	*ret = dflt;
	if (v == NULL && dflt != REQUIRED)
		return true;
	if (!json_is_integer(v)) {
		api_fail_with(
		    c, ERR_INVALID, "validation error: 'timeout' must be an integer (seconds)");
		return false;
	}
	*ret = json_integer_value(v);
	return true;
}

void
e2b_set_timeout(struct api_call *c)
{
	struct strv id;
	int64_t timeout;

	if (!e2b_path_id(c, &id) || !body_timeout(c, REQUIRED, &timeout))
		return;
	if (timeout < 0 || timeout > INT32_MAX)
		api_fail_with(c, ERR_INVALID, "validation error: 'timeout' must be at least 0");
	else
		c->op =
		    service_set_timeout(c->app->service, &c->tenant, id, timeout, done_empty, c);
}

/* --- connect --- */

static void
connected(const struct sandbox_entry *entry, const struct err *e, void *arg)
{
	struct api_call *c = arg;
	int status = service_op_resumed(c->op) ? 201 : 200;

	c->op = NULL;
	if (e != NULL)
		api_fail(c, e);
	else
		api_json(c, status,
		    e2b_json_sandbox(
		        entry->sandbox, settings_install_key(c->app->settings), domain_of(c)));
}

static void
connect_with(struct api_call *c, int64_t dflt)
{
	int64_t timeout;
	struct strv id;
	struct err e;

	if (!e2b_path_id(c, &id) || !body_timeout(c, dflt, &timeout))
		return;
	if (e2b_check_timeout(c->app->conf, timeout, &e) == -1)
		api_fail(c, &e);
	else
		c->op = service_connect(c->app->service, &c->tenant, id, timeout, connected, c);
}

void
e2b_connect(struct api_call *c)
{
	connect_with(c, REQUIRED);
}

void
e2b_connect_v2(struct api_call *c)
{
	connect_with(c, E2B_TIMEOUT_V2);
}
