/* The server, request by request: framing, connections, early ends. See http_flow_test.c for time
 * and flow. */
#include "http_rig.h"

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

TEST(keep_alive_and_pipelining)
{
	rig_start();
	rig_check(GET("/") GET("/2") "POST /3 HTTP/1.1\r\n" HOST
	                             "Content-Length: 3\r\n\r\nabc" GET("/4"),
	    OK_REPLY OK_REPLY OK_REPLY OK_REPLY);
	assert_string_equal(
	    rig_log(), "GET /; done 200; GET /2; done 200; POST /3; done 200; GET /4; done 200; ");
}

TEST(versions_and_closing)
{
	rig_start();
	rig_check("GET / HTTP/1.0\r\n\r\n" GET("/no"),
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	rig_check("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	rig_check("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n" GET("/no"),
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	rig_check(GET("/close") GET("/no"),
	    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nclose");
	assert_has_not(rig_log(), "/no");
	rig_check("", "");
	rig_check("\r\n\r\n", "");
	rig_check("GET / HT", "");
}

TEST(replies_without_body)
{
	rig_start();
	rig_check("HEAD / HTTP/1.1\r\n" HOST "\r\n"
	          "HEAD /stream HTTP/1.1\r\n" HOST "\r\n"
	          "HEAD /length HTTP/1.1\r\n" HOST "\r\n" GET("/204") GET("/304") GET("/"),
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
	    "HTTP/1.1 204 No Content\r\n\r\n"
	    "HTTP/1.1 304 Not Modified\r\n\r\n" OK_REPLY);
}

TEST(streams)
{
	rig_start();
	rig_check(GET("/stream") GET("/length") GET("/"),
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "1\r\ns\r\n1\r\nt\r\n1\r\nr\r\n1\r\ne\r\n1\r\na\r\n1\r\nm\r\n0\r\n\r\n"
	    "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nlength" OK_REPLY);
	rig_check("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nstream");
}

TEST(cut_replies_do_not_look_complete)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/short"));
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
	close(fd);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/abort") GET("/no"));
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
	close(fd);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/abort-later") GET("/no"));
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
	close(fd);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd,
	    "POST /abort-later HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc" GET("/no"));
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
	close(fd);
	strbuf_done(&b);
	assert_string_equal(rig_log(),
	    "GET /short; done 200; GET /abort; done 0; GET /abort-later; done 0; "
	    "POST /abort-later; done 0; ");
	assert_int_equal(http_server_conns(rig.s), 0);
}

TEST(echo)
{
	rig_start();
	rig_check(
	    "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"
	    "POST /echo HTTP/1.1\r\n" HOST
	    "Transfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\nX: y\r\n\r\n" GET("/"),
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
	    "chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n" OK_REPLY);
}

TEST(byte_by_byte)
{
	const char *text = "POST /echo HTTP/1.1\r\n" HOST
	                   "Transfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n" GET("/");
	int fd;
	struct strbuf b;

	rig_start();
	fd = net_connect(rig.port);
	strbuf_init(&b, 1000);
	for (; *text; text++) {
		net_send(rig.l, fd, text, 1);
		loop_once(rig.l, false);
	}
	rig_expect(fd, &b, "ok");
	assert_has(b.p, "1\r\nd\r\n1\r\ne\r\n0\r\n\r\nHTTP/1.1 200 OK");
	close(fd);
	strbuf_done(&b);
}

TEST(many_pipelined)
{
	struct strbuf in, out;
	int fd;

	rig_start();
	strbuf_init(&in, 1024 * 1024);
	strbuf_init(&out, 1024 * 1024);
	for (int i = 0; i < 1000; i++)
		strbuf_adds(&in, i == 999 ? GET("/stream") : GET("/"));
	fd = net_connect(rig.port);
	net_send(rig.l, fd, in.p, in.n);
	assert_int_equal(net_read_until(rig.l, fd, &out, "0\r\n\r\n"), 1);
	rig_drop_dates(&out);
	assert_int_equal(out.n,
	    999 * strlen(OK_REPLY) +
	        strlen("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") + 6 * 6 + 5);
	close(fd);
	strbuf_done(&in);
	strbuf_done(&out);
}

/* The handler answers later; what came behind waits and is not lost. */
TEST(held_request_with_a_next_one_behind)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold") GET("/"));
	rig_wait_log("end");
	net_send_text(rig.l, fd, GET("/404"));
	net_turns(rig.l, 20);
	assert_string_equal(rig_log(), "GET /hold; end; ");
	rig_reply(rig.held, 201, "held");
	assert_string_equal(rig_log(), "GET /hold; end; done 201; "); /* the next not inside it */
	rig_expect(fd, &b, "404");
	rig_drop_dates(&b);
	assert_has(
	    b.p, "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nheld" OK_REPLY "HTTP/1.1 404");
	close(fd);
	strbuf_done(&b);
}

