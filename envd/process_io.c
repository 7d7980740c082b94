/* See process.h: reading the outputs and writing the input of a process. */
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/process_priv.h"

/* --- outputs --- */

static void
output_ended(struct proc_out *o)
{
	proc_out_close(o);
	proc_check_end(o->proc);
}

static void
deliver(struct process *p, enum proc_stream stream, const char *b, size_t n)
{
	struct proc_sub *s, *tmp;
	bool full = false;

	TAILQ_FOREACH_SAFE (s, &p->subs, link, tmp) {
		if (s->ops->on_data(s, stream, b, n))
			s->full = true;
		full |= s->full;
	}
	if (full)
		proc_out_pause(p, true);
}

static void
on_output(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct proc_out *o = arg;
	struct process *p = o->proc;
	char *buf = loop_read_buf(p->app->loop);
	bool tail = p->no_wait && p->state == PROC_DRAINING;
	size_t want = tail && o->tail_left < o->chunk ? o->tail_left : o->chunk;
	ssize_t n = want > 0 ? read((int)fd, buf, want) : 0;

	if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
		if (tail && errno == EAGAIN)
			output_ended(o);
		return;
	}
	if (n <= 0) { /* EIO is the end of a terminal */
		output_ended(o);
		return;
	}
	if (tail)
		o->tail_left -= (size_t)n;
	deliver(p, o->stream, buf, (size_t)n);
	if (tail && !p->paused)
		event_active(&o->ev, EV_READ, 0);
}

void
proc_out_init(struct process *p, int i, int fd, enum proc_stream stream)
{
	struct proc_out *o = &p->out[i];

	o->proc = p;
	o->fd = fd;
	o->stream = stream;
	o->chunk = stream == PROC_PTY ? PROC_PTY_CHUNK : PROC_PIPE_CHUNK;
	if (fd != -1)
		event_assign(
		    &o->ev, loop_base(p->app->loop), fd, EV_READ | EV_PERSIST, on_output, o);
}

void
proc_out_start(struct process *p)
{
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
		if (p->out[i].fd != -1 && !p->paused)
			event_add(&p->out[i].ev, NULL);
	}
}

void
proc_out_close(struct proc_out *o)
{
	if (o->fd == -1)
		return;
	event_del(&o->ev);
	if (o->stream == PROC_PTY && o->proc->in_fd == o->fd)
		proc_in_fail(o->proc, "terminal is closed");
	close(o->fd);
	o->fd = -1;
}

void
proc_out_pause(struct process *p, bool on)
{
	if (p->paused == on || p->state == PROC_DEAD)
		return;
	p->paused = on;
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
		struct proc_out *o = &p->out[i];

		if (o->fd == -1)
			continue;
		if (on) {
			event_del(&o->ev);
			continue;
		}
		event_add(&o->ev, NULL);
		if (p->no_wait && p->state == PROC_DRAINING)
			event_active(&o->ev, EV_READ, 0);
	}
}

/* What a pipe can hold is read, no more: children of the process may go on writing for ever. */
#define TAIL_MAX ((size_t)1024 * 1024)

void
proc_out_finish(struct process *p)
{
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
		struct proc_out *o = &p->out[i];

		o->tail_left = TAIL_MAX;
		if (o->fd != -1 && !p->paused)
			event_active(&o->ev, EV_READ, 0);
	}
}

/* --- input --- */

static void
input_done(struct process *p, struct proc_input *in, const struct err *e)
{
	TAILQ_REMOVE(&p->inputs, in, link);
	p->in_pending -= in->n;
	if (in->done)
		in->done(in->arg, e);
	xfree(in->data);
	xfree(in);
}

static void
input_close(struct process *p)
{
	if (p->in_fd == -1)
		return;
	event_del(&p->in_ev);
	if (!p->pty) /* a terminal's descriptor belongs to the output */
		close(p->in_fd);
	p->in_fd = -1;
}

void
proc_in_fail(struct process *p, const char *why)
{
	struct proc_input *in;
	struct err e;

	input_close(p);
	err_set(&e, ERR_INTERNAL, "error writing to process: %s", why);
	while ((in = TAILQ_FIRST(&p->inputs)) != NULL)
		input_done(p, in, &e);
}

/* Writes as much as goes. 1: all of it, 0: not yet, -1: broken (errno). */
static int
write_some(struct process *p, struct proc_input *in)
{
	while (in->off < in->n) {
		ssize_t n = write(p->in_fd, in->data + in->off, in->n - in->off);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? 0 : -1;
		in->off += (size_t)n;
	}
	return 1;
}

static void
on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct process *p = arg;
	struct proc_input *in = TAILQ_FIRST(&p->inputs);
	int r = in ? write_some(p, in) : 1;

	if (r == -1) {
		proc_in_fail(p, "broken pipe");
		return;
	}
	if (r == 1 && in)
		input_done(p, in, NULL);
	if (!TAILQ_EMPTY(&p->inputs) || p->in_fd == -1)
		return;
	event_del(&p->in_ev);
	if (p->in_closing)
		input_close(p);
}

void
proc_in_init(struct process *p, int fd)
{
	p->in_fd = fd;
	if (fd != -1)
		event_assign(
		    &p->in_ev, loop_base(p->app->loop), fd, EV_WRITE | EV_PERSIST, on_writable, p);
}

static int
check_input(const struct process *p, bool pty, size_t n, struct err *e)
{
	if (pty != p->pty)
		return err_set(e, ERR_INTERNAL,
		    pty ? "tty not assigned to process" : "stdin of a terminal: send pty input");
	if (p->in_fd == -1 || p->in_closing)
		return err_set(e, ERR_INTERNAL, "stdin not enabled or closed");
	if (n > PROC_INPUT_MAX - p->in_pending)
		return err_set(
		    e, ERR_LIMIT, "more than %zu bytes of input are waiting", PROC_INPUT_MAX);
	return 0;
}

int
proc_write(struct process *p, bool pty, unsigned char *data, size_t n,
    void (*done)(void *arg, const struct err *e), void *arg, struct proc_input **ret, struct err *e)
{
	struct proc_input *in;
	int r = 0;

	if (check_input(p, pty, n, e) == -1)
		return -1;
	in = xcalloc(1, sizeof(*in));
	*in = (struct proc_input){ .data = data, .n = n };
	if (TAILQ_EMPTY(&p->inputs))
		r = write_some(p, in);
	if (r == -1) {
		err_errno(e, ERR_INTERNAL, "error writing to process");
		xfree(in);
		return -1;
	}
	if (r == 1) {
		xfree(data);
		xfree(in);
		return 1;
	}
	in->done = done;
	in->arg = arg;
	p->in_pending += n;
	if (TAILQ_EMPTY(&p->inputs))
		event_add(&p->in_ev, NULL);
	TAILQ_INSERT_TAIL(&p->inputs, in, link);
	*ret = in;
	return 0;
}

void
proc_input_forget(struct proc_input *in)
{
	in->done = NULL;
}

int
proc_close_stdin(struct process *p, struct err *e)
{
	if (p->pty)
		return err_set(e, ERR_INTERNAL,
		    "cannot close the stdin of a terminal: send Ctrl+D (0x04) instead");
	if (p->in_fd == -1)
		return 0;
	p->in_closing = true;
	if (TAILQ_EMPTY(&p->inputs))
		input_close(p);
	return 0;
}
