/*
 * Multipart bodies (RFC 2046) as a stream: bytes in, parts out, in constant memory. Knows neither
 * HTTP nor files.
 */
#ifndef ENVD_MULTIPART_H
#define ENVD_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

#define MULTIPART_BOUNDARY_MAX 200
#define MULTIPART_HEAD_MAX ((size_t)32 * 1024) /* header lines of one part */
#define MULTIPART_PARTS_MAX 10000

struct multipart;

/* Each may return -1 with e filled, which ends the parse. Slices are borrowed. */
struct multipart_cb {
	/* A part begins; disposition is its Content-Disposition ("" if it has none). */
	int (*on_part)(void *arg, struct strv disposition, struct err *e);
	int (*on_data)(void *arg, const char *p, size_t n, struct err *e);
	int (*on_part_end)(void *arg, struct err *e);
};

/* NULL if the boundary is empty, too long or has a CR or LF. */
struct multipart *multipart_new(struct strv boundary, const struct multipart_cb *cb, void *arg);
void multipart_free(struct multipart *m); /* accepts NULL */
/* After -1 nothing more may be fed. */
int multipart_feed(struct multipart *m, const char *p, size_t n, struct err *e) MUST_USE;
/* The body is complete: ERR_INVALID if the last delimiter is missing. */
int multipart_finish(struct multipart *m, struct err *e) MUST_USE;

#endif
