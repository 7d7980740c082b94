/* See fs_rpc.h. */
#include "envd/fs_rpc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "envd/fs_entry.h"
#include "envd/fs_job.h"
#include "envd/fs_ops.h"
#include "envd/msg.h"
#include "envd/path.h"
#include "envd/state.h"

int
fs_rpc_path(struct rpc *c, const json_t *in, const char *name, char **path, struct user **user,
    struct err *e)
{
	struct user *u;
	const char *text;
	int r;

	if (msg_text(in, name, &text, e) == -1 || rpc_user(c, &u, e) == -1)
		return -1;
	r = path_resolve(text ? text : "", u, c->app->state->workdir, path, e);
	if (r == 0 && user)
		*user = u;
	else
		user_free(u);
	return r;
}

static void
reply_entry(struct rpc *c, const char *path)
{
	struct err e = { 0 };
	json_t *entry;

	if (fs_entry(c->app->users, path, &entry, &e) == -1)
		rpc_fail_err(c, &e);
	else
		rpc_reply(c, msg_wrap("entry", entry));
}

void
fs_rpc_stat(struct rpc *c, const json_t *in)
{
	char *path CLEANUP(xfreep) = NULL;
	struct err e = { 0 };

	if (fs_rpc_path(c, in, "path", &path, NULL, &e) == -1)
		rpc_fail_err(c, &e);
	else
		reply_entry(c, path);
}

static int
make_dir(const char *path, const struct user *u, struct err *e)
{
	struct stat st;

	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return err_set(
			    e, ERR_EXISTS, "directory already exists: " PATH_SHOWN, path);
		return err_set(e, ERR_INVALID,
		    "path already exists but it is not a directory: " PATH_SHOWN, path);
	}
	return fs_make_dirs(path, u, e);
}

void
fs_rpc_make_dir(struct rpc *c, const json_t *in)
{
	char *path CLEANUP(xfreep) = NULL;
	struct user *u = NULL;
	struct err e = { 0 };
	int r = fs_rpc_path(c, in, "path", &path, &u, &e);

	if (r == 0)
		r = make_dir(path, u, &e);
	user_free(u);
	if (r == -1)
		rpc_fail_err(c, &e);
	else
		reply_entry(c, path);
}

/* --- what may go on in a helper --- */

struct work {
	struct rpc *rpc;
	struct fs_job *job;
	char *dest; /* Move: whose entry is the answer */
};

static void
on_work_gone(struct rpc *c)
{
	struct work *w = c->arg;

	fs_job_forget(w->job);
	xfree(w->dest);
	xfree(w);
}

static const struct rpc_ops work_ops = { .on_gone = on_work_gone };

static void
on_work_done(void *arg, const struct err *e)
{
	struct work *w = arg;
	struct rpc *c = w->rpc;

	c->ops = NULL;
	if (e)
		rpc_fail_err(c, e);
	else if (w->dest)
		reply_entry(c, w->dest);
	else
		rpc_reply(c, json_object());
	xfree(w->dest);
	xfree(w);
}

static void
start_work(struct rpc *c, int (*fn)(const char *a, const char *b, struct err *e), const char *a,
    const char *b)
{
	struct work *w = xcalloc(1, sizeof(*w));
	struct err e = { 0 };

	w->rpc = c;
	w->dest = xstrdup(b);
	if (fs_job_start(c->app, fn, a, b, on_work_done, w, &w->job, &e) == -1) {
		xfree(w->dest);
		xfree(w);
		rpc_fail_err(c, &e);
		return;
	}
	c->arg = w;
	c->ops = &work_ops;
}

static int
job_remove(const char *path, const char *none UNUSED, struct err *e)
{
	return fs_remove_tree(path, e);
}

/* rename(2) replaces a file or an empty directory; so does this. */
static int
job_move(const char *source, const char *dest, struct err *e)
{
	struct stat from, to;

	if (lstat(source, &from) == -1)
		return err_errno(e, ERR_INTERNAL, "error renaming");
	if (lstat(dest, &to) == 0) {
		if (S_ISDIR(from.st_mode) != S_ISDIR(to.st_mode)) {
			errno = S_ISDIR(to.st_mode) ? EISDIR : ENOTDIR;
			return err_errno(e, ERR_INTERNAL, "error renaming");
		}
		if (remove(dest) == -1)
			return err_errno(e, ERR_INTERNAL, "error renaming");
	}
	if (fs_copy_tree(source, dest, e) == -1) {
		(void)!fs_remove_tree(dest, NULL);
		return -1;
	}
	return fs_remove_tree(source, e);
}

void
fs_rpc_remove(struct rpc *c, const json_t *in)
{
	char *path CLEANUP(xfreep) = NULL;
	struct err e = { 0 };

	if (fs_rpc_path(c, in, "path", &path, NULL, &e) == -1) {
		rpc_fail_err(c, &e);
		return;
	}
	if (strcmp(path, "/") == 0) {
		rpc_fail(c, CONNECT_INVALID_ARGUMENT, "the root cannot be removed");
		return;
	}
	if (remove(path) == 0 || errno == ENOENT || errno == ENOTDIR)
		rpc_reply(c, json_object());
	else if (errno == ENOTEMPTY || errno == EEXIST)
		start_work(c, job_remove, path, NULL);
	else {
		err_errno(&e, ERR_INTERNAL, "error removing file or directory " PATH_SHOWN, path);
		rpc_fail_err(c, &e);
	}
}

/* 1: moved, 0: needs copying, -1 with e. */
static int
try_rename(const char *source, const char *dest, const struct user *u, struct err *e)
{
	char *dir CLEANUP(xfreep) = path_dir(dest);
	struct stat st;

	if (lstat(source, &st) == -1 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(e, ERR_NOT_FOUND, "source file not found: " PATH_SHOWN, source);
	if (fs_make_dirs(dir, u, e) == -1)
		return -1;
	if (rename(source, dest) == 0)
		return 1;
	if (errno == EXDEV)
		return 0;
	return err_errno(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL,
	    "error renaming " PATH_SHOWN, source);
}

void
fs_rpc_move(struct rpc *c, const json_t *in)
{
	char *source CLEANUP(xfreep) = NULL, *dest CLEANUP(xfreep) = NULL;
	struct user *u = NULL;
	struct err e = { 0 };
	int r = fs_rpc_path(c, in, "source", &source, NULL, &e);

	if (r == 0)
		r = fs_rpc_path(c, in, "destination", &dest, &u, &e);
	if (r == 0)
		r = try_rename(source, dest, u, &e);
	user_free(u);
	if (r == -1)
		rpc_fail_err(c, &e);
	else if (r == 1)
		reply_entry(c, dest);
	else
		start_work(c, job_move, source, dest);
}
