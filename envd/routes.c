/* See routes.h. Order: preflight, not-initialised gate, token, route. */
#include "envd/routes.h"

#include "envd/auth.h"
#include "envd/files.h"
#include "envd/init.h"
#include "envd/rpc.h"
#include "envd/small.h"
#include "envd/state.h"

enum route_flags {
	ROUTE_TOKEN = 0,  /* needs the access token, once there is one */
	ROUTE_OPEN = 1,   /* looks after that itself */
	ROUTE_BEFORE = 2, /* also before /init */
};

struct route {
	const char *path;
	enum http_method method;
	unsigned flags;
	void (*handle)(struct call *c, const struct http_head *h);
};

static const struct route routes[] = {
	{ "/health", HTTP_GET, ROUTE_OPEN | ROUTE_BEFORE, small_health },
	{ "/init", HTTP_POST, ROUTE_OPEN | ROUTE_BEFORE, init_post },
	{ "/files", HTTP_GET, ROUTE_OPEN, files_get },
	{ "/files", HTTP_POST, ROUTE_OPEN, files_post },
	{ "/envs", HTTP_GET, ROUTE_TOKEN, small_envs },
	{ "/metrics", HTTP_GET, ROUTE_TOKEN, small_metrics },
};

/* The route; NULL if there is none. *allow: the methods that the path has, if only that is wrong.
 */
static const struct route *
find(const struct http_head *h, const char **allow)
{
	*allow = NULL;
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!strv_is(h->path, routes[i].path))
			continue;
		if (routes[i].method == h->method)
			return &routes[i];
		if (*allow)
			*allow = "GET, POST";
		else
			*allow = routes[i].method == HTTP_GET ? "GET" : "POST";
	}
	return NULL;
}

static void
refuse_new(struct call *c)
{
	const struct http_field f[] = {
		{ STRV("X-Envd-State"), STRV("new") },
		{ STRV("Content-Type"), STRV("application/json; charset=utf-8") },
	};

	call_reply(c, 425, f, ARRAY_LEN(f),
	    STRV("{\"code\":425,\"message\":\"this sandbox is not initialised yet\"}"));
}

static void
refuse_method(struct call *c, const char *allow)
{
	const struct http_field f = { STRV("Allow"), strv_of(allow) };

	call_reply(c, 405, &f, 1, STRV_NONE);
}

void
routes_dispatch(struct call *c, const struct http_head *h)
{
	const struct state *s = c->app->state;
	const struct rpc_method *m = NULL;
	const struct route *r;
	const char *allow;
	unsigned flags;

	if (h->method == HTTP_OPTIONS && http_head_get(h, "Access-Control-Request-Method")) {
		call_preflight(c, h);
		return;
	}
	r = find(h, &allow);
	flags = r ? r->flags : ROUTE_TOKEN;
	if (s->require_init && !s->initialised && !(flags & ROUTE_BEFORE)) {
		refuse_new(c);
		return;
	}
	if (!(flags & ROUTE_OPEN) && !auth_token_ok(c->app, h)) {
		call_error(c, 401, "%s", AUTH_DENIED);
		return;
	}
	if (r == NULL && allow == NULL)
		m = rpc_method_find(h->path);
	if (r)
		r->handle(c, h);
	else if (m)
		rpc_begin(c, m, h);
	else if (allow)
		refuse_method(c, allow);
	else
		call_error(c, 404, "not found");
}
