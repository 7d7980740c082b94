/* The server over time: back-pressure, pauses, tunnels, timeouts, limits, drain and end. */
#include "http_rig.h"

#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* A slow reader: the producer stops, memory stays bounded, everything arrives. */
static void
check_slow_reader(const char *request, size_t at_least)
{
	struct strbuf b;
	int fd = net_connect_buf(rig.port, 4096);
	char buf[16384];
	bool ended = false;

	strbuf_init(&b, 64 * 1024 * 1024);
	rig.most_pending = 0;
	net_send_text(rig.l, fd, request);
	turn_until(rig.l, rig.most_pending > 0);
	net_turns(rig.l, 20);
	assert_true(rig.most_pending <= 64 * 1024);
	assert_true(rig.left > 0);
	for (int64_t end = clock_mono() + WAIT_MAX; !ended && clock_mono() < end;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n > 0)
			strbuf_add(&b, buf, (size_t)n);
		loop_once(rig.l, false);
		ended = n == -1 && errno == EAGAIN && rig.left == 0 &&
		    strstr(rig_log(), "done 200") && b.n >= at_least;
	}
	assert_true(ended);
	assert_true(b.n >= at_least);
	strbuf_done(&b);
	close(fd);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	strbuf_reset(&rig.log);
}

TEST(slow_reader)
{
	rig_start();
	check_slow_reader(GET("/big"), RIG_BIG + 40);
	check_slow_reader(GET("/big-chunked"), RIG_BIG + RIG_BIG / (32 * 1024) * 8);
}

