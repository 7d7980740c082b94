/*
 * What a GET asks of a file beyond its whole content: Range, conditions on its date, and whether
 * an identity body is acceptable. Pure.
 */
#ifndef ENVD_RANGE_H
#define ENVD_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/http1.h"

/* The status to answer with: 200, 206 (*first and *last are set), 304, 412 or 416. mtime in whole
 * seconds. Several ranges, and what is not understood, give 200. */
int range_decide(
    const struct http_head *h, int64_t size, int64_t mtime, int64_t *first, int64_t *last);
/* False if Accept-Encoding rules identity out. */
bool range_identity_ok(const struct http_head *h);
/* IMF-fixdate to seconds; -1 if it is none. */
int64_t range_date(struct strv s);

#endif
