/*
 * A connection's state machine: bytes come in, the parser makes events of them, the handler gets
 * them one request at a time, and the end of a request decides what becomes of the connection.
 *
 * conn_run is the only place that feeds the parser and calls the handler. It works step by step and
 * looks at the state anew before each, since any callback may have ended the request or the
 * connection. What is called from a handler only notes what happened; outside of conn_run it asks
 * for one at the end of the turn (conn_kick). Whether the socket is read and what the connection
 * waits for is derived from the state in one place (conn_update).
 */
#include "http/http_conn.h"

#include "base/alloc.h"
#include "base/bug.h"

#define MOVE(s) (1u << (s))

static const unsigned short moves[HC_STATES] = {
	[HC_HANDSHAKE] = MOVE(HC_IDLE) | MOVE(HC_DEAD),
	[HC_IDLE] =
	    MOVE(HC_HEAD) | MOVE(HC_BODY) | MOVE(HC_REPLY) | MOVE(HC_CLOSING) | MOVE(HC_DEAD),
	[HC_HEAD] = MOVE(HC_BODY) | MOVE(HC_REPLY) | MOVE(HC_CLOSING) | MOVE(HC_DEAD),
	[HC_BODY] = MOVE(HC_REPLY) | MOVE(HC_DRAIN) | MOVE(HC_CLOSING) | MOVE(HC_DEAD),
	[HC_REPLY] =
	    MOVE(HC_IDLE) | MOVE(HC_FLUSH) | MOVE(HC_TUNNEL) | MOVE(HC_CLOSING) | MOVE(HC_DEAD),
	[HC_DRAIN] = MOVE(HC_IDLE) | MOVE(HC_FLUSH) | MOVE(HC_CLOSING) | MOVE(HC_DEAD),
	[HC_FLUSH] = MOVE(HC_IDLE) | MOVE(HC_DEAD),
	[HC_TUNNEL] = MOVE(HC_CLOSING) | MOVE(HC_DEAD),
	[HC_CLOSING] = MOVE(HC_DEAD),
	[HC_DEAD] = 0,
};

void
conn_set(struct conn *c, enum conn_state next)
{
	BUG_ON((moves[c->state] & MOVE(next)) == 0);
	c->state = (uint8_t)next;
}

/* --- what is derived from the state --- */

static bool
wants_read(const struct conn *c)
{
	bool paused = c->x && c->x->paused;

	if (c->stash || c->eof)
		return false;
	switch ((enum conn_state)c->state) {
	case HC_BODY:
	case HC_TUNNEL:
		return !paused;
	case HC_HANDSHAKE:
	case HC_IDLE:
	case HC_HEAD:
	case HC_REPLY: /* the client's end is seen so; early bytes stop it */
	case HC_DRAIN:
	case HC_FLUSH:
	case HC_CLOSING:
		return true;
	case HC_DEAD:
	case HC_STATES:
		break;
	}
	return false;
}

static enum conn_wait
waits_for(const struct conn *c)
{
	bool pending = sock_pending(&c->sock) > 0 || c->sock.want_write;
	enum conn_wait unread =
	    !c->sock.reading && !c->sock.watching ? HC_WAIT_WATCH : HC_WAIT_NONE;

	switch ((enum conn_state)c->state) {
	case HC_HANDSHAKE:
	case HC_HEAD:
		return HC_WAIT_HEAD;
	case HC_IDLE:
		return HC_WAIT_IDLE;
	case HC_BODY:
		if (!pending && c->sock.reading && c->x->patient)
			return HC_WAIT_NONE;
		return pending ? HC_WAIT_WRITE : c->sock.reading ? HC_WAIT_BODY : unread;
	case HC_DRAIN:
		return pending ? HC_WAIT_WRITE : c->sock.reading ? HC_WAIT_BODY : unread;
	case HC_REPLY:
	case HC_TUNNEL:
		return pending ? HC_WAIT_WRITE : unread;
	case HC_FLUSH:
		return HC_WAIT_WRITE;
	case HC_CLOSING:
		return pending ? HC_WAIT_WRITE : HC_WAIT_LINGER;
	case HC_DEAD:
	case HC_STATES:
		break;
	}
	return HC_WAIT_NONE;
}

