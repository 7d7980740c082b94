/*
 * See fs_rpc.h: ListDir. Walks in pieces, one per turn of the loop, and encodes each entry at once,
 * so that a large tree neither blocks nor is held as a tree.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/json.h"
#include "envd/fs_entry.h"
#include "envd/fs_rpc.h"
#include "envd/msg.h"
#include "envd/path.h"

#define LIST_TURN 100                              /* entries of one turn */
#define LIST_BYTES_MAX ((size_t)128 * 1024 * 1024) /* of the answer */
#define LIST_NAMES_MAX 1000000                     /* in one directory */

/* A directory that is being listed. */
struct level {
	struct level *up;
	char *path;
	char **names; /* sorted */
	size_t n, next;
};

struct listing {
	struct rpc *rpc;
	struct level *top;
	uint32_t depth, level; /* wanted; of top */
	size_t count;
	struct strbuf out;
	struct defer more;
};

static void
level_pop(struct listing *l)
{
	struct level *d = l->top;

	l->top = d->up;
	l->level--;
	for (size_t i = 0; i < d->n; i++)
		xfree(d->names[i]);
	xfree(d->names);
	xfree(d->path);
	xfree(d);
}

static void
listing_free(struct listing *l)
{
	loop_undefer(l->rpc->app->loop, &l->more);
	while (l->top)
		level_pop(l);
	strbuf_done(&l->out);
	l->rpc->ops = NULL;
	xfree(l);
}

static int
by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Adds the directory's names as a level. A directory that vanished or may not be read has none. */
static int
level_push(struct listing *l, const char *path)
{
	DIR *dir = opendir(path);
	struct level *d;
	struct dirent *ent;
	size_t cap = 0;

	if (dir == NULL)
		return -1;
	d = xcalloc(1, sizeof(*d));
	while ((ent = readdir(dir)) != NULL && d->n < LIST_NAMES_MAX) {
		if (strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0)
			continue;
		if (d->n == cap) {
			cap = cap ? cap * 2 : 16;
			d->names = xrealloc(d->names, cap * sizeof(*d->names));
		}
		d->names[d->n++] = xstrdup(ent->d_name);
	}
	closedir(dir);
	if (d->n > 0)
		qsort(d->names, d->n, sizeof(*d->names), by_name);
	d->path = xstrdup(path);
	d->up = l->top;
	l->top = d;
	l->level++;
	return 0;
}

static void
list_one(struct listing *l)
{
	struct level *d = l->top;
	const struct codec *codec = l->rpc->codec;
	char *path CLEANUP(xfreep) = path_join(d->path, d->names[d->next++]);
	json_t *entry;
	struct stat st;

	if (fs_entry(l->rpc->app->users, path, &entry, NULL) == -1)
		return; /* it is gone */
	codec->list_item(entry, l->rpc->method->out, "entries", l->count++, &l->out);
	json_decref(entry);
	if (l->level < l->depth && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
		(void)level_push(l, path);
}

static void
list_more(void *arg)
{
	struct listing *l = arg;
	struct rpc *c = l->rpc;

	for (int i = 0; i < LIST_TURN && l->top; i++) {
		if (l->top->next == l->top->n)
			level_pop(l);
		else
			list_one(l);
	}
	if (l->top && !l->out.failed) {
		loop_defer(c->app->loop, &l->more);
		return;
	}
	c->codec->list_end(c->method->out, l->count, &l->out);
	c->ops = NULL;
	if (l->out.failed)
		rpc_fail(c, CONNECT_RESOURCE_EXHAUSTED, "the listing is larger than %zu bytes",
		    LIST_BYTES_MAX);
	else
		rpc_reply_encoded(c, &l->out);
	while (l->top)
		level_pop(l);
	strbuf_done(&l->out);
	xfree(l);
}

static void
on_gone(struct rpc *c)
{
	listing_free(c->arg);
}

static const struct rpc_ops list_ops = { .on_gone = on_gone };

static int
check_dir(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) == -1) {
		if (errno == ELOOP)
			return err_set(e, ERR_CONFLICT,
			    "cyclic symlink or chain >255 links at " PATH_SHOWN, path);
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(e, ERR_NOT_FOUND, "path not found: " PATH_SHOWN, path);
		return err_errno(e, ERR_INTERNAL, "error getting file info " PATH_SHOWN, path);
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "path is not a directory: " PATH_SHOWN, path);
	return 0;
}

void
fs_rpc_list_dir(struct rpc *c, const json_t *in)
{
	char *path CLEANUP(xfreep) = NULL;
	struct err e = { 0 };
	struct listing *l;
	uint32_t depth;

	if (fs_rpc_path(c, in, "path", &path, NULL, &e) == -1 ||
	    msg_u32(in, "depth", &depth, &e) == -1 || check_dir(path, &e) == -1) {
		rpc_fail_err(c, &e);
		return;
	}
	l = xcalloc(1, sizeof(*l));
	l->rpc = c;
	l->depth = depth == 0 ? 1 : depth;
	strbuf_init(&l->out, LIST_BYTES_MAX);
	defer_init(&l->more, list_more, l);
	if (level_push(l, path) == -1) {
		err_errno(&e, ERR_INTERNAL, "error reading directory " PATH_SHOWN, path);
		listing_free(l);
		rpc_fail_err(c, &e);
		return;
	}
	c->arg = l;
	c->ops = &list_ops;
	/* the first piece at once: most listings need no other */
	list_more(l);
}
