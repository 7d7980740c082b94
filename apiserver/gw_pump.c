/*
 * Moves bytes between a client and a sandbox, both ways at once. Owns back-pressure (a side is not
 * read while the other has unsent output: high mark one read, low mark empty), framing of the
 * forwarded bodies, early answers, 100 Continue and tunnels with half-close. Must not know why a
 * session is where it is.
 *
 * An answer that came whole in one read leaves in one send: head and body are put together in the
 * gateway's output buffer. Pieces of a chunked body are moved together inside the read buffer, so a
 * read never makes more than one send.
 */
#include "apiserver/gw.h"

#define CHUNK_END "\r\n"
#define LAST_CHUNK "0\r\n\r\n"

static const struct http_req_ops no_ops; /* of a request that is over for us */

/* iovec has no const form; nothing writes through these. */
static struct iovec
piece_of(const void *p, size_t n)
{
	return (struct iovec){ (void *)(uintptr_t)p, n };
}

static const char *
class_of(int status)
{
	static const char *const classes[] = { "1xx", "2xx", "3xx", "4xx", "5xx" };

	return status >= 100 && status < 600 ? classes[status / 100 - 1] : "other";
}

/* --- towards the sandbox --- */

void
gw_pump_update(struct gw_session *s)
{
	bool flowing = s->state == GW_STREAM || s->state == GW_TUNNEL;
	bool pause;

	if (s->r == NULL || (!s->has_body && !s->upgrade))
		return;
	pause = !flowing || s->up_full || s->expecting;
	if (pause == s->paused)
		return;
	s->paused = pause;
	http_req_pause(s->r, pause);
}

/* Keeps a copy of what goes out, for a second try. */
static void
keep(struct gw_session *s, const struct iovec *iov, int n)
{
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (!s->keep_body || s->head.n - s->head_n + total > GW_BODY_KEPT_MAX) {
		s->keep_body = false;
		s->kept_all = false;
		return;
	}
	for (int i = 0; i < n; i++)
		gw_buf_add(&s->head, iov[i].iov_base, iov[i].iov_len);
}

static bool
untouched(const struct gw_up *up)
{
	return up->sock.state == SOCK_FAILED && up->sock.bytes_out == up->mark_out;
}

/* A reused connection that did not take a single byte was dead: another one carries the request, be
 * it what it may. The piece of body at hand is kept behind the head for it. */
static void
send_elsewhere(struct gw_session *s, const struct iovec *iov, int n)
{
	if (s->head.n == s->head_n) {
		for (int i = 0; i < n; i++)
			gw_buf_add(&s->head, iov[i].iov_base, iov[i].iov_len);
	}
	gw_count_retry("dead");
	gw_up_close(s->up);
	gw_session_resolve(s);
}

/* Body pieces (framed) to the sandbox, behind the head if that has not gone yet. */
static void
send_body(struct gw_session *s, const struct iovec *iov, int n)
{
	struct iovec all[5];
	int k = 0;

	if (s->up == NULL)
		return; /* an early answer is out; the rest is read and dropped */
	if (s->head_unsent) {
		all[k++] = (struct iovec){ s->head.p, s->head_n };
		s->head_unsent = false;
		loop_undefer(s->g->conf.loop, &s->flush);
	}
	for (int i = 0; i < n; i++)
		all[k++] = iov[i];
	s->up_full = sock_writev(&s->up->sock, all, k) > 0;
	if (s->up->reused && untouched(s->up)) {
		send_elsewhere(s, iov, n);
		return;
	}
	if (n > 0)
		keep(s, iov, n);
	gw_pump_update(s);
}

static void
send_piece(struct gw_session *s, const char *p, size_t n)
{
	char line[GW_CHUNK_LINE_MAX];
	struct iovec iov[3];

	if (s->body_left > 0)
		s->body_left -= (int64_t)n;
	if (!s->chunked) {
		iov[0] = piece_of(p, n);
		send_body(s, iov, 1);
		return;
	}
	iov[0] = piece_of(line, gw_chunk_line(line, n));
	iov[1] = piece_of(p, n);
	iov[2] = piece_of(CHUNK_END, sizeof(CHUNK_END) - 1);
	send_body(s, iov, 3);
}

/* The client's FIN, behind its whole request. */
static void
pass_fin(struct gw_session *s)
{
	if (!s->client_fin || !s->req_done || s->up == NULL)
		return;
	sock_finish(&s->up->sock);
	if (!s->timed)
		gw_timer(s, GW_HANGUP_MAX);
}

