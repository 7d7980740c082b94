/* See watch_priv.h: which directories are watched for whom, and reading those that are new. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "envd/path.h"
#include "envd/watch_priv.h"

#define MASK                                                                                       \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_ATTRIB | IN_DELETE |             \
	    IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

char *
watch_rel(const char *dir, const char *name)
{
	return dir[0] == '\0' ? xstrdup(name) : path_join(dir, name);
}

static struct strv
wd_key(const int *wd)
{
	return (struct strv){ (const char *)wd, sizeof(*wd) };
}

struct wdir *
watch_tree_find(struct watches *ws, int wd)
{
	return map_get(ws->dirs, wd_key(&wd));
}

void
wref_forget_seen(struct wref *r)
{
	if (r->seen == NULL)
		return;
	TAILQ_REMOVE(&r->w->ws->seen, r, in_seen);
	map_free(r->seen, NULL);
	r->seen = NULL;
}

void
wref_free(struct wref *r, bool in_kernel)
{
	struct watches *ws = r->w->ws;
	struct wdir *d = r->dir;

	wref_forget_seen(r);
	TAILQ_REMOVE(&d->refs, r, in_dir);
	TAILQ_REMOVE(&r->w->refs, r, in_watcher);
	xfree(r->rel);
	xfree(r);
	if (!TAILQ_EMPTY(&d->refs))
		return;
	if (in_kernel)
		inotify_rm_watch(ws->fd, d->wd);
	map_del(ws->dirs, wd_key(&d->wd));
	xfree(d);
}

/* rel is dir or below it. */
static bool
is_below(const char *rel, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(rel, dir, n) == 0 && (rel[n] == '\0' || rel[n] == '/');
}

void
watch_tree_drop(struct watcher *w, const char *rel)
{
	struct wref *r, *rtmp;
	struct todo *t, *ttmp;

	TAILQ_FOREACH_SAFE (r, &w->refs, in_watcher, rtmp) {
		if (is_below(r->rel, rel))
			wref_free(r, true);
	}
	TAILQ_FOREACH_SAFE (t, &w->todo, link, ttmp) {
		if (!is_below(t->rel, rel))
			continue;
		TAILQ_REMOVE(&w->todo, t, link);
		xfree(t->rel);
		xfree(t);
	}
}

void
watch_tree_want(struct watcher *w, const char *rel, bool appeared)
{
	struct todo *t = xcalloc(1, sizeof(*t));

	t->rel = xstrdup(rel);
	t->appeared = appeared;
	TAILQ_INSERT_TAIL(&w->todo, t, link);
}

/* The watcher's ref for this kernel watch; a directory that moved keeps its kernel watch. */
static struct wref *
ref_for(struct watcher *w, int wd, const char *rel)
{
	struct wdir *d = watch_tree_find(w->ws, wd);
	struct wref *r;

	if (d == NULL) {
		d = xcalloc(1, sizeof(*d));
		d->wd = wd;
		TAILQ_INIT(&d->refs);
		map_set(w->ws->dirs, wd_key(&wd), d);
	}
	TAILQ_FOREACH (r, &d->refs, in_dir) {
		if (r->w == w) {
			xfree(r->rel);
			r->rel = xstrdup(rel);
			return r;
		}
	}
	r = xcalloc(1, sizeof(*r));
	r->dir = d;
	r->w = w;
	r->rel = xstrdup(rel);
	TAILQ_INSERT_TAIL(&d->refs, r, in_dir);
	TAILQ_INSERT_TAIL(&w->refs, r, in_watcher);
	return r;
}

static bool
is_dir(const char *dir, const struct dirent *d)
{
	struct stat st;
	char *path;
	bool yes;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	path = path_join(dir, d->d_name);
	yes = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
	xfree(path);
	return yes;
}

/* Reports and remembers what is in a directory that appeared; wants its directories. */
static void
read_dir(struct watcher *w, struct wref *r, const char *path, const struct todo *t)
{
	DIR *dir = opendir(path);
	struct dirent *d;

	if (dir == NULL)
		return;
	if (t->appeared && r->seen == NULL) {
		r->seen = map_new();
		TAILQ_INSERT_TAIL(&w->ws->seen, r, in_seen);
	}
	while ((d = readdir(dir)) != NULL) {
		char *rel;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		rel = watch_rel(t->rel, d->d_name);
		if (t->appeared) {
			map_set(r->seen, strv_of(d->d_name), r);
			watcher_add(w, WATCH_CREATE, rel);
		}
		if (is_dir(path, d))
			watch_tree_want(w, rel, t->appeared);
		xfree(rel);
	}
	closedir(dir);
}

static void
watch_failed(struct watcher *w, const char *path, int errnum)
{
	struct err e;

	if (errnum == ENOENT || errnum == ENOTDIR)
		return; /* it is gone again */
	errno = errnum;
	if (errnum == ENOSPC)
		err_set(&e, ERR_INTERNAL,
		    "error adding path " PATH_SHOWN
		    " to watcher: the node's limit of inotify watches is reached",
		    path);
	else
		err_errno(&e, ERR_INTERNAL, "error adding path " PATH_SHOWN " to watcher", path);
	watcher_fail(w, &e);
}

static void
watch_one(struct watcher *w, const struct todo *t)
{
	char *path CLEANUP(xfreep) = NULL;
	bool root = t->rel[0] == '\0';
	struct wref *r;
	int wd;

	path = root ? xstrdup(w->path) : path_join(w->path, t->rel);
	if (map_count(w->ws->dirs) >= WATCH_DIRS_MAX) {
		watch_failed(w, path, ENOSPC);
		return;
	}
	wd = inotify_add_watch(w->ws->fd, path, root ? MASK : MASK | IN_DONT_FOLLOW);
	if (wd == -1) {
		watch_failed(w, path, errno);
		return;
	}
	r = ref_for(w, wd, t->rel);
	if (w->recursive)
		read_dir(w, r, path, t);
}

void
watch_tree_run(struct watcher *w, unsigned budget)
{
	struct todo *t;

	while (budget-- > 0 && w->error.code == ERR_NONE && (t = TAILQ_FIRST(&w->todo)) != NULL) {
		TAILQ_REMOVE(&w->todo, t, link);
		watch_one(w, t);
		xfree(t->rel);
		xfree(t);
	}
	if (!TAILQ_EMPTY(&w->todo) && w->error.code == ERR_NONE) {
		loop_defer(w->ws->app->loop, &w->more);
	} else if (!w->ready) {
		w->ready = true;
		watcher_wake(w);
	}
}
