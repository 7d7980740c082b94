/*
 * One API request on its way from the router to its answer, for every JSON face. Owns
 * authentication, the body and the error form; handlers see a parsed, authenticated call and answer
 * it with api_json, api_empty or api_fail.
 */
#ifndef APISERVER_API_H
#define APISERVER_API_H

#include <jansson.h>
#include <stddef.h>

#include "apiserver/app.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/tenant.h"
#include "http/http_server.h"

#define API_BODY_MAX ((size_t)1024 * 1024) /* of a JSON request */
#define API_PARAMS_MAX 4

struct api_call;

enum route_flags {
	ROUTE_OPEN = 1 << 0,          /* no key needed */
	ROUTE_BODY = 1 << 1,          /* a JSON object is required */
	ROUTE_BODY_OPTIONAL = 1 << 2, /* an absent or empty body is {} */
	ROUTE_ANYTIME = 1 << 3,       /* also while Kubernetes is away */
	ROUTE_UNDO = 1 << 4,          /* given up, and undone, when the client hangs up */
};

struct route {
	enum http_method method;
	const char *pattern; /* "/sandboxes/{id}/timeout": a braced segment matches one segment */
	unsigned flags;
	void (*handler)(struct api_call *c);
	const char *summary;
};

struct api_call {
	struct app *app;
	struct http_req *req;
	const struct http_head *head; /* kept */
	const struct route *route;
	struct tenant tenant;
	struct strv param[API_PARAMS_MAX]; /* the braced segments, still encoded */
	json_t *body;                      /* object; NULL when the route takes none */
	struct service_op *op;             /* cancelled when the client leaves */
};

/* Takes a request over that is not the gateway's. */
void api_handle(struct app *app, struct http_req *r, const struct http_head *h);
/* Body and type of an answer to a request that could not be parsed
 * (http_server_conf.on_bad_request). */
void api_bad_request(
    int status, const char *why, struct strbuf *body, const char **type, void *arg);
void api_metrics(struct metrics *m);

/* Each ends the call. body is stolen; fields may be NULL. */
void api_json(struct api_call *c, int status, json_t *body);
void api_json_with(
    struct api_call *c, int status, const struct http_field *fields, size_t n, json_t *body);
void api_empty(struct api_call *c, int status);
void api_text(struct api_call *c, int status, const char *text);
void api_fail(struct api_call *c, const struct err *e);
void api_fail_with(struct api_call *c, enum err_code code, const char *fmt, ...) PRINTF(3, 4);

/* The decoded value of a query parameter; false if absent. A bad escape or more than max bytes
 * fails the call and returns -1; 1 = there, 0 = absent. */
int api_query(struct api_call *c, const char *name, struct strbuf *ret) MUST_USE;

#endif
