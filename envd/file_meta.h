/*
 * User metadata of files: X-Metadata-<key> headers of an upload, kept as extended attributes
 * user.e2b.<key>. File systems without them have none, silently.
 */
#ifndef ENVD_FILE_META_H
#define ENVD_FILE_META_H

#include <jansson.h>

#include "base/bug.h"
#include "base/err.h"
#include "http/http1.h"

#define FILE_META_KEY_MAX 246
#define FILE_META_TOTAL_MAX 4096 /* keys with prefix, and values */

/* The metadata that a request asks for, key to value; *ret is NULL without any, else the caller's.
 * ERR_INVALID beyond the limits or for other characters than printable ASCII. */
int file_meta_parse(const struct http_head *h, json_t **ret, struct err *e) MUST_USE;
/* New object, or NULL without any. */
json_t *file_meta_read(const char *path);
/* Makes meta (NULL: none) the whole set of the open file: what was there and is not in it goes.
 * Touches nothing if nothing changes. */
void file_meta_write(int fd, const json_t *meta);

#endif
