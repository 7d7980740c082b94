/*
 * Text: borrowed slices (strv), a bounded builder (strbuf), number and duration parsing,
 * escaping. Network text has no NUL, so slices carry their length.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bug.h"
#include "err.h"

/* A borrowed piece of text; p may be NULL only when n is 0. */
struct strv {
	const char *p;
	size_t n;
};

#define STRV(lit) ((struct strv){ (lit), sizeof(lit) - 1 })
#define STRV_NONE ((struct strv){ NULL, 0 })
#define STRV_FMT "%.*s"
#define STRV_ARG(v) (int)(v).n, ((v).p ? (v).p : "")

static inline struct strv
strv_of(const char *s)
{
	return (struct strv){ s, s ? strlen(s) : 0 };
}
bool strv_eq(struct strv a, struct strv b);
bool strv_caseeq(struct strv a, struct strv b); /* ASCII only */
/* Inline, so that a literal of another length costs one comparison. */
static inline bool
strv_is(struct strv a, const char *b)
{
	return a.n == (b ? strlen(b) : 0) && strv_eq(a, (struct strv){ b, a.n });
}
static inline bool
strv_caseis(struct strv a, const char *b)
{
	return a.n == (b ? strlen(b) : 0) && strv_caseeq(a, (struct strv){ b, a.n });
}
bool strv_prefix(struct strv s, struct strv prefix);
struct strv strv_trim(struct strv s); /* blanks and tabs at both ends */
/* Cuts at the first c: returns what is before it, leaves what is behind it in *rest (all and
 * nothing when c is absent). */
struct strv strv_cut(struct strv s, char c, struct strv *rest);
char *strv_dup(struct strv s); /* caller frees */
/* Position of c or -1. */
ptrdiff_t strv_chr(struct strv s, char c);

/* Strict decimal: digits only (and one leading '-' where negative is allowed), whole slice, in
 * range. 0, or -1 with *ret untouched. */
int strv_u64(struct strv s, uint64_t max, uint64_t *ret) MUST_USE;
int strv_i64(struct strv s, int64_t min, int64_t max, int64_t *ret) MUST_USE;

/* A growing text with a maximum and a sticky error: adding beyond the maximum sets `failed`, later
 * additions do nothing, and only strbuf_take/strbuf_str report it. */
struct strbuf {
	char *p; /* NUL-terminated whenever n > 0 or cap > 0 */
	size_t n, cap, max;
	bool failed;
};

void strbuf_init(struct strbuf *b, size_t max);
void strbuf_done(struct strbuf *b);  /* accepts a zeroed one; usable with CLEANUP */
void strbuf_reset(struct strbuf *b); /* keeps memory, clears text and error */
void strbuf_add(struct strbuf *b, const void *p, size_t n);
void strbuf_addc(struct strbuf *b, char c);
void strbuf_adds(struct strbuf *b, const char *s);
void strbuf_addv(struct strbuf *b, struct strv v);
void strbuf_addf(struct strbuf *b, const char *fmt, ...) PRINTF(2, 3);
void strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap) PRINTF(2, 0);
void strbuf_add_u64(struct strbuf *b, uint64_t v);
/* A JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void strbuf_add_json(struct strbuf *b, struct strv v);
/* Percent-encodes everything but RFC 3986 unreserved characters. */
void strbuf_add_url(struct strbuf *b, struct strv v);
/* HTML text and attribute values. */
void strbuf_add_html(struct strbuf *b, struct strv v);
/* Removes n bytes from the front. */
void strbuf_consume(struct strbuf *b, size_t n);
/* Moves the text out (caller frees, never NULL) or reports that the maximum was passed. The strbuf
 * is empty afterwards either way. */
int strbuf_take(struct strbuf *b, char **ret, struct err *e) MUST_USE;
static inline struct strv
strbuf_view(const struct strbuf *b)
{
	return (struct strv){ b->p, b->n };
}

/* Percent-decoding of a whole slice into b. plus: '+' means blank (form encoding). -1 on a bad
 * escape. Bytes are not checked for UTF-8. */
int url_decode(struct strv in, bool plus, struct strbuf *b) MUST_USE;
/* The raw (still encoded) value of the first query parameter `name` in a query string (without
 * '?'). Returns false if absent; a parameter without '=' has the empty value. Names are compared
 * decoded. */
bool query_get(struct strv query, const char *name, struct strv *raw);

bool utf8_valid(struct strv s);
/* Length of the valid UTF-8 sequence that s starts with; 0 when there is none. */
size_t utf8_seq(struct strv s);
/* Adds v with every invalid byte replaced by U+FFFD. */
void strbuf_add_utf8(struct strbuf *b, struct strv v);

/* Lower-case hex and base64 (standard alphabet). Buffers are the caller's. */
void hex_encode(const void *p, size_t n, char *out);                   /* 2n + NUL */
int hex_decode(struct strv in, unsigned char *out, size_t n) MUST_USE; /* exactly n bytes */
#define BASE64_LEN(n) (((n) + 2) / 3 * 4)
size_t base64_encode(const void *p, size_t n, char *out); /* BASE64_LEN(n) + NUL; returns length */
/* Accepts standard and URL-safe alphabets, padded or not. out needs in.n * 3 / 4 + 3 bytes. Returns
 * the decoded length or -1. */
ptrdiff_t base64_decode(struct strv in, unsigned char *out);

#endif
