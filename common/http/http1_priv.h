/*
 * What http1.c (walking llhttp) and http1_head.c (judging a head) share. Private to these two.
 */
#ifndef HTTP_HTTP1_PRIV_H
#define HTTP_HTTP1_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* llhttp has enumerators with the names of our methods; they are not used. */
#define HTTP_DELETE LLHTTP_DELETE
#define HTTP_GET LLHTTP_GET
#define HTTP_HEAD LLHTTP_HEAD
#define HTTP_POST LLHTTP_POST
#define HTTP_PUT LLHTTP_PUT
#define HTTP_CONNECT LLHTTP_CONNECT
#define HTTP_OPTIONS LLHTTP_OPTIONS
#define HTTP_TRACE LLHTTP_TRACE
#define HTTP_PATCH LLHTTP_PATCH
#include <llhttp.h>
#undef HTTP_DELETE
#undef HTTP_GET
#undef HTTP_HEAD
#undef HTTP_POST
#undef HTTP_PUT
#undef HTTP_CONNECT
#undef HTTP_OPTIONS
#undef HTTP_TRACE
#undef HTTP_PATCH

#include "http/http1.h"

/* Bytes of the message, counted from its first one, so that they survive a move of the buffer. */
struct http1_span {
	uint32_t off, len;
};

/* What llhttp told so far about a head. One per process: a head that comes in one piece, which is
 * nearly every one, needs no memory of its parser's own. */
struct http1_scan {
	struct http1_span method, target, version, reason;
	uint32_t n;
	struct http1_span name[HTTP1_FIELDS_MAX];
};

/* What of llhttp's own findings the judgement needs. */
struct http1_facts {
	bool response, head_request;
	bool keep_alive, upgrade;
	int status;
	int major, minor;
};

/* A character of a field name (RFC 9110 5.6.2). */
bool http1_is_token(unsigned char c);
/* Judges the complete head of n bytes at base and fills h. Returns HTTP1_OK, or an error with *why
 * set to constant text. */
enum http1_error http1_head_build(const char *base, size_t n, const struct http1_scan *scan,
    const struct http1_facts *facts, struct http_head *h, const char **why);

#endif