/* Both directions at once, with a client that reads late. */
TEST(echo_with_back_pressure)
{
	size_t n = 8 * 1024 * 1024, sent = 0;
	char *data = xmalloc(n);
	struct strbuf b;
	int fd;

	rig_start();
	for (size_t i = 0; i < n; i++)
		data[i] = (char)('a' + i % 23);
	strbuf_init(&b, 2 * n);
	fd = net_connect_buf(rig.port, 4096);
	net_send_text(rig.l, fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 8388608\r\n\r\n");
	for (int64_t end = clock_mono() + WAIT_MAX; clock_mono() < end;) {
		ssize_t r = send(fd, data + sent, n - sent, MSG_NOSIGNAL);

		sent += r > 0 ? (size_t)r : 0;
		loop_once(rig.l, false);
		if (rig.most_pending > 0 || sent == n)
			net_read(fd, &b);
		if (b.n > 5 && memcmp(b.p + b.n - 5, "0\r\n\r\n", 5) == 0)
			break;
	}
	assert_int_equal(sent, n);
	assert_true(rig.most_pending > 0 && rig.most_pending <= LOOP_READ_BUF + 20);
	/* The body, out of its chunks. */
	struct http1 *p = http1_new(true);
	struct strv in = strbuf_view(&b), piece;
	size_t at = 0;

	assert_int_equal(http1_next(p, &in, &piece), HTTP1_HEAD);
	while (http1_next(p, &in, &piece) == HTTP1_BODY) {
		assert_memory_equal(piece.p, data + at, piece.n);
		at += piece.n;
	}
	assert_int_equal(at, n);
	http1_free(p);
	strbuf_done(&b);
	xfree(data);
	close(fd);
}

/* --- complete replies that the kernel does not take at once --- */

/* A client whose segments are small, so that the kernel takes little at a time. */
static int
connect_mss(int mss)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)rig.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* Asks for a reply that the test gives by itself; the kernel keeps little of it. */
static void
hold(int fd, const char *request)
{
	int sndbuf = 4096;

	strbuf_reset(&rig.log);
	net_send_text(rig.l, fd, request);
	rig_wait_log("end; ");
	setsockopt(http_req_sock(rig.held)->fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
}

static void
check_whole(int fd, size_t n)
{
	char *data = xmalloc(n);
	struct strbuf b;
	const char *body;

	for (size_t i = 0; i < n; i++)
		data[i] = (char)('a' + i % 23);
	strbuf_init(&b, n + 1000);
	hold(fd, GET("/hold"));
	http_reply(rig.held, 200, NULL, 0, (struct strv){ data, n });
	memset(data, '!', n); /* the server has a copy */
	assert_int_equal(net_read_until(rig.l, fd, &b, "\r\n\r\n"), 1);
	body = (const char *)memmem(b.p, b.n, "\r\n\r\n", 4) + 4;
	n += (size_t)(body - b.p);
	for (int64_t end = clock_mono() + WAIT_MAX; b.n < n && clock_mono() < end;) {
		assert_int_equal(net_read(fd, &b), 1);
		loop_once(rig.l, false);
	}
	assert_int_equal(b.n, n);
	body = (const char *)memmem(b.p, b.n, "\r\n\r\n", 4) + 4;
	for (size_t i = 0; body + i < b.p + b.n; i++)
		assert_true(body[i] == (char)('a' + i % 23));
	strbuf_done(&b);
	xfree(data);
}

TEST(a_complete_reply_of_any_size_arrives_whole)
{
	int fd;

	rig_start();
	fd = connect_mss(1400);
	check_whole(fd, 600 * 1000);
	check_whole(fd, 2 * 1024 * 1024);
	check_whole(fd, 8 * 1024 * 1024);
	close(fd);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
}

/* It ends by a reset: nobody may take it for complete. */
static void
check_reset(int fd)
{
	struct strbuf b;

	strbuf_init(&b, 64 * 1024 * 1024);
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
	strbuf_done(&b);
	close(fd);
}

/* Ended by the close, and by a handler that neither waits nor sees what became of it. */
TEST(a_reply_beyond_the_limit_is_reset)
{
	static const char block[SOCK_PENDING_MAX];
	int fd;

	rig_start();
	fd = connect_mss(1400);
	hold(fd, "GET /hold HTTP/1.0\r\n" HOST "\r\n");
	http_reply_start(rig.held, 200, NULL, 0, -1);
	for (int i = 0; i < 32; i++)
		http_reply_write(rig.held, block, sizeof(block));
	http_reply_end(rig.held);
	check_reset(fd);
	fd = connect_mss(1400);
	hold(fd, GET("/hold"));
	http_reply_start(rig.held, 200, NULL, 0, -1);
	for (int i = 0; i < 32; i++)
		http_reply_write(rig.held, block, sizeof(block));
	rig_wait_log("abort too much pending output; done 200; ");
	check_reset(fd);
}

TEST(a_reply_that_dies_is_reset)
{
	static const char block[4 * 1024 * 1024];
	int fd;

	rig_start();
	/* The rest of its request does not come. */
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
	rig_wait_log("POST");
	net_turns(rig.l, 10);
	shutdown(fd, SHUT_WR);
	check_reset(fd);
	rig_wait_log("abort client ended inside the request body; done 200; ");
	/* The server goes while the rest of a complete reply waits. */
	fd = connect_mss(1400);
	hold(fd, GET("/hold"));
	http_reply(rig.held, 200, NULL, 0, (struct strv){ block, sizeof(block) });
	http_server_free(rig.s);
	rig.s = NULL;
	check_reset(fd);
}

TEST(pause_stops_the_body)
{
	static char block[1024 * 1024];
	size_t sent = 0;
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(
	    rig.l, fd, "POST /pause HTTP/1.1\r\n" HOST "Content-Length: 1048576\r\n\r\nabc");
	sent = 3;
	rig_wait_log("POST");
	for (int i = 0; i < 60; i++) {
		ssize_t r = send(fd, block, 16384, MSG_NOSIGNAL);

		sent += r > 0 ? (size_t)r : 0;
		net_turn(rig.l);
	}
	assert_string_equal(rig_log(), "POST /pause; ");
	assert_true(http_req_sock(rig.held)->bytes_in < 200 * 1024);
	http_req_pause(rig.held, false);
	assert_int_equal(rig.body, 0); /* not inside */
	if (sent < sizeof(block))
		net_send(rig.l, fd, block, sizeof(block) - sent);
	rig_wait_log("end; ");
	assert_int_equal(rig.body, sizeof(block));
	assert_int_equal(rig.held->bytes_in, sizeof(block));
	http_reply(rig.held, 200, NULL, 0, STRV("done"));
	rig_expect(fd, &b, "done");
	/* A request without body: on_end waits, too. */
	strbuf_reset(&rig.log);
	net_send_text(rig.l, fd, GET("/pause"));
	rig_wait_log("GET");
	net_turns(rig.l, 20);
	assert_string_equal(rig_log(), "GET /pause; ");
	http_req_pause(rig.held, false);
	rig_wait_log("GET /pause; end; ");
	strbuf_done(&b);
	close(fd);
}

/* --- tunnels --- */

#define UPGRADE "GET /tunnel HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: x\r\n\r\n"

TEST(tunnel)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, UPGRADE "first bytes"); /* of the tunnel, with the head */
	rig_expect(fd, &b, "first bytes");
	assert_has(
	    b.p, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nf");
	net_send_text(rig.l, fd, "more");
	rig_expect(fd, &b, "more");
	shutdown(fd, SHUT_WR); /* the echo ends its side */
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	assert_string_equal(rig_log(), "GET /tunnel; done 101; ");
	close(fd);
	strbuf_done(&b);
}

