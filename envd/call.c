/* See call.h. The only place in envd that builds HTTP error bodies and CORS fields. */
#include "envd/call.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/json.h"

#define CORS_MAX_AGE "7200"
#define PIECE 65536 /* written at once */
#define QUERY_VALUE_MAX ((size_t)16 * 1024)

static const char cors_expose[] =
    "Content-Encoding, Connect-Content-Encoding, Grpc-Status, Grpc-Message, "
    "Grpc-Status-Details-Bin, Location, Cache-Control, X-Content-Type-Options";

/* The statuses of plain HTTP answers. ERR_LIMIT is a full disk here. */
static const int status_of[ERR_CODE_COUNT] = {
	[ERR_NONE] = 500,
	[ERR_INVALID] = 400,
	[ERR_UNAUTHORIZED] = 401,
	[ERR_FORBIDDEN] = 403,
	[ERR_NOT_FOUND] = 404,
	[ERR_CONFLICT] = 409,
	[ERR_EXISTS] = 409,
	[ERR_TOO_LARGE] = 413,
	[ERR_LIMIT] = 507,
	[ERR_GONE] = 410,
	[ERR_UNSUPPORTED] = 501,
	[ERR_UNAVAILABLE] = 503,
	[ERR_TIMEOUT] = 504,
	[ERR_CANCELED] = 499,
	[ERR_IO] = 500,
	[ERR_INTERNAL] = 500,
};

static struct http_field
field(const char *name, const char *value)
{
	return (struct http_field){ strv_of(name), strv_of(value) };
}

static void
on_body(struct http_req *r, const char *p, size_t n)
{
	struct call *c = r->arg;

	if (c->ops && c->ops->on_body)
		c->ops->on_body(c, p, n);
}

static void
on_end(struct http_req *r)
{
	struct call *c = r->arg;

	if (c->ops && c->ops->on_end)
		c->ops->on_end(c);
}

static void
on_drain(struct http_req *r)
{
	struct call *c = r->arg;

	if (c->ops && c->ops->on_drain)
		c->ops->on_drain(c);
}

static void
on_abort(struct http_req *r, const char *why UNUSED)
{
	struct call *c = r->arg;

	if (c->ops && c->ops->on_gone)
		c->ops->on_gone(c);
	xfree(c);
}

static void
on_hangup(struct http_req *r)
{
	struct call *c = r->arg;

	if (c->ops == NULL || !c->ops->gone_at_fin)
		return;
	if (c->ops->on_gone)
		c->ops->on_gone(c);
	call_abort(c, "client is gone");
}

static const struct http_req_ops req_ops = {
	.on_body = on_body,
	.on_end = on_end,
	.on_drain = on_drain,
	.on_abort = on_abort,
	.on_hangup = on_hangup,
};

struct call *
call_new(struct app *a, struct http_req *r, const struct http_head *h)
{
	struct call *c = xcalloc(1, sizeof(*c));

	c->app = a;
	c->r = r;
	c->cors = http_head_get(h, "Origin") != NULL;
	r->ops = &req_ops;
	r->arg = c;
	return c;
}

/* Copies the caller's fields and adds ours; out holds CALL_FIELDS_MAX + 3. */
static size_t
add_fields(const struct call *c, const struct http_field *fields, size_t n, struct http_field *out)
{
	BUG_ON(n > CALL_FIELDS_MAX);
	if (n > 0)
		memcpy(out, fields, n * sizeof(*fields));
	if (c->cors) {
		out[n++] = field("Access-Control-Allow-Origin", "*");
		out[n++] = field("Access-Control-Expose-Headers", cors_expose);
		out[n++] = field("Vary", "Origin");
	}
	return n;
}

/* --- large answers, piece by piece --- */

struct large {
	struct call *call;
	char *body;
	size_t n, off;
	struct defer more;
};

static void
large_free(struct large *l)
{
	loop_undefer(l->call->app->loop, &l->more);
	xfree(l->body);
	xfree(l);
}

static void
large_more(void *arg)
{
	struct large *l = arg;
	struct call *c = l->call;
	size_t left = l->n - l->off, part = left < PIECE ? left : PIECE;

	if (left == 0) {
		large_free(l);
		call_end(c);
		return;
	}
	l->off += part;
	if (call_write(c, l->body + l->off - part, part) == 0)
		loop_defer(c->app->loop, &l->more);
}

static void
large_on_drain(struct call *c)
{
	large_more(c->arg);
}

static void
large_on_gone(struct call *c)
{
	large_free(c->arg);
}

