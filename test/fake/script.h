/*
 * A scripted HTTP server on the test's own loop, for faults that a real API server cannot be made
 * to show: answers cut in the middle, silence, odd statuses. It knows HTTP/1.1 as far as our client
 * writes it; what to answer is the test's handler. Included by the tests that use it, after t.h.
 *
 * Connections stay in memory until fake_free, so a test may hold on to them.
 */
#ifndef FAKE_SCRIPT_H
#define FAKE_SCRIPT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/loop.h"
#include "kube/kube_client.h"

struct fake_conn {
	TAILQ_ENTRY(fake_conn) link;
	struct fake *f;
	struct event ev;
	int fd;      /* -1: closed */
	unsigned no; /* 1, 2, … */
	struct strbuf in;
};

struct fake_req {
	struct fake_conn *c;
	const char *method, *target;
	const char *head; /* request line and headers as sent */
	struct strv body;
};

struct fake {
	struct loop *loop;
	struct event ev;
	int fd, port;
	unsigned conns, requests;
	TAILQ_HEAD(fake_conn_list, fake_conn) list;
	void (*handler)(const struct fake_req *r, void *arg);
	void *arg;
	char url[64];
};

static inline void
fake_close(struct fake_conn *c)
{
	if (c->fd == -1)
		return;
	event_del(&c->ev);
	close(c->fd);
	c->fd = -1;
}

/* Ends the connection with a reset. */
static inline void
fake_cut(struct fake_conn *c)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (c->fd != -1)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	fake_close(c);
}

static inline void
fake_send(struct fake_conn *c, const char *p, size_t n)
{
	while (n > 0 && c->fd != -1) {
		ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);

		if (sent == -1 && errno == EAGAIN) {
			usleep(100);
		} else if (sent == -1) {
			fake_close(c);
		} else {
			p += sent;
			n -= (size_t)sent;
		}
	}
}

/* fields: complete header lines or "". */
static inline void
fake_reply(struct fake_conn *c, int status, const char *fields, const char *body)
{
	struct strbuf b;

	strbuf_init(&b, 64 * 1024 * 1024);
	strbuf_addf(&b,
	    "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s",
	    status, strlen(body), fields, body);
	fake_send(c, b.p, b.n);
	strbuf_done(&b);
}

/* A chunked answer, in pieces. */
static inline void
fake_stream(struct fake_conn *c)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	                           "Transfer-Encoding: chunked\r\n\r\n";

	fake_send(c, head, sizeof(head) - 1);
}

static inline void
fake_piece(struct fake_conn *c, const char *text)
{
	struct strbuf b;

	strbuf_init(&b, 64 * 1024 * 1024);
	strbuf_addf(&b, "%zx\r\n%s\r\n", strlen(text), text);
	fake_send(c, b.p, b.n);
	strbuf_done(&b);
}

static inline void
fake_end(struct fake_conn *c)
{
	fake_send(c, "0\r\n\r\n", 5);
}

/* Reads one request if it is complete; returns its length or 0. */
static inline size_t
fake_parse(struct fake_conn *c)
{
	const char *end = c->in.n > 0 ? strstr(c->in.p, "\r\n\r\n") : NULL;
	struct fake_req r = { .c = c };
	CLEANUP(xfreep) char *head = NULL;
	CLEANUP(xfreep) char *line = NULL;
	const char *length;
	char *sp;
	size_t n = 0, head_len;

	if (end == NULL)
		return 0;
	head_len = (size_t)(end + 4 - c->in.p);
	head = xmemdup0(c->in.p, head_len);
	length = strcasestr(head, "\r\nContent-Length: ");
	if (length != NULL)
		n = strtoul(length + 18, NULL, 10);
	if (c->in.n < head_len + n)
		return 0;
	line = strv_dup((struct strv){ head, strcspn(head, "\r") });
	sp = strchr(line, ' ');
	*sp = '\0';
	r.method = line;
	r.target = sp + 1;
	*strchr(sp + 1, ' ') = '\0';
	r.head = head;
	r.body = (struct strv){ c->in.p + head_len, n };
	c->f->requests++;
	c->f->handler(&r, c->f->arg);
	return head_len + n;
}

static inline void
fake_on_conn(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct fake_conn *c = arg;
	char buf[16384];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);
	size_t used;

	if (n == -1 && errno == EAGAIN)
		return;
	if (n <= 0) {
		fake_close(c);
		return;
	}
	strbuf_add(&c->in, buf, (size_t)n);
	while ((used = fake_parse(c)) > 0)
		strbuf_consume(&c->in, used);
}

static inline void
fake_on_accept(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct fake *f = arg;
	struct fake_conn *c = xcalloc(1, sizeof(*c));
	int on = 1;

	c->fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(c->fd != -1);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->f = f;
	c->no = ++f->conns;
	strbuf_init(&c->in, 64 * 1024 * 1024);
	TAILQ_INSERT_TAIL(&f->list, c, link);
	event_assign(&c->ev, loop_base(f->loop), c->fd, EV_READ | EV_PERSIST, fake_on_conn, c);
	event_add(&c->ev, NULL);
}

static inline struct fake *
fake_new(struct loop *l, void (*handler)(const struct fake_req *r, void *arg), void *arg)
{
	struct fake *f = xcalloc(1, sizeof(*f));
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);

	f->loop = l;
	f->handler = handler;
	f->arg = arg;
	TAILQ_INIT(&f->list);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(f->fd, 1024), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&a, &n), 0);
	f->port = ntohs(a.sin_port);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", f->port);
	event_assign(&f->ev, loop_base(l), f->fd, EV_READ | EV_PERSIST, fake_on_accept, f);
	event_add(&f->ev, NULL);
	return f;
}

/* From now on connections are refused. */
static inline void
fake_stop_listening(struct fake *f)
{
	if (f->fd == -1)
		return;
	event_del(&f->ev);
	close(f->fd);
	f->fd = -1;
}

static inline void
fake_free(struct fake *f)
{
	struct fake_conn *c;

	while ((c = TAILQ_FIRST(&f->list)) != NULL) {
		TAILQ_REMOVE(&f->list, c, link);
		fake_close(c);
		strbuf_done(&c->in);
		xfree(c);
	}
	fake_stop_listening(f);
	xfree(f);
}

/* --- running the loop --- */

static inline int64_t
fake_real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Turns the loop until cond(arg) holds; fails after ten real seconds. Works with the fake clock
 * too: that one stands still. */
static inline void
fake_until_(struct loop *l, bool (*cond)(void *arg), void *arg, const char *file, int line)
{
	int64_t end = fake_real_ns() + SECONDS(10);

	while (!cond(arg)) {
		loop_once(l, false);
		if (fake_real_ns() > end)
			_assert_true(0, "waited in vain", file, line);
		usleep(50);
	}
}
#define fake_until(l, cond, arg) fake_until_(l, cond, arg, __FILE__, __LINE__)

/* Lets whatever is on its way arrive. */
static inline void
fake_settle(struct loop *l)
{
	for (int i = 0; i < 40; i++) {
		loop_once(l, false);
		usleep(250);
	}
}

/* A client of that server with a fixed token. */
static inline struct kube *
fake_client(struct fake *f)
{
	struct kube_config *config = xcalloc(1, sizeof(*config));
	struct kube *k;
	struct err e;

	config->server = xstrdup(f->url);
	config->token = xstrdup("secret-token");
	assert_ok(e, kube_new(f->loop, config, &k, &e));
	return k;
}

#endif
