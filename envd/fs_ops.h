/*
 * Changes to the file system, as root: parents on behalf of a user, whole trees removed, copied
 * and moved. Blocking; what may take long is run in a helper process (fs_job.h).
 */
#ifndef ENVD_FS_OPS_H
#define ENVD_FS_OPS_H

#include "base/bug.h"
#include "base/err.h"
#include "envd/users.h"

/* Makes dir and its missing parents (0755), each owned by the user. ERR_INVALID if a part is no
 * directory, ERR_LIMIT when the disk is full. */
int fs_make_dirs(const char *dir, const struct user *u, struct err *e) MUST_USE;
/* Removes what path names and all below it; a missing one is fine. Never follows links. */
int fs_remove_tree(const char *path, struct err *e) MUST_USE;
/* A copy with modes, owners, times, extended attributes, links and devices. dest must not exist. */
int fs_copy_tree(const char *source, const char *dest, struct err *e) MUST_USE;
/* err code for an errno of writing: ERR_LIMIT when there is no room. */
enum err_code fs_write_code(int errnum);

#endif
