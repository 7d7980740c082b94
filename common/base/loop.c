/*
 * The loop on libevent. A turn is: wait for events, run their callbacks, then one pass over the
 * deferred calls. Knows nothing of what the callbacks do.
 */
#include "loop.h"

#include <signal.h>

#include "alloc.h"
#include "bug.h"
#include "clock.h"
#include "log.h"

#define LOOP_SIGNALS 8
#define LOOP_FREE_PASSES 64 /* deferred calls that queue themselves for ever end here */

TAILQ_HEAD(defer_list, defer);
TAILQ_HEAD(timer_list, timer);

struct loop {
	struct event_base *base;
	struct defer_list deferred;
	struct timer_list fake_timers; /* by due time, then by start */
	int64_t now;                   /* 0: not read in this turn */
	bool stop, in_turn;
	size_t n_signals;
	struct loop_sig {
		struct event ev;
		void (*fn)(int signo, void *arg);
		void *arg;
	} signals[LOOP_SIGNALS];
	char read_buf[LOOP_READ_BUF];
};

static void
on_libevent_log(int severity, const char *msg)
{
	if (severity >= EVENT_LOG_WARN)
		log_warn("libevent", log_s("text", msg));
}

static void
on_libevent_fatal(int err)
{
	log_error("libevent gave up", log_i("code", err));
	bug_fail(__FILE__, __LINE__, "libevent");
}

static struct event_base *
base_new(void)
{
	static bool prepared;
	struct event_config *cfg;
	struct event_base *base;

	if (!prepared) {
		event_set_mem_functions(xmalloc, xrealloc, xfree);
		event_set_log_callback(on_libevent_log);
		event_set_fatal_callback(on_libevent_fatal);
		prepared = true;
	}
	cfg = event_config_new();
	BUG_ON(cfg == NULL);
	/* No PRECISE_TIMER: it costs a timerfd_settime in every turn. Without it libevent reads the
	 * coarse clock and may call a few milliseconds early; on_timer puts that right. */
	BUG_ON(
	    event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == -1);
	base = event_base_new_with_config(cfg);
	BUG_ON(base == NULL);
	event_config_free(cfg);
	return base;
}

struct loop *
loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof(*l));

	signal(SIGPIPE, SIG_IGN);
	TAILQ_INIT(&l->deferred);
	TAILQ_INIT(&l->fake_timers);
	l->base = base_new();
	return l;
}

/* One pass: what these calls queue waits for the next turn, so they cannot starve the sockets. */
static void
run_deferred(struct loop *l)
{
	struct defer mark = { .queued = true };
	struct defer *d;

	if (TAILQ_EMPTY(&l->deferred))
		return;
	TAILQ_INSERT_TAIL(&l->deferred, &mark, link);
	while ((d = TAILQ_FIRST(&l->deferred)) != &mark) {
		TAILQ_REMOVE(&l->deferred, d, link);
		d->queued = false;
		d->fn(d->arg); /* may free d */
	}
	TAILQ_REMOVE(&l->deferred, &mark, link);
}

void
loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	for (int i = 0; i < LOOP_FREE_PASSES && !TAILQ_EMPTY(&l->deferred); i++)
		run_deferred(l);
	for (size_t i = 0; i < l->n_signals; i++)
		event_del(&l->signals[i].ev);
	event_base_free(l->base);
	xfree(l);
}

static bool
fake_timer_due(struct loop *l)
{
	struct timer *t = TAILQ_FIRST(&l->fake_timers);

	return t && t->fake_due <= clock_mono();
}

/* Timers that these callbacks start wait for the next turn, even with a time of 0. */
static void
run_fake_timers(struct loop *l)
{
	int64_t now = clock_mono();
	struct timer *t;
	size_t n = 0;

	TAILQ_FOREACH (t, &l->fake_timers, link)
		n += t->fake_due <= now;
	while (n-- > 0 && (t = TAILQ_FIRST(&l->fake_timers)) && t->fake_due <= now) {
		TAILQ_REMOVE(&l->fake_timers, t, link);
		t->fake_due = 0;
		t->fn(t->arg);
	}
}

static void
turn(struct loop *l, int flags)
{
	l->now = 0;
	l->in_turn = true;
	if (!TAILQ_EMPTY(&l->deferred) || fake_timer_due(l))
		flags |= EVLOOP_NONBLOCK;
	BUG_ON(event_base_loop(l->base, flags | EVLOOP_ONCE) == -1);
	run_fake_timers(l);
	run_deferred(l);
	l->in_turn = false;
}

