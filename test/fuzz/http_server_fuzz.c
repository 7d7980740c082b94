/*
 * A connection of the server under a script: the input says what the client sends and when it
 * reads, ends or is reset, how the clock goes, and what the handler does with its request, in any
 * order that the interface allows. Nothing is compared: the state machine's own checks, the
 * sanitizers and the end (no connection and no request may be left) are the test.
 *
 * Input: steps of one byte each, the low three bits say which, the others how much; SEND is
 * followed by its bytes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/clock.h"
#include "http/http_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step { SEND = 0, TURN, ACT, CLOCK, FIN, READ, RESET, ACT_IN_CALLBACK };

static struct {
	struct loop *l;
	struct http_server *s;
	int port;
	struct http_req *held; /* NULL: none is open */
	bool started, ended, tunnel, got_end;
	const uint8_t *data;
	size_t n;
	unsigned open; /* requests without on_done */
	uint8_t in_callback;
} f;

static uint8_t
next(void)
{
	if (f.n == 0)
		return 0;
	f.n--;
	return *f.data++;
}

static void act(uint8_t what);

static void
on_body(struct http_req *r, const char *p, size_t n)
{
	BUG_ON(n == 0 || r != f.held);
	if (f.started && !f.ended && n < 100)
		http_reply_write(r, p, n);
	act(f.in_callback);
}

static void
on_end(struct http_req *r)
{
	BUG_ON(r != f.held || (f.got_end && !f.tunnel));
	f.got_end = true;
	/* The second end of a tunnel: it is over when this returns. */
	if (f.tunnel && f.ended)
		f.held = NULL;
	else
		act(f.in_callback);
}

static void
on_drain(struct http_req *r)
{
	BUG_ON(r != f.held);
	act(f.in_callback);
}

static void
on_abort(struct http_req *r, const char *why)
{
	BUG_ON(r != f.held || why == NULL);
	http_reply(r, 200, NULL, 0, STRV("x"));
	http_reply_abort(r, "x");
	f.held = NULL;
}

static const struct http_req_ops ops = { .on_body = on_body,
	.on_end = on_end,
	.on_drain = on_drain,
	.on_abort = on_abort,
	.on_hangup = on_drain };

static void
on_collected(struct http_req *r, struct strv body, void *arg)
{
	BUG_ON(r != f.held || arg != &f);
	BUG_ON(body.p && body.p[body.n] != '\0');
	act(f.in_callback);
}

static void
act_begin(struct http_req *r, uint8_t what)
{
	static char big[300 * 1024];

	switch (what) {
	case 0:
		f.held = NULL;
		http_reply(r, 200, NULL, 0, (struct strv){ big, r->id[0] & 1 ? 5 : 20000 });
		return;
	case 1:
		f.held = NULL;
		http_reply(r, 404, NULL, 0, STRV_NONE);
		return;
	case 2:
		http_reply_start(r, 200, NULL, 0, -1);
		break;
	case 3:
		http_reply_start(r, 200, NULL, 0, 10);
		break;
	case 4:
		http_reply_raw(r, 200, STRV("HTTP/1.1 200 OK\r\n\r\n"), STRV("x"), -2, false);
		break;
	default:
		http_req_tunnel(r, 101, STRV("HTTP/1.1 101 X\r\n\r\n"));
		f.tunnel = true;
		f.got_end = false;
		break;
	}
	f.started = true;
}

