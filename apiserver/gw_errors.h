/*
 * The gateway's own answers when a request cannot be forwarded: E2B's JSON bodies (exact texts,
 * keys and order: clients match on them), a page for people in a browser, or plain text for
 * requests that name no sandbox. Pure: values in, text out.
 */
#ifndef APISERVER_GW_ERRORS_H
#define APISERVER_GW_ERRORS_H

#include <stdbool.h>

#include "base/str.h"
#include "http/http1.h"

enum gw_fail_kind {
	GW_FAIL_NONE = 0,
	GW_FAIL_NOT_FOUND,     /* 502: unknown, killed, paused without auto-resume */
	GW_FAIL_PORT_CLOSED,   /* 502: whatever went wrong before the sandbox answered */
	GW_FAIL_TOKEN_MISSING, /* 403 */
	GW_FAIL_TOKEN_WRONG,   /* 403 */
	GW_FAIL_RESUME_DENIED, /* 403 */
	GW_FAIL_TRANSITION,    /* 409 */
	GW_FAIL_LIMIT,         /* 429: tenant's quota met while resuming */
	GW_FAIL_CONNECTIONS,   /* 429 */
	GW_FAIL_RESERVED,      /* 404: control plane's path on envd's port */
	GW_FAIL_BUSY,          /* 503: too many requests wait */
	GW_FAIL_UNAVAILABLE,   /* 503: could not be started now */
	GW_FAIL_NOT_READY,     /* 503: envd has not taken its settings in time */
	GW_FAIL_BAD_HOST,      /* 400, text, as all below */
	GW_FAIL_BAD_ID,
	GW_FAIL_MISSING_HEADER,
	GW_FAIL_BAD_PORT,
	GW_FAIL_BAD_PATH,
	GW_FAIL_METHOD, /* 405 */
	GW_FAIL_COUNT
};

struct gw_fail {
	enum gw_fail_kind kind;
	struct strv id;      /* sandbox id, or name when it was addressed so */
	int port;            /* PORT_CLOSED */
	unsigned limit;      /* CONNECTIONS */
	struct strv path;    /* RESERVED */
	struct strv message; /* LIMIT, UNAVAILABLE: in place of the usual text; may be empty */
};

/* The four fields that tell a page's navigation from a program. */
struct gw_hints {
	struct strv accept, fetch_mode, requested_with, user_agent;
};
struct gw_hints gw_hints_of_head(const struct http_head *h);
/* From a serialised head, "METHOD … CRLF name: value CRLF …", as gw_put_request writes it. */
struct gw_hints gw_hints_of_text(struct strv head);
bool gw_hints_want_page(const struct gw_hints *hints);

int gw_fail_status(enum gw_fail_kind kind);
/* Closed set, for metrics. */
const char *gw_fail_label(enum gw_fail_kind kind);
/* Appends the body and returns its content type. page: HTML where the kind has a page. */
const char *gw_fail_body(const struct gw_fail *f, bool page, struct strbuf *b);

#endif
