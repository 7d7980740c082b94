/*
 * Paths as callers write them: `~`, relative to a home, with doubled slashes. Text only; the file
 * system is not asked.
 */
#ifndef ENVD_PATH_H
#define ENVD_PATH_H

#include "base/bug.h"
#include "base/err.h"
#include "envd/users.h"

/* Longest path in error texts, so that what follows it is not cut. */
#define PATH_SHOWN "%.160s"

/* Absolute path for `path`: "" is workdir (the home if workdir is ""), `~` and `~/x` are in the
 * home, `~other` is refused, relative ones are under the home with "." and ".." resolved; absolute
 * ones keep "..", since what it means depends on links. Doubled and final slashes go. *ret is the
 * caller's. ERR_INVALID also beyond PATH_MAX. */
int path_resolve(const char *path, const struct user *u, const char *workdir, char **ret,
    struct err *e) MUST_USE;
/* Last component, borrowed from path ("/" for the root). */
const char *path_base(const char *path);
/* Everything before the last component; caller frees. */
char *path_dir(const char *path);
char *path_join(const char *dir, const char *name); /* caller frees */

#endif