void
gw_pump_flush(struct gw_session *s)
{
	if (s->head_unsent)
		send_body(s, NULL, 0);
}

void
gw_pump_start(struct gw_session *s)
{
	struct gw_up *up = s->up;

	http1_expect(up->parser, s->head_request);
	if (s->has_body && !s->expecting && up->reused && s->head.n == s->head_n) {
		s->head_unsent = true;
		loop_defer(s->g->conf.loop, &s->flush);
		gw_pump_update(s);
		return;
	}
	s->up_full = sock_write(&up->sock, s->head.p, s->head.n) > 0;
	if (up->reused && untouched(up)) {
		send_elsewhere(s, NULL, 0);
		return;
	}
	if (!s->keep_body)
		s->head.n = s->head_n;
	if (s->expecting)
		gw_timer(s, GW_EXPECT_MAX);
	pass_fin(s);
	gw_pump_update(s);
}

void
gw_pump_drain(struct gw_up *up)
{
	struct gw_session *s = up->session;

	s->up_full = false;
	if (s->state == GW_TUNNEL && s->r == NULL)
		gw_session_end(s, "tunnel", false);
	else
		gw_pump_update(s);
}

/* --- the client's side --- */

static void
tunnel_up(struct gw_session *s, const char *p, size_t n)
{
	s->up_full = sock_write(&s->up->sock, p, n) > 0;
	gw_pump_update(s);
}

static void
on_body(struct http_req *r, const char *p, size_t n)
{
	struct gw_session *s = r->arg;

	gw_session_moved(s);
	if (s->state == GW_TUNNEL) {
		tunnel_up(s, p, n);
		return;
	}
	BUG_ON(s->state != GW_STREAM); /* the client is paused otherwise */
	send_piece(s, p, n);
}

void
gw_pump_leave(struct http_req *r)
{
	r->ops = &no_ops;
	r->arg = NULL;
}

/* Both sides have sent their FIN. */
static void
tunnel_over(struct gw_session *s)
{
	gw_pump_leave(s->r);
	s->r = NULL;
	if (sock_pending(&s->up->sock) == 0)
		gw_session_end(s, "tunnel", false);
}

static void
finish_early(struct gw_session *s)
{
	struct http_req *r = s->r;
	bool keep = s->up && s->req_done && sock_pending(&s->up->sock) == 0;

	gw_session_end(s, class_of(s->status), keep);
	http_reply_end(r);
}

static void
on_end(struct http_req *r)
{
	struct iovec last = piece_of(LAST_CHUNK, sizeof(LAST_CHUNK) - 1);
	struct gw_session *s = r->arg;

	if (s->state == GW_TUNNEL) {
		s->client_fin = true;
		sock_finish(&s->up->sock);
		if (s->up_fin)
			tunnel_over(s);
		return;
	}
	if (!s->has_body)
		return;
	s->req_done = true;
	s->body_left = 0;
	if (s->chunked || s->head_unsent)
		send_body(s, &last, s->chunked ? 1 : 0);
	if (s->answer_done)
		finish_early(s);
	else if (s->state == GW_STREAM)
		pass_fin(s);
}

static void
on_client_drain(struct http_req *r)
{
	struct gw_session *s = r->arg;

	s->down_full = false;
	gw_session_moved(s);
	if (s->pipe)
		gw_splice_out(s);
	else if (s->up)
		sock_read_set(&s->up->sock, true);
}

static void
on_abort(struct http_req *r, const char *why UNUSED)
{
	struct gw_session *s = r->arg;

	s->r = NULL;
	gw_session_end(s, "client_gone", false);
}

/* The client is gone, or has only half-closed: nobody can tell. The sandbox gets the same FIN and
 * decides as it would without us; if it still answers, a client that is gone resets our connection
 * and so ends the sandbox's. What only waits for a sandbox is given up. */
static void
on_hangup(struct http_req *r)
{
	struct gw_session *s = r->arg;

	if (s->state != GW_STREAM && s->state != GW_CONNECT) {
		gw_session_end(s, "client_gone", false);
		http_reply_abort(r, "client gone");
		return;
	}
	s->client_fin = true;
	s->client_keep = false;
	if (s->state == GW_STREAM)
		pass_fin(s);
}

const struct http_req_ops gw_client_ops = {
	.on_body = on_body,
	.on_end = on_end,
	.on_drain = on_client_drain,
	.on_abort = on_abort,
	.on_hangup = on_hangup,
};

/* --- from the sandbox --- */