static const struct http_req_ops plain_ops = { .on_body = rig_on_body,
	.on_end = rig_on_end,
	.on_abort = rig_on_abort,
	.on_drain = rig_on_drain };

/* Our side ends first; the client goes on. */
TEST(tunnel_half_closed_by_the_handler)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold"));
	rig_wait_log("end");
	rig.held->ops = &plain_ops;
	http_req_tunnel(rig.held, 101, STRV("HTTP/1.1 101 X\r\n\r\n"));
	http_reply_write(rig.held, "bye", 3);
	http_reply_end(rig.held);
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has(b.p, "\r\n\r\nbye");
	net_send_text(rig.l, fd, "still here");
	rig_wait_log("body 10; ");
	assert_has_not(rig_log(), "done");
	shutdown(fd, SHUT_WR);
	rig_wait_log("GET /hold; end; body 10; end; done 101; ");
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	close(fd);
	strbuf_done(&b);
}

TEST(tunnel_cut)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	/* By the client. */
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, UPGRADE);
	rig_expect(fd, &b, "\r\n\r\n");
	net_reset(fd);
	rig_wait_log("abort connection reset by peer; done 101; ");
	/* By the handler, also after its own end. */
	for (int end = 0; end < 2; end++) {
		strbuf_reset(&rig.log);
		fd = net_connect(rig.port);
		net_send_text(rig.l, fd, GET("/hold"));
		rig_wait_log("end");
		http_req_tunnel(rig.held, 101, STRV("HTTP/1.1 101 X\r\n\r\n"));
		if (end)
			http_reply_end(rig.held);
		http_reply_abort(rig.held, "test");
		/* After a FIN, the client has its end already. */
		assert_int_equal(net_read_until(rig.l, fd, &b, NULL), end ? 0 : -1);
		assert_string_equal(rig_log(), "GET /hold; end; done 101; ");
		close(fd);
	}
	strbuf_done(&b);
}

TEST(tunnel_back_pressure)
{
	size_t n = 512 * 1024, sent = 0;
	char *data = xcalloc(1, n);
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 4 * 1024 * 1024);
	fd = net_connect_buf(rig.port, 4096);
	net_send_text(rig.l, fd, UPGRADE);
	rig_expect(fd, &b, "\r\n\r\n");
	b.n = 0;
	for (int64_t end = clock_mono() + WAIT_MAX; b.n < n && clock_mono() < end;) {
		ssize_t r = send(fd, data + sent, n - sent, MSG_NOSIGNAL);

		sent += r > 0 ? (size_t)r : 0;
		loop_once(rig.l, false);
		if (rig.most_pending > 0 || sent == n)
			net_read(fd, &b);
	}
	assert_int_equal(b.n, n);
	assert_true(rig.most_pending <= LOOP_READ_BUF);
	shutdown(fd, SHUT_WR);
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	strbuf_done(&b);
	xfree(data);
	close(fd);
}

