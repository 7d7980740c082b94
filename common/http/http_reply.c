/*
 * Replies: their heads, framing, and what they mean for the connection. Heads are built in one
 * buffer of the server; a small body goes behind its head, so that most replies are one send.
 */
#include "base/bug.h"
#include "http/http_conn.h"
#include "http/http_msg.h"

static bool
usable(const struct exchange *x)
{
	return !x->over && x->c->state != HC_DEAD;
}

/* Fields that only the server writes. */
static bool
is_ours(struct strv name)
{
	switch (name.n) {
	case 4:
		return strv_caseis(name, "date");
	case 10:
		return strv_caseis(name, "connection");
	case 14:
		return strv_caseis(name, "content-length");
	case 17:
		return strv_caseis(name, "transfer-encoding");
	default:
		return false;
	}
}

static bool
has_no_body(int status)
{
	return status == 204 || status == 304;
}

bool
exchange_will_close(const struct exchange *x)
{
	const struct conn *c = x->c;

	if (!x->keep || c->server->draining)
		return true;
	/* It may or may not send the body now: nobody could tell it from the next request. */
	return c->state == HC_BODY && x->expect && !x->continued;
}

/* Settles what becomes of the connection, before the client is told. */
static void
decide_keep(struct exchange *x, bool is_last)
{
	struct conn *c = x->c;
	bool too_long =
	    is_last && c->state == HC_BODY && http1_body_left(x->parser) > HTTP_DRAIN_MAX;

	if (x->keep && (too_long || exchange_will_close(x))) {
		x->keep = false;
		c->linger = true;
	}
}

static void
put_connection(struct strbuf *b, const struct exchange *x)
{
	if (!x->keep)
		strbuf_addv(b, STRV("Connection: close\r\n\r\n"));
	else if (x->minor == 0)
		strbuf_addv(b, STRV("Connection: keep-alive\r\n\r\n"));
	else
		strbuf_addv(b, STRV("\r\n"));
}

/* Status line and fields, without framing and blank line. */
static struct strbuf *
put_head(struct http_server *s, int status, const struct http_field *fields, size_t n)
{
	struct strbuf *b = &s->out;

	strbuf_reset(b);
	http_put_status_line(b, status);
	if (s->conf.server_name)
		http_put_field(b, STRV("Server"), strv_of(s->conf.server_name));
	for (size_t i = 0; i < n; i++) {
		if (!is_ours(fields[i].name))
			http_put_field(b, fields[i].name, fields[i].value);
	}
	return b;
}

static void
put_length(struct strbuf *b, uint64_t n)
{
	strbuf_addv(b, STRV("Content-Length: "));
	strbuf_add_u64(b, n);
	strbuf_addv(b, STRV("\r\n"));
}

static struct iovec
iov_of(struct strv v)
{
	return (struct iovec){ (void *)(uintptr_t)v.p, v.n }; /* only read */
}

static size_t
send_out(struct conn *c, const struct iovec *iov, int n)
{
	size_t pending = sock_writev(&c->sock, iov, n);

	if (pending > 0)
		sock_limit_kernel(&c->sock);
	return pending;
}

static void
begin(struct exchange *x, int status)
{
	BUG_ON(x->r.head_sent || status < 101);
	x->r.head_sent = true;
	x->r.status = status;
}

/* The head in s->out with body behind it. */
static void
send_head(struct exchange *x, struct strv body)
{
	struct conn *c = x->c;
	struct strbuf *b = &c->server->out;
	struct iovec iov[2];

	if (body.n <= HTTP_ONE_WRITE_MAX) {
		strbuf_addv(b, body);
		body = STRV_NONE;
	}
	if (b->failed) {
		conn_cut(c, "reply head too large");
		return;
	}
	iov[0] = iov_of(strbuf_view(b));
	iov[1] = iov_of(body);
	send_out(c, iov, body.n > 0 ? 2 : 1);
}