TEST(half_close_gets_its_answers)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold") GET("/"));
	shutdown(fd, SHUT_WR);
	rig_wait_log("hangup"); /* reading is off: the watch sees it */
	rig_reply(rig.held, 200, "held");
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has(b.p, "held");
	assert_has(b.p, "ok");
	close(fd);
	/* The same while the server still reads. */
	strbuf_reset(&rig.log);
	strbuf_reset(&b);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold"));
	shutdown(fd, SHUT_WR);
	rig_wait_log("hangup");
	rig_reply(rig.held, 200, "held");
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has(b.p, "held");
	assert_string_equal(rig_log(), "GET /hold; end; hangup; done 200; ");
	close(fd);
	strbuf_done(&b);
}

TEST(client_gone)
{
	int fd;

	rig.conf.idle_timeout = MILLIS(400); /* a tick of 100 ms */
	rig_start();
	/* While the handler works, reading on. */
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold"));
	rig_wait_log("end");
	net_reset(fd);
	rig_wait_log("abort connection reset by peer; done 0; ");
	assert_null(rig.held);
	/* Reading off, since a next request is there. */
	strbuf_reset(&rig.log);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold") GET("/"));
	rig_wait_log("end");
	net_reset(fd);
	rig_wait_log("abort connection reset by peer; done 0; ");
	/* After its FIN. */
	strbuf_reset(&rig.log);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold"));
	shutdown(fd, SHUT_WR);
	rig_wait_log("hangup");
	net_turns(rig.l, 200);
	http_reply_start(rig.held, 200, NULL, 0, -1);
	net_turns(rig.l, 10);
	net_reset(fd);
	rig_wait_log("abort connection reset by peer; done 200; ");
	/* Paused, with its body unread. */
	strbuf_reset(&rig.log);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /pause HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
	rig_wait_log("POST");
	net_turns(rig.l, 50);
	net_send_text(rig.l, fd, "def");
	net_turns(rig.l, 50);
	net_reset(fd);
	rig_wait_log("abort connection reset by peer; done 0; ");
	assert_has_not(rig_log(), "body");
	/* Inside its body. */
	strbuf_reset(&rig.log);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
	close(fd);
	rig_wait_log("body 3; abort client ended inside the request body; done 0; ");
	assert_has_not(rig_log(), "hangup");
}