TEST(declined_upgrades)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd,
	    "GET /404 HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" GET("/"));
	rig_expect(fd, &b, "ok");
	/* After CONNECT nobody knows what comes. */
	net_send_text(rig.l, fd, "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n" GET("/no"));
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has(b.p, "Connection: close");
	assert_string_equal(rig_log(), "GET /404; done 404; GET /; done 200; CONNECT ; done 200; ");
	close(fd);
	strbuf_done(&b);
}

/* What a handler does not expect to fail is cut from the loop, and it is told. */
TEST(cut_from_the_loop)
{
	CLEANUP(xfreep) char *long_value = xmalloc(200 * 1024);
	struct http_field field = { STRV("X"), { long_value, 200 * 1024 } };
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	/* A 101 before the request's body is complete. */
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
	rig_wait_log("body 3; ");
	http_req_tunnel(rig.held, 101, STRV("HTTP/1.1 101 X\r\n\r\n"));
	assert_int_equal(http_reply_write(rig.held, "x", 1), 0);
	assert_has_not(rig_log(), "abort");
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
	assert_int_equal(b.n, 0);
	assert_has(rig_log(), "abort upgrade inside the request body; done 0; ");
	close(fd);
	/* A head beyond all measure: begun, or begun and ended. */
	memset(long_value, 'x', 200 * 1024);
	for (int end = 0; end < 2; end++) {
		strbuf_reset(&rig.log);
		fd = net_connect(rig.port);
		net_send_text(rig.l, fd, GET("/hold"));
		rig_wait_log("end");
		http_reply_start(rig.held, 200, &field, 1, 5);
		assert_int_equal(http_reply_write(rig.held, "x", 1), 0);
		if (end)
			http_reply_end(rig.held);
		assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
		assert_int_equal(b.n, 0);
		assert_string_equal(rig_log(),
		    end ? "GET /hold; end; done 200; "
		        : "GET /hold; end; abort reply head too large; done 200; ");
		close(fd);
	}
	strbuf_done(&b);
}

/* --- timeouts: a tick is a quarter of the shortest --- */

static void
start_with_timeouts(void)
{
	rig.conf.head_timeout = MILLIS(80);
	rig.conf.idle_timeout = MILLIS(160);
	rig.conf.body_timeout = MILLIS(80);
	rig.conf.write_timeout = MILLIS(200);
	rig_start();
}

/* Reads to the end and checks how long that took. */
static void
ends_in(int fd, struct strbuf *b, int64_t from, int64_t to, int how)
{
	int64_t start = clock_mono(), took;

	assert_int_equal(net_read_until(rig.l, fd, b, NULL), how);
	took = clock_mono() - start;
	if (took < from || took > to + MILLIS(400)) /* a busy machine */
		fail_msg("took %lld ms", (long long)(took / NS_PER_MS));
	close(fd);
}

