/* See startup.h. */
#include "envd/startup.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "envd/command.h"

#define RETRY_FIRST MILLIS(100)
#define RETRY_MAX SECONDS(2)

struct startup {
	struct app *app;
	enum startup_state state;
	bool started; /* the start command was run */
	char *ready_cmd;
	int64_t retry, deadline;
	struct timer timer;  /* the next try, or the limit */
	struct proc_sub try; /* the ready command that runs now */
	TAILQ_HEAD(, startup_wait) waits;
};

static void try_ready(void *arg);

static void
settle(struct startup *s, enum startup_state state, const struct err *e)
{
	struct startup_wait *w;

	s->state = state;
	timer_stop(&s->timer);
	proc_sub_detach(&s->try);
	while ((w = TAILQ_FIRST(&s->waits)) != NULL) {
		startup_forget(s, w);
		w->fn(w, e);
	}
}

/* Waits for the next try, or gives up. */
static void
try_later(struct startup *s)
{
	int64_t left = s->deadline - loop_now(s->app->loop);
	struct err e;

	if (left <= 0) {
		err_set(&e, ERR_TIMEOUT, "the ready command did not succeed in time");
		settle(s, STARTUP_IDLE, &e);
		return;
	}
	timer_start(&s->timer, s->retry < left ? s->retry : left);
	s->retry = s->retry * 2 < RETRY_MAX ? s->retry * 2 : RETRY_MAX;
}

static void
on_try_start(struct proc_sub *sub UNUSED)
{
}

static bool
on_try_data(struct proc_sub *sub UNUSED, enum proc_stream stream UNUSED, const char *p UNUSED,
    size_t n UNUSED)
{
	return false;
}

static void
on_try_end(struct proc_sub *sub, const struct proc_end *end)
{
	struct startup *s = container_of(sub, struct startup, try);

	if (end->exited && end->exit_code == 0)
		settle(s, STARTUP_READY, NULL);
	else
		try_later(s);
}

static void
on_try_failed(struct proc_sub *sub, const struct err *e)
{
	log_warn("ready command cannot be started", log_err(e));
	try_later(container_of(sub, struct startup, try));
}

static const struct proc_sub_ops try_ops = {
	.on_start = on_try_start,
	.on_data = on_try_data,
	.on_end = on_try_end,
	.on_failed = on_try_failed,
};

static void
try_ready(void *arg)
{
	struct startup *s = arg;
	int64_t left = s->deadline - loop_now(s->app->loop);
	struct command c;
	struct process *p;
	struct err e = { 0 };

	if (left <= 0 || command_shell(s->app, s->ready_cmd, &c, &e) == -1) {
		try_later(s);
		return;
	}
	c.spec.internal = true;
	c.spec.timeout = left < STARTUP_TRY_LIMIT ? left : STARTUP_TRY_LIMIT;
	if (proc_start(s->app, &c.spec, &s->try, &p, &e) == -1) {
		json_decref(c.spec.config);
		log_warn("ready command cannot be started", log_err(&e));
		try_later(s);
	}
	command_done(&c);
}

static int
run_start(struct startup *s, const char *text, struct err *e)
{
	struct command c;
	struct process *p;
	int r;

	if (command_shell(s->app, text, &c, e) == -1)
		return err_wrap(e, "start command");
	r = proc_start(s->app, &c.spec, NULL, &p, e);
	if (r == -1) {
		json_decref(c.spec.config);
		err_wrap(e, "start command");
	} else {
		s->started = true;
	}
	command_done(&c);
	return r;
}

struct startup *
startup_new(struct app *a)
{
	struct startup *s = xcalloc(1, sizeof(*s));

	s->app = a;
	s->try.ops = &try_ops;
	TAILQ_INIT(&s->waits);
	timer_init(&s->timer, a->loop, try_ready, s);
	return s;
}

void
startup_free(struct startup *s)
{
	if (s == NULL)
		return;
	timer_stop(&s->timer);
	proc_sub_detach(&s->try);
	xfree(s->ready_cmd);
	xfree(s);
}

int
startup_run(struct startup *s, const json_t *body, struct startup_wait *w, struct err *e)
{
	const char *start = json_get_str(body, "startCmd"), *ready = json_get_str(body, "readyCmd");
	int64_t asked =
	    json_get_int(body, "readyTimeoutMs", 0); /* from outside: not multiplied unchecked */
	int64_t limit = asked > 0 && asked <= STARTUP_READY_LIMIT_MAX / NS_PER_MS
	    ? MILLIS(asked)
	    : STARTUP_READY_LIMIT;

	if (start && start[0] != '\0' && !s->started && run_start(s, start, e) == -1)
		return -1;
	if (ready == NULL || ready[0] == '\0' || s->state == STARTUP_READY)
		return 1;
	if (s->state == STARTUP_IDLE) {
		xfree(s->ready_cmd);
		s->ready_cmd = xstrdup(ready);
		s->retry = RETRY_FIRST;
		s->deadline = loop_now(s->app->loop) + limit;
		s->state = STARTUP_WAITING;
		timer_start(&s->timer, 0);
	}
	w->queued = true;
	TAILQ_INSERT_TAIL(&s->waits, w, link);
	return 0;
}

void
startup_forget(struct startup *s, struct startup_wait *w)
{
	if (!w->queued)
		return;
	w->queued = false;
	TAILQ_REMOVE(&s->waits, w, link);
}
