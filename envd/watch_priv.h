/* The insides of watching, shared by watch.c (descriptor, events) and watch_tree.c (directories).
 */
#ifndef ENVD_WATCH_PRIV_H
#define ENVD_WATCH_PRIV_H

#include "base/list.h"
#include "base/loop.h"
#include "base/map.h"
#include "envd/watch.h"

#define WATCH_BUF ((size_t)64 * 1024)

enum watch_event { WATCH_CREATE = 1, WATCH_WRITE, WATCH_REMOVE, WATCH_RENAME, WATCH_CHMOD };

/* A kernel watch: one inode, whoever is interested. */
struct wdir {
	int wd;
	TAILQ_HEAD(, wref) refs;
};

/* A watcher's interest in a directory. */
struct wref {
	TAILQ_ENTRY(wref) in_dir, in_watcher, in_seen;
	struct wdir *dir;
	struct watcher *w;
	char *rel; /* below the watcher's path; "" for it itself */
	/* Names that were reported when the directory was first read. The kernel may report them
	 * once more, if they came after the watch was set: those are dropped. NULL: none. */
	struct map *seen;
};

/* A directory that still has to be watched and read. */
struct todo {
	TAILQ_ENTRY(todo) link;
	char *rel;
	bool appeared; /* after the start: what is in it is reported */
};

struct queued {
	TAILQ_ENTRY(queued) link;
	json_t *event;
	size_t size;
};

struct watcher {
	TAILQ_ENTRY(watcher) link;
	struct watches *ws;
	char *path;
	bool recursive, entry, ready;
	void (*notify)(void *arg);
	void *arg;
	struct err error;
	size_t size; /* of the queue */
	TAILQ_HEAD(, queued) queue;
	TAILQ_HEAD(, wref) refs;
	TAILQ_HEAD(, todo) todo;
	struct defer wake; /* notify */
	struct defer more; /* go on with todo */
};

struct watches {
	struct app *app;
	int fd;
	struct event ev;
	struct map *dirs; /* wd (its bytes) to struct wdir */
	size_t n_watchers;
	TAILQ_HEAD(, watcher) watchers;
	TAILQ_HEAD(, wref) seen; /* refs that have a seen map */
	char buf[WATCH_BUF] __attribute__((aligned(8)));
};

/* watch.c */
void watcher_wake(struct watcher *w);
void watcher_fail(struct watcher *w, const struct err *e);
void watcher_add(struct watcher *w, enum watch_event type, const char *rel);

/* watch_tree.c */
void watch_tree_want(struct watcher *w, const char *rel, bool appeared);
/* Up to budget directories of the list; the rest with the next turns. */
void watch_tree_run(struct watcher *w, unsigned budget);
/* Forgets rel and all below it. */
void watch_tree_drop(struct watcher *w, const char *rel);
struct wdir *watch_tree_find(struct watches *ws, int wd);
/* in_kernel: the kernel has the watch still. */
void wref_free(struct wref *r, bool in_kernel);
void wref_forget_seen(struct wref *r);
/* dir + "/" + name, or name alone for the watched directory itself; caller frees. */
char *watch_rel(const char *dir, const char *name);

#endif
