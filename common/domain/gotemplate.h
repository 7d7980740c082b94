/*
 * The subset of Go's text/template that blueprints use: {{.A.B}}, if / else if / else / end, range
 * (with $k, $v :=), with, variables, comments, trimming ({{- -}}), index, printf, not, and, or, eq,
 * ne, lt, le, gt, ge, len, quote (strings), pipelines. Anything else is an error with line and
 * column at compile time.
 *
 * Output is text in which every substituted *value* is an opaque token (so that a value can never
 * become YAML structure); gotemplate_resolve puts the values back, see blueprint.c.
 */
#ifndef DOMAIN_GOTEMPLATE_H
#define DOMAIN_GOTEMPLATE_H

#include <jansson.h>
#include <stddef.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

#define GOTEMPLATE_TEXT_MAX (256 * 1024)
#define GOTEMPLATE_OUTPUT_MAX (1024 * 1024)
#define GOTEMPLATE_STEPS_MAX 100000 /* executed nodes per rendering */

/* An object of the data with this member is a struct: a field that it does not have is an error
 * (in a map it is merely empty), and range does not take it. */
#define GOTEMPLATE_STRUCT "\1struct"

struct gotemplate;
struct gotemplate_values; /* values behind the tokens of one rendering */

int gotemplate_compile(struct strv text, struct gotemplate **ret, struct err *e) MUST_USE;
void gotemplate_free(struct gotemplate *t);
/* data: the dot at the top. *text (xfree) and *values are the caller's. */
int gotemplate_render(const struct gotemplate *t, const json_t *data, char **text,
    struct gotemplate_values **values, struct err *e) MUST_USE;
void gotemplate_values_free(struct gotemplate_values *v);
/* A scalar of the parsed YAML → its final value: if the scalar is exactly one token and unquoted,
 * the value with its type (string, number, bool, null for an absent one); else the text with all
 * tokens replaced by their text, as a string. printf "%q" and quote: alone and unquoted they are
 * the text itself, as YAML would read it; within more text they have their quotes. NULL when it
 * holds no token. New reference. */
json_t *gotemplate_resolve(const struct gotemplate_values *v, struct strv scalar, bool quoted);

#endif