TEST(expect_continue)
{
#define EXPECT(path, n)                                                                            \
	"POST " path " HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: " n "\r\n\r\n"
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, EXPECT("/hold", "3"));
	rig_expect(fd, &b, "HTTP/1.1 100 Continue\r\n\r\n");
	net_send_text(rig.l, fd, "abc");
	rig_wait_log("body 3; end; ");
	rig_reply(rig.held, 200, "fine");
	rig_expect(fd, &b, "fine");
	/* The body is there already. */
	net_send_text(rig.l, fd, EXPECT("/hold", "3") "abc");
	strbuf_reset(&rig.log);
	rig_wait_log("body 3; end; ");
	rig_reply(rig.held, 200, "fine");
	rig_expect(fd, &b, "fine");
	assert_has_not(b.p, "100");
	/* Paused: when it ends. */
	net_send_text(rig.l, fd, EXPECT("/pause", "3"));
	strbuf_reset(&rig.log);
	rig_wait_log("POST /pause");
	net_turns(rig.l, 20);
	assert_int_equal(net_read(fd, &b), 1);
	assert_has_not(b.p, "100");
	http_req_pause(rig.held, false);
	rig_expect(fd, &b, "HTTP/1.1 100 Continue\r\n\r\n");
	net_send_text(rig.l, fd, "abc");
	rig_wait_log("body 3; end; ");
	rig_reply(rig.held, 200, "fine");
	rig_expect(fd, &b, "fine");
	close(fd);
	/* Refused: nobody can tell whether the body comes, so the connection ends. */
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, EXPECT("/413", "3"));
	rig_expect(fd, &b, "text");
	assert_has(b.p, "Connection: close");
	assert_has_not(b.p, "100");
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	close(fd);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, EXPECT("/collect", "11"));
	rig_expect(fd, &b, "too large");
	assert_has_not(b.p, "100");
	close(fd);
	strbuf_done(&b);
}

/* A reply before the body was read: the rest is dropped, the connection stays. */
TEST(early_answer_short_rest)
{
	static char rest[200 * 1024];
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /413 HTTP/1.1\r\n" HOST "Content-Length: 204800\r\n\r\n");
	rig_expect(fd, &b, "text");
	assert_has_not(b.p, "close");
	net_send(rig.l, fd, rest, sizeof(rest));
	net_send_text(rig.l, fd, GET("/"));
	rig_expect(fd, &b, "ok");
	/* Chunked: nobody knows how long it gets. */
	net_send_text(
	    rig.l, fd, "POST /413 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	rig_expect(fd, &b, "text");
	net_send_text(rig.l, fd, "3\r\nabc\r\n0\r\n\r\n" GET("/"));
	rig_expect(fd, &b, "ok");
	assert_string_equal(rig_log(),
	    "POST /413; done 413; GET /; done 200; POST /413; done 413; GET /; done 200; ");
	close(fd);
	strbuf_done(&b);
}

/* … or ends, but never so that the reply is lost. */
TEST(early_answer_long_rest)
{
	size_t n = 2 * 1024 * 1024;
	char *rest = xcalloc(1, n);
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "POST /413 HTTP/1.1\r\n" HOST "Content-Length: 2097152\r\n\r\n");
	net_send(rig.l, fd, rest, n); /* all of it, as most clients do */
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has(b.p, "Connection: close\r\n\r\ntext");
	close(fd);
	strbuf_reset(&b);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd,
	    "POST /413 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n100000\r\n");
	net_send(rig.l, fd, rest, 1024 * 1024);
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has(b.p, "Content-Length: 4\r\n\r\ntext");
	close(fd);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	assert_string_equal(rig_log(), "POST /413; done 413; POST /413; done 413; ");
	strbuf_done(&b);
	xfree(rest);
}

static void
on_bad(int status, const char *why, struct strbuf *body, const char **type, void *arg)
{
	assert_ptr_equal(arg, &rig);
	assert_true(why[0] != '\0');
	strbuf_addf(body, "{\"code\":%d}", status);
	*type = "application/json";
}

