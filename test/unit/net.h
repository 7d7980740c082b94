/*
 * For tests of what listens: blocking client sockets on loopback, and turning the loop until
 * something has happened. Every wait ends after WAIT_MAX turns of a few milliseconds.
 */
#ifndef TEST_NET_H
#define TEST_NET_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/loop.h"
#include "t.h"

#define WAIT_MAX SECONDS(20)

/* Turns the loop until cond is true; fails the test after WAIT_MAX. */
#define turn_until(l, cond)                                                                        \
	do {                                                                                       \
		int64_t end_ = clock_mono() + WAIT_MAX;                                            \
		while (!(cond)) {                                                                  \
			if (clock_mono() > end_)                                                   \
				fail_msg("not in time: %s", #cond);                                \
			net_turn(l);                                                               \
		}                                                                                  \
	} while (0)

/* One turn, or about a millisecond if there is nothing to do. */
static inline void
net_turn(struct loop *l)
{
	struct timespec ts = { 0, 200 * 1000 };

	loop_once(l, false);
	nanosleep(&ts, NULL);
}

static inline void
net_turns(struct loop *l, int n)
{
	while (n-- > 0)
		net_turn(l);
}

/* A connected, non-blocking client socket; rcvbuf 0: as the system has it. */
static inline int
net_connect_buf(int port, int rcvbuf)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	assert_true(fd >= 0);
	if (rcvbuf > 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static inline int
net_connect(int port)
{
	return net_connect_buf(port, 0);
}

/* Sends all of it, turning the loop while the socket is full. */
static inline void
net_send(struct loop *l, int fd, const void *p, size_t n)
{
	size_t sent = 0;
	int64_t end = clock_mono() + WAIT_MAX;

	while (sent < n) {
		ssize_t r = send(fd, (const char *)p + sent, n - sent, MSG_NOSIGNAL);

		if (r == -1 && errno != EAGAIN)
			fail_msg("send: %s", strerror(errno));
		if (r > 0)
			sent += (size_t)r;
		else
			net_turn(l);
		assert_true(clock_mono() < end);
	}
}

static inline void
net_send_text(struct loop *l, int fd, const char *text)
{
	net_send(l, fd, text, strlen(text));
}

/* Reads what is there now into b. 1: more may come, 0: end, -1: reset. */
static inline int
net_read(int fd, struct strbuf *b)
{
	char buf[65536];

	for (;;) {
		ssize_t r = recv(fd, buf, sizeof(buf), 0);

		if (r == 0)
			return 0;
		if (r == -1)
			return errno == EAGAIN ? 1 : -1;
		strbuf_add(b, buf, (size_t)r);
	}
}

/* Turns and reads until b holds text (then 1), or the end (0) or a reset (-1). */
static inline int
net_read_until(struct loop *l, int fd, struct strbuf *b, const char *text)
{
	int64_t end = clock_mono() + WAIT_MAX;

	for (;;) {
		int r = net_read(fd, b);

		if (b->n > 0 && text && memmem(b->p, b->n, text, strlen(text)))
			return 1;
		if (r <= 0)
			return r;
		if (clock_mono() > end)
			fail_msg("\"%s\" did not come; got \"%s\"", text ? text : "end",
			    b->n ? b->p : "");
		net_turn(l);
	}
}

/* Closes with RST. */
static inline void
net_reset(int fd)
{
	struct linger hard = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

#endif
