/* Sockets and listeners, on loopback TCP and socket pairs. */
#include "net.h"

#include <sys/resource.h>

#include "http/sock.h"

/* A socket and what its callbacks saw. */
struct peer {
	struct sock s;
	struct strbuf got;
	int opened, eofs, hangups, drains, progress, fails;
	const char *why;
	bool close_on_data;
};

static struct loop *l;
static struct peer a;

static struct peer *
peer_of(struct sock *s)
{
	return container_of(s, struct peer, s);
}

static void
on_open(struct sock *s)
{
	peer_of(s)->opened++;
}

static void
on_data(struct sock *s, char *p, size_t n)
{
	assert_ptr_equal(p, loop_read_buf(l));
	strbuf_add(&peer_of(s)->got, p, n);
	if (peer_of(s)->close_on_data)
		sock_close(s);
}

static void
on_eof(struct sock *s)
{
	peer_of(s)->eofs++;
}

static void
on_hangup(struct sock *s)
{
	peer_of(s)->hangups++;
}

static void
on_drain(struct sock *s)
{
	peer_of(s)->drains++;
}

static void
on_progress(struct sock *s)
{
	peer_of(s)->progress++;
}

static void
on_fail(struct sock *s, const char *why)
{
	peer_of(s)->fails++;
	peer_of(s)->why = why;
	sock_close(s);
}

static const struct sock_cb cb = { .on_open = on_open,
	.on_data = on_data,
	.on_eof = on_eof,
	.on_hangup = on_hangup,
	.on_drain = on_drain,
	.on_progress = on_progress,
	.on_fail = on_fail };

static int
setup(void **state UNUSED)
{
	l = loop_new();
	memset(&a, 0, sizeof(a));
	sock_close(&a.s); /* zeroed: nothing happens */
	sock_init(&a.s, l, &cb);
	strbuf_init(&a.got, 64 * 1024 * 1024);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	sock_close(&a.s);
	strbuf_done(&a.got);
	loop_free(l);
	return 0;
}

/* Opens a.s on one end of a TCP connection and returns the other, non-blocking. */
static int
pair(int sndbuf)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd, client;
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(in);

	assert_int_equal(bind(listener, (struct sockaddr *)&in, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &n), 0);
	client = net_connect_buf(ntohs(in.sin_port), sndbuf);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	if (sndbuf > 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	close(listener);
	sock_open(&a.s, fd);
	return client;
}

static void
nothing(void *arg UNUSED)
{
}

/* Does the loop come back from waiting more than `max` times in 30 ms? */
static bool
spins(int max)
{
	int64_t end = clock_mono() + MILLIS(30);
	struct timer t;
	int turns = 0;

	timer_init(&t, l, nothing, NULL);
	timer_start(&t, MILLIS(40));
	while (clock_mono() < end) {
		loop_once(l, true);
		turns++;
	}
	timer_stop(&t);
	return turns > max;
}

TEST(reads_writes_and_ends)
{
	struct strbuf b;
	int fd = pair(0);

	strbuf_init(&b, 1024);
	assert_int_equal(a.s.state, SOCK_OPEN);
	assert_int_equal(sock_write(&a.s, "hello", 5), 0);
	assert_int_equal(net_read_until(l, fd, &b, "hello"), 1);
	net_send_text(l, fd, "there");
	turn_until(l, a.got.n == 5);
	assert_strv(strbuf_view(&a.got), "there");
	shutdown(fd, SHUT_WR);
	turn_until(l, a.eofs > 0);
	assert_int_equal(sock_write(&a.s, " again", 6), 0); /* half open */
	assert_int_equal(net_read_until(l, fd, &b, "again"), 1);
	sock_finish(&a.s);
	assert_int_equal(net_read_until(l, fd, &b, NULL), 0);
	assert_int_equal(a.eofs, 1);
	assert_int_equal(a.fails + a.drains + a.opened, 0);
	assert_int_equal(a.s.bytes_in, 5);
	assert_int_equal(a.s.bytes_out, 11);
	strbuf_done(&b);
	close(fd);
}

