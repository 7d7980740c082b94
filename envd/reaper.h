/*
 * Exits of children. As PID 1 (or as child subreaper) every orphan of the sandbox becomes our
 * child: all are waited for, those that somebody watches are reported. Also the ways to signal
 * everything that runs here. Knows nothing of processes beyond their pid.
 */
#ifndef ENVD_REAPER_H
#define ENVD_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/loop.h"

struct reaper;

/* Embedded in whoever waits for a child. */
struct child {
	TAILQ_ENTRY(child) link;
	pid_t pid; /* 0: not watched */
	void (*on_exit)(struct child *c, int wstatus);
};

/* Watches SIGCHLD from now on. */
struct reaper *reaper_new(struct loop *l);
void reaper_free(struct reaper *r);
/* pid was just forked in this turn; on_exit comes once, from the loop. */
void reaper_watch(struct reaper *r, struct child *c, pid_t pid);
void reaper_unwatch(struct reaper *r, struct child *c); /* also for one that is not watched */
/* Signals all: as PID 1 everything in the namespace, else the watched children. */
void reaper_signal_all(struct reaper *r, bool pid1, int signo);
/* No child is left (watched or not). */
bool reaper_empty(void);

#endif