static void
conn_update(struct conn *c)
{
	bool read;
	enum conn_wait wait;

	if (c->state == HC_DEAD)
		return;
	read = wants_read(c);
	if (read && c->sock.watching)
		sock_watch_close(&c->sock, false);
	if (read != c->sock.reading)
		sock_read_set(&c->sock, read);
	wait = waits_for(c);
	if (wait != c->wait)
		server_wait(c, wait);
}

void
conn_kick(struct conn *c)
{
	if (!c->running)
		loop_defer(c->server->loop, &c->later);
}

/* From the first byte of a head to the end of the request there is one. */
static struct exchange *
exchange_at(struct conn *c)
{
	BUG_ON(c->x == NULL);
	return c->x;
}

/* --- ends --- */

/* The request is over, whatever became of it. */
static void
exchange_end(struct conn *c)
{
	struct exchange *x = exchange_at(c);
	struct http_server *s = c->server;

	c->x = NULL;
	c->seq++;
	if (x->started && s->conf.on_done)
		s->conf.on_done(&x->r, s->conf.arg);
	server_exchange_free(s, x);
}

/* Nothing is called after this but the deferred free. */
static void
conn_dead(struct conn *c)
{
	conn_set(c, HC_DEAD);
	server_conn_gone(c);
	loop_defer(c->server->loop, &c->later);
}

void
conn_close(struct conn *c)
{
	/* TLS wants its own end of stream; plain TCP needs no call more. */
	if (c->tls && c->state != HC_HANDSHAKE && sock_pending(&c->sock) == 0)
		sock_finish(&c->sock);
	sock_close(&c->sock);
	conn_dead(c);
	if (c->x)
		exchange_end(c);
}

/* Would a plain close make a reply look complete that is not? */
static bool
cuts_reply(const struct conn *c)
{
	const struct exchange *x = c->x;

	if (sock_pending(&c->sock) > 0)
		return true;
	return x && x->r.head_sent && !x->reply_done && c->state != HC_TUNNEL;
}

void
conn_abort(struct conn *c, const char *why, bool reset)
{
	struct exchange *x = c->x;
	const struct http_req_ops *ops;
	/* A tunnel is the handler's until both sides have ended. */
	bool unended = x && (!x->reply_done || c->state == HC_TUNNEL);

	if (reset || cuts_reply(c))
		sock_reset(&c->sock);
	else
		sock_close(&c->sock);
	conn_dead(c);
	if (x == NULL)
		return;
	x->over = true;
	ops = x->collect ? x->collect->user : x->r.ops;
	if (why && x->started && unended && ops && ops->on_abort)
		ops->on_abort(&x->r, why);
	exchange_end(c);
}

void
conn_cut(struct conn *c, const char *why)
{
	struct exchange *x = exchange_at(c);

	c->cut = why;
	x->r.head_sent = true;
	x->framing = FRAME_NONE;
	conn_kick(c);
}

/* Output flushed or not, the last word is spoken: end in a way that lets the client read it. A
 * close with unread bytes in the kernel would reset the connection under the reply. */
static void
closing_step(struct conn *c)
{
	if (sock_pending(&c->sock) > 0)
		return;
	if (c->eof || (!c->linger && c->stash == NULL)) {
		conn_close(c);
		return;
	}
	sock_finish(&c->sock);
}

void
conn_closing(struct conn *c)
{
	conn_set(c, HC_CLOSING);
	conn_kick(c);
}

/* Both halves of the request are over: on to the next, or to the end. */
static void
next_request(struct conn *c)
{
	struct exchange *x = exchange_at(c);
	bool keep = x->keep && !c->server->draining;

	/* A client that asked for the end sends nothing more; others may be sending right now. */
	if (!keep && (x->keep || !x->r.body_done))
		c->linger = true;
	exchange_end(c);
	if (c->state == HC_DEAD)
		return;
	if (!keep)
		conn_closing(c);
	else
		conn_set(c, sock_pending(&c->sock) > 0 ? HC_FLUSH : HC_IDLE);
	if (c->state == HC_IDLE)
		server_touch(c);
}

