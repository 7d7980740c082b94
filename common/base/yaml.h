/*
 * YAML (libyaml) to JSON trees, by the core schema of YAML 1.2 for plain scalars plus Kubernetes'
 * habits (true/false, numbers, null, ~). Whole numbers with a leading zero are octal, as kubectl
 * has it; 089 is an error. Keys are always text. No aliases, anchors or tags; depth, size and
 * document count are bounded.
 */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include <jansson.h>
#include <stddef.h>

#include "bug.h"
#include "err.h"
#include "str.h"

#define YAML_DEPTH_MAX 64

/* Called for every scalar before it is typed; may return a new reference that takes its place, or
 * NULL to leave it alone. quoted: the scalar was not plain. is_key: it is a mapping key. */
typedef json_t *(*yaml_scalar_fn)(struct strv value, bool quoted, bool is_key, void *arg);

/* Exactly one document. Errors carry line and column (1-based) in the message. */
int yaml_parse(struct strv text, size_t max, json_t **ret, struct err *e) MUST_USE;
int yaml_parse_with(struct strv text, size_t max, yaml_scalar_fn fn, void *arg, json_t **ret,
    struct err *e) MUST_USE;

#endif
