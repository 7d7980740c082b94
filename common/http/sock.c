/*
 * The socket. Reads go into the loop's shared buffer, one recv per readable event; writes go to the
 * kernel at once. In the steady state it makes no epoll_ctl and allocates nothing: the read event
 * stays registered, and the write event and the output buffer exist only while the kernel did not
 * take everything. Must not know what the bytes mean.
 *
 * What the read event is registered for is derived in one place, sock_arm, after every change of
 * state. The watch is edge-triggered, since nobody takes away what it reports: unread data, errors.
 * EV_READ is in it because libevent reports a reset as readable and writable, never as closed. It
 * allows no mix of edge and level on one fd, so a pending write (which reports errors itself) takes
 * the watch's place.
 */
#include "http/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define NOTSENT_LOWAT (128 * 1024)
#define LATE_READS 16 /* reads of what a peer sent before our write failed */

enum { ARM_NONE = 0, ARM_READ, ARM_WATCH };

static void on_readable(evutil_socket_t fd, short what, void *arg);
static void on_watch(evutil_socket_t fd, short what, void *arg);
static void on_writable(evutil_socket_t fd, short what, void *arg);
static void on_broken(void *arg);

void
sock_init(struct sock *s, struct loop *l, const struct sock_cb *cb)
{
	s->loop = l;
	s->cb = cb;
	s->fd = -1;
	s->state = SOCK_CLOSED;
	s->reading = true;
	defer_init(&s->fail, on_broken, s);
}

static uint8_t
wanted(const struct sock *s)
{
	if (s->state == SOCK_HANDSHAKE)
		return ARM_READ;
	if (s->state != SOCK_OPEN)
		return ARM_NONE;
	if (s->reading && !s->eof_seen)
		return ARM_READ;
	return s->watching && !s->wr_armed ? ARM_WATCH : ARM_NONE;
}

static void
sock_arm(struct sock *s)
{
	uint8_t want = wanted(s);
	struct event_base *base = loop_base(s->loop);

	if (want == s->armed)
		return;
	if (s->armed != ARM_NONE)
		event_del(&s->rd);
	s->armed = want;
	if (want == ARM_NONE)
		return;
	if (want == ARM_READ)
		event_assign(&s->rd, base, s->fd, EV_READ | EV_PERSIST, on_readable, s);
	else
		event_assign(
		    &s->rd, base, s->fd, EV_CLOSED | EV_READ | EV_ET | EV_PERSIST, on_watch, s);
	BUG_ON(event_add(&s->rd, NULL) == -1);
}

static void
write_arm(struct sock *s, bool on)
{
	if (s->wr_armed == on)
		return;
	if (!on)
		event_del(&s->wr);
	s->wr_armed = on;
	sock_arm(s);
	if (on)
		BUG_ON(event_add(&s->wr, NULL) == -1);
}

static void
output_drop(struct sock *s)
{
	xfree(s->out);
	s->out = NULL;
	s->out_off = s->out_len = s->out_cap = 0;
}

/* Takes the socket off the loop; the fd stays until sock_close. */
static void
set_failed(struct sock *s, const char *why)
{
	s->state = SOCK_FAILED;
	s->fail_why = why;
	s->lost |= sock_pending(s) > 0;
	output_drop(s);
	write_arm(s, false);
	sock_arm(s);
}

/* From the loop: report at once. */
static void
fail_now(struct sock *s, const char *why)
{
	loop_undefer(s->loop, &s->fail);
	set_failed(s, why);
	s->cb->on_fail(s, why);
}

/* From inside a call of the owner's: report at the end of the turn. */
static void
fail_later(struct sock *s, const char *why)
{
	set_failed(s, why);
	loop_defer(s->loop, &s->fail);
}

static const char *
error_text(int error)
{
	switch (error) {
	case ECONNRESET:
	case EPIPE:
		return "connection reset by peer";
	case ECONNREFUSED:
		return "connection refused";
	case ETIMEDOUT:
		return "connection timed out";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "host unreachable";
	case EPROTO:
		return "TLS error";
	default:
		return "socket error";
	}
}

static ssize_t
sock_recv(struct sock *s)
{
	char *buf = loop_read_buf(s->loop);
	const size_t size = (size_t)LOOP_READ_BUF;
	ssize_t n;

	do {
		n = s->io ? s->io->read(s, buf, size) : recv(s->fd, buf, size, 0);
	} while (n == -1 && errno == EINTR);
	if (n > 0)
		s->bytes_in += (uint64_t)n;
	return n;
}

