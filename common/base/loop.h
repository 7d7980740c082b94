/*
 * The event loop: one per process and thread, on libevent. Owns timers, signals, deferred calls and
 * the 64 KiB read buffer that all sockets share. Nothing here blocks.
 *
 * Rules for users (style guide 18): a callback never runs inside the function that starts its
 * operation; after stop/cancel returns, the callback never runs; objects are freed at the end of
 * the turn through a deferred call.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct loop;

#define LOOP_READ_BUF (64 * 1024)

struct loop *loop_new(void);
/* Runs what is still deferred, so that closed objects are freed. All events of the loop must be
 * stopped by then. Accepts NULL. */
void loop_free(struct loop *l);
/* Runs until loop_stop; at once back if that was called before. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);
/* One turn; waits for an event if block. For tests. */
void loop_once(struct loop *l, bool block);
struct event_base *loop_base(struct loop *l);
/* Shared by every reader of this loop; its content is valid until the reading callback returns. */
char *loop_read_buf(struct loop *l);
/* Monotonic ns, read once per turn: cheap, for deadlines. */
int64_t loop_now(struct loop *l);

/* --- timers: one shot; embedded in their owner. A timer that is started while the fake clock is on
 * (clock.h) follows it: it fires in a turn after clock_fake_advance has reached its time. --- */
struct timer {
	struct event ev;
	void (*fn)(void *arg);
	void *arg;
	struct loop *loop;
	int64_t due;             /* monotonic; not with the fake clock */
	TAILQ_ENTRY(timer) link; /* fake clock only */
	int64_t fake_due;        /* 0: not in the loop's list */
};
void timer_init(struct timer *t, struct loop *l, void (*fn)(void *arg), void *arg);
/* Fires once in ns nanoseconds (rounded up to µs); starting again moves it. */
void timer_start(struct timer *t, int64_t ns);
void timer_stop(struct timer *t); /* accepts one that never started, or was zeroed */
bool timer_pending(const struct timer *t);

/* --- deferred calls: run at the end of the current turn, in order. --- */
struct defer {
	TAILQ_ENTRY(defer) link;
	void (*fn)(void *arg);
	void *arg;
	bool queued;
};
void defer_init(struct defer *d, void (*fn)(void *arg), void *arg);
void loop_defer(struct loop *l, struct defer *d); /* no-op if queued already */
void loop_undefer(struct loop *l, struct defer *d);

/* --- signals: at most 8 per loop; SIGPIPE is ignored by loop_new. --- */
void loop_signal(struct loop *l, int signo, void (*fn)(int signo, void *arg), void *arg);

#endif