void
conn_reply_done(struct conn *c)
{
	struct exchange *x = exchange_at(c);

	x->reply_done = true;
	x->r.ops = NULL;
	x->paused = false;
	if (c->state == HC_BODY) {
		conn_set(c, HC_DRAIN);
		if (!x->keep) {
			c->linger = true;
			next_request(c);
		}
	} else {
		next_request(c);
	}
	conn_kick(c);
}

/* --- steps of conn_run: each does one thing and says whether to look again --- */

static void
step_hangup(struct conn *c)
{
	struct exchange *x = c->x;
	const struct http_req_ops *ops;

	if (x == NULL || (c->state != HC_BODY && c->state != HC_REPLY) || x->hangup_given)
		return;
	x->hangup_given = true;
	ops = x->collect ? x->collect->user : x->r.ops;
	if (ops && ops->on_hangup)
		ops->on_hangup(&x->r);
}

static void
give_id(struct http_server *s, char id[17])
{
	static const char hex[] = "0123456789abcdef";
	uint64_t v = s->next_id += UINT64_C(0x9e3779b97f4a7c15);

	v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
	v ^= v >> 31;
	for (int i = 0; i < 16; i++)
		id[i] = hex[(v >> (60 - 4 * i)) & 15];
	id[16] = '\0';
}

static void
take_head(struct conn *c)
{
	struct exchange *x = exchange_at(c);
	struct http_server *s = c->server;
	const struct http_head *h = http1_head(x->parser);

	x->started = true;
	x->minor = (uint8_t)h->minor;
	x->keep = h->keep_alive && h->method != HTTP_CONNECT;
	x->expect = h->expect_continue;
	x->r.server = s;
	x->r.peer = c->peer;
	x->r.tls = c->tls;
	x->r.method = h->method;
	x->r.body_done = !h->has_body;
	x->r.start = loop_now(s->loop);
	give_id(s, x->r.id);
	conn_set(c, h->has_body ? HC_BODY : HC_REPLY);
	s->conf.on_request(&x->r, h, s->conf.arg);
}

static void
bad_request(struct conn *c, int status, const char *why)
{
	struct exchange *x = c->x;
	bool begun = x && x->r.head_sent;
	const struct http_req_ops *ops;

	if (begun && !x->reply_done) {
		conn_abort(c, why, true);
		return;
	}
	c->linger = true;
	if (x) {
		/* The handler is told first; what it may still send goes nowhere. */
		ops = x->collect ? x->collect->user : x->r.ops;
		x->over = true;
		x->r.status = begun ? x->r.status : status;
		if (x->started && !x->reply_done && ops && ops->on_abort)
			ops->on_abort(&x->r, why);
		if (c->x)
			exchange_end(c);
	}
	if (c->state == HC_DEAD)
		return;
	conn_closing(c);
	if (!begun)
		reply_bad(c, status, why);
}

static void
take_body(struct conn *c, struct strv piece)
{
	struct exchange *x = exchange_at(c);

	x->r.bytes_in += piece.n;
	if (c->wait == HC_WAIT_BODY)
		server_touch(c);
	if (c->state == HC_DRAIN) {
		x->dropped += piece.n;
		if (x->dropped > HTTP_DRAIN_MAX) {
			x->keep = false;
			next_request(c);
		}
	} else if (!x->discard && x->r.ops && x->r.ops->on_body) {
		x->r.ops->on_body(&x->r, piece.p, piece.n);
	}
}

static void
take_body_end(struct conn *c)
{
	struct exchange *x = exchange_at(c);

	x->r.body_done = true;
	if (x->reply_done)
		next_request(c);
	else
		conn_set(c, HC_REPLY);
}

static bool
step_parse(struct conn *c, struct strv *in)
{
	struct http1 *p = exchange_at(c)->parser;
	struct strv piece = STRV_NONE;

	switch (http1_next(p, in, &piece)) {
	case HTTP1_MORE:
		if (c->state != HC_IDLE)
			return false;
		if (http1_idle(p)) { /* blank lines */
			server_exchange_free(c->server, c->x);
			c->x = NULL;
		} else {
			conn_set(c, HC_HEAD);
			server_wait(c, HC_WAIT_HEAD); /* also if the last request began so */
		}
		return false;
	case HTTP1_HEAD:
		take_head(c);
		return true;
	case HTTP1_BODY:
		take_body(c, piece);
		return true;
	case HTTP1_DONE:
	case HTTP1_UPGRADE:
		take_body_end(c);
		return true;
	case HTTP1_ERROR:
		bad_request(c, http1_error_status(p), http1_error_text(p));
		return true;
	}
	BUG_ON(true);
}

