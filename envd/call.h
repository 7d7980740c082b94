/*
 * One HTTP request inside envd: adds the CORS fields, envd's error bodies and one place for the
 * handler's callbacks to http_server's request. A call frees itself: after call_reply, call_json,
 * call_error, call_fail, call_end or call_abort it must not be touched, nor after on_gone
 * returned. Knows no route.
 */
#ifndef ENVD_CALL_H
#define ENVD_CALL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "envd/app.h"
#include "http/http1.h"
#include "http/http_server.h"

struct call;

struct call_ops {
	/* A piece of the request body, borrowed. NULL: read and thrown away. */
	void (*on_body)(struct call *c, const char *p, size_t n);
	void (*on_end)(struct call *c);   /* body complete */
	void (*on_drain)(struct call *c); /* pending output is gone */
	/* The client went away: give up what c->arg holds. May be NULL. */
	void (*on_gone)(struct call *c);
	/* A client that sent FIN counts as gone at once. */
	bool gone_at_fin;
};

struct call {
	struct app *app;
	struct http_req *r;
	const struct call_ops *ops; /* set by the handler, may change */
	void *arg;                  /* the handler's */
	bool cors;                  /* the request came from a page of another origin */
	void (*collected)(struct call *c, struct strv body);
};

/* Takes over r. */
struct call *call_new(struct app *a, struct http_req *r, const struct http_head *h);

/* Fields are at most CALL_FIELDS_MAX; the body is copied as far as needed. Any size: a large one is
 * sent as the client takes it. */
#define CALL_FIELDS_MAX 12
void call_reply(
    struct call *c, int status, const struct http_field *fields, size_t n, struct strv body);
/* The same; takes over body (of n bytes). */
void call_reply_own(struct call *c, int status, const struct http_field *fields, size_t n_fields,
    char *body, size_t n);
/* Steals body. */
void call_json(struct call *c, int status, json_t *body);
/* {"code":status,"message":"…"} */
void call_error(struct call *c, int status, const char *fmt, ...) PRINTF(3, 4);
/* The same with the status that belongs to e->code. */
void call_fail(struct call *c, const struct err *e);
int call_status_of(enum err_code code);

/* A streamed answer; length -1 = chunked. */
void call_start(
    struct call *c, int status, const struct http_field *fields, size_t n, int64_t length);
/* Bytes pending: stop until on_drain when > 0. */
size_t call_write(struct call *c, const void *p, size_t n);
void call_end(struct call *c);
/* Cuts the connection, so that an incomplete answer does not look complete. */
void call_abort(struct call *c, const char *why);

/* The whole body up to max bytes, then fn once; fn gets body.p == NULL if it was longer. c->ops
 * keeps on_gone. */
void call_collect(struct call *c, size_t max, void (*fn)(struct call *c, struct strv body));

/* The answer to a preflight (OPTIONS with Access-Control-Request-Method). */
void call_preflight(struct call *c, const struct http_head *h);

/* First value of a query parameter, decoded ('+' is a blank), or NULL; caller frees. On a bad
 * escape or a NUL byte: -1 with e. */
int call_query(const struct http_head *h, const char *name, char **ret, struct err *e) MUST_USE;

#endif