TEST(keeps_what_the_kernel_does_not_take)
{
	size_t total = 200 * 1024, pending;
	char *data = xmalloc(total);
	struct iovec iov[3] = { { data, 10 }, { data + 10, 100 * 1024 },
		{ data + 10 + 100 * 1024, total - 10 - 100 * 1024 } };
	struct strbuf b;
	int fd = pair(4096);

	for (size_t i = 0; i < total; i++)
		data[i] = (char)(i * 7 + i / 251);
	strbuf_init(&b, total);
	pending = sock_writev(&a.s, iov, 3);
	assert_true(pending > 0 && pending < total);
	assert_int_equal(pending, sock_pending(&a.s));
	sock_limit_kernel(&a.s);
	sock_finish(&a.s); /* FIN waits */
	assert_int_equal(net_read_until(l, fd, &b, NULL), 0);
	assert_int_equal(b.n, total);
	assert_memory_equal(b.p, data, total);
	turn_until(l, a.drains == 1);
	assert_true(a.progress > 0);
	assert_null(a.s.out);
	assert_int_equal(sock_write(&a.s, "x", 1), 0); /* after the end: nothing */
	strbuf_done(&b);
	xfree(data);
	close(fd);
}

TEST(pending_has_a_limit)
{
	static const char block[64 * 1024];
	size_t pending = 0;
	struct strbuf b;
	int fd = pair(4096);

	for (int i = 0; i < 8 && a.s.state == SOCK_OPEN; i++)
		pending = sock_write(&a.s, block, sizeof(block));
	assert_int_equal(pending, 0);
	assert_int_equal(a.fails, 0); /* not inside the call */
	turn_until(l, a.fails == 1);
	assert_string_equal(a.why, "too much pending output");
	/* What was cut must not look complete: on_fail closed, the peer sees a reset. */
	strbuf_init(&b, 1024 * 1024);
	assert_int_equal(net_read_until(l, fd, &b, NULL), -1);
	strbuf_done(&b);
	close(fd);
}

TEST(one_write_has_no_limit)
{
	static const char block[8 * 1024 * 1024];
	struct strbuf b;
	int fd = pair(4096);

	strbuf_init(&b, sizeof(block));
	assert_true(sock_write(&a.s, block, sizeof(block)) > SOCK_PENDING_MAX);
	sock_finish(&a.s);
	assert_int_equal(net_read_until(l, fd, &b, NULL), 0);
	assert_int_equal(b.n, sizeof(block));
	assert_int_equal(a.fails, 0);
	strbuf_done(&b);
	close(fd);
}

TEST(connects)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(in);
	struct strbuf b;
	struct err e;

	strbuf_init(&b, 1024);
	assert_int_equal(bind(listener, (struct sockaddr *)&in, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &n), 0);
	assert_ok(e, sock_connect(&a.s, (struct sockaddr *)&in, n, &e));
	assert_int_equal(sock_write(&a.s, "early", 5), 5); /* waits for the connection */
	assert_int_equal(a.opened, 0);
	turn_until(l, a.opened == 1);
	fd = accept(listener, NULL, NULL);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(net_read_until(l, fd, &b, "early"), 1);
	turn_until(l, a.drains == 1);
	net_send_text(l, fd, "x");
	turn_until(l, a.got.n == 1);
	close(fd);
	close(listener);
	turn_until(l, a.eofs == 1);
	strbuf_done(&b);

	/* The port is free again. */
	sock_close(&a.s);
	memset(&a.s, 0, sizeof(a.s));
	sock_init(&a.s, l, &cb);
	if (sock_connect(&a.s, (struct sockaddr *)&in, n, &e) == 0) {
		turn_until(l, a.fails == 1);
		assert_string_equal(a.why, "connection refused");
	}
	assert_int_equal(a.opened, 1);
}

TEST(not_reading)
{
	int fd = pair(0);

	sock_read_set(&a.s, false);
	net_send_text(l, fd, "data");
	net_turns(l, 20);
	assert_int_equal(a.got.n, 0);
	sock_read_set(&a.s, true);
	turn_until(l, a.got.n == 4);
	close(fd);
	turn_until(l, a.eofs == 1);
}