static bool
step_idle(struct conn *c, struct strv *in, unsigned *budget)
{
	if (in->n == 0) {
		if (c->eof || (c->server->draining && c->state == HC_IDLE))
			conn_close(c);
		return false;
	}
	if (c->state == HC_IDLE) {
		if ((*budget)-- == 0)
			return false;
		c->x = server_exchange(c->server);
		c->x->c = c;
	}
	return step_parse(c, in);
}

/* No bytes are there, but the body is not complete. */
static bool
step_body_starved(struct conn *c)
{
	struct exchange *x = exchange_at(c);

	if (c->eof && c->state == HC_DRAIN) {
		next_request(c);
		return true;
	}
	if (c->eof)
		conn_abort(c, "client ended inside the request body", false);
	else if (x->expect && !x->continued && x->r.ops && !x->discard)
		http_req_continue(&x->r);
	return false;
}

static bool
step_body(struct conn *c, struct strv *in)
{
	struct exchange *x = exchange_at(c);

	if (x->paused)
		return false;
	if (x->collect && x->collect->over) {
		collect_over(x);
		return true;
	}
	if (in->n == 0 && http1_body_left(x->parser) != 0)
		return step_body_starved(c);
	x->continued = true; /* or it did not wait */
	return step_parse(c, in);
}

static bool
step_reply(struct conn *c)
{
	struct exchange *x = exchange_at(c);

	if (x->end_given || x->paused)
		return false;
	x->end_given = true;
	if (x->r.ops && x->r.ops->on_end)
		x->r.ops->on_end(&x->r);
	return true;
}

void
conn_tunnel_over(struct conn *c)
{
	exchange_end(c);
	if (c->state != HC_DEAD)
		conn_closing(c);
}

static bool
step_tunnel(struct conn *c, struct strv *in)
{
	struct exchange *x = exchange_at(c);
	struct strv piece = *in;
	uint32_t seq = c->seq;

	if (x->paused)
		return false;
	if (piece.n > 0) {
		*in = (struct strv){ piece.p + piece.n, 0 };
		x->r.bytes_in += piece.n;
		if (x->r.ops && x->r.ops->on_body)
			x->r.ops->on_body(&x->r, piece.p, piece.n);
		return true;
	}
	if (!c->eof || x->end_given)
		return false;
	x->end_given = true;
	if (x->r.ops && x->r.ops->on_end)
		x->r.ops->on_end(&x->r);
	/* The handler's own end was first: that was the second. */
	if (c->seq == seq && x->reply_done)
		conn_tunnel_over(c);
	return true;
}

static void
step_closing(struct conn *c, struct strv *in)
{
	c->dropped += (uint32_t)in->n;
	*in = STRV_NONE;
	xfree(c->stash);
	c->stash = NULL;
	if (c->dropped > HTTP_LINGER_MAX)
		conn_close(c);
	else
		closing_step(c);
}

static bool
conn_step(struct conn *c, struct strv *in, unsigned *budget)
{
	if (c->cut && c->state != HC_DEAD)
		conn_abort(c, c->cut, true);
	switch ((enum conn_state)c->state) {
	case HC_IDLE:
	case HC_HEAD:
		return step_idle(c, in, budget);
	case HC_BODY:
	case HC_DRAIN:
		return step_body(c, in);
	case HC_REPLY:
		return step_reply(c);
	case HC_FLUSH:
		if (sock_pending(&c->sock) > 0)
			return false;
		conn_set(c, HC_IDLE);
		return true;
	case HC_TUNNEL:
		return step_tunnel(c, in);
	case HC_CLOSING:
		step_closing(c, in);
		return false;
	case HC_HANDSHAKE:
	case HC_DEAD:
	case HC_STATES:
		break;
	}
	return false;
}