/* One of the things that a handler may do now. */
static void
act(uint8_t what)
{
	static char big[100 * 1024];
	struct http_req *r = f.held;

	if (r == NULL)
		return;
	switch (what & 15) {
	case 1:
	case 2:
		http_req_pause(r, (what & 1) != 0);
		break;
	case 3:
		http_req_continue(r);
		break;
	case 4:
		http_req_close_after(r);
		break;
	case 5:
		f.held = NULL;
		http_reply_abort(r, "x");
		break;
	case 6:
		http_reply_interim(r, STRV("HTTP/1.1 103 E\r\n\r\n"));
		break;
	case 7:
	case 8:
		if (f.started && !f.ended)
			http_reply_write(r, big, what & 1 ? 3 : sizeof(big));
		break;
	case 9:
		if (!f.started || f.ended)
			break;
		f.ended = true;
		if (!f.tunnel || f.got_end)
			f.held = NULL;
		http_reply_end(r);
		break;
	case 10:
	case 11:
	case 12:
	case 13:
	case 14:
	case 15:
		if (!f.started)
			act_begin(r, (what & 15) - 10);
		break;
	default:
		break;
	}
}

static void
on_request(struct http_req *r, const struct http_head *h, void *arg UNUSED)
{
	uint8_t how = h->path.n > 1 ? (uint8_t)h->path.p[1] : 0;

	BUG_ON(f.held != NULL);
	f.open++;
	f.held = r;
	f.started = f.ended = f.tunnel = f.got_end = false;
	if (how & 1)
		r->ops = &ops;
	else
		how |= 16; /* without ops nobody tells us of its end: answer now */
	if (how & 2)
		http_req_keep_head(r, h);
	if (how & 4 && how & 1)
		http_req_pause(r, true);
	if (how & 8 && how & 1)
		http_req_collect(r, 8, on_collected, &f);
	if (how & 16)
		act(how & 32 ? 11 : 10);
}

static void
on_done(struct http_req *r, void *arg UNUSED)
{
	BUG_ON(r == f.held || f.open == 0);
	f.open--;
}

static void
start(void)
{
	struct http_server_conf conf = { .on_request = on_request, .on_done = on_done };
	struct err e;

	clock_fake_start(SECONDS(1000), SECONDS(1000));
	f.l = loop_new();
	BUG_ON(http_server_new(f.l, &conf, &f.s, &e) == -1);
	BUG_ON(http_server_listen(f.s, "127.0.0.1:0", NULL, &f.port, &e) == -1);
}

static int
client(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)f.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger hard = { 1, 0 };
	int fd = socket(AF_INET, SOCK_STREAM, 0), size = 4096;

	BUG_ON(fd == -1);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	BUG_ON(connect(fd, (struct sockaddr *)&a, sizeof(a)) == -1);
	return fd;
}

static void
step(int fd, uint8_t byte)
{
	static char buf[65536];
	unsigned much = byte >> 3;

	switch ((enum step)(byte & 7)) {
	case SEND:
		much = much < 31 ? much : 200;
		much = much < f.n ? much : (unsigned)f.n;
		(void)send(fd, f.data, much, MSG_NOSIGNAL | MSG_DONTWAIT);
		f.data += much;
		f.n -= much;
		break;
	case TURN:
		loop_once(f.l, false);
		break;
	case ACT:
		act((uint8_t)much);
		break;
	case CLOCK:
		clock_fake_advance(SECONDS(much));
		loop_once(f.l, false);
		break;
	case FIN:
		shutdown(fd, SHUT_WR);
		break;
	case READ:
		(void)recv(fd, buf, much < 31 ? much : sizeof(buf), MSG_DONTWAIT);
		break;
	case RESET:
		if (much == 31)
			shutdown(fd, SHUT_RD);
		break;
	case ACT_IN_CALLBACK:
		f.in_callback = (uint8_t)much;
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd, turns = 0;

	if (f.l == NULL)
		start();
	f.data = data;
	f.n = size;
	f.in_callback = 0;
	fd = client();
	while (f.n > 0)
		step(fd, next());
	loop_once(f.l, false);
	close(fd);
	while (http_server_conns(f.s) > 0 || turns < 2) {
		loop_once(f.l, false);
		clock_fake_advance(SECONDS(1));
		/* A client that had ended before is not known to be gone: the handler gives up. */
		if (turns > 10)
			act(5);
		BUG_ON(turns++ > 2000);
	}
	BUG_ON(f.held != NULL || f.open != 0);
	return 0;
}
