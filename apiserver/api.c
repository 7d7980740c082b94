/*
 * Router and life of an API call: find the route → authenticate → body → handler → answer. The
 * route tables are in the files of the faces.
 */
#include "apiserver/api.h"

#include <stdarg.h>
#include <stdio.h>

#include "apiserver/api_error.h"
#include "apiserver/auth.h"
#include "apiserver/e2b.h"
#include "apiserver/health.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "http/http_msg.h"

#define E2B_PREFIX "/e2b/v1"
#define QUERY_VALUE_MAX ((size_t)16 * 1024)
#define PATH_MAX_LEN 2048 /* of an API path; sandbox traffic has its own limits */

static struct metric requests =
    COUNTER("agentsandbox_api_requests_total", "API requests by class of status.", "code");
static struct histogram seconds =
    HISTOGRAM("agentsandbox_api_request_seconds", "Time from the request's head to its answer.");

void
api_metrics(struct metrics *m)
{
	metrics_add(m, &requests);
	metrics_add_histogram(m, &seconds);
}

/* --- answers --- */

static const char *
status_class(int status)
{
	static const char *const names[] = { "1xx", "2xx", "3xx", "4xx", "5xx" };

	return status >= 100 && status < 600 ? names[status / 100 - 1] : names[4];
}

static void
call_free(struct api_call *c)
{
	service_cancel(c->op);
	json_decref(c->body);
	xfree(c);
}

/* Everything that is said of a request, in one place, once. */
static void
account(const struct api_call *c, int status, const struct err *e)
{
	int64_t took = clock_mono() - c->req->start;
	enum log_level level = status >= 500                   ? LOG_WARN
	    : c->route != NULL && c->route->flags & ROUTE_OPEN ? LOG_DEBUG
	                                                       : LOG_INFO;

	metric_add(&requests, status_class(status), 1);
	histogram_observe(&seconds, (double)took / 1e9);
	log_at(level, "request", log_s("req", c->req->id), log_v("method", c->head->method_text),
	    log_v("path", c->head->path), log_i("status", status), log_i("us", took / NS_PER_US),
	    log_s("tenant", c->tenant.name), log_s("peer", c->req->peer),
	    log_s("err", e != NULL ? e->msg : NULL));
}

static void
answer(struct api_call *c, int status, const struct http_field *fields, size_t n, struct strv body,
    const struct err *e)
{
	struct http_field all[12];
	size_t m = 0;

	account(c, status, e);
	all[m++] = (struct http_field){ STRV("X-Request-Id"), strv_of(c->req->id) };
	all[m++] = (struct http_field){ STRV("Access-Control-Allow-Origin"), STRV("*") };
	all[m++] = (struct http_field){ STRV("Access-Control-Expose-Headers"),
		STRV("X-Next-Token, X-Total-Running, Retry-After, X-Request-Id") };
	for (size_t i = 0; i < n && m < ARRAY_LEN(all); i++)
		all[m++] = fields[i];
	http_reply(c->req, status, all, m, body);
	call_free(c);
}

void
api_json_with(
    struct api_call *c, int status, const struct http_field *fields, size_t n, json_t *body)
{
	char *text = json_text(body);
	struct http_field all[8];
	size_t m = 0;

	all[m++] =
	    (struct http_field){ STRV("Content-Type"), STRV("application/json; charset=utf-8") };
	for (size_t i = 0; i < n && m < ARRAY_LEN(all); i++)
		all[m++] = fields[i];
	json_decref(body);
	answer(c, status, all, m, strv_of(text), NULL);
	xfree(text);
}

void
api_json(struct api_call *c, int status, json_t *body)
{
	api_json_with(c, status, NULL, 0, body);
}

void
api_empty(struct api_call *c, int status)
{
	answer(c, status, NULL, 0, STRV_NONE, NULL);
}

void
api_text(struct api_call *c, int status, const char *text)
{
	const struct http_field type = { STRV("Content-Type"), STRV("text/plain; charset=utf-8") };

	answer(c, status, &type, 1, strv_of(text), NULL);
}