/* What the steps left over waits in the stash; it may lie there already. */
static void
stash_keep(struct conn *c, struct strv in)
{
	if (in.n == 0) {
		if (c->stash) {
			xfree(c->stash);
			c->stash = NULL;
		}
	} else if (c->stash) {
		c->stash_off = (uint32_t)(in.p - c->stash);
	} else {
		c->stash = xmemdup0(in.p, in.n);
		c->stash_off = 0;
		c->stash_len = (uint32_t)in.n;
	}
}

static void
conn_run(struct conn *c, struct strv in)
{
	unsigned budget = HTTP_RUN_MAX;

	BUG_ON(c->running);
	c->running = true;
	if (c->eof && c->state == HC_REPLY)
		step_hangup(c);
	while (conn_step(c, &in, &budget))
		;
	c->running = false;
	if (c->state == HC_DEAD)
		return; /* conn_later frees the stash */
	stash_keep(c, in);
	if (c->stash && c->state == HC_IDLE)
		conn_kick(c); /* others first */
	conn_update(c);
}

static struct strv
stashed(const struct conn *c)
{
	if (c->stash == NULL)
		return STRV_NONE;
	return (struct strv){ c->stash + c->stash_off, c->stash_len - c->stash_off };
}

void
conn_later(void *arg)
{
	struct conn *c = arg;

	if (c->state == HC_DEAD) {
		xfree(c->stash);
		xfree(c);
	} else if (c->state != HC_HANDSHAKE) {
		conn_run(c, stashed(c));
	}
}

/* --- from the socket and the clock --- */

void
conn_start(struct conn *c, int fd)
{
	c->state = c->tls ? HC_HANDSHAKE : HC_IDLE;
	sock_open(&c->sock, fd);
	conn_update(c);
}

static void
on_open(struct sock *s)
{
	struct conn *c = container_of(s, struct conn, sock);

	conn_set(c, HC_IDLE);
	conn_update(c);
}

static void
on_data(struct sock *s, char *p, size_t n)
{
	struct conn *c = container_of(s, struct conn, sock);

	conn_run(c, (struct strv){ p, n });
}

static void
on_eof(struct sock *s)
{
	struct conn *c = container_of(s, struct conn, sock);

	c->eof = true;
	conn_run(c, stashed(c));
}

static void
on_hangup(struct sock *s)
{
	struct conn *c = container_of(s, struct conn, sock);

	c->running = true;
	step_hangup(c);
	c->running = false;
	conn_kick(c);
}

static void
on_drain(struct sock *s)
{
	struct conn *c = container_of(s, struct conn, sock);
	struct exchange *x = c->x;

	c->running = true;
	if (x && x->started && !x->reply_done && x->r.ops && x->r.ops->on_drain)
		x->r.ops->on_drain(&x->r);
	c->running = false;
	if (c->state != HC_DEAD)
		conn_run(c, stashed(c));
}

static void
on_progress(struct sock *s)
{
	struct conn *c = container_of(s, struct conn, sock);

	if (c->wait == HC_WAIT_WRITE)
		server_touch(c);
}

static void
on_fail(struct sock *s, const char *why)
{
	conn_abort(container_of(s, struct conn, sock), why, false);
}

const struct sock_cb conn_cb = {
	.on_open = on_open,
	.on_data = on_data,
	.on_eof = on_eof,
	.on_hangup = on_hangup,
	.on_drain = on_drain,
	.on_progress = on_progress,
	.on_fail = on_fail,
};

void
conn_timeout(struct conn *c)
{
	switch ((enum conn_wait)c->wait) {
	case HC_WAIT_HEAD:
		if (c->state == HC_HEAD) {
			bad_request(c, 408, "request head took too long");
			break;
		}
		conn_close(c);
		return;
	case HC_WAIT_BODY:
		bad_request(c, 408, "request body stalled");
		break;
	case HC_WAIT_WRITE:
		conn_abort(c, "client does not read", true);
		return;
	case HC_WAIT_WATCH:
		sock_watch_close(&c->sock, true);
		break;
	case HC_WAIT_IDLE:
	case HC_WAIT_LINGER:
		conn_close(c);
		return;
	case HC_WAIT_NONE:
	case HC_WAITS:
		return;
	}
	conn_update(c);
}