/* The handler is through with its reply: was all of it sent? */
static void
finish(struct exchange *x)
{
	if (x->c->cut || (x->framing == FRAME_LENGTH && x->reply_left > 0))
		conn_abort(x->c, NULL, true);
	else
		conn_reply_done(x->c);
}

void
http_reply(
    struct http_req *r, int status, const struct http_field *fields, size_t n, struct strv body)
{
	struct exchange *x = exchange_of(r);
	struct strbuf *b;

	if (!usable(x))
		return;
	BUG_ON(status < 200);
	begin(x, status);
	decide_keep(x, true);
	b = put_head(r->server, status, fields, n);
	if (!has_no_body(status))
		put_length(b, body.n);
	put_connection(b, x);
	if (has_no_body(status) || r->method == HTTP_HEAD)
		body = STRV_NONE;
	r->bytes_out = body.n;
	send_head(x, body);
	finish(x);
}

void
http_reply_start(
    struct http_req *r, int status, const struct http_field *fields, size_t n, int64_t length)
{
	struct exchange *x = exchange_of(r);
	struct strbuf *b;

	if (!usable(x))
		return;
	BUG_ON(status < 200);
	begin(x, status);
	decide_keep(x, false);
	b = put_head(r->server, status, fields, n);
	if (has_no_body(status)) {
		x->framing = FRAME_NONE;
	} else if (length >= 0) {
		x->framing = FRAME_LENGTH;
		x->reply_left = (uint64_t)length;
		put_length(b, x->reply_left);
	} else if (x->minor >= 1) {
		x->framing = FRAME_CHUNKED;
		strbuf_addv(b, STRV("Transfer-Encoding: chunked\r\n"));
	} else {
		x->framing = FRAME_RAW;
		x->keep = false;
	}
	put_connection(b, x);
	if (r->method == HTTP_HEAD)
		x->framing = FRAME_NONE;
	send_head(x, STRV_NONE);
}

/* "1f\r\n" */
static struct strv
chunk_line(size_t n, char buf[20])
{
	static const char hex[] = "0123456789abcdef";
	size_t i = 20;

	buf[--i] = '\n';
	buf[--i] = '\r';
	do {
		buf[--i] = hex[n & 15];
		n >>= 4;
	} while (n > 0);
	return (struct strv){ buf + i, 20 - i };
}

/* head (may be empty) and body with its framing, in one write. */
static size_t
send_framed(struct exchange *x, struct strv head, struct strv body)
{
	struct iovec iov[4];
	char line[20];
	int n = 0;

	if (x->framing == FRAME_NONE)
		body.n = 0;
	if (x->framing == FRAME_LENGTH) {
		if (body.n > x->reply_left)
			body.n = (size_t)x->reply_left;
		x->reply_left -= body.n;
	}
	if (head.n > 0)
		iov[n++] = iov_of(head);
	if (body.n > 0 && x->framing == FRAME_CHUNKED)
		iov[n++] = iov_of(chunk_line(body.n, line));
	if (body.n > 0)
		iov[n++] = iov_of(body);
	if (body.n > 0 && x->framing == FRAME_CHUNKED)
		iov[n++] = iov_of(STRV("\r\n"));
	x->r.bytes_out += body.n;
	if (n == 0)
		return sock_pending(&x->c->sock);
	return send_out(x->c, iov, n);
}

size_t
http_reply_write(struct http_req *r, const void *p, size_t n)
{
	struct exchange *x = exchange_of(r);

	if (!usable(x) || x->reply_done)
		return 0;
	BUG_ON(!r->head_sent);
	return send_framed(x, STRV_NONE, (struct strv){ p, n });
}

void
http_reply_moved(struct http_req *r, uint64_t n)
{
	struct exchange *x = exchange_of(r);

	if (!usable(x))
		return;
	r->bytes_out += n;
	if (x->framing == FRAME_LENGTH)
		x->reply_left -= n < x->reply_left ? n : x->reply_left;
	if (x->c->wait == HC_WAIT_WRITE)
		server_touch(x->c);
}