void
api_fail(struct api_call *c, const struct err *e)
{
	int status = api_error_status(e->code), retry = api_error_retry_after(e);
	json_t *body = api_error_body(status, e->msg);
	char *text = json_text(body), number[16];
	struct http_field fields[2] = { { STRV("Content-Type"),
	    STRV("application/json; charset=utf-8") } };
	size_t n = 1;

	json_decref(body);
	if (retry > 0) {
		(void)snprintf(number, sizeof(number), "%d", retry);
		fields[n++] = (struct http_field){ STRV("Retry-After"), strv_of(number) };
	}
	answer(c, status, fields, n, strv_of(text), e);
	xfree(text);
}

void
api_fail_with(struct api_call *c, enum err_code code, const char *fmt, ...)
{
	struct err e;
	va_list ap;

	va_start(ap, fmt);
	err_vset(&e, code, fmt, ap);
	va_end(ap);
	api_fail(c, &e);
}

void
api_bad_request(
    int status, const char *why, struct strbuf *body, const char **type, void *arg UNUSED)
{
	json_t *tree = api_error_body(status, why);
	char *text = json_text(tree);

	json_decref(tree);
	strbuf_adds(body, text);
	xfree(text);
	*type = "application/json; charset=utf-8";
	metric_add(&requests, status_class(status), 1);
}

int
api_query(struct api_call *c, const char *name, struct strbuf *ret)
{
	struct strv raw;

	strbuf_init(ret, QUERY_VALUE_MAX);
	if (!query_get(c->head->query, name, &raw))
		return 0;
	if (url_decode(raw, true, ret) == -1 || ret->failed) {
		strbuf_done(ret);
		api_fail_with(
		    c, ERR_INVALID, "query parameter '%s' is malformed or too long", name);
		return -1;
	}
	return 1;
}

/* --- routing --- */

/* Segment by segment; empty segments ("//", a trailing "/") are skipped, since some clients keep
 * the slash of a base URL. */
static bool
match(const char *pattern, struct strv path, struct strv *param)
{
	struct strv p = strv_of(pattern), a, b;
	size_t n = 0;

	for (;;) {
		while (p.n > 0 && p.p[0] == '/')
			p = (struct strv){ p.p + 1, p.n - 1 };
		while (path.n > 0 && path.p[0] == '/')
			path = (struct strv){ path.p + 1, path.n - 1 };
		if (p.n == 0 || path.n == 0)
			return p.n == 0 && path.n == 0;
		a = strv_cut(p, '/', &p);
		b = strv_cut(path, '/', &path);
		if (a.p[0] == '{') {
			BUG_ON(n == API_PARAMS_MAX);
			param[n++] = b;
		} else if (!strv_eq(a, b)) {
			return false;
		}
	}
}

static const struct {
	const struct route *routes;
	const size_t *n;
} tables[] = {
	{ health_routes, &health_routes_n },
	{ e2b_routes, &e2b_routes_n },
};

/* NULL with the methods that this path has in allow ("GET, HEAD"), none if it has none. */
static const struct route *
find_route(enum http_method method, struct strv path, struct strv *param, struct strbuf *allow)
{
	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		for (size_t i = 0; i < *tables[t].n; i++) {
			const struct route *r = &tables[t].routes[i];

			if (!match(r->pattern, path, param))
				continue;
			if (r->method == method || (r->method == HTTP_GET && method == HTTP_HEAD))
				return r;
			strbuf_addf(allow, "%s%s%s", allow->n > 0 ? ", " : "",
			    http_method_name(r->method), r->method == HTTP_GET ? ", HEAD" : "");
		}
	}
	return NULL;
}

static struct strv
strip_prefix(struct strv path)
{
	struct strv prefix = STRV(E2B_PREFIX);

	while (path.n > 1 && path.p[0] == '/' && path.p[1] == '/')
		path = (struct strv){ path.p + 1, path.n - 1 };
	if (strv_prefix(path, prefix) && (path.n == prefix.n || path.p[prefix.n] == '/'))
		return (struct strv){ path.p + prefix.n, path.n - prefix.n };
	return path;
}

