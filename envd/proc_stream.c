/* See proc_rpc.h: Start and Connect, the streams of a process's events. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "envd/command.h"
#include "envd/msg.h"
#include "envd/proc_rpc.h"
#include "envd/proc_rpc_priv.h"

/* One client that reads a process's events. */
struct feed {
	struct proc_sub sub;
	struct rpc *rpc;
	bool starter; /* of Start, not of Connect */
};

static const char *const stream_name[] = {
	[PROC_STDOUT] = "stdout",
	[PROC_STDERR] = "stderr",
	[PROC_PTY] = "pty",
};

json_t *
proc_rpc_keepalive(void)
{
	return msg_wrap("event", msg_wrap("keepalive", json_object()));
}

static json_t *
start_event(const struct process *p)
{
	json_t *start = json_object();

	msg_put_int(start, "pid", proc_pid(p));
	return msg_wrap("event", msg_wrap("start", start));
}

static json_t *
end_event(const struct proc_end *end)
{
	json_t *m = json_object();

	msg_put_int(m, "exitCode", end->exit_code);
	msg_put_bool(m, "exited", end->exited);
	msg_put_text(m, "status", end->status);
	if (!end->exited || end->exit_code != 0)
		json_set_str(m, "error", end->status);
	return msg_wrap("event", msg_wrap("end", m));
}

/* The rpc is about to be finished by the caller. */
static struct rpc *
feed_free(struct feed *f)
{
	struct rpc *c = f->rpc;

	proc_sub_detach(&f->sub);
	c->ops = NULL;
	c->arg = NULL;
	xfree(f);
	return c;
}

static void
on_start(struct proc_sub *s)
{
	struct feed *f = container_of(s, struct feed, sub);

	rpc_send(f->rpc, start_event(s->proc));
}

static bool
on_data(struct proc_sub *s, enum proc_stream stream, const char *p, size_t n)
{
	struct feed *f = container_of(s, struct feed, sub);
	const char *const path[] = { "event", "data", stream_name[stream], NULL };

	return rpc_send_bytes(f->rpc, path, p, n) > 0;
}

static void
on_end(struct proc_sub *s, const struct proc_end *end)
{
	struct rpc *c = feed_free(container_of(s, struct feed, sub));

	rpc_send(c, end_event(end));
	rpc_finish(c);
}

static void
on_failed(struct proc_sub *s, const struct err *e)
{
	rpc_fail_err(feed_free(container_of(s, struct feed, sub)), e);
}

static void
on_deadline(struct proc_sub *s)
{
	struct feed *f = container_of(s, struct feed, sub);

	if (f->starter)
		rpc_fail(feed_free(f), CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
}

static const struct proc_sub_ops sub_ops = {
	.on_start = on_start,
	.on_data = on_data,
	.on_end = on_end,
	.on_failed = on_failed,
	.on_deadline = on_deadline,
};

static void
on_drain(struct rpc *c)
{
	struct feed *f = c->arg;

	proc_sub_ready(&f->sub);
}

static void
on_gone(struct rpc *c)
{
	feed_free(c->arg);
}

static const struct rpc_ops feed_ops = { .on_drain = on_drain, .on_gone = on_gone };

static struct feed *
feed_new(struct rpc *c, bool starter)
{
	struct feed *f = xcalloc(1, sizeof(*f));

	f->sub.ops = &sub_ops;
	f->rpc = c;
	f->starter = starter;
	c->ops = &feed_ops;
	c->arg = f;
	return f;
}

static int
read_options(const json_t *in, struct proc_spec *spec, struct err *e)
{
	const json_t *pty, *size = NULL;

	if (msg_message(in, "pty", &pty, e) == -1 || msg_text(in, "tag", &spec->tag, e) == -1 ||
	    msg_bool(in, "stdin", true, &spec->stdin_open, e) == -1 ||
	    msg_message(pty, "size", &size, e) == -1 ||
	    msg_u32(size, "cols", &spec->cols, e) == -1 ||
	    msg_u32(size, "rows", &spec->rows, e) == -1)
		return -1;
	spec->pty = pty != NULL;
	return 0;
}

static int
start(struct rpc *c, const json_t *in, struct err *e)
{
	json_t *none CLEANUP(json_unrefp) = json_object();
	const json_t *config;
	struct command cmd;
	struct process *p;
	struct user *user;
	struct feed *f;
	int r;

	if (rpc_user(c, &user, e) == -1)
		return -1;
	if (msg_message(in, "process", &config, e) == -1) {
		user_free(user);
		return -1;
	}
	if (command_init(c->app, config ? config : none, user, &cmd, e) == -1)
		return -1;
	cmd.spec.timeout = c->timeout;
	f = feed_new(c, true);
	r = read_options(in, &cmd.spec, e);
	if (r == 0)
		r = proc_start(c->app, &cmd.spec, &f->sub, &p, e);
	if (r == -1) {
		json_decref(cmd.spec.config);
		feed_free(f);
	}
	command_done(&cmd);
	return r;
}

void
proc_rpc_start(struct rpc *c, const json_t *in)
{
	struct err e = { 0 };

	if (start(c, in, &e) == -1)
		rpc_fail_err(c, &e);
}

void
proc_rpc_connect(struct rpc *c, const json_t *in)
{
	struct process *p;
	struct err e = { 0 };

	if (proc_rpc_select_any(c->app, in, &p, &e) == -1) {
		rpc_fail_err(c, &e);
		return;
	}
	rpc_send(c, start_event(p));
	if (proc_end(p)) {
		rpc_send(c, end_event(proc_end(p)));
		rpc_finish(c);
		return;
	}
	proc_sub_attach(p, &feed_new(c, false)->sub);
}
