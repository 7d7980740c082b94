/* Heads as they are forwarded. What is written must parse back to what was meant. */
#include "t.h"

#include "apiserver/gw_headers.h"

static const struct http_head *
parse(const char *text, bool response, bool head_request)
{
	static struct http1 *p;
	struct strv in = strv_of(text), body;

	http1_free(p);
	p = http1_new(response);
	http1_expect(p, head_request);
	assert_int_equal(http1_next(p, &in, &body), HTTP1_HEAD);
	return http1_head(p);
}

static void
request_is(const char *in, struct gw_request_opts opts, const char *want)
{
	const struct http_head *h = parse(in, false, false);
	struct gw_buf b = { .p = NULL };

	if (opts.path.p == NULL)
		opts.path = h->path;
	if (opts.host.p == NULL)
		opts.host = h->host;
	gw_put_request(&b, h, &opts);
	assert_strv(((struct strv){ b.p, b.n }), want);
	gw_buf_done(&b);
}

TEST(request_plain)
{
	request_is("GET /a HTTP/1.1\r\nUser-Agent: x\r\nHost: h:1\r\nX-Empty:\r\n\r\n",
	    (struct gw_request_opts){ .tail = STRV("?b=c") },
	    "GET /a?b=c HTTP/1.1\r\nHost: h:1\r\nUser-Agent: x\r\nX-Empty: \r\n\r\n");
	request_is("PROPFIND / HTTP/1.0\r\nHost: h\r\n\r\n",
	    (struct gw_request_opts){ .path = STRV("/") },
	    "PROPFIND / HTTP/1.1\r\nHost: h\r\n\r\n");
}

TEST(request_hop_by_hop)
{
	request_is("GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: 5\r\n"
	           "X-Hop: 1\r\nTE: trailers\r\nTrailer: X\r\nProxy-Authorization: p\r\n"
	           "Proxy-Connection: k\r\nX-End: kept\r\n\r\n",
	    (struct gw_request_opts){ .path = STRV("/") },
	    "GET / HTTP/1.1\r\nHost: h\r\nX-End: kept\r\n\r\n");
}

TEST(request_claims_and_tokens)
{
	request_is("GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1\r\nx-forwarded-host: evil\r\n"
	           "X-Forwarded-Proto: https\r\nForwarded: for=1\r\nX-Forward: stays\r\n"
	           "E2B-Traffic-Access-Token: t\r\nX-Access-Token: goes\r\n"
	           "E2b-Sandbox-Id: goes\r\n\r\n",
	    (struct gw_request_opts){ .path = STRV("/") },
	    "GET / HTTP/1.1\r\nHost: h\r\nX-Forward: stays\r\nX-Access-Token: goes\r\n"
	    "E2b-Sandbox-Id: goes\r\n\r\n");
}

TEST(request_host)
{
	request_is("GET / HTTP/1.1\r\nHost: real\r\n\r\n",
	    (struct gw_request_opts){
	        .host = STRV("localhost:8080"), .forwarded_host = STRV("real") },
	    "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-Forwarded-Host: real\r\n\r\n");
	request_is("GET /p/x HTTP/1.1\r\nHost: h\r\n\r\n",
	    (struct gw_request_opts){ .path = STRV("/x"), .prefix = STRV("/p") },
	    "GET /x HTTP/1.1\r\nHost: h\r\nX-Forwarded-Prefix: /p\r\n\r\n");
}