TEST(watches_the_peer_while_not_reading)
{
	int fd = pair(0);

	sock_read_set(&a.s, false);
	sock_watch_close(&a.s, true);
	net_send_text(l, fd, "unread");
	net_turns(l, 20);
	assert_int_equal(a.hangups, 0);
	shutdown(fd, SHUT_WR);
	turn_until(l, a.hangups == 1);
	assert_int_equal(a.got.n, 0);
	/* Told once, and the loop sleeps: a turn that may block lasts until the timer. */
	assert_false(spins(2));
	assert_int_equal(a.hangups, 1);
	/* Nothing is lost. */
	sock_read_set(&a.s, true);
	turn_until(l, a.eofs == 1);
	assert_strv(strbuf_view(&a.got), "unread");
	/* After the FIN only a reset can come. */
	net_reset(fd);
	sock_watch_close(&a.s, true);
	net_turns(l, 5);
	assert_int_equal(sock_write(&a.s, "x", 1), 0);
	turn_until(l, a.fails == 1);
	assert_int_equal(a.eofs, 1);
}

TEST(watch_sees_a_reset)
{
	int fd = pair(0);

	sock_read_set(&a.s, false);
	sock_watch_close(&a.s, true);
	net_turn(l);
	net_send_text(l, fd, "unread");
	net_turn(l);
	assert_false(spins(3));
	net_reset(fd);
	turn_until(l, a.fails == 1);
	assert_string_equal(a.why, "connection reset by peer");
	assert_int_equal(a.hangups, 0);
}

/* The watch is edge-triggered, a pending write is not: they must not meet. */
TEST(watch_and_pending_output)
{
	static const char block[128 * 1024];
	struct strbuf b;
	int fd = pair(4096);

	strbuf_init(&b, 1024 * 1024);
	sock_read_set(&a.s, false);
	sock_watch_close(&a.s, true);
	net_turn(l);
	assert_true(sock_write(&a.s, block, sizeof(block)) > 0);
	net_turns(l, 3);
	while (b.n < sizeof(block)) {
		assert_int_equal(net_read(fd, &b), 1);
		net_turn(l);
	}
	turn_until(l, a.drains == 1);
	shutdown(fd, SHUT_WR);
	turn_until(l, a.hangups == 1);
	strbuf_done(&b);
	close(fd);
}

/* The peer answers, then closes with our bytes unread: a reset follows its answer. */
TEST(early_answer_before_a_reset)
{
	static const char block[32 * 1024];
	int fd = pair(0);

	net_send_text(l, fd, "413 no");
	assert_int_equal(sock_write(&a.s, block, 10), 0);
	poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1000);
	shutdown(fd, SHUT_RDWR);
	close(fd);
	/* Our writes fail before the loop has read. */
	for (int i = 0; i < 20 && a.s.state == SOCK_OPEN; i++) {
		struct timespec ts = { 0, 1000 * 1000 };

		sock_write(&a.s, block, sizeof(block));
		nanosleep(&ts, NULL);
	}
	assert_int_equal(a.s.state, SOCK_FAILED);
	assert_int_equal(a.got.n, 0);
	turn_until(l, a.fails == 1);
	assert_strv(strbuf_view(&a.got), "413 no");
}

TEST(close_inside_a_callback)
{
	int fd = pair(0);

	a.close_on_data = true;
	net_send_text(l, fd, "x");
	shutdown(fd, SHUT_WR);
	turn_until(l, a.got.n == 1);
	net_turns(l, 10);
	assert_int_equal(a.eofs + a.fails, 0);
	assert_int_equal(sock_write(&a.s, "x", 1), 0);
	sock_finish(&a.s);
	sock_close(&a.s);
	close(fd);
}

TEST(reset_is_seen_by_the_peer)
{
	struct strbuf b;
	int fd = pair(0);

	strbuf_init(&b, 100);
	sock_reset(&a.s);
	assert_int_equal(net_read_until(l, fd, &b, NULL), -1);
	strbuf_done(&b);
	close(fd);
}

/* --- listeners --- */

static struct {
	int fds[64], n;
	char peer[64];
	struct listener *free_it;
} accepted;

static void
on_accept(int fd, const char *peer, void *arg)
{
	assert_ptr_equal(arg, &accepted);
	assert_true(accepted.n < 64);
	accepted.fds[accepted.n++] = fd;
	snprintf(accepted.peer, sizeof(accepted.peer), "%s", peer);
	if (accepted.free_it)
		listener_free(accepted.free_it);
	accepted.free_it = NULL;
}

static void
accepted_close(void)
{
	while (accepted.n > 0)
		close(accepted.fds[--accepted.n]);
}