TEST(bad_requests)
{
	struct strbuf b;
	int fd;

	rig.conf.on_bad_request = on_bad;
	rig.conf.server_name = "rig";
	rig_start();
	rig_check("BAD\r\n\r\n" GET("/no"),
	    "HTTP/1.1 400 Bad Request\r\nServer: rig\r\nContent-Type: application/json\r\n"
	    "Content-Length: 12\r\nConnection: close\r\n\r\n{\"code\":400}");
	rig_check(GET("/") "GET / HTTP/1.2\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nServer: rig\r\nContent-Length: 2\r\n\r\nok"
	    "HTTP/1.1 505 HTTP Version Not Supported\r\nServer: rig\r\nContent-Type: "
	    "application/json"
	    "\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{\"code\":505}");
	assert_string_equal(rig_log(), "GET /; done 200; ");
	/* In the body: the handler is told. */
	strbuf_reset(&rig.log);
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(
	    rig.l, fd, "POST /hold HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx");
	rig_expect(fd, &b, "{\"code\":400}");
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has(rig_log(), "POST /hold; abort ");
	assert_has(rig_log(), "; done 400; ");
	close(fd);
	/* … and a reply that has begun is cut. */
	fd = net_connect(rig.port);
	net_send_text(
	    rig.l, fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	rig_expect(fd, &b, "\r\n\r\n");
	net_send_text(rig.l, fd, "x");
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), -1);
	close(fd);
	/* … and one that is complete stays so. */
	fd = net_connect(rig.port);
	net_send_text(
	    rig.l, fd, "POST /413 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx");
	rig_expect(fd, &b, "text");
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_has_not(b.p, "400");
	close(fd);
	strbuf_done(&b);
}

TEST(collecting)
{
#define POST(path, n, body) "POST " path " HTTP/1.1\r\n" HOST "Content-Length: " n "\r\n\r\n" body
#define REPLY(status, n, body) "HTTP/1.1 " status "\r\nContent-Length: " n "\r\n\r\n" body
	struct strbuf b;
	int fd;

	rig_start();
	rig_check(POST("/collect", "10", "0123456789") GET("/collect")
	              POST("/collect", "11", "01234567890") POST("/collect", "0", ""),
	    REPLY("200 OK", "10", "0123456789") REPLY("200 OK", "0", "")
	        REPLY("413 Content Too Large", "10", "too large\n") REPLY("200 OK", "0", ""));
	rig_check(
	    "POST /collect HTTP/1.1\r\n" HOST
	    "Transfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n012345\r\n0\r\n\r\n" GET("/"),
	    REPLY("413 Content Too Large", "10", "too large\n") OK_REPLY);
	assert_has_not(rig_log(), "abort");
	/* After a pause. */
	strbuf_reset(&rig.log);
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, POST("/pause", "3", "abc") GET("/pause") GET("/hold"));
	rig_wait_log("POST /pause");
	net_turns(rig.l, 20);
	http_req_collect(rig.held, 10, rig_collected, rig_arg);
	http_req_pause(rig.held, false);
	rig_expect(fd, &b, "abc");
	rig_wait_log("GET /pause");
	net_turns(rig.l, 20);
	http_req_collect(rig.held, 10, rig_collected, rig_arg);
	http_req_pause(rig.held, false);
	/* After the end. */
	rig_wait_log("GET /hold; end");
	http_req_collect(rig.held, 10, rig_collected, rig_arg);
	rig_wait_log("GET /hold; end; done 200;");
	/* The client goes in between. */
	strbuf_reset(&rig.log);
	net_send_text(rig.l, fd, POST("/collect", "3", "ab"));
	rig_wait_log("POST");
	shutdown(fd, SHUT_WR);
	rig_wait_log("POST /collect; abort client ended inside the request body; done 0; ");
	close(fd);
	strbuf_done(&b);
}

TEST(replies_to_every_field)
{
	const struct http_field fields[] = { { STRV("X-One"), STRV("1") },
		{ STRV("connection"), STRV("x") }, { STRV("Content-length"), STRV("99") },
		{ STRV("Transfer-Encoding"), STRV("x") }, { STRV("DATE"), STRV("x") },
		{ STRV("X-Bad"), STRV("a\r\nb: c") }, { STRV("X-Two"), STRV("2") } };
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold") GET("/hold"));
	rig_wait_log("end");
	http_reply(rig.held, 200, fields, ARRAY_LEN(fields), STRV("body"));
	rig_expect(fd, &b, "body");
	rig_drop_dates(&b);
	assert_string_equal(
	    b.p, "HTTP/1.1 200 OK\r\nX-One: 1\r\nX-Two: 2\r\nContent-Length: 4\r\n\r\nbody");
	close(fd);
	strbuf_done(&b);
}