/* Our write failed, but the peer may have answered before it closed. Nothing is armed any more. */
static void
on_broken(void *arg)
{
	struct sock *s = arg;

	for (int i = 0; i < LATE_READS && s->state == SOCK_FAILED && s->reading; i++) {
		ssize_t n = s->eof_seen ? -1 : sock_recv(s);

		if (n > 0) {
			s->cb->on_data(s, loop_read_buf(s->loop), (size_t)n);
		} else if (n == 0) {
			s->eof_seen = true;
			s->cb->on_eof(s);
		} else {
			break;
		}
	}
	if (s->state == SOCK_FAILED)
		s->cb->on_fail(s, s->fail_why);
}

static void
handshake(struct sock *s)
{
	if (s->io->handshake(s) == -1) {
		if (errno == EAGAIN)
			write_arm(s, s->io_want_write);
		else
			fail_now(s, "TLS handshake failed");
		return;
	}
	s->state = SOCK_OPEN;
	write_arm(s, sock_pending(s) > 0);
	sock_arm(s);
	s->cb->on_open(s);
}

static void
on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct sock *s = arg;
	ssize_t n;

	if (s->state == SOCK_HANDSHAKE) {
		handshake(s);
		return;
	}
	if (s->cb->on_readable && s->cb->on_readable(s))
		return;
	n = sock_recv(s);
	if (n > 0) {
		s->cb->on_data(s, loop_read_buf(s->loop), (size_t)n);
		return;
	}
	if (n == 0) {
		s->eof_seen = true;
		sock_arm(s);
		s->cb->on_eof(s);
		return;
	}
	if (errno != EAGAIN)
		fail_now(s, error_text(errno));
	else if (s->io_want_write)
		write_arm(s, true);
}

static int
pending_error(const struct sock *s)
{
	int error = 0;
	socklen_t n = sizeof(error);

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &n) == -1)
		return errno;
	return error;
}

static void
on_watch(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct sock *s = arg;
	int error = pending_error(s);

	if (error != 0)
		fail_now(s, error_text(error));
	if (error != 0 || (what & EV_CLOSED) == 0 || s->eof_seen || s->hangup_told)
		return;
	s->hangup_told = true;
	if (s->cb->on_hangup)
		s->cb->on_hangup(s);
	else
		s->cb->on_eof(s);
}

/* One send of what the iov holds; -1 with errno. */
static ssize_t
sock_send(struct sock *s, const struct iovec *iov, int n)
{
	struct msghdr msg = { .msg_iovlen = (size_t)n };
	ssize_t r;

	msg.msg_iov = (struct iovec *)(uintptr_t)iov; /* sendmsg does not write to it */
	do {
		if (s->io)
			r = s->io->writev(s, iov, n);
		else if (n == 1)
			r = send(s->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL);
		else
			r = sendmsg(s->fd, &msg, MSG_NOSIGNAL);
	} while (r == -1 && errno == EINTR);
	if (r > 0)
		s->bytes_out += (uint64_t)r;
	return r;
}

static void
send_fin(struct sock *s)
{
	if (s->fin_sent)
		return;
	s->fin_sent = true;
	if (s->io)
		s->io->shutdown(s);
	shutdown(s->fd, SHUT_WR);
}

static void
flush(struct sock *s)
{
	struct iovec iov = { s->out + s->out_off, sock_pending(s) };
	ssize_t n = sock_send(s, &iov, 1);

	if (n == -1 && errno != EAGAIN) {
		/* Writable events come first: an early answer may lie unread. */
		set_failed(s, error_text(errno));
		on_broken(s);
		return;
	}
	if (n <= 0)
		return;
	s->out_off += (size_t)n;
	if (sock_pending(s) > 0) {
		if (s->cb->on_progress)
			s->cb->on_progress(s);
		return;
	}
	output_drop(s);
	write_arm(s, false);
	sock_arm(s);
	if (s->want_fin)
		send_fin(s);
	s->want_write = false;
	s->cb->on_drain(s);
}

static void
connected(struct sock *s)
{
	int error = pending_error(s);

	if (error != 0) {
		fail_now(s, error_text(error));
		return;
	}
	if (s->io) {
		s->state = SOCK_HANDSHAKE;
		handshake(s);
		return;
	}
	s->state = SOCK_OPEN;
	if (sock_pending(s) == 0)
		write_arm(s, false);
	sock_arm(s);
	s->cb->on_open(s);
	if (s->state == SOCK_OPEN && s->want_fin && sock_pending(s) == 0)
		send_fin(s);
}

static void
on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct sock *s = arg;

	if (s->state == SOCK_CONNECTING) {
		connected(s);
		return;
	}
	if (s->state == SOCK_HANDSHAKE) {
		handshake(s);
		return;
	}
	if (s->io_want_write) {
		s->io_want_write = false;
		if (sock_pending(s) == 0)
			write_arm(s, false);
		on_readable(s->fd, EV_READ, s);
		return;
	}
	if (sock_pending(s) > 0) {
		flush(s);
		return;
	}
	if (s->want_write) {
		s->want_write = false;
		s->cb->on_drain(s); /* may want it again: then nothing changes for epoll */
	}
	if (s->wr_armed && !s->want_write && sock_pending(s) == 0)
		write_arm(s, false);
}

