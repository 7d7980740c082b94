/*
 * Watching directories with inotify: one descriptor for all watchers (its number is limited per
 * node), recursion kept by hand, events as messages in a bounded queue of each watcher. Knows
 * nothing of RPC.
 */
#ifndef ENVD_WATCH_H
#define ENVD_WATCH_H

#include <jansson.h>
#include <stdbool.h>

#include "base/bug.h"
#include "base/err.h"
#include "envd/app.h"

#define WATCH_WATCHERS_MAX 256
#define WATCH_DIRS_MAX 131072                      /* directories, of all watchers together */
#define WATCH_QUEUE_MAX ((size_t)32 * 1024 * 1024) /* estimated bytes of one watcher's queue */

struct watches;
struct watcher;

void watches_free(struct watches *ws); /* accepts NULL */

struct watch_conf {
	const char *path; /* an existing directory */
	bool recursive;
	bool entry; /* events carry what the entry looks like */
	/* Something is new: ready, events, or an error. From the loop, never from inside a call. */
	void (*notify)(void *arg);
	void *arg;
};

/* ERR_NOT_FOUND, ERR_INVALID (no directory), ERR_LIMIT, ERR_INTERNAL (the kernel's limits). */
int watcher_new(
    struct app *a, const struct watch_conf *conf, struct watcher **ret, struct err *e) MUST_USE;
void watcher_free(struct watcher *w); /* accepts NULL */
/* All directories are watched. */
bool watcher_ready(const struct watcher *w);
/* NULL while all is well; else nothing more comes. Lives as long as w. */
const struct err *watcher_error(const struct watcher *w);
/* The oldest FilesystemEvent (the caller's), or NULL. */
json_t *watcher_take(struct watcher *w);
/* Takes in what the kernel holds by now, so that watcher_take sees all that has happened. */
void watcher_drain(struct watcher *w);

#endif