TEST(request_framing)
{
	request_is(
	    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
	    (struct gw_request_opts){ .path = STRV("/") },
	    "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	request_is("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
	    (struct gw_request_opts){ .path = STRV("/") },
	    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
	request_is("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n",
	    (struct gw_request_opts){ .path = STRV("/") },
	    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(request_upgrade)
{
	static const char in[] =
	    "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\n"
	    "Upgrade: websocket\r\nOrigin: o\r\nSec-WebSocket-Key: k\r\n\r\n";

	request_is(in, (struct gw_request_opts){ .upgrade = true },
	    "GET /ws HTTP/1.1\r\nHost: h\r\nOrigin: o\r\nSec-WebSocket-Key: k\r\n"
	    "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	request_is(in, (struct gw_request_opts){ .upgrade = false },
	    "GET /ws HTTP/1.1\r\nHost: h\r\nOrigin: o\r\nSec-WebSocket-Key: k\r\n\r\n");
}

TEST(request_port_parameter)
{
	static const char in[] = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
	struct gw_request_opts opts = { .drop_port_param = true };

	opts.tail = STRV("?a=1&port=3000&b=2&&port=4&xport=5&p%6Frt=6");
	request_is(in, opts, "GET /x?a=1&b=2&xport=5 HTTP/1.1\r\nHost: h\r\n\r\n");
	opts.tail = STRV("?port=3000");
	request_is(in, opts, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
}

/* Many fields of the largest size still fit what is reserved. */
TEST(request_large)
{
	struct strbuf in;
	struct gw_buf out = { .p = NULL };
	const struct http_head *h;
	char *again;
	struct gw_request_opts opts = { .host = STRV("h"), .upgrade = true };

	strbuf_init(&in, HTTP1_HEAD_MAX);
	strbuf_adds(&in, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: ");
	for (int i = 0; i < 8000; i++)
		strbuf_addc(&in, 'u');
	strbuf_adds(&in, "\r\n");
	for (int i = 0; i < 100; i++)
		strbuf_addf(&in, "X-Name-%d: %0500d\r\n", i, i);
	strbuf_adds(&in, "\r\n");
	h = parse(in.p, false, false);
	opts.path = h->path;
	gw_put_request(&out, h, &opts);
	assert_true(out.n <= out.cap && out.n > 58000);
	again = xmemdup0(out.p, out.n);
	assert_strv(parse(again, false, false)->path, "/x");
	xfree(again);
	gw_buf_done(&out);
	strbuf_done(&in);
}

static void
response_is(const char *in, struct gw_response_opts opts, const char *want)
{
	const struct http_head *h = parse(in, true, opts.head_request);
	struct gw_buf b = { .p = NULL };

	opts.framing = gw_response_framing(h, opts.minor);
	gw_put_response(&b, h, &opts);
	assert_strv(((struct strv){ b.p, b.n }), want);
	gw_buf_done(&b);
}

TEST(response_framing)
{
	static const struct gw_response_opts keep11 = { .minor = 1, .keep = true };
	static const struct gw_response_opts keep10 = { .minor = 0, .keep = true };
	static const struct gw_response_opts close10 = { .minor = 0, .keep = false };

	response_is("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\n", keep11,
	    "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\n");
	response_is("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", keep11,
	    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	response_is("HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n", keep11,
	    "HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n");
	response_is("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", keep11,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	response_is("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", close10,
	    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	response_is("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", keep10,
	    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n");
	response_is("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", keep11,
	    "HTTP/1.1 204 No Content\r\n\r\n");
	response_is("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", keep11,
	    "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n");
	response_is("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
	    (struct gw_response_opts){ .minor = 1, .keep = true, .head_request = true },
	    "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
	response_is("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	    (struct gw_response_opts){ .minor = 1, .keep = true, .head_request = true },
	    "HTTP/1.1 200 OK\r\n\r\n");
}

TEST(response_fields)
{
	response_is("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nKeep-Alive: timeout=5\r\n"
	            "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nProxy-Authenticate: x\r\n"
	            "Location: http://localhost/\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
	    (struct gw_response_opts){ .minor = 1, .keep = false },
	    "HTTP/1.1 200 OK\r\nLocation: http://localhost/\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
	    "Content-Length: 1\r\nConnection: close\r\n\r\n");
}

TEST(response_date)
{
	struct gw_response_opts opts = { .minor = 1, .keep = true, .date = "now" };

	response_is("HTTP/1.1 204 x\r\n\r\n", opts, "HTTP/1.1 204 x\r\nDate: now\r\n\r\n");
	response_is(
	    "HTTP/1.1 204 x\r\ndate: then\r\n\r\n", opts, "HTTP/1.1 204 x\r\ndate: then\r\n\r\n");
	response_is("HTTP/1.1 103 Early Hints\r\nLink: l\r\n\r\n", opts,
	    "HTTP/1.1 103 Early Hints\r\nLink: l\r\n\r\n");
}

TEST(response_upgrade)
{
	response_is("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	            "Connection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\n",
	    (struct gw_response_opts){ .minor = 1, .keep = true },
	    "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\n"
	    "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

TEST(chunk_lines)
{
	char line[GW_CHUNK_LINE_MAX];
	static const struct {
		size_t n;
		const char *want;
	} cases[] = { { 1, "1\r\n" }, { 15, "f\r\n" }, { 16, "10\r\n" }, { 65536, "10000\r\n" },
		{ SIZE_MAX, "ffffffffffffffff\r\n" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = gw_chunk_line(line, cases[i].n);

		assert_strv(((struct strv){ line, n }), cases[i].want);
	}
}

T_MAIN(T(request_plain), T(request_hop_by_hop), T(request_claims_and_tokens), T(request_host),
    T(request_framing), T(request_upgrade), T(request_port_parameter), T(request_large),
    T(response_framing), T(response_fields), T(response_date), T(response_upgrade), T(chunk_lines))
