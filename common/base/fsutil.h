/* Small files: read whole and bounded, notice that they changed (secrets and CAs rotate). */
#ifndef BASE_FSUTIL_H
#define BASE_FSUTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bug.h"
#include "err.h"

/* *ret is NUL-terminated and the caller's (xfree); *n is the length without the NUL. More than max
 * bytes is an error. n may be NULL. */
int file_read(const char *path, size_t max, char **ret, size_t *n, struct err *e) MUST_USE;

/* What identifies a file's content without reading it. */
struct file_stamp {
	dev_t dev;
	ino_t ino;
	int64_t mtime_ns;
	off_t size;
};
/* True if the file is another than the stamp says (or is gone); updates the stamp. */
bool file_changed(const char *path, struct file_stamp *stamp);

#endif