TEST(timeouts_of_idle_and_head)
{
	struct strbuf b;
	int fd;

	start_with_timeouts();
	strbuf_init(&b, 1000);
	strbuf_adds(&b, "");
	fd = net_connect(rig.port);
	ends_in(fd, &b, MILLIS(140), MILLIS(220), 0);
	assert_int_equal(b.n, 0);
	/* A request in between starts it anew. */
	fd = net_connect(rig.port);
	net_turns(rig.l, 100);
	net_send_text(rig.l, fd, GET("/"));
	assert_int_equal(net_read_until(rig.l, fd, &b, "ok"), 1);
	ends_in(fd, &b, MILLIS(140), MILLIS(220), 0);
	strbuf_reset(&b);
	/* Part of a head: bytes do not help. */
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "GET / HTTP/1.1\r\n");
	for (int i = 0; i < 10; i++) {
		net_send_text(rig.l, fd, "A: b\r\n");
		net_turn(rig.l);
	}
	ends_in(fd, &b, MILLIS(50), MILLIS(140), 0);
	assert_has(b.p, "HTTP/1.1 408 Request Timeout\r\n");
	/* … but each head has its own time. */
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "GET /1");
	for (int i = 0; i < 40; i++) {
		net_send_text(rig.l, fd, " HTTP/1.1\r\n" HOST "\r\nGET /1");
		for (int64_t end = clock_mono() + MILLIS(5); clock_mono() < end;)
			net_turn(rig.l);
	}
	assert_int_equal(net_read(fd, &b), 1);
	close(fd);
	strbuf_done(&b);
}

TEST(timeouts_of_body_and_write)
{
	struct strbuf b;
	int fd;

	start_with_timeouts();
	strbuf_init(&b, 16 * 1024 * 1024);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
	ends_in(fd, &b, MILLIS(70), MILLIS(140), 0);
	assert_has(b.p, "HTTP/1.1 408 Request Timeout\r\n");
	assert_string_equal(
	    rig_log(), "POST /hold; body 3; abort request body stalled; done 408; ");
	/* Never while paused, nor while the handler works. */
	strbuf_reset(&rig.log);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /pause HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n");
	rig_wait_log("POST");
	for (int64_t end = clock_mono() + MILLIS(300); clock_mono() < end;)
		net_turn(rig.l);
	http_req_pause(rig.held, false);
	net_send_text(rig.l, fd, "abc");
	rig_wait_log("end");
	for (int64_t end = clock_mono() + MILLIS(300); clock_mono() < end;)
		net_turn(rig.l);
	http_reply(rig.held, 200, NULL, 0, STRV("done"));
	rig_expect(fd, &b, "done");
	close(fd);
	/* A client that does not read. */
	strbuf_reset(&rig.log);
	fd = net_connect_buf(rig.port, 4096);
	net_send_text(rig.l, fd, GET("/big"));
	rig_wait_log("abort client does not read; done 200; ");
	ends_in(fd, &b, 0, MILLIS(100), -1);
	strbuf_done(&b);
}

/* --- limits, drain, end --- */

TEST(connection_limit)
{
	struct strbuf b;
	int fd[3];

	rig.conf.max_conns = 2;
	rig_start();
	strbuf_init(&b, 1000);
	for (int i = 0; i < 3; i++) {
		fd[i] = net_connect(rig.port);
		net_send_text(rig.l, fd[i], GET("/"));
		net_turns(rig.l, 10);
	}
	assert_int_equal(http_server_conns(rig.s), 2);
	assert_int_equal(net_read(fd[2], &b), 1);
	assert_int_equal(b.n, 0);
	assert_int_equal(http_server_accept_pauses(rig.s), 1);
	close(fd[0]);
	rig_expect(fd[2], &b, "ok");
	assert_int_equal(http_server_conns(rig.s), 2);
	assert_int_equal(http_server_accept_pauses(rig.s), 2);
	close(fd[1]);
	close(fd[2]);
	strbuf_done(&b);
}

static void
on_drained(void *arg)
{
	*(int *)arg += 1;
}