void
http_reply_wait(struct http_req *r)
{
	struct exchange *x = exchange_of(r);

	if (!usable(x))
		return;
	sock_want_write(&x->c->sock);
	conn_kick(x->c);
}

size_t
http_reply_raw(
    struct http_req *r, int status, struct strv head, struct strv body, int64_t body_len, bool keep)
{
	struct exchange *x = exchange_of(r);

	if (!usable(x))
		return 0;
	begin(x, status);
	if (!keep && x->keep) {
		x->keep = false;
		x->c->linger = true;
	}
	if (r->method == HTTP_HEAD || has_no_body(status)) {
		x->framing = FRAME_NONE;
	} else if (body_len == -1) {
		x->framing = FRAME_CHUNKED;
	} else if (body_len < 0) {
		x->framing = FRAME_RAW;
	} else {
		x->framing = FRAME_LENGTH;
		x->reply_left = (uint64_t)body_len;
	}
	return send_framed(x, head, body);
}

void
http_reply_interim(struct http_req *r, struct strv head)
{
	struct exchange *x = exchange_of(r);
	struct iovec iov = iov_of(head);

	if (!usable(x) || r->head_sent || x->minor == 0)
		return;
	if (strv_prefix(head, STRV("HTTP/1.1 100 ")))
		x->continued = true;
	send_out(x->c, &iov, 1);
}

/* The handler's half of a tunnel ends. */
static void
tunnel_end(struct exchange *x)
{
	struct conn *c = x->c;

	x->reply_done = true;
	sock_finish(&c->sock);
	if (x->end_given)
		conn_tunnel_over(c);
	conn_kick(c);
}

void
http_reply_end(struct http_req *r)
{
	struct exchange *x = exchange_of(r);
	struct iovec last = iov_of(STRV("0\r\n\r\n"));

	if (!usable(x) || x->reply_done)
		return;
	BUG_ON(!r->head_sent);
	if (x->c->state == HC_TUNNEL) {
		tunnel_end(x);
		return;
	}
	if (x->framing == FRAME_CHUNKED)
		send_out(x->c, &last, 1);
	finish(x);
}

void
http_reply_abort(struct http_req *r, const char *why UNUSED)
{
	struct exchange *x = exchange_of(r);

	if (usable(x))
		conn_abort(x->c, NULL, true);
}

void
http_req_tunnel(struct http_req *r, int status, struct strv head)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->c;
	struct iovec iov = iov_of(head);

	if (!usable(x))
		return;
	if (c->state != HC_REPLY) {
		/* A 101 that comes before the body is complete: whose bytes are what follows? */
		conn_cut(c, "upgrade inside the request body");
		return;
	}
	begin(x, status);
	x->framing = FRAME_RAW;
	x->keep = false;
	x->end_given = false;
	conn_set(c, HC_TUNNEL);
	send_out(c, &iov, 1);
	conn_kick(c);
}

/* To a client whose request could not be read; the connection closes behind it. */
void
reply_bad(struct conn *c, int status, const char *why)
{
	struct http_server *s = c->server;
	struct strbuf body, *b;
	const char *type = "text/plain; charset=utf-8";
	struct iovec iov;

	strbuf_init(&body, HTTP_ONE_WRITE_MAX);
	if (s->conf.on_bad_request) {
		s->conf.on_bad_request(status, why, &body, &type, s->conf.arg);
	} else {
		strbuf_adds(&body, why);
		strbuf_addc(&body, '\n');
	}
	b = put_head(s, status, NULL, 0);
	http_put_field(b, STRV("Content-Type"), strv_of(type));
	put_length(b, body.n);
	strbuf_addv(b, STRV("Connection: close\r\n\r\n"));
	strbuf_addv(b, strbuf_view(&body));
	iov = iov_of(strbuf_view(b));
	if (!b->failed)
		send_out(c, &iov, 1);
	strbuf_done(&body);
}
