/*
 * The users of the image: /etc/passwd and /etc/group, parsed by ourselves (a static program cannot
 * load NSS modules, and the image may have none). Both files are read again when they changed. An
 * image without `user` gets one by convention (uid and gid 1000, /home/user, made when first asked
 * for), one without `root` gets uid 0.
 */
#ifndef ENVD_USERS_H
#define ENVD_USERS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/bug.h"
#include "base/err.h"

#define USERS_FILE_MAX ((size_t)1024 * 1024)
#define USERS_GROUPS_MAX 256 /* supplementary groups of one user */
#define USERS_NAME_MAX 64    /* buffer for names shown in listings */

struct users;

struct user {
	char *name, *home, *shell;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary, gid among them */
	size_t n_groups;
};

/* Paths are borrowed for ever. */
struct users *users_new(const char *passwd, const char *group);
void users_free(struct users *u);
/* ERR_NOT_FOUND "user: unknown user x". *ret is the caller's (user_free). */
int users_find(struct users *u, const char *name, struct user **ret, struct err *e) MUST_USE;
void user_free(struct user *u); /* accepts NULL */
struct user *user_dup(const struct user *u);
/* The name of an id, or the number as text; out holds USERS_NAME_MAX. */
void users_user_name(struct users *u, uid_t uid, char *out);
void users_group_name(struct users *u, gid_t gid, char *out);

#endif