/* --- a call --- */

static void
on_abort(struct http_req *r, const char *why UNUSED)
{
	struct api_call *c = r->arg;

	log_debug("client left", log_s("req", r->id), log_v("path", c->head->path));
	call_free(c);
}

/* A client that only half-closed loses its answer by this, but one that is gone, which looks the
 * same, would leave a sandbox behind that nobody knows of. */
static void
on_hangup(struct http_req *r)
{
	struct api_call *c = r->arg;

	if (!(c->route->flags & ROUTE_UNDO))
		return;
	on_abort(r, "hung up");
	http_reply_abort(r, "the client hung up");
}

static const struct http_req_ops call_ops = { .on_abort = on_abort, .on_hangup = on_hangup };

static void
run(struct api_call *c)
{
	const char *why;
	struct err e;

	if (!(c->route->flags & ROUTE_ANYTIME) && !service_ready(c->app->service, &why)) {
		err_set(&e, ERR_UNAVAILABLE, "%s", why);
		api_fail(c, &e);
		return;
	}
	c->route->handler(c);
}

static void
on_body(struct http_req *r, struct strv body, void *arg)
{
	struct api_call *c = arg;
	struct err e;

	r->ops = &call_ops;
	r->arg = c;
	if (body.p == NULL && body.n == 0 && !r->body_done) {
		api_fail_with(
		    c, ERR_TOO_LARGE, "the request body is larger than %zu bytes", API_BODY_MAX);
		return;
	}
	if (strv_trim(body).n == 0 && c->route->flags & ROUTE_BODY_OPTIONAL) {
		c->body = json_object();
	} else if (json_parse(body, API_BODY_MAX, &c->body, &e) == -1) {
		api_fail(c, &e);
		return;
	} else if (!json_is_object(c->body)) {
		api_fail_with(
		    c, ERR_INVALID, "validation error: the request body must be a JSON object");
		return;
	}
	run(c);
}

static void
preflight(struct api_call *c)
{
	static const struct http_field fields[] = {
		{ STRV("Access-Control-Allow-Methods"),
		    STRV("GET, HEAD, POST, PUT, PATCH, DELETE") },
		{ STRV("Access-Control-Allow-Headers"),
		    STRV("*, Authorization, X-API-Key, Content-Type") },
		{ STRV("Access-Control-Max-Age"), STRV("7200") },
	};

	answer(c, 204, fields, ARRAY_LEN(fields), STRV_NONE, NULL);
}

static void
no_route(struct api_call *c, struct strv allow)
{
	const struct http_field field = { STRV("Allow"), allow };

	if (allow.n > 0)
		api_json_with(
		    c, 405, &field, 1, api_error_body(405, "this method is not offered here"));
	else
		api_fail_with(c, ERR_NOT_FOUND, "no such path");
}

static void
start(struct api_call *c)
{
	struct err e;

	if (!(c->route->flags & ROUTE_OPEN) &&
	    auth_check(settings_keyring(c->app->settings), c->head, &c->tenant, &e) == -1)
		api_fail(c, &e);
	else if (c->route->flags & (ROUTE_BODY | ROUTE_BODY_OPTIONAL))
		http_req_collect(c->req, API_BODY_MAX, on_body, c);
	else
		run(c);
}

void
api_handle(struct app *app, struct http_req *r, const struct http_head *h)
{
	struct api_call *c = xcalloc(1, sizeof(*c));
	CLEANUP(strbuf_done) struct strbuf allow;

	strbuf_init(&allow, 256);
	c->app = app;
	c->req = r;
	c->head = http_req_keep_head(r, h);
	r->ops = &call_ops;
	r->arg = c;
	if (c->head->path.n > PATH_MAX_LEN) {
		api_fail_with(c, ERR_INVALID, "the path is too long");
		return;
	}
	if (h->method == HTTP_OPTIONS) {
		preflight(c);
		return;
	}
	c->route = find_route(h->method, strip_prefix(c->head->path), c->param, &allow);
	if (c->route == NULL)
		no_route(c, strbuf_view(&allow));
	else
		start(c);
}
