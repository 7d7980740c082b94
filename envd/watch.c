/* See watch.h: the descriptor, and what its events mean for whom. */
#include "envd/watch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "envd/fs_entry.h"
#include "envd/path.h"
#include "envd/watch_priv.h"

#define TREE_TURN 200     /* directories of one turn */
#define DRAIN_READS 10000 /* reads of one watcher_drain, against an endless writer */
#define EVENT_SIZE 512    /* a queued event, roughly */
#define ENTRY_SIZE 2048   /* its entry */

static const char *const type_names[] = {
	[WATCH_CREATE] = "EVENT_TYPE_CREATE",
	[WATCH_WRITE] = "EVENT_TYPE_WRITE",
	[WATCH_REMOVE] = "EVENT_TYPE_REMOVE",
	[WATCH_RENAME] = "EVENT_TYPE_RENAME",
	[WATCH_CHMOD] = "EVENT_TYPE_CHMOD",
};

/* In the order in which one kernel event that is several is reported. */
static const struct {
	uint32_t mask;
	enum watch_event type;
} types[] = {
	{ IN_CREATE | IN_MOVED_TO, WATCH_CREATE },
	{ IN_MOVED_FROM | IN_MOVE_SELF, WATCH_RENAME },
	{ IN_ATTRIB, WATCH_CHMOD },
	{ IN_MODIFY, WATCH_WRITE },
	{ IN_DELETE | IN_DELETE_SELF, WATCH_REMOVE },
};

/* --- a watcher's queue --- */

void
watcher_wake(struct watcher *w)
{
	loop_defer(w->ws->app->loop, &w->wake);
}

static void
on_wake(void *arg)
{
	struct watcher *w = arg;

	w->notify(w->arg);
}

void
watcher_fail(struct watcher *w, const struct err *e)
{
	if (w->error.code == ERR_NONE)
		w->error = *e;
	watcher_wake(w);
}

static json_t *
entry_of(struct watcher *w, enum watch_event type, const char *rel)
{
	char *path CLEANUP(xfreep) = NULL;
	json_t *entry;

	if (!w->entry || type == WATCH_REMOVE || type == WATCH_RENAME)
		return NULL;
	path = path_join(w->path, rel);
	return fs_entry(w->ws->app->users, path, &entry, NULL) == 0 ? entry : NULL;
}

void
watcher_add(struct watcher *w, enum watch_event type, const char *rel)
{
	struct queued *q;
	struct err e;
	json_t *entry;

	if (w->error.code != ERR_NONE)
		return;
	q = xcalloc(1, sizeof(*q));
	q->event = json_object();
	json_set_str(q->event, "name", rel);
	json_set_str(q->event, "type", type_names[type]);
	entry = entry_of(w, type, rel);
	q->size = EVENT_SIZE + strlen(rel) + (entry ? ENTRY_SIZE : 0);
	json_set(q->event, "entry", entry);
	w->size += q->size;
	TAILQ_INSERT_TAIL(&w->queue, q, link);
	if (w->size > WATCH_QUEUE_MAX) {
		err_set(&e, ERR_LIMIT, "too many events are waiting to be read");
		watcher_fail(w, &e);
	}
	watcher_wake(w);
}

json_t *
watcher_take(struct watcher *w)
{
	struct queued *q = TAILQ_FIRST(&w->queue);
	json_t *event;

	if (q == NULL)
		return NULL;
	event = q->event;
	TAILQ_REMOVE(&w->queue, q, link);
	w->size -= q->size;
	xfree(q);
	return event;
}

/* --- events --- */

/* What concerns the directory itself. Its parent reports it too, if that is watched as well. */
static void
self_event(struct wref *r, uint32_t mask)
{
	if (r->rel[0] != '\0')
		return;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (mask & types[i].mask)
			watcher_add(r->w, types[i].type, ".");
	}
}

static void
child_event(struct wref *r, uint32_t mask, const char *name)
{
	char *rel CLEANUP(xfreep) = watch_rel(r->rel, name);
	struct watcher *w = r->w;
	bool tree = w->recursive && mask & IN_ISDIR;
	bool known = r->seen && map_del(r->seen, strv_of(name)) != NULL;

	if (known && mask & IN_CREATE)
		return;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (mask & types[i].mask)
			watcher_add(w, types[i].type, rel);
	}
	if (tree && mask & IN_MOVED_FROM)
		watch_tree_drop(w, rel);
	if (tree && mask & (IN_CREATE | IN_MOVED_TO)) {
		watch_tree_want(w, rel, true);
		watch_tree_run(w, TREE_TURN);
	}
}

static void
overflow(struct watches *ws)
{
	struct watcher *w;
	struct err e;

	err_set(&e, ERR_INTERNAL, "inotify: queue or buffer overflow, events were lost");
	TAILQ_FOREACH (w, &ws->watchers, link)
		watcher_fail(w, &e);
}