TEST(listener_accepts)
{
	struct listener *ls;
	struct err e;
	int fd, fd2, one = 0;
	socklen_t n = sizeof(one);

	assert_ok(e, listener_new(l, "127.0.0.1:0", 16, on_accept, &accepted, &ls, &e));
	assert_true(listener_port(ls) > 0);
	fd = net_connect(listener_port(ls));
	turn_until(l, accepted.n == 1);
	assert_string_equal(accepted.peer, "127.0.0.1");
	assert_true(fcntl(accepted.fds[0], F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(accepted.fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(getsockopt(accepted.fds[0], IPPROTO_TCP, TCP_NODELAY, &one, &n), 0);
	assert_int_equal(one, 1);
	listener_pause(ls, true);
	fd2 = net_connect(listener_port(ls));
	net_turns(l, 20);
	assert_int_equal(accepted.n, 1);
	listener_pause(ls, false);
	accepted.free_it = ls; /* inside the callback */
	turn_until(l, accepted.n == 2);
	accepted_close();
	close(fd);
	close(fd2);
}

TEST(listener_v6_takes_v4)
{
	struct listener *ls;
	struct err e;
	int fd;

	if (listener_new(l, "[::]:0", 16, on_accept, &accepted, &ls, &e) == -1)
		skip(); /* no IPv6 here */
	fd = net_connect(listener_port(ls));
	turn_until(l, accepted.n == 1);
	assert_string_equal(accepted.peer, "127.0.0.1");
	accepted_close();
	close(fd);
	listener_free(ls);
	listener_free(NULL);
}

TEST(listener_bad_addresses)
{
	const char *bad[] = { "", "1.2.3.4", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536", "1.2.3:1",
		"name:80", "[::1:80", "::1]:80", "[zz]:80", "1.2.3.4:-1", "[]:1" };
	struct listener *ls, *second;
	struct err e;
	char addr[64];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_fails(
		    e, ERR_INVALID, listener_new(l, bad[i], 16, on_accept, &accepted, &ls, &e));
	assert_ok(e, listener_new(l, ":0", 16, on_accept, &accepted, &ls, &e));
	snprintf(addr, sizeof(addr), "0.0.0.0:%d", listener_port(ls));
	assert_fails(e, ERR_IO, listener_new(l, addr, 16, on_accept, &accepted, &second, &e));
	assert_has(e.msg, addr);
	listener_free(ls);
}

static void
out_of_fds(void *arg UNUSED)
{
	struct rlimit old, none;
	struct listener *ls;
	struct err e;
	int fd;

	clock_fake_start(SECONDS(100), 0);
	assert_ok(e, listener_new(l, "127.0.0.1:0", 16, on_accept, &accepted, &ls, &e));
	fd = net_connect(listener_port(ls));
	getrlimit(RLIMIT_NOFILE, &old);
	none = (struct rlimit){ (rlim_t)fd + 1, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	for (int i = 0; i < 50; i++)
		loop_once(l, false);
	assert_int_equal(accepted.n, 0);
	setrlimit(RLIMIT_NOFILE, &old);
	for (int i = 0; i < 5; i++)
		loop_once(l, false);
	assert_int_equal(accepted.n, 0); /* still waiting its second */
	clock_fake_advance(SECONDS(2));
	for (int i = 0; i < 5; i++)
		loop_once(l, false);
	assert_int_equal(accepted.n, 1);
	accepted_close();
	close(fd);
	listener_free(ls);
	clock_fake_end();
}

TEST(listener_waits_without_fds)
{
	CLEANUP(xfreep) char *text = NULL;
	const char *first;

	if (t_valgrind())
		skip();
	text = t_stderr(out_of_fds, NULL);
	first = strstr(text, "cannot accept");

	/* Once, not in each turn. */
	assert_non_null(first);
	assert_null(strstr(first + 1, "cannot accept"));
}

int
main(void)
{
#define S(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		S(reads_writes_and_ends),
		S(keeps_what_the_kernel_does_not_take),
		S(pending_has_a_limit),
		S(one_write_has_no_limit),
		S(connects),
		S(not_reading),
		S(watches_the_peer_while_not_reading),
		S(watch_sees_a_reset),
		S(watch_and_pending_output),
		S(early_answer_before_a_reset),
		S(close_inside_a_callback),
		S(reset_is_seen_by_the_peer),
		S(listener_accepts),
		S(listener_v6_takes_v4),
		S(listener_bad_addresses),
		S(listener_waits_without_fds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
