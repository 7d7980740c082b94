/*
 * One dynamic template's pattern: a PCRE2 expression with named groups, matched with bounds on
 * steps, depth and memory, so that a hostile one costs little and says so. Private to template.c.
 */
#ifndef DOMAIN_TEMPLATE_PATTERN_H
#define DOMAIN_TEMPLATE_PATTERN_H

#include <stdbool.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

#define PATTERN_TEXT_MAX 1024
#define PATTERN_STEPS_MAX 20000 /* PCRE2 match limit */
#define PATTERN_DEPTH_MAX 1000  /* PCRE2 depth limit */
#define PATTERN_HEAP_MAX 1024   /* KiB, PCRE2 heap limit */

struct template_pattern;

int template_pattern_compile(
    struct strv text, struct template_pattern **ret, struct err *e) MUST_USE;
void template_pattern_free(struct template_pattern *p); /* accepts NULL */
/* Are all <groups> of the image groups of the pattern? Error names the first that is not. */
int template_pattern_check(
    const struct template_pattern *p, struct strv image, struct err *e) MUST_USE;
/* 1: matched, *ret is the image with its groups filled in (caller frees); 0: does not match; -1: a
 * bound was reached, or the image got too long. */
int template_pattern_expand(const struct template_pattern *p, struct strv subject,
    struct strv image, char **ret, struct err *e) MUST_USE;

#endif
