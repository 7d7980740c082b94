/*
 * A server for tests whose behaviour is chosen by the request's path, and a log of what its handler
 * saw. One request at a time may be held (rig.held) and played with by the test itself.
 */
#ifndef TEST_HTTP_RIG_H
#define TEST_HTTP_RIG_H

#include "http/http_msg.h"
#include "http/http_server.h"
#include "net.h"

static struct {
	struct loop *l;
	struct http_server *s;
	struct http_server_conf conf;
	int port;
	struct strbuf log; /* "GET /x; body 3; end; done 200; " */
	struct http_req *held;
	bool in_handler;
	bool gives_up; /* after a hangup */
	size_t left;   /* /big: still to send */
	size_t most_pending;
	size_t body; /* bytes that on_body saw in all */
} rig;

static char rig_arg[] = "arg";

#define RIG_BIG (4 * 1024 * 1024)

static inline const char *
rig_log(void)
{
	return rig.log.n ? rig.log.p : "";
}

static void
rig_on_body(struct http_req *r, const char *p, size_t n)
{
	(void)r;
	(void)p;
	rig.body += n;
	strbuf_addf(&rig.log, "body %zu; ", n);
}

static void
rig_on_end(struct http_req *r)
{
	(void)r;
	strbuf_adds(&rig.log, "end; ");
}

static void
rig_on_abort(struct http_req *r, const char *why)
{
	strbuf_addf(&rig.log, "abort %s; ", why);
	http_reply(r, 200, NULL, 0, STRV("too late"));
	http_reply_abort(r, "nothing to do");
	http_req_pause(r, true);
	if (r == rig.held)
		rig.held = NULL;
}

static void
rig_on_hangup(struct http_req *r)
{
	strbuf_adds(&rig.log, "hangup; ");
	if (rig.gives_up)
		http_reply_abort(r, "client gone");
}

static void
rig_on_drain(struct http_req *r)
{
	(void)r;
	strbuf_adds(&rig.log, "drain; ");
}

static const struct http_req_ops rig_ops = {
	.on_body = rig_on_body,
	.on_end = rig_on_end,
	.on_abort = rig_on_abort,
	.on_hangup = rig_on_hangup,
	.on_drain = rig_on_drain,
};

/* --- echo: the request's body is the reply's; it stops reading while the client does --- */

static void
rig_echo_body(struct http_req *r, const char *p, size_t n)
{
	size_t pending = http_reply_write(r, p, n);

	rig.most_pending = pending > rig.most_pending ? pending : rig.most_pending;
	if (pending > 0)
		http_req_pause(r, true);
}

static void
rig_echo_drain(struct http_req *r)
{
	http_req_pause(r, false);
}

static const struct http_req_ops rig_echo_ops = {
	.on_body = rig_echo_body,
	.on_end = http_reply_end,
	.on_drain = rig_echo_drain,
	.on_abort = rig_on_abort,
};

/* --- big: RIG_BIG bytes in pieces --- */

static void
rig_big_go(struct http_req *r)
{
	static const char block[32 * 1024];

	while (rig.left > 0) {
		size_t n = rig.left < sizeof(block) ? rig.left : sizeof(block);
		size_t pending = http_reply_write(r, block, n);

		rig.left -= n;
		rig.most_pending = pending > rig.most_pending ? pending : rig.most_pending;
		if (pending > 0)
			return;
	}
	http_reply_end(r);
}

static const struct http_req_ops rig_big_ops = { .on_drain = rig_big_go, .on_abort = rig_on_abort };

/* --- aborts from inside each callback --- */

static void
rig_abort_now(struct http_req *r)
{
	http_reply_abort(r, "test");
}

static void
rig_abort_body(struct http_req *r, const char *p, size_t n)
{
	(void)p;
	(void)n;
	http_reply_abort(r, "test");
}

static const struct http_req_ops rig_abort_ops = {
	.on_body = rig_abort_body, .on_end = rig_abort_now, .on_abort = rig_on_abort
};

static void
rig_collected(struct http_req *r, struct strv body, void *arg)
{
	assert_string_equal(arg, "arg");
	if (body.p == NULL) {
		http_reply(r, 413, NULL, 0, STRV("too large\n"));
		return;
	}
	assert_int_equal(body.p[body.n], '\0');
	http_reply(r, 200, NULL, 0, body);
}

static void
rig_reply(struct http_req *r, int status, const char *body)
{
	http_reply(r, status, NULL, 0, strv_of(body));
}

static void
rig_stream(struct http_req *r, int64_t length, const char *body)
{
	http_reply_start(r, 200, NULL, 0, length);
	for (; *body; body++)
		http_reply_write(r, body, 1);
	http_reply_write(r, "", 0);
	http_reply_end(r);
}

static void
rig_upgrade(struct http_req *r)
{
	r->ops = &rig_echo_ops;
	http_req_tunnel(r, 101,
	    STRV("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"));
}

