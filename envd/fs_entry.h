/*
 * What a directory entry looks like to clients: EntryInfo, Go's permission strings, and the
 * metadata kept in extended attributes.
 */
#ifndef ENVD_FS_ENTRY_H
#define ENVD_FS_ENTRY_H

#include <jansson.h>
#include <sys/stat.h>

#include "base/bug.h"
#include "base/err.h"
#include "envd/users.h"

#define FS_PERMISSIONS_MAX 16

/* "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx": Go's FileMode.String. */
void fs_permissions(mode_t mode, char out[FS_PERMISSIONS_MAX]);
/* EntryInfo of path (lstat). *ret is a new object. ERR_NOT_FOUND, ERR_IO. */
int fs_entry(struct users *users, const char *path, json_t **ret, struct err *e) MUST_USE;

#endif