static const struct call_ops large_ops = { .on_drain = large_on_drain, .on_gone = large_on_gone };

void
call_reply_own(struct call *c, int status, const struct http_field *fields, size_t n_fields,
    char *body, size_t n)
{
	struct large *l;

	if (n <= PIECE) {
		call_reply(c, status, fields, n_fields, (struct strv){ body, n });
		xfree(body);
		return;
	}
	l = xcalloc(1, sizeof(*l));
	*l = (struct large){ .call = c, .body = body, .n = n };
	defer_init(&l->more, large_more, l);
	c->arg = l;
	c->ops = &large_ops;
	call_start(c, status, fields, n_fields, (int64_t)n);
	loop_defer(c->app->loop, &l->more);
}

void
call_reply(struct call *c, int status, const struct http_field *fields, size_t n, struct strv body)
{
	struct http_field all[CALL_FIELDS_MAX + 3];
	struct http_req *r = c->r;

	if (body.n > PIECE) {
		call_reply_own(c, status, fields, n, xmemdup0(body.p, body.n), body.n);
		return;
	}
	n = add_fields(c, fields, n, all);
	xfree(c);
	r->arg = NULL;
	r->ops = NULL;
	http_reply(r, status, all, n, body);
}

void
call_json(struct call *c, int status, json_t *body)
{
	const struct http_field f[] = {
		field("Content-Type", "application/json; charset=utf-8"),
		field("X-Content-Type-Options", "nosniff"),
	};
	char *text = json_text(body);

	json_decref(body);
	call_reply(c, status, f, ARRAY_LEN(f), strv_of(text));
	xfree(text);
}

static void
error_text(struct call *c, int status, const char *text)
{
	json_t *body = json_object();

	json_set_int(body, "code", status);
	json_set_str(body, "message", text);
	call_json(c, status, body);
}

void
call_error(struct call *c, int status, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_text(c, status, text);
}

int
call_status_of(enum err_code code)
{
	return status_of[code];
}

void
call_fail(struct call *c, const struct err *e)
{
	error_text(c, status_of[e->code], e->msg);
}

void
call_start(struct call *c, int status, const struct http_field *fields, size_t n, int64_t length)
{
	struct http_field all[CALL_FIELDS_MAX + 3];

	n = add_fields(c, fields, n, all);
	http_reply_start(c->r, status, all, n, length);
}

size_t
call_write(struct call *c, const void *p, size_t n)
{
	return http_reply_write(c->r, p, n);
}

void
call_end(struct call *c)
{
	struct http_req *r = c->r;

	xfree(c);
	r->arg = NULL;
	r->ops = NULL;
	http_reply_end(r);
}

void
call_abort(struct call *c, const char *why)
{
	struct http_req *r = c->r;

	xfree(c);
	r->arg = NULL;
	r->ops = NULL;
	http_reply_abort(r, why);
}

static void
on_collected(struct http_req *r UNUSED, struct strv body, void *arg)
{
	struct call *c = arg;

	c->collected(c, body);
}

void
call_collect(struct call *c, size_t max, void (*fn)(struct call *c, struct strv body))
{
	c->collected = fn;
	http_req_collect(c->r, max, on_collected, c);
}

void
call_preflight(struct call *c, const struct http_head *h)
{
	const struct strv *method = http_head_get(h, "Access-Control-Request-Method");
	const struct strv *headers = http_head_get(h, "Access-Control-Request-Headers");
	struct http_field f[6];
	size_t n = 0;

	f[n++] =
	    field("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
	f[n++] = field("Access-Control-Allow-Origin", "*");
	if (method)
		f[n++] = (struct http_field){ STRV("Access-Control-Allow-Methods"), *method };
	if (headers)
		f[n++] = (struct http_field){ STRV("Access-Control-Allow-Headers"), *headers };
	f[n++] = field("Access-Control-Max-Age", CORS_MAX_AGE);
	c->cors = false;
	call_reply(c, 204, f, n, STRV_NONE);
}

int
call_query(const struct http_head *h, const char *name, char **ret, struct err *e)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };
	struct strv raw;

	if (!query_get(h->query, name, &raw)) {
		*ret = NULL;
		return 0;
	}
	strbuf_init(&b, QUERY_VALUE_MAX);
	if (url_decode(raw, true, &b) == -1 || memchr(b.p ? b.p : "", '\0', b.n) != NULL)
		return err_set(e, ERR_INVALID, "bad value of query parameter %s", name);
	return strbuf_take(&b, ret, e);
}