/* What one read has brought for the client so far. */
struct answer {
	struct gw_session *s;
	char *buf;  /* the read buffer */
	char *body; /* gathered, inside of it */
	size_t n;   /* gathered */
	bool head;  /* g->out holds a head that was not sent */
};

static void
stop_if_full(struct gw_session *s, size_t pending)
{
	if (pending == 0)
		return;
	s->down_full = true;
	sock_read_set(&s->up->sock, false);
	sock_limit_kernel(http_req_sock(s->r));
}

static void
gather(struct answer *a, struct strv piece)
{
	char *at = a->buf + (piece.p - a->buf);

	if (a->n == 0)
		a->body = at;
	else
		memmove(a->body + a->n, at, piece.n);
	a->n += piece.n;
}

/* Head and all there is of the body. Chunks that are complete are written here, so that the whole
 * answer is one send; otherwise the server frames what comes. */
static void
send_head(struct answer *a, bool done)
{
	struct gw_session *s = a->s;
	struct gw_buf *out = &s->g->out;
	bool chunked = s->framing == GW_FRAME_CHUNKED;
	struct strv body = { a->body, a->n };
	char line[GW_CHUNK_LINE_MAX];
	int64_t len = chunked ? -1 : -2;

	if (a->n <= GW_SMALL_BODY && (!chunked || done)) {
		if (chunked && a->n > 0)
			gw_buf_add(out, line, gw_chunk_line(line, a->n));
		gw_buf_add(out, a->body, a->n);
		if (chunked && a->n > 0)
			gw_buf_add(out, CHUNK_END, sizeof(CHUNK_END) - 1);
		if (chunked)
			gw_buf_add(out, LAST_CHUNK, sizeof(LAST_CHUNK) - 1);
		body = STRV_NONE;
		len = -2;
	}
	s->answered = true;
	a->head = false;
	stop_if_full(s,
	    http_reply_raw(
	        s->r, s->status, (struct strv){ out->p, out->n }, body, len, s->client_keep));
}

static void
send_answer(struct answer *a, bool done)
{
	struct gw_session *s = a->s;

	if (a->head)
		send_head(a, done);
	else if (a->n > 0)
		stop_if_full(s, http_reply_write(s->r, a->body, a->n));
	a->n = 0;
}

/* The sandbox's answer is complete. in_step: nothing came behind it. */
static void
answer_complete(struct gw_session *s, bool in_step)
{
	struct http_req *r = s->r;
	bool keep = s->up_keep && in_step && !s->client_fin;

	if (keep && !s->req_done && !s->expecting && s->body_left > 0 &&
	    s->body_left <= GW_EARLY_REST_MAX) {
		s->answer_done = true;
		gw_timer(s, GW_EARLY_WAIT);
		return;
	}
	keep = keep && s->req_done && sock_pending(&s->up->sock) == 0;
	gw_session_end(s, class_of(s->status), keep);
	http_reply_end(r);
}

/* Its body went another way. */
void
gw_pump_complete(struct gw_session *s)
{
	struct strv none = STRV_NONE, body;

	BUG_ON(http1_next(s->up->parser, &none, &body) != HTTP1_DONE);
	answer_complete(s, true);
}

static void
relay_interim(struct gw_session *s, const struct http_head *h)
{
	struct gw_response_opts opts = { .framing = GW_FRAME_NONE, .minor = s->minor };
	struct gw_buf *out = &s->g->out;

	if (h->status == 100) {
		if (!s->expecting)
			return;
		s->expecting = false;
		gw_timer(s, 0);
		http_req_continue(s->r);
		gw_pump_update(s);
		return;
	}
	if (s->minor == 0)
		return;
	out->n = 0;
	gw_put_response(out, h, &opts);
	http_reply_interim(s->r, (struct strv){ out->p, out->n });
}

/* The Date field for sandboxes that send none (RFC 9110 6.6.1), once a second. */
static const char *
date_text(struct gateway *g)
{
	int64_t now = loop_now(g->conf.loop);

	if (g->date_at == 0 || now - g->date_at >= SECONDS(1)) {
		time_http_date(clock_wall(), g->date);
		g->date_at = now;
	}
	return g->date;
}

static bool
is_not_ready(const struct gw_session *s, const struct http_head *h)
{
	const struct strv *state;

	if (h->status != 425 || s->port != ENVD_PORT)
		return false;
	state = http_head_get(h, "x-envd-state");
	return state && strv_is(*state, "new");
}