static void
one_event(struct watches *ws, const struct inotify_event *ev)
{
	struct wdir *d;
	struct wref *r, *tmp;

	if (ev->mask & IN_Q_OVERFLOW) {
		overflow(ws);
		return;
	}
	d = watch_tree_find(ws, ev->wd);
	if (d == NULL)
		return;
	/* the last ref takes d with it */
	TAILQ_FOREACH_SAFE (r, &d->refs, in_dir, tmp) {
		if (ev->mask & IN_IGNORED)
			wref_free(r, false);
		else if (ev->len > 0 && ev->name[0] != '\0')
			child_event(r, ev->mask, ev->name);
		else
			self_event(r, ev->mask);
	}
}

/* One buffer of events; false when there is none (or the descriptor is broken). */
static bool
read_events(struct watches *ws)
{
	ssize_t n = read(ws->fd, ws->buf, sizeof(ws->buf));

	if (n <= 0) {
		/* all that happened while directories were first read is known now */
		while (!TAILQ_EMPTY(&ws->seen))
			wref_forget_seen(TAILQ_FIRST(&ws->seen));
		return false;
	}
	for (char *p = ws->buf; p < ws->buf + n;) {
		const struct inotify_event *ev = (const struct inotify_event *)(void *)p;

		one_event(ws, ev);
		p += sizeof(*ev) + ev->len;
	}
	return true;
}

static void
on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	read_events(arg);
}

/* --- the set of watchers --- */

static struct watches *
watches_new(struct app *a, struct err *e)
{
	struct watches *ws;
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd == -1) {
		err_errno(e, ERR_INTERNAL, "error creating watcher");
		return NULL;
	}
	ws = xcalloc(1, sizeof(*ws));
	ws->app = a;
	ws->fd = fd;
	ws->dirs = map_new();
	TAILQ_INIT(&ws->watchers);
	TAILQ_INIT(&ws->seen);
	event_assign(&ws->ev, loop_base(a->loop), fd, EV_READ | EV_PERSIST, on_readable, ws);
	event_add(&ws->ev, NULL);
	return ws;
}

void
watches_free(struct watches *ws)
{
	if (ws == NULL)
		return;
	while (!TAILQ_EMPTY(&ws->watchers))
		watcher_free(TAILQ_FIRST(&ws->watchers));
	event_del(&ws->ev);
	close(ws->fd);
	map_free(ws->dirs, NULL);
	xfree(ws);
}

static void
on_more(void *arg)
{
	watch_tree_run(arg, TREE_TURN);
}

static int
check_path(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) == -1) {
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(e, ERR_NOT_FOUND, "path " PATH_SHOWN " not found", path);
		return err_errno(e, ERR_INTERNAL, "error statting path " PATH_SHOWN, path);
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "path " PATH_SHOWN " not a directory", path);
	return 0;
}

int
watcher_new(struct app *a, const struct watch_conf *conf, struct watcher **ret, struct err *e)
{
	struct watcher *w;

	if (check_path(conf->path, e) == -1)
		return -1;
	if (a->watches == NULL)
		a->watches = watches_new(a, e);
	if (a->watches == NULL)
		return -1;
	if (a->watches->n_watchers >= WATCH_WATCHERS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d watchers", WATCH_WATCHERS_MAX);
	w = xcalloc(1, sizeof(*w));
	w->ws = a->watches;
	w->path = xstrdup(conf->path);
	w->recursive = conf->recursive;
	w->entry = conf->entry;
	w->notify = conf->notify;
	w->arg = conf->arg;
	TAILQ_INIT(&w->queue);
	TAILQ_INIT(&w->refs);
	TAILQ_INIT(&w->todo);
	defer_init(&w->wake, on_wake, w);
	defer_init(&w->more, on_more, w);
	TAILQ_INSERT_TAIL(&w->ws->watchers, w, link);
	w->ws->n_watchers++;
	watch_tree_want(w, "", false);
	watch_tree_run(w, TREE_TURN);
	if (w->error.code != ERR_NONE) {
		*e = w->error;
		watcher_free(w);
		return -1;
	}
	*ret = w;
	return 0;
}

void
watcher_free(struct watcher *w)
{
	struct todo *t;
	json_t *event;

	if (w == NULL)
		return;
	TAILQ_REMOVE(&w->ws->watchers, w, link);
	w->ws->n_watchers--;
	loop_undefer(w->ws->app->loop, &w->wake);
	loop_undefer(w->ws->app->loop, &w->more);
	while (!TAILQ_EMPTY(&w->refs))
		wref_free(TAILQ_FIRST(&w->refs), true);
	while ((t = TAILQ_FIRST(&w->todo)) != NULL) {
		TAILQ_REMOVE(&w->todo, t, link);
		xfree(t->rel);
		xfree(t);
	}
	while ((event = watcher_take(w)) != NULL)
		json_decref(event);
	xfree(w->path);
	xfree(w);
}

bool
watcher_ready(const struct watcher *w)
{
	return w->ready;
}

const struct err *
watcher_error(const struct watcher *w)
{
	return w->error.code == ERR_NONE ? NULL : &w->error;
}

void
watcher_drain(struct watcher *w)
{
	for (unsigned i = 0; i < DRAIN_READS; i++) {
		if (!read_events(w->ws) && TAILQ_EMPTY(&w->todo))
			return;
		watch_tree_run(w, TREE_TURN);
	}
}
