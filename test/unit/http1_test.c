/*
 * The parser: every case is fed in one piece, byte by byte, and cut at every place, and must give
 * the same events each time.
 */
#include "t.h"

#include "http/http1.h"

static struct strbuf trace_buf;

static void
trace_head(struct strbuf *b, const struct http_head *h, bool response)
{
	if (response)
		strbuf_addf(b, "%d '" STRV_FMT "'", h->status, STRV_ARG(h->reason));
	else
		strbuf_addf(b, STRV_FMT " " STRV_FMT " ?" STRV_FMT " @" STRV_FMT,
		    STRV_ARG(h->method_text), STRV_ARG(h->path), STRV_ARG(h->query),
		    STRV_ARG(h->host));
	strbuf_addf(b, " 1.%d%s%s%s%s%s", h->minor, h->keep_alive ? " keep" : "",
	    h->chunked ? " chunked" : "", h->upgrade ? " upgrade" : "",
	    h->expect_continue ? " expect" : "", h->has_body ? " body" : "");
	if (h->length >= 0)
		strbuf_addf(b, " length=%lld", (long long)h->length);
	for (unsigned i = 0; i < h->n; i++) {
		if (strv_caseis(h->field[i].name, "host") ||
		    strv_caseis(h->field[i].name, "content-length"))
			continue;
		strbuf_addf(b, " [" STRV_FMT "=" STRV_FMT "]", STRV_ARG(h->field[i].name),
		    STRV_ARG(h->field[i].value));
	}
}

/* Feeds one piece; false after an error or an upgrade. */
static bool
trace_feed(struct http1 *p, bool response, struct strv in, struct strbuf *b, bool *in_body)
{
	struct strv piece;

	for (;;) {
		enum http1_event ev = http1_next(p, &in, &piece);

		if (ev == HTTP1_BODY) {
			strbuf_adds(b, *in_body ? "" : "BODY ");
			strbuf_addv(b, piece);
			*in_body = true;
			continue;
		}
		if (ev == HTTP1_MORE) {
			assert_int_equal(in.n, 0);
			return true;
		}
		strbuf_adds(b, *in_body ? "|" : "");
		*in_body = false;
		if (ev == HTTP1_HEAD) {
			trace_head(b, http1_head(p), response);
			strbuf_addc(b, '|');
		} else if (ev == HTTP1_DONE) {
			strbuf_adds(b, "DONE|");
		} else if (ev == HTTP1_UPGRADE) {
			strbuf_adds(b, "UPGRADE ");
			strbuf_addv(b, in);
			return false;
		} else {
			assert_int_equal(ev, HTTP1_ERROR);
			strbuf_addf(b, "ERROR %d", http1_error_status(p));
			assert_true(http1_error_text(p)[0] != '\0');
			assert_int_equal(http1_next(p, &in, &piece), HTTP1_ERROR);
			return false;
		}
	}
}

enum { REQUEST = 0, RESPONSE = 1, HEAD_RESPONSE = 3 };

/* cut > 0: a first piece of that size, then the rest; step > 0: pieces of that size. Every piece is
 * a heap copy that dies after it was fed, so a slice into it that lives too long is seen. */
static const char *
trace(int kind, struct strv in, size_t cut, size_t step)
{
	struct http1 *p = http1_new(kind & RESPONSE);
	bool in_body = false, more = true;
	size_t at = 0;
	int end;

	strbuf_done(&trace_buf);
	strbuf_init(&trace_buf, 1024 * 1024);
	strbuf_adds(&trace_buf, "");
	http1_expect(p, kind == HEAD_RESPONSE);
	while (more && at < in.n) {
		size_t n = cut > 0 && at == 0 ? cut : step > 0 ? step : in.n - at;
		char *copy;

		n = n < in.n - at ? n : in.n - at;
		copy = xmalloc(n);
		memcpy(copy, in.p + at, n);
		more =
		    trace_feed(p, kind & RESPONSE, (struct strv){ copy, n }, &trace_buf, &in_body);
		xfree(copy);
		at += n;
		/* What was not fed yet belongs to the tunnel, too. */
		if (!more && strstr(trace_buf.p, "UPGRADE"))
			strbuf_add(&trace_buf, in.p + at, in.n - at);
	}
	if (more) {
		bool idle = http1_idle(p);

		end = http1_finish(p);
		if (end == 0 && !idle) {
			struct strv none = STRV_NONE, piece;

			strbuf_adds(&trace_buf, in_body ? "|" : "");
			assert_int_equal(http1_next(p, &none, &piece), HTTP1_DONE);
			strbuf_adds(&trace_buf, "EOF DONE");
		} else {
			strbuf_adds(&trace_buf, in_body ? "|" : "");
			strbuf_adds(&trace_buf, idle ? "idle" : "CUT");
		}
	}
	http1_free(p);
	return trace_buf.p;
}