/* Routes with a body of their own; false if there is none of that name. */
static bool
rig_route(struct http_req *r, struct strv path)
{
	if (strv_is(path, "/hold") || strv_is(path, "/pause")) {
		r->ops = &rig_ops;
		rig.held = r;
		http_req_pause(r, strv_is(path, "/pause"));
	} else if (strv_is(path, "/echo")) {
		r->ops = &rig_echo_ops;
		http_reply_start(r, 200, NULL, 0, -1);
	} else if (strv_is(path, "/big") || strv_is(path, "/big-chunked")) {
		r->ops = &rig_big_ops;
		rig.left = RIG_BIG;
		http_reply_start(r, 200, NULL, 0, path.n == 4 ? RIG_BIG : -1);
		rig_big_go(r);
	} else if (strv_is(path, "/collect")) {
		r->ops = &rig_ops;
		http_req_collect(r, 10, rig_collected, rig_arg);
	} else if (strv_is(path, "/tunnel")) {
		rig_upgrade(r);
	} else if (strv_is(path, "/abort")) {
		http_reply_abort(r, "test");
	} else if (strv_is(path, "/abort-later")) {
		r->ops = &rig_abort_ops;
	} else {
		return false;
	}
	return true;
}

static void
rig_on_request(struct http_req *r, const struct http_head *h, void *arg)
{
	uint64_t status;

	assert_ptr_equal(arg, &rig);
	assert_false(rig.in_handler); /* never inside a function that a handler calls */
	rig.in_handler = true;
	strbuf_addf(
	    &rig.log, STRV_FMT " " STRV_FMT "; ", STRV_ARG(h->method_text), STRV_ARG(h->path));
	if (h->path.n == 4 &&
	    strv_u64((struct strv){ h->path.p + 1, h->path.n - 1 }, 599, &status) == 0)
		rig_reply(r, (int)status, "text");
	else if (strv_is(h->path, "/stream"))
		rig_stream(r, -1, "stream");
	else if (strv_is(h->path, "/length"))
		rig_stream(r, 6, "length and more");
	else if (strv_is(h->path, "/short"))
		rig_stream(r, 6, "short");
	else if (strv_is(h->path, "/close")) {
		http_req_close_after(r);
		rig_reply(r, 200, "close");
	} else if (!rig_route(r, h->path))
		rig_reply(r, 200, "ok");
	rig.in_handler = false;
}

static void
rig_on_done(struct http_req *r, void *arg)
{
	assert_ptr_equal(arg, &rig);
	assert_int_equal(strlen(r->id), 16);
	assert_string_equal(r->peer, "127.0.0.1");
	strbuf_addf(&rig.log, "done %d; ", r->status);
}

static inline void
rig_start(void)
{
	struct err e;

	rig.conf.on_request = rig_on_request;
	rig.conf.on_done = rig_on_done;
	rig.conf.arg = &rig;
	assert_ok(e, http_server_new(rig.l, &rig.conf, &rig.s, &e));
	assert_ok(e, http_server_listen(rig.s, "127.0.0.1:0", NULL, &rig.port, &e));
}

static inline int
rig_setup(void **state UNUSED)
{
	memset(&rig, 0, sizeof(rig));
	rig.l = loop_new();
	strbuf_init(&rig.log, 1024 * 1024);
	return 0;
}

static inline int
rig_teardown(void **state UNUSED)
{
	http_server_free(rig.s);
	strbuf_done(&rig.log);
	loop_free(rig.l);
	return 0;
}

/* Removes the Date lines, whose value nobody knows. */
static inline void
rig_drop_dates(struct strbuf *b)
{
	char *date;

	while (b->n > 0 && (date = strstr(b->p, "Date: "))) {
		char *end = strstr(date, "\r\n");

		assert_non_null(end);
		memmove(date, end + 2, strlen(end + 2) + 1);
		b->n = strlen(b->p);
	}
}

/* Sends text on a new connection and checks all that comes back until the server closes. */
static inline void
rig_check(const char *send_text, const char *want)
{
	int fd = net_connect(rig.port);
	struct strbuf b;

	strbuf_init(&b, 1024 * 1024);
	strbuf_adds(&b, "");
	net_send_text(rig.l, fd, send_text);
	shutdown(fd, SHUT_WR);
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	rig_drop_dates(&b);
	assert_string_equal(b.n ? b.p : "", want);
	strbuf_done(&b);
	close(fd);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
}

/* Reads until text came; then b holds everything so far. */
static inline void
rig_expect(int fd, struct strbuf *b, const char *text)
{
	strbuf_done(b);
	strbuf_init(b, 64 * 1024 * 1024);
	assert_int_equal(net_read_until(rig.l, fd, b, text), 1);
}

static inline void
rig_wait_log(const char *text)
{
	int64_t end = clock_mono() + WAIT_MAX;

	while (strstr(rig_log(), text) == NULL) {
		if (clock_mono() > end)
			fail_msg("\"%s\" not in the log \"%s\"", text, rig_log());
		net_turn(rig.l);
	}
}

#define R(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define HOST "Host: a\r\n"

#endif