TEST(raw_replies)
{
	struct strbuf b;
	int fd;

	rig_start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/hold") GET("/hold") GET("/hold") GET("/hold"));
	rig_wait_log("end");
	assert_false(http_req_will_close(rig.held));
	http_reply_interim(rig.held, STRV("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"));
	http_reply_raw(rig.held, 200, STRV("HTTP/1.1 200 A\r\nTransfer-Encoding: chunked\r\n\r\n"),
	    STRV("abc"), -1, true);
	http_reply_write(rig.held, "de", 2);
	http_reply_interim(rig.held, STRV("too late"));
	http_reply_end(rig.held);
	strbuf_reset(&rig.log);
	rig_wait_log("end");
	http_reply_raw(rig.held, 200, STRV("HTTP/1.1 200 B\r\nContent-Length: 3\r\n\r\n"),
	    STRV("ab"), 3, true);
	http_reply_write(rig.held, "cd", 2);
	assert_int_equal(rig.held->bytes_out, 3);
	http_reply_end(rig.held);
	strbuf_reset(&rig.log);
	rig_wait_log("end");
	http_reply_raw(rig.held, 200, STRV("HTTP/1.1 200 C\r\nContent-Length: 2\r\n\r\n"),
	    STRV("ab"), -2, true);
	http_reply_end(rig.held);
	strbuf_reset(&rig.log);
	rig_wait_log("end");
	http_reply_raw(rig.held, 200, STRV("HTTP/1.1 200 D\r\n\r\n"), STRV("until"), -2, false);
	http_reply_write(rig.held, " close", 6);
	http_reply_end(rig.held);
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	assert_string_equal(b.p,
	    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
	    "HTTP/1.1 200 A\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
	    "HTTP/1.1 200 B\r\nContent-Length: 3\r\n\r\nabc"
	    "HTTP/1.1 200 C\r\nContent-Length: 2\r\n\r\nab"
	    "HTTP/1.1 200 D\r\n\r\nuntil close");
	close(fd);
	strbuf_done(&b);
}

static void
keep_it(struct http_req *r, const struct http_head *h, void *arg UNUSED)
{
	const struct http_head *kept = http_req_keep_head(r, h);

	assert_ptr_equal(kept, r->kept);
	assert_ptr_equal(kept, http_req_keep_head(r, h)); /* once */
	rig.held = r;
}

TEST(kept_head_outlives_its_bytes)
{
	const struct http_head *h;
	int fd;

	rig.conf.on_done = NULL;
	rig_start();
	http_server_free(rig.s);
	rig.conf.on_request = keep_it;
	rig.conf.on_done = NULL;
	struct err e;
	assert_ok(e, http_server_new(rig.l, &rig.conf, &rig.s, &e));
	assert_ok(e, http_server_listen(rig.s, "127.0.0.1:0", NULL, &rig.port, &e));
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "GET http://h/p?q=1 HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n");
	turn_until(rig.l, rig.held);
	net_send_text(rig.l, fd, "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX");
	net_turns(rig.l, 10);
	h = rig.held->kept;
	assert_strv(h->target, "http://h/p?q=1");
	assert_strv(h->path, "/p");
	assert_strv(h->query, "q=1");
	assert_strv(h->host, "h");
	assert_strv(*http_head_get(h, "a"), "b");
	assert_int_equal(h->n, 2);
	rig_reply(rig.held, 200, "x");
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		R(keep_alive_and_pipelining),
		R(versions_and_closing),
		R(replies_without_body),
		R(streams),
		R(cut_replies_do_not_look_complete),
		R(echo),
		R(byte_by_byte),
		R(many_pipelined),
		R(held_request_with_a_next_one_behind),
		R(half_close_gets_its_answers),
		R(client_gone),
		R(expect_continue),
		R(early_answer_short_rest),
		R(early_answer_long_rest),
		R(bad_requests),
		R(collecting),
		R(replies_to_every_field),
		R(raw_replies),
		R(kept_head_outlives_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