static void
check_n(int kind, struct strv in, const char *want, size_t cuts)
{
	assert_string_equal(trace(kind, in, 0, 0), want);
	assert_string_equal(trace(kind, in, 0, 1), want);
	assert_string_equal(trace(kind, in, 0, 7), want);
	for (size_t i = 1; i < in.n && i < cuts; i++)
		assert_string_equal(trace(kind, in, i, 0), want);
}

static void
check(int kind, const char *in, const char *want)
{
	check_n(kind, strv_of(in), want, SIZE_MAX);
}

/* A request with these lines behind a good request line and Host. */
static void
check_fields(const char *lines, const char *want)
{
	char in[2048];

	snprintf(in, sizeof(in), "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines);
	check(REQUEST, in, want);
}

#define NO_BODY "GET / ? @a 1.1 keep"

TEST(requests)
{
	check(REQUEST, "GET /a/b?c=d&e HTTP/1.1\r\nHost: x.y:80\r\nA: b\r\n\r\n",
	    "GET /a/b ?c=d&e @x.y:80 1.1 keep [A=b]|DONE|idle");
	check(REQUEST, "\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / ? @ 1.1 keep|DONE|idle");
	check(REQUEST, "GET / HTTP/1.0\r\n\r\n", "GET / ? @ 1.0|DONE|idle");
	check(REQUEST, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	    "GET / ? @ 1.0 keep [Connection=keep-alive]|DONE|idle");
	check(REQUEST, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	    "GET / ? @a 1.1 [Connection=close]|DONE|idle");
	check(REQUEST, "GET http://h:1/p?q HTTP/1.1\r\nHost: other\r\n\r\n",
	    "GET /p ?q @h:1 1.1 keep|DONE|idle");
	check(REQUEST, "GET https://h?q HTTP/1.1\r\nHost: other\r\n\r\n",
	    "GET / ?q @h 1.1 keep|DONE|idle");
	check(
	    REQUEST, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * ? @a 1.1 keep|DONE|idle");
	check(REQUEST, "PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n",
	    "PROPFIND / ? @a 1.1 keep|DONE|idle");
	check(REQUEST, "GET /\xc3\xbc HTTP/1.1\r\nHost: a\r\nX: \xc3\xbc\r\n\r\n",
	    "GET /\xc3\xbc ? @a 1.1 keep [X=\xc3\xbc]|DONE|idle");
	check(REQUEST, "GET / HTTP/1.1\r\nHost: a\r\nX: \t v  w \t \r\nE:\r\nF:  \r\n\r\n",
	    NO_BODY " [X=v  w] [E=] [F=]|DONE|idle");
	check(REQUEST, "GET / HTTP/1.1\r\nHost: a", "CUT");
	check(REQUEST, "", "idle");
	check(REQUEST, "\r\n", "idle");
}

TEST(bodies)
{
	check(REQUEST, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
	    "POST / ? @a 1.1 keep body length=5|BODY hello|DONE|idle");
	check(REQUEST, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	    "POST / ? @a 1.1 keep length=0|DONE|idle");
	check(REQUEST, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel",
	    "POST / ? @a 1.1 keep body length=5|BODY hel|CUT");
	check(REQUEST,
	    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
	    "3\r\nabc\r\n0A;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: dropped\r\n\r\n",
	    "POST / ? @a 1.1 keep chunked body [Transfer-Encoding=Chunked]|BODY abc0123456789|DONE|"
	    "idle");
	check(REQUEST, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
	    "POST / ? @a 1.1 keep chunked body [Transfer-Encoding=chunked]|BODY ab|CUT");
	check(REQUEST,
	    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
	    "POST / ? @a 1.1 keep expect body length=1 [Expect=100-Continue]|BODY x|DONE|idle");
}

TEST(pipelining)
{
	check(REQUEST,
	    "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: b\r\nContent-Length: "
	    "2\r\n\r\n"
	    "hi\r\nPOST /3 HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: "
	    "chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
	    "GET /4 HTTP/1.1\r\nHost: d\r\n\r\n",
	    "GET /1 ? @a 1.1 keep|DONE|POST /2 ? @b 1.1 keep body length=2|BODY hi|DONE|"
	    "POST /3 ? @c 1.1 keep chunked body [Transfer-Encoding=chunked]|BODY x|DONE|"
	    "GET /4 ? @d 1.1 keep|DONE|idle");
	/* Our server decides what Connection: close means for what follows. */
	check(REQUEST,
	    "GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: "
	    "a\r\n\r\n",
	    "GET /1 ? @a 1.1 [Connection=close]|DONE|GET /2 ? @a 1.1 keep|DONE|idle");
}

TEST(upgrades)
{
	check(REQUEST,
	    "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: "
	    "websocket\r\n\r\n"
	    "\x81\x05raw",
	    NO_BODY
	    " upgrade [Connection=keep-alive, Upgrade] [Upgrade=websocket]|UPGRADE \x81\x05raw");
	check(REQUEST,
	    "POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: "
	    "2\r\n\r\nhirest",
	    "POST / ? @a 1.1 keep upgrade body length=2 [Connection=upgrade] [Upgrade=h2c]|BODY hi|"
	    "UPGRADE rest");
	check(REQUEST, "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\nraw",
	    "CONNECT  ? @h:443 1.1 keep|UPGRADE raw");
	check(REQUEST, "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
	    "GET / ? @ 1.0 [Connection=upgrade] [Upgrade=x]|DONE|idle");
	check(RESPONSE, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw",
	    "101 'Go' 1.1 keep upgrade [Connection=Upgrade] [Upgrade=x]|UPGRADE raw");
	check_fields("Upgrade: h2c\r\n", NO_BODY " [Upgrade=h2c]|DONE|idle");
}

/* What must never be understood in two ways: RFC 9112, and the cases that other parsers let pass.
 */
TEST(smuggling)
{
#define REFUSED "ERROR 400"
	check_fields("Transfer-Encoding : chunked\r\nContent-Length: 3\r\n", REFUSED);
	check_fields("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", REFUSED);
	check_fields("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", REFUSED);
	check_fields("Content-Length: +3\r\n", REFUSED);
	check_fields("Content-Length: -3\r\n", REFUSED);
	check_fields("Content-Length: 0x3\r\n", REFUSED);
	check_fields("Content-Length: 3, 3\r\n", REFUSED);
	check_fields("Content-Length: 3 3\r\n", REFUSED);
	check_fields("Content-Length:\r\n", REFUSED);
	check_fields("Content-Length: 3\r\nContent-Length: 3\r\n", REFUSED);
	check_fields("Content-Length: 3\r\nContent-Length: 4\r\n", REFUSED);
	check_fields("Content-Length: 99999999999999999999999\r\n", REFUSED);
	check_fields("Content-Length: 9223372036854775808\r\n", REFUSED);
	check_fields("Transfer-Encoding: chunked, identity\r\n", REFUSED);
	check_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", REFUSED);
	check_fields("Transfer-Encoding: xchunked\r\n", "ERROR 501");
	check_fields("Transfer-Encoding: gzip, chunked\r\n", "ERROR 501");
	check_fields("Transfer-Encoding: identity\r\n", "ERROR 501");
	check_fields("Transfer-Encoding: \"chunked\"\r\n", "ERROR 501");
	check_fields("Host: b\r\n", REFUSED);
	check_fields(" Leading: blank\r\n", REFUSED);
	check_fields("Folded: a\r\n b\r\n", REFUSED);
	check_fields("Folded: a\r\n\tb\r\n", REFUSED);
	check_fields("Folded:\r\n b\r\n", REFUSED);
	check_fields("Na me: b\r\n", REFUSED);
	check_fields(": b\r\n", REFUSED);
	check_fields("N(): b\r\n", REFUSED);
	check_fields("N\xc3\xbc: b\r\n", REFUSED);
	check_fields(
	    "!#$%&'*+-.^_`|~09azAZ: b\r\n", NO_BODY " [!#$%&'*+-.^_`|~09azAZ=b]|DONE|idle");
	check_fields("NoColon\r\n", REFUSED);
	check_fields("A: b\rc\r\n", REFUSED);
	check_fields("A:\rB: c\r\n", REFUSED); /* CVE-2023-30589 */
	check_fields("A:\r\rB: c\r\n", REFUSED);
	check_fields("A: b\nC: d\r\n", REFUSED);
	check_fields("A: \x01\r\n", REFUSED);
	check_fields("A: \x7f\r\n", REFUSED);
	check_n(REQUEST, STRV("GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n"), REFUSED, SIZE_MAX);
	check_n(REQUEST, STRV("GET / HTTP/1.1\r\nHost: a\r\nA\0: b\r\n\r\n"), REFUSED, SIZE_MAX);
	check(REQUEST, "GET / HTTP/1.1\nHost: a\n\n", REFUSED);
	check(REQUEST, "GET / HTTP/1.1\r\nHost: a\r\n\n", REFUSED);
	check(REQUEST, "GET / HTTP/1.1\r\n\r\n", REFUSED);
	check(REQUEST, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", REFUSED);
}

TEST(chunk_lines)
{
#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
#define CHUNKED_HEAD "POST / ? @a 1.1 keep chunked body [Transfer-Encoding=chunked]|"
	check(REQUEST, CHUNKED "0x3\r\nabc\r\n0\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "+3\r\nabc\r\n0\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "\r\nabc\r\n0\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "3\nabc\r\n0\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "3;x\nabc\r\n0\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "3\r\nabcd\r\n0\r\n\r\n", CHUNKED_HEAD "BODY abc|" REFUSED);
	check(REQUEST, CHUNKED "3\r\nabc\n0\r\n\r\n", CHUNKED_HEAD "BODY abc|" REFUSED);
	check(REQUEST, CHUNKED "10000000000000000\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\n\nGET", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\n\rGET", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\nA: b\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\nA: b\r\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\nA: b\r\n c\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\nA\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\nA : b\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\nA: \x01\r\n\r\n", CHUNKED_HEAD REFUSED);
	check(REQUEST, CHUNKED "0\r\nA:\r\nB:b\r\n\r\n", CHUNKED_HEAD "DONE|idle");
	check(REQUEST, CHUNKED "000\r\n\r\n", CHUNKED_HEAD "DONE|idle");
}

TEST(request_lines)
{
	check(REQUEST, "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET /\t HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET /#f HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET a HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET *a HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET http://u@h/ HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "get / HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED);
	check(REQUEST, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", REFUSED);
	check(REQUEST, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", REFUSED);
	check(REQUEST, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", REFUSED);
	check(REQUEST, "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "ERROR 505");
	check(REQUEST, "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "ERROR 505");
	check(REQUEST, "GET / HTTP/0.9\r\n\r\n", "ERROR 505");
	check(REQUEST, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "ERROR 505");
	check(REQUEST, "GET /\r\n\r\n", "ERROR 505");
	check(REQUEST, "\x16\x03\x01\x02", REFUSED); /* TLS */
	check(REQUEST, "SOURCE / ICE/1.0\r\n\r\n", REFUSED);
	check(REQUEST, "DESCRIBE / RTSP/1.0\r\n\r\n", REFUSED);
}

TEST(responses)
{
	check(RESPONSE, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
	    "200 'OK' 1.1 keep body length=2|BODY hi|DONE|idle");
	check(RESPONSE, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
	    "204 'No Content' 1.1 [Connection=close]|DONE|idle");
	check(RESPONSE, "HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n",
	    "304 'Not' 1.1 keep length=9|DONE|idle");
	check(RESPONSE, "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
	    "200 '' 1.1 keep length=0|DONE|idle");
	check(RESPONSE, "HTTP/1.1 200 OK\r\n\r\nuntil the end",
	    "200 'OK' 1.1 body|BODY until the end|EOF DONE");
	check(RESPONSE, "HTTP/1.0 200 OK\r\n\r\n", "200 'OK' 1.0 body|EOF DONE");
	check(RESPONSE, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi",
	    "200 'OK' 1.1 keep body length=3|BODY hi|CUT");
	check(RESPONSE,
	    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
	    "100 'Continue' 1.1 keep|103 'Hints' 1.1 keep [Link=x]|"
	    "200 'OK' 1.1 keep chunked body [Transfer-Encoding=chunked]|BODY a|DONE|idle");
	check(RESPONSE, "HTTP/1.1 100 Continue\r\n\r\n", "100 'Continue' 1.1 keep|CUT");
	check(HEAD_RESPONSE,
	    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
	    "100 'Continue' 1.1 keep|200 'OK' 1.1 keep length=9|DONE|idle");
	check(HEAD_RESPONSE, "HTTP/1.1 200 OK\r\n\r\n", "200 'OK' 1.1 keep|DONE|idle");
	check(HEAD_RESPONSE, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	    "200 'OK' 1.1 keep chunked [Transfer-Encoding=chunked]|DONE|idle");
}

TEST(bad_responses)
{
	check(RESPONSE,
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", REFUSED);
	check(
	    RESPONSE, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n", REFUSED);
	check(RESPONSE, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", REFUSED);
	check(RESPONSE, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "ERROR 501");
	check(RESPONSE, "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", REFUSED);
	check(RESPONSE, "HTTP/1.1 200 OK\nA: b\n\n", REFUSED);
	check(RESPONSE, "HTTP/1.1 099 X\r\n\r\n", REFUSED);
	check(RESPONSE, "HTTP/1.1 999 X\r\n\r\n", REFUSED);
	check(RESPONSE, "HTTP/2.0 200 OK\r\n\r\n", "ERROR 505");
	check(RESPONSE, "ICY 200 OK\r\n\r\n", REFUSED);
}

/* --- limits --- */

static struct strv
filled(struct strbuf *b, const char *start, char c, size_t n, const char *end)
{
	strbuf_init(b, 1024 * 1024);
	strbuf_adds(b, start);
	for (size_t i = 0; i < n; i++)
		strbuf_addc(b, c);
	strbuf_adds(b, end);
	return strbuf_view(b);
}

static void
check_limit(const char *start, size_t n, const char *end, const char *want)
{
	struct strbuf b;
	struct strv in = filled(&b, start, 'a', n, end);

	assert_has(trace(REQUEST, in, 0, 0), want);
	assert_has(trace(REQUEST, in, 0, 997), want);
	assert_has(trace(REQUEST, in, 5, 0), want);
	strbuf_done(&b);
}

TEST(limits)
{
	const char *end = " HTTP/1.1\r\nHost: a\r\n\r\n";

	check_limit("GET /", HTTP1_TARGET_MAX - 1, end, "DONE");
	check_limit("GET /", HTTP1_TARGET_MAX, end, "ERROR 414");
	check_limit("GET /", HTTP1_TARGET_MAX + 1, "", "ERROR 414");
	check_limit("GET / HTTP/1.1\r\nHost: a\r\n", HTTP1_NAME_MAX, ": b\r\n\r\n", "DONE");
	check_limit(
	    "GET / HTTP/1.1\r\nHost: a\r\n", HTTP1_NAME_MAX + 1, ": b\r\n\r\n", "ERROR 431");
	check_limit("GET / HTTP/1.1\r\nHost: a\r\nA: ", HTTP1_HEAD_MAX - 32, "\r\n\r\n", "DONE");
	check_limit(
	    "GET / HTTP/1.1\r\nHost: a\r\nA: ", HTTP1_HEAD_MAX - 31, "\r\n\r\n", "ERROR 431");
	check_limit("GET / HTTP/1.1\r\nHost: a\r\nA: ", HTTP1_HEAD_MAX, "", "ERROR 431");
	check_limit(CHUNKED "1;", 16 * 1024 - 10, "\r\nx\r\n0\r\n\r\n", "BODY x|DONE");
	check_limit(CHUNKED "1;", 16 * 1024, "\r\nx\r\n0\r\n\r\n", "chunked]|ERROR 431");
	check_limit(CHUNKED "1\r\nx\r\n0\r\nT: ", 16 * 1024, "\r\n\r\n", "BODY x|ERROR 431");
}

TEST(field_count)
{
	struct strbuf b;

	for (int n = HTTP1_FIELDS_MAX - 1; n <= HTTP1_FIELDS_MAX; n++) {
		strbuf_init(&b, 1024 * 1024);
		strbuf_adds(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
		for (int i = 0; i < n; i++)
			strbuf_addf(&b, "F%d: %d\r\n", i, i);
		strbuf_adds(&b, "\r\n");
		if (n == HTTP1_FIELDS_MAX - 1) {
			assert_has(trace(REQUEST, strbuf_view(&b), 0, 0), "[F126=126]|DONE");
			assert_has(trace(REQUEST, strbuf_view(&b), 0, 11), "[F126=126]|DONE");
		} else {
			assert_string_equal(trace(REQUEST, strbuf_view(&b), 0, 0), "ERROR 431");
			assert_string_equal(trace(REQUEST, strbuf_view(&b), 0, 11), "ERROR 431");
		}
		strbuf_done(&b);
	}
}

/* Two parsers in the middle of their heads share the process's table. */
TEST(two_parsers)
{
	struct http1 *a = http1_new(false), *b = http1_new(true);
	struct strv in, piece;

	in = STRV("GET /a HTTP/1.1\r\nHost: a\r\nOne: 1\r\nTw");
	assert_int_equal(http1_next(a, &in, &piece), HTTP1_MORE);
	in = STRV("HTTP/1.1 200 Fine\r\nX: 1\r\nY: ");
	assert_int_equal(http1_next(b, &in, &piece), HTTP1_MORE);
	assert_false(http1_idle(a));
	in = STRV("o: 2\r\n\r\n");
	assert_int_equal(http1_next(a, &in, &piece), HTTP1_HEAD);
	assert_strv(*http_head_get(http1_head(a), "ONE"), "1");
	assert_strv(*http_head_get(http1_head(a), "two"), "2");
	assert_null(http_head_get(http1_head(a), "x"));
	in = STRV("2\r\n\r\n");
	assert_int_equal(http1_next(b, &in, &piece), HTTP1_HEAD);
	assert_strv(*http_head_get(http1_head(b), "y"), "2");
	assert_int_equal(http1_head(b)->n, 2);
	http1_free(a);
	http1_free(b);
	http1_free(NULL);
}

TEST(tokens)
{
	struct http1 *p = http1_new(false);
	struct strv piece;
	struct strv in = STRV("GET / HTTP/1.1\r\nHost: a\r\nConnection: close , X-One\r\n"
	                      "connection: ,,x-two\r\n\r\n");
	const struct http_head *h;

	assert_int_equal(http1_next(p, &in, &piece), HTTP1_HEAD);
	h = http1_head(p);
	assert_true(h->connection_names);
	assert_true(http_head_has_token(h, "Connection", "Close"));
	assert_true(http_head_has_token(h, "Connection", "x-one"));
	assert_true(http_head_has_token(h, "Connection", "x-two"));
	assert_false(http_head_has_token(h, "Connection", "x"));
	assert_false(http_head_has_token(h, "Connection", ""));
	assert_false(http_head_has_token(h, "Upgrade", "x"));
	http1_free(p);
}

TEST(skipping_a_body)
{
	struct http1 *p = http1_new(true);
	struct strv in = STRV("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), piece;

	assert_int_equal(http1_next(p, &in, &piece), HTTP1_HEAD);
	assert_int_equal(http1_body_left(p), 10);
	assert_int_equal(http1_next(p, &in, &piece), HTTP1_BODY);
	assert_int_equal(http1_body_left(p), 7);
	http1_body_skip(p, 5);
	assert_int_equal(http1_body_left(p), 2);
	http1_body_skip(p, 2);
	assert_int_equal(http1_body_left(p), 0);
	assert_int_equal(http1_next(p, &in, &piece), HTTP1_DONE);
	assert_true(http1_idle(p));
	http1_free(p);
}

TEST(reset_after_a_declined_upgrade)
{
	struct http1 *p = http1_new(false);
	struct strv piece,
	    in = STRV("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c"
	              "\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");

	assert_int_equal(http1_next(p, &in, &piece), HTTP1_HEAD);
	assert_int_equal(http1_next(p, &in, &piece), HTTP1_UPGRADE);
	assert_int_equal(http1_next(p, &in, &piece), HTTP1_UPGRADE);
	http1_reset(p);
	assert_int_equal(http1_next(p, &in, &piece), HTTP1_HEAD);
	assert_strv(http1_head(p)->path, "/2");
	assert_int_equal(http1_next(p, &in, &piece), HTTP1_DONE);
	http1_free(p);
}

static int
done(void **state UNUSED)
{
	strbuf_done(&trace_buf);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(requests),
		T(bodies),
		T(pipelining),
		T(upgrades),
		T(smuggling),
		T(chunk_lines),
		T(request_lines),
		T(responses),
		T(bad_responses),
		T(limits),
		T(field_count),
		T(two_parsers),
		T(tokens),
		T(skipping_a_body),
		T(reset_after_a_declined_upgrade),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