static void
take_fd(struct sock *s, int fd, enum sock_state state)
{
	BUG_ON(s->state != SOCK_CLOSED || fd < 0);
	s->fd = fd;
	s->state = (uint8_t)state;
	event_assign(&s->wr, loop_base(s->loop), fd, EV_WRITE | EV_PERSIST, on_writable, s);
}

void
sock_open(struct sock *s, int fd)
{
	take_fd(s, fd, s->io ? SOCK_HANDSHAKE : SOCK_OPEN);
	sock_arm(s);
}

int
sock_connect(struct sock *s, const struct sockaddr *sa, socklen_t n, struct err *e)
{
	int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd == -1)
		return err_errno(e, ERR_UNAVAILABLE, "socket");
	if (sa->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, sa, n) == -1 && errno != EINPROGRESS) {
		err_errno(e, ERR_UNAVAILABLE, "connect");
		close(fd);
		return -1;
	}
	take_fd(s, fd, SOCK_CONNECTING);
	write_arm(s, true);
	return 0;
}

/* Keeps what is behind the first `skip` bytes of the iov. */
static void
output_keep(struct sock *s, const struct iovec *iov, int n, size_t skip, size_t total)
{
	size_t need = sock_pending(s) + (total - skip);

	if (s->out_off > 0) {
		memmove(s->out, s->out + s->out_off, sock_pending(s));
		s->out_len -= s->out_off;
		s->out_off = 0;
	}
	if (need > s->out_cap) {
		s->out_cap = s->out_cap == 0 || need > s->out_cap * 2 ? need : s->out_cap * 2;
		s->out = xrealloc(s->out, s->out_cap);
	}
	for (int i = 0; i < n; i++) {
		size_t left = iov[i].iov_len;

		if (skip >= left) {
			skip -= left;
			continue;
		}
		memcpy(s->out + s->out_len, (const char *)iov[i].iov_base + skip, left - skip);
		s->out_len += left - skip;
		skip = 0;
	}
}

size_t
sock_writev(struct sock *s, const struct iovec *iov, int n)
{
	size_t total = 0, sent = 0;

	if (s->state == SOCK_CLOSED || s->state == SOCK_FAILED || s->want_fin)
		return 0;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (total == 0)
		return sock_pending(s);
	if (s->state == SOCK_OPEN && sock_pending(s) == 0) {
		ssize_t r = sock_send(s, iov, n);

		if (r == -1 && errno != EAGAIN) {
			s->lost = true;
			fail_later(s, error_text(errno));
			return 0;
		}
		sent = r > 0 ? (size_t)r : 0;
		if (sent == total)
			return 0;
	}
	if (sock_pending(s) > SOCK_PENDING_MAX) {
		fail_later(s, "too much pending output");
		return 0;
	}
	output_keep(s, iov, n, sent, total);
	if (s->state == SOCK_OPEN)
		write_arm(s, true);
	return sock_pending(s);
}

size_t
sock_write(struct sock *s, const void *p, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)p, n }; /* only read */

	return sock_writev(s, &iov, 1);
}

void
sock_want_write(struct sock *s)
{
	if (s->state != SOCK_OPEN)
		return;
	s->want_write = true;
	write_arm(s, true);
}

void
sock_read_set(struct sock *s, bool on)
{
	s->reading = on;
	sock_arm(s);
}

void
sock_watch_close(struct sock *s, bool on)
{
	s->watching = on;
	sock_arm(s);
}

void
sock_finish(struct sock *s)
{
	if (s->state == SOCK_CLOSED || s->state == SOCK_FAILED || s->want_fin)
		return;
	s->want_fin = true;
	if (s->state == SOCK_OPEN && sock_pending(s) == 0)
		send_fin(s);
}

static void
reset_on_close(struct sock *s)
{
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

void
sock_close(struct sock *s)
{
	if (s->state == SOCK_CLOSED)
		return;
	loop_undefer(s->loop, &s->fail);
	if (s->lost)
		reset_on_close(s);
	set_failed(s, NULL);
	s->state = SOCK_CLOSED;
	if (s->io) {
		s->io->free(s);
		s->io = NULL;
	}
	close(s->fd);
	s->fd = -1;
}

void
sock_reset(struct sock *s)
{
	if (s->state == SOCK_CLOSED)
		return;
	reset_on_close(s);
	sock_close(s);
}

void
sock_limit_kernel(struct sock *s)
{
	int limit = NOTSENT_LOWAT;

	if (s->limited || s->fd == -1)
		return;
	s->limited = true;
	setsockopt(s->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof(limit));
}
