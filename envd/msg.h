/*
 * Reading messages as trees, with the leniency that proto3 JSON asks for: lowerCamelCase or
 * snake_case names, null is absent, numbers may be text, bytes in either base64 alphabet. Absent
 * fields have proto3's defaults. A wrong type is ERR_INVALID. Also the writers that leave defaults
 * out.
 */
#ifndef ENVD_MSG_H
#define ENVD_MSG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"

/* `name` in lowerCamelCase. NULL if absent or null. */
const json_t *msg_field(const json_t *m, const char *name);
/* *ret is borrowed from m, NULL if absent. */
int msg_text(const json_t *m, const char *name, const char **ret, struct err *e) MUST_USE;
int msg_message(const json_t *m, const char *name, const json_t **ret, struct err *e) MUST_USE;
int msg_list(const json_t *m, const char *name, const json_t **ret, struct err *e) MUST_USE;
int msg_bool(const json_t *m, const char *name, bool dflt, bool *ret, struct err *e) MUST_USE;
int msg_u32(const json_t *m, const char *name, uint32_t *ret, struct err *e) MUST_USE;
/* *ret is the caller's; NULL if absent (an empty value is not NULL). */
int msg_bytes(
    const json_t *m, const char *name, unsigned char **ret, size_t *n, struct err *e) MUST_USE;
/* Every element (list) or value (object) is text. */
int msg_all_text(const json_t *list, const char *name, struct err *e) MUST_USE;

/* Writers: nothing is written for "" (NULL too), 0 and false. */
void msg_put_text(json_t *m, const char *name, const char *v);
void msg_put_int(json_t *m, const char *name, int64_t v);
void msg_put_i64(json_t *m, const char *name, int64_t v); /* int64 is text in JSON */
void msg_put_bool(json_t *m, const char *name, bool v);
/* {name: value}; steals value. */
json_t *msg_wrap(const char *name, json_t *value);

#endif