TEST(drain)
{
	struct strbuf b;
	int idle, busy, streaming, drained = 0;

	rig_start();
	strbuf_init(&b, 1000);
	idle = net_connect(rig.port);
	busy = net_connect(rig.port);
	streaming = net_connect(rig.port);
	net_send_text(rig.l, streaming, GET("/hold"));
	rig_wait_log("end");
	struct http_req *second = rig.held;
	http_reply_start(second, 200, NULL, 0, -1);
	strbuf_reset(&rig.log);
	net_send_text(rig.l, busy, GET("/hold"));
	rig_wait_log("end");
	turn_until(rig.l, http_server_conns(rig.s) == 3);
	http_server_drain(rig.s, on_drained, &drained);
	assert_int_equal(net_read_until(rig.l, idle, &b, NULL), 0);
	assert_int_equal(drained, 0);
	assert_true(http_req_will_close(rig.held));
	http_reply(rig.held, 200, NULL, 0, STRV("last"));
	assert_int_equal(net_read_until(rig.l, busy, &b, NULL), 0);
	assert_has(b.p, "Connection: close\r\n\r\nlast");
	http_reply_end(second);
	assert_int_equal(net_read_until(rig.l, streaming, &b, NULL), 0);
	close(busy);
	close(streaming);
	turn_until(rig.l, drained == 1);
	net_turns(rig.l, 10);
	assert_int_equal(drained, 1);
	close(idle);
	strbuf_done(&b);
}

TEST(drain_of_an_empty_server)
{
	int drained = 0;

	rig_start();
	http_server_drain(rig.s, on_drained, &drained);
	assert_int_equal(drained, 0);
	turn_until(rig.l, drained == 1);
}

TEST(free_tells_the_handlers)
{
	int fd, other;

	rig_start();
	other = net_connect(rig.port);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold"));
	rig_wait_log("end");
	http_server_free(rig.s);
	rig.s = NULL;
	assert_string_equal(rig_log(), "GET /hold; end; abort server stops; done 0; ");
	net_turns(rig.l, 3);
	close(fd);
	close(other);
}

static void
free_the_server(struct http_req *r, const struct http_head *h UNUSED, void *arg UNUSED)
{
	http_server_free(r->server);
	rig.s = NULL;
}

TEST(free_inside_a_handler)
{
	struct strbuf b;
	struct err e;
	int fd;

	rig.conf.on_request = free_the_server;
	assert_ok(e, http_server_new(rig.l, &rig.conf, &rig.s, &e));
	assert_ok(e, http_server_listen(rig.s, "127.0.0.1:0", NULL, &rig.port, &e));
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/") GET("/"));
	strbuf_init(&b, 100);
	net_read_until(rig.l, fd, &b, NULL);
	assert_null(rig.s);
	net_turns(rig.l, 3);
	strbuf_done(&b);
	close(fd);
	http_server_free(NULL);
}

/* Connections that come and go in every way leave nothing behind. */
TEST(no_descriptor_is_lost)
{
	static const char *const what[] = { "", "G", GET("/"), GET("/abort"), "BAD\r\n\r\n",
		GET("/big"), GET("/hold"), UPGRADE "x",
		"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc",
		"POST /413 HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc" };
	int before, after;

	rig.gives_up = true;
	rig_start();
	before = dup(0);
	close(before);
	for (int i = 0; i < 300; i++) {
		int fd = net_connect(rig.port);

		net_send_text(rig.l, fd, what[i % (int)ARRAY_LEN(what)]);
		net_turns(rig.l, i % 4);
		if (i % 3 == 0)
			net_reset(fd);
		else
			close(fd);
	}
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		R(slow_reader),
		R(echo_with_back_pressure),
		R(a_complete_reply_of_any_size_arrives_whole),
		R(a_reply_beyond_the_limit_is_reset),
		R(a_reply_that_dies_is_reset),
		R(pause_stops_the_body),
		R(tunnel),
		R(tunnel_half_closed_by_the_handler),
		R(tunnel_cut),
		R(tunnel_back_pressure),
		R(declined_upgrades),
		R(cut_from_the_loop),
		R(timeouts_of_idle_and_head),
		R(timeouts_of_body_and_write),
		R(connection_limit),
		R(drain),
		R(drain_of_an_empty_server),
		R(free_tells_the_handlers),
		R(free_inside_a_handler),
		R(no_descriptor_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