void
loop_run(struct loop *l)
{
	while (!l->stop)
		turn(l, EVLOOP_NO_EXIT_ON_EMPTY);
	l->stop = false;
}

void
loop_stop(struct loop *l)
{
	l->stop = true;
}

void
loop_once(struct loop *l, bool block)
{
	turn(l, block ? 0 : EVLOOP_NONBLOCK);
}

struct event_base *
loop_base(struct loop *l)
{
	return l->base;
}

char *
loop_read_buf(struct loop *l)
{
	return l->read_buf;
}

int64_t
loop_now(struct loop *l)
{
	/* Outside of a turn nothing would renew the value. */
	if (!l->in_turn || clock_is_fake())
		return clock_mono();
	if (l->now == 0)
		l->now = clock_mono();
	return l->now;
}

static void
add_event(struct timer *t, int64_t ns)
{
	struct timeval tv = { .tv_sec = ns / NS_PER_S };

	tv.tv_usec = (ns % NS_PER_S + NS_PER_US - 1) / NS_PER_US;
	if (tv.tv_usec == 1000000) {
		tv.tv_sec++;
		tv.tv_usec = 0;
	}
	BUG_ON(evtimer_add(&t->ev, &tv) == -1);
}

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct timer *t = arg;
	int64_t early = clock_is_fake() ? 0 : t->due - clock_mono();

	if (early > 0)
		add_event(t, early);
	else
		t->fn(t->arg);
}

void
timer_init(struct timer *t, struct loop *l, void (*fn)(void *arg), void *arg)
{
	*t = (struct timer){ .fn = fn, .arg = arg, .loop = l };
	BUG_ON(fn == NULL || evtimer_assign(&t->ev, l->base, on_timer, t) == -1);
}

static void
fake_timer_start(struct timer *t, int64_t ns)
{
	struct timer_list *list = &t->loop->fake_timers;
	struct timer *after;

	if (__builtin_add_overflow(clock_mono(), ns, &t->fake_due))
		t->fake_due = INT64_MAX;
	if (t->fake_due == 0)
		t->fake_due = 1;
	TAILQ_FOREACH_REVERSE(after, list, timer_list, link)
	{
		if (after->fake_due <= t->fake_due)
			break;
	}
	if (after)
		TAILQ_INSERT_AFTER(list, after, t, link);
	else
		TAILQ_INSERT_HEAD(list, t, link);
}

void
timer_start(struct timer *t, int64_t ns)
{
	BUG_ON(t->fn == NULL);
	if (ns < 0)
		ns = 0;
	if (clock_is_fake() || t->fake_due != 0)
		timer_stop(t);
	if (clock_is_fake()) {
		fake_timer_start(t, ns);
		return;
	}
	if (__builtin_add_overflow(clock_mono(), ns, &t->due))
		t->due = INT64_MAX;
	add_event(t, ns);
}

void
timer_stop(struct timer *t)
{
	if (t->fn == NULL)
		return;
	if (t->fake_due != 0) {
		TAILQ_REMOVE(&t->loop->fake_timers, t, link);
		t->fake_due = 0;
	}
	evtimer_del(&t->ev);
}

bool
timer_pending(const struct timer *t)
{
	return t->fn && (t->fake_due != 0 || evtimer_pending(&t->ev, NULL));
}

void
defer_init(struct defer *d, void (*fn)(void *arg), void *arg)
{
	*d = (struct defer){ .fn = fn, .arg = arg };
}

void
loop_defer(struct loop *l, struct defer *d)
{
	BUG_ON(d->fn == NULL);
	if (d->queued)
		return;
	d->queued = true;
	TAILQ_INSERT_TAIL(&l->deferred, d, link);
}

void
loop_undefer(struct loop *l, struct defer *d)
{
	if (!d->queued)
		return;
	d->queued = false;
	TAILQ_REMOVE(&l->deferred, d, link);
}

static void
on_signal(evutil_socket_t signo, short what UNUSED, void *arg)
{
	struct loop_sig *s = arg;

	s->fn((int)signo, s->arg);
}

void
loop_signal(struct loop *l, int signo, void (*fn)(int signo, void *arg), void *arg)
{
	struct loop_sig *s;

	BUG_ON(l->n_signals == LOOP_SIGNALS);
	s = &l->signals[l->n_signals++];
	s->fn = fn;
	s->arg = arg;
	BUG_ON(evsignal_assign(&s->ev, l->base, signo, on_signal, s) == -1);
	BUG_ON(evsignal_add(&s->ev, NULL) == -1);
}
