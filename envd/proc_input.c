/* See proc_rpc.h: SendInput and StreamInput. A call is answered when the process has taken the
 * bytes, which is how back-pressure reaches the client. */
#include "base/alloc.h"
#include "base/json.h"
#include "envd/msg.h"
#include "envd/proc_rpc.h"
#include "envd/proc_rpc_priv.h"

#define STREAM_QUEUE_MAX ((size_t)1024 * 1024) /* beyond it the client's stream is not read on */

/* --- SendInput --- */

struct send {
	struct rpc *rpc;
	struct proc_input *in;
};

/* The bytes in a ProcessInput. *data is the caller's. */
static int
read_input(const json_t *m, bool *pty, unsigned char **data, size_t *n, struct err *e)
{
	const json_t *input;

	if (msg_message(m, "input", &input, e) == -1)
		return -1;
	*pty = msg_field(input, "pty") != NULL;
	if (msg_bytes(input, *pty ? "pty" : "stdin", data, n, e) == -1)
		return -1;
	if (*data == NULL)
		return err_set(e, ERR_UNSUPPORTED, "invalid input type");
	return 0;
}

static void
on_sent(void *arg, const struct err *e)
{
	struct send *s = arg;
	struct rpc *c = s->rpc;

	xfree(s);
	c->ops = NULL;
	if (e)
		rpc_fail_err(c, e);
	else
		rpc_reply(c, json_object());
}

static void
on_send_gone(struct rpc *c)
{
	struct send *s = c->arg;

	proc_input_forget(s->in);
	xfree(s);
}

static const struct rpc_ops send_ops = { .on_gone = on_send_gone };

void
proc_rpc_send_input(struct rpc *c, const json_t *in)
{
	unsigned char *data = NULL;
	struct err e = { 0 };
	struct process *p;
	struct send *s;
	bool pty;
	size_t n;
	int r = -1;

	s = xcalloc(1, sizeof(*s));
	s->rpc = c;
	if (proc_rpc_select(c->app, in, &p, &e) == 0 && read_input(in, &pty, &data, &n, &e) == 0) {
		r = proc_write(p, pty, data, n, on_sent, s, &s->in, &e);
		if (r == -1)
			xfree(data);
	}
	if (r == 0) {
		c->arg = s;
		c->ops = &send_ops;
		return;
	}
	xfree(s);
	if (r == 1)
		rpc_reply(c, json_object());
	else
		rpc_fail_err(c, &e);
}

/* --- StreamInput --- */

struct stream {
	struct rpc *rpc;
	/* which process, asked for again with each message: it may have ended */
	json_t *selector;
	TAILQ_HEAD(, piece) pieces; /* being written */
	size_t queued;
	bool ended, paused;
};

struct piece {
	TAILQ_ENTRY(piece) link;
	struct stream *stream;
	struct proc_input *in;
	size_t n;
};

static struct rpc *
stream_free(struct stream *s)
{
	struct rpc *c = s->rpc;
	struct piece *p;

	while ((p = TAILQ_FIRST(&s->pieces)) != NULL) {
		TAILQ_REMOVE(&s->pieces, p, link);
		proc_input_forget(p->in);
		xfree(p);
	}
	json_decref(s->selector);
	xfree(s);
	c->ops = NULL;
	return c;
}

static void
on_piece(void *arg, const struct err *e)
{
	struct piece *p = arg;
	struct stream *s = p->stream;

	TAILQ_REMOVE(&s->pieces, p, link);
	s->queued -= p->n;
	xfree(p);
	if (e) {
		rpc_fail_err(stream_free(s), e);
		return;
	}
	if (s->ended && TAILQ_EMPTY(&s->pieces)) {
		rpc_reply(stream_free(s), json_object());
		return;
	}
	if (s->paused && s->queued < STREAM_QUEUE_MAX) {
		s->paused = false;
		rpc_pause(s->rpc, false);
	}
}

static int
stream_write(struct stream *s, const json_t *m, struct err *e)
{
	unsigned char *data;
	struct process *p;
	struct piece *piece;
	bool pty;
	size_t n;
	int r;

	if (s->selector == NULL)
		return err_set(e, ERR_INVALID, "the first message must be start");
	if (proc_rpc_select(s->rpc->app, s->selector, &p, e) == -1 ||
	    read_input(m, &pty, &data, &n, e) == -1)
		return -1;
	piece = xcalloc(1, sizeof(*piece));
	piece->stream = s;
	piece->n = n;
	r = proc_write(p, pty, data, n, on_piece, piece, &piece->in, e);
	if (r == -1)
		xfree(data);
	if (r != 0) {
		xfree(piece);
		return r == 1 ? 0 : -1;
	}
	TAILQ_INSERT_TAIL(&s->pieces, piece, link);
	s->queued += n;
	return 0;
}

static int
stream_message(struct stream *s, const json_t *m, struct err *e)
{
	const json_t *start, *data;
	struct process *p;

	if (msg_message(m, "start", &start, e) == -1 || msg_message(m, "data", &data, e) == -1)
		return -1;
	if (start) {
		if (proc_rpc_select(s->rpc->app, start, &p, e) == -1)
			return -1;
		json_decref(s->selector);
		s->selector = json_deep_copy(start);
	}
	return data ? stream_write(s, data, e) : 0;
}

static void
on_message(struct rpc *c, const json_t *m)
{
	struct stream *s = c->arg;
	struct err e = { 0 };

	if (stream_message(s, m, &e) == -1) {
		rpc_fail_err(stream_free(s), &e);
		return;
	}
	if (s->queued >= STREAM_QUEUE_MAX && !s->paused) {
		s->paused = true;
		rpc_pause(c, true);
	}
}

static void
on_stream_end(struct rpc *c)
{
	struct stream *s = c->arg;

	s->ended = true;
	if (TAILQ_EMPTY(&s->pieces))
		rpc_reply(stream_free(s), json_object());
}

static void
on_stream_gone(struct rpc *c)
{
	stream_free(c->arg);
}

static const struct rpc_ops stream_ops = {
	.on_message = on_message,
	.on_end = on_stream_end,
	.on_gone = on_stream_gone,
};

void
proc_rpc_stream_input(struct rpc *c, const json_t *in UNUSED)
{
	struct stream *s = xcalloc(1, sizeof(*s));

	s->rpc = c;
	TAILQ_INIT(&s->pieces);
	c->arg = s;
	c->ops = &stream_ops;
}
