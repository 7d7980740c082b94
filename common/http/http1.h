/*
 * Strict HTTP/1.1 message parser (RFC 9112) behind which llhttp is hidden, plus the checks that
 * llhttp leaves out: exactly one Host for 1.1, only versions 1.0 and 1.1, no Transfer-Encoding
 * in 1.0 and nothing but "chunked" in it, no Content-Length beside it, no CR, LF, NUL or folding in
 * values, bounded sizes. Requests and responses. It is a pull parser: the caller feeds a slice and
 * takes events until HTTP1_MORE.
 */
#ifndef HTTP_HTTP1_H
#define HTTP_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/str.h"

#define HTTP1_FIELDS_MAX 128
#define HTTP1_HEAD_MAX 65536 /* request/status line and fields together */
#define HTTP1_NAME_MAX 128
#define HTTP1_TARGET_MAX 16384

enum http_method {
	HTTP_OTHER = 0, /* head->method_text has it */
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_DELETE,
	HTTP_PATCH,
	HTTP_OPTIONS,
	HTTP_CONNECT,
	HTTP_TRACE
};

struct http_field {
	struct strv name, value;
};

/* A parsed head. All slices point into the bytes that were fed or into the parser, and are valid
 * until the next http1_next or until those bytes go away, whichever is first. */
struct http_head {
	enum http_method method; /* requests */
	struct strv method_text;
	struct strv target;      /* as sent */
	struct strv path, query; /* target split at '?'; absolute-form has its authority removed.
	                          * "*" stays as it is; empty for CONNECT */
	struct strv host;        /* Host value, or authority of an absolute target */
	int status;              /* responses */
	struct strv reason;
	int minor;       /* 0 or 1 */
	bool keep_alive; /* what the message says and its version implies */
	bool chunked;
	bool
	    upgrade; /* 1.1 with Connection: upgrade and an Upgrade field; responses: only of 101 */
	bool expect_continue;
	bool has_body; /* chunked, length > 0, or (responses) until close */
	/* Connection names fields other than close, keep-alive and upgrade. */
	bool connection_names;
	int64_t length; /* -1: not given */
	unsigned n;
	struct http_field field[HTTP1_FIELDS_MAX]; /* in order, as sent; trailers never get here */
};

/* First field of that name (ASCII case ignored), or NULL. */
const struct strv *http_head_get(const struct http_head *h, const char *name);
/* Does a comma-separated field contain the token (ASCII case ignored)? Looks at every field of that
 * name. */
bool http_head_has_token(const struct http_head *h, const char *name, const char *token);
bool http_head_has_token_v(const struct http_head *h, const char *name, struct strv token);

enum http1_event {
	HTTP1_MORE = 0, /* input used up */
	HTTP1_HEAD,     /* head is there; for a 1xx response another head follows */
	HTTP1_BODY,     /* *body is a piece of the body */
	HTTP1_DONE,     /* message complete; what is left in *in belongs to the next one */
	HTTP1_UPGRADE, /* instead of DONE after a head with upgrade, or CONNECT: what is left in *in
	                * is the tunnel's. Repeated until http1_reset */
	HTTP1_ERROR    /* http1_error tells; the connection cannot be used any more */
};

enum http1_error {
	HTTP1_OK = 0,
	HTTP1_BAD,          /* 400 */
	HTTP1_TOO_LARGE,    /* 431 fields */
	HTTP1_URI_TOO_LONG, /* 414 */
	HTTP1_VERSION,      /* 505 */
	HTTP1_CODING        /* 501: an unknown transfer coding */
};

struct http1;

/* A parser is about 160 bytes. It holds more only while a head came in pieces: those bytes and 8
 * per field, until the http1_next after HTTP1_HEAD. Empty lines in front of a request are skipped.
 * Bytes of a body that are no data (chunk lines, trailers) are bounded to 16 KiB in a row.
 *
 * The head that parsers of this process fill is shared (one thread): it is overwritten by the next
 * parser that reaches a head. response: parse responses. */
struct http1 *http1_new(bool response);
void http1_free(struct http1 *p); /* accepts NULL */
/* Ready for the next message on the connection. The parser does it by itself when it returns DONE;
 * after UPGRADE it is for the caller, if the request was answered without one. */
void http1_reset(struct http1 *p);
/* For a response parser, before its head arrives: the request was HEAD (no body whatever the fields
 * say). Holds for one response and the 1xx before it. */
void http1_expect(struct http1 *p, bool head_request);
/* Takes the next event out of *in, moving it forward. A message without a body gives HEAD and then
 * DONE, which needs no input: call until MORE. */
enum http1_event http1_next(struct http1 *p, struct strv *in, struct strv *body);
/* The peer closed: 0 if nothing was open or the message may end so (close-delimited body: the next
 * http1_next gives DONE), -1 if a message was cut. */
int http1_finish(struct http1 *p);
const struct http_head *http1_head(const struct http1 *p);
enum http1_error http1_error(const struct http1 *p);
const char *http1_error_text(const struct http1 *p);
/* Status that answers the error: 400, 414, 431, 501, 505. */
int http1_error_status(const struct http1 *p);
/* Between messages and no partial head stored. */
bool http1_idle(const struct http1 *p);
/* Bytes of body still to come by Content-Length; -1 if unknown; 0 if none. */
int64_t http1_body_left(const struct http1 *p);
/* Tells the parser that n body bytes of a Content-Length body were moved without it (splice). */
void http1_body_skip(struct http1 *p, uint64_t n);

#endif