/* Returns false when the session has left this connection. */
static bool
on_head(struct answer *a, const struct http_head *h)
{
	struct gw_session *s = a->s;
	struct gw_response_opts opts = { .minor = s->minor, .head_request = s->head_request };

	if (h->status == 101 && !s->upgrade) {
		gw_session_lost(s, "unasked upgrade");
		return false;
	}
	if (h->status < 200 && h->status != 101) {
		relay_interim(s, h);
		return true;
	}
	if (is_not_ready(s, h)) {
		gw_session_not_ready(s);
		return false;
	}
	s->status = h->status;
	s->up_keep = h->keep_alive;
	s->framing = (uint8_t)gw_response_framing(h, s->minor);
	if (s->framing == GW_FRAME_CLOSE || http_req_will_close(s->r))
		s->client_keep = false;
	opts.framing = (enum gw_framing)s->framing;
	opts.keep = s->client_keep;
	opts.date = date_text(s->g);
	s->g->out.n = 0;
	gw_put_response(&s->g->out, h, &opts);
	a->head = true;
	return true;
}

static void
tunnel_down(struct gw_session *s, const char *p, size_t n)
{
	if (s->r && n > 0)
		stop_if_full(s, http_reply_write(s->r, p, n));
}

static void
tunnel_start(struct answer *a, struct strv rest)
{
	struct gw_session *s = a->s;
	struct gw_buf *out = &s->g->out;

	s->answered = true;
	s->expecting = false;
	gw_timer(s, 0);
	gw_session_set(s, GW_TUNNEL);
	gw_buf_done(&s->head); /* may stay for days */
	s->head_n = 0;
	http_req_tunnel(s->r, 101, (struct strv){ out->p, out->n });
	gw_pump_update(s);
	tunnel_down(s, rest.p, rest.n);
}

static void
on_malformed(struct answer *a)
{
	struct gw_session *s = a->s;

	if (s->answered || a->head)
		gw_session_cut(s, GW_FAIL_PORT_CLOSED, "malformed answer");
	else
		gw_session_lost(s, "malformed answer");
}

void
gw_pump_data(struct gw_up *up, char *p, size_t n)
{
	struct gw_session *s = up->session;
	struct answer a = { .s = s, .buf = p };
	struct strv in = { p, n }, body = STRV_NONE;

	gw_session_moved(s);
	if (s->state == GW_TUNNEL) {
		tunnel_down(s, p, n);
		return;
	}
	if (s->answer_done) {
		gw_up_close(up); /* more than one answer to one request */
		return;
	}
	for (;;) {
		switch (http1_next(up->parser, &in, &body)) {
		case HTTP1_HEAD:
			if (!on_head(&a, http1_head(up->parser)))
				return;
			break;
		case HTTP1_BODY:
			gather(&a, body);
			break;
		case HTTP1_DONE:
			send_answer(&a, true);
			answer_complete(s, in.n == 0);
			return;
		case HTTP1_UPGRADE:
			tunnel_start(&a, in);
			return;
		case HTTP1_ERROR:
			on_malformed(&a);
			return;
		case HTTP1_MORE:
			send_answer(&a, false);
			gw_splice_begin(s);
			return;
		}
	}
}

static void
tunnel_eof(struct gw_session *s, const char *why)
{
	struct http_req *r = s->r;

	if (why || r == NULL) {
		gw_session_cut(s, GW_FAIL_PORT_CLOSED, why ? why : "closed");
		return;
	}
	s->up_fin = true;
	if (s->client_fin)
		tunnel_over(s);
	http_reply_end(r);
}

void
gw_pump_eof(struct gw_up *up, const char *why)
{
	struct gw_session *s = up->session;

	if (s->state == GW_TUNNEL) {
		tunnel_eof(s, why);
	} else if (s->answer_done) {
		gw_up_close(up);
	} else if (!s->answered) {
		gw_session_lost(s, why ? why : "closed without an answer");
	} else if (why == NULL && http1_finish(up->parser) == 0) {
		s->up_keep = false;
		answer_complete(s, false);
	} else {
		gw_session_cut(s, GW_FAIL_PORT_CLOSED, why ? why : "answer cut short");
	}
}

void
gw_pump_timer(struct gw_session *s)
{
	if (s->answer_done) {
		finish_early(s);
	} else if (s->expecting) {
		s->expecting = false;
		http_req_continue(s->r);
		gw_pump_update(s);
	} else if (loop_now(s->g->conf.loop) - s->moved < GW_HANGUP_MAX / 2) {
		gw_timer(s, GW_HANGUP_MAX);
	} else {
		struct http_req *r = s->r;

		gw_session_end(s, "client_gone", false);
		http_reply_abort(r, "client gone");
	}
}
