/*
 * JSON on jansson: strict, bounded parsing, path accessors, and small builders. Trees that come
 * from a cache are const and never changed.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bug.h"
#include "err.h"
#include "str.h"

#define JSON_DEPTH_MAX 64 /* nesting of anything that we parse */

/* Parses exactly one value; refuses duplicate keys, trailing text, deeper nesting than
 * JSON_DEPTH_MAX (checked before the parse) and more than max bytes. *ret is a new reference. The
 * message names line and column. */
int json_parse(struct strv text, size_t max, json_t **ret, struct err *e) MUST_USE;

/* Path accessors: "a.b.c"; a key with dots cannot be reached (use json_object_get). Values are
 * borrowed; absent, null or another type gives NULL / the default. */
const json_t *json_get(const json_t *tree, const char *path);
const char *json_get_str(const json_t *tree, const char *path); /* NULL if absent */
int64_t json_get_int(const json_t *tree, const char *path, int64_t dflt);
bool json_get_bool(const json_t *tree, const char *path, bool dflt);
const json_t *json_get_obj(const json_t *tree, const char *path);
const json_t *json_get_arr(const json_t *tree, const char *path);
/* A member by its literal key, for keys with dots (labels, annotations). */
const char *json_member_str(const json_t *object, const char *key);

/* Sets a member; a string not when v is NULL. Invalid UTF-8 becomes U+FFFD. */
void json_set_str(json_t *object, const char *key, const char *v);
void json_set_int(json_t *object, const char *key, int64_t v);
void json_set_bool(json_t *object, const char *key, bool v);
/* Steals value; NULL sets nothing. */
void json_set(json_t *object, const char *key, json_t *value);

/* Compact text, keys in insertion order; caller frees with xfree. Never NULL. */
char *json_text(const json_t *v);

/* For CLEANUP(json_unrefp). */
void json_unrefp(json_t **v);

#endif
