/*
 * A file that is being uploaded: made or truncated for a user, written in whole buffers, metadata
 * last. A new file costs exactly the system calls that watchers expect: create, chown, write.
 */
#ifndef ENVD_FILE_SINK_H
#define ENVD_FILE_SINK_H

#include <jansson.h>
#include <stddef.h>

#include "base/bug.h"
#include "base/err.h"
#include "envd/users.h"

#define FILE_SINK_BUF ((size_t)64 * 1024)

struct file_sink;

/* path is absolute. ERR_INVALID for a directory, ERR_LIMIT for a full disk. */
int file_sink_open(
    const char *path, const struct user *u, struct file_sink **ret, struct err *e) MUST_USE;
int file_sink_write(struct file_sink *s, const char *p, size_t n, struct err *e) MUST_USE;
/* Writes what is buffered and the metadata (NULL: none), closes and frees, also on failure. */
int file_sink_close(struct file_sink *s, const json_t *meta, struct err *e) MUST_USE;
/* Closes and frees; what was written stays. Accepts NULL. */
void file_sink_abandon(struct file_sink *s);

#endif
