#include "t.h"

#include "base/clock.h"
#include "http/http_msg.h"

TEST(status_texts)
{
	assert_string_equal(http_status_text(200), "OK");
	assert_string_equal(http_status_text(404), "Not Found");
	assert_string_equal(http_status_text(511), "Network Authentication Required");
	assert_string_equal(http_status_text(299), "Unknown");
	assert_string_equal(http_method_name(HTTP_PATCH), "PATCH");
	assert_string_equal(http_method_name(HTTP_OTHER), "OTHER");
}

TEST(status_line_with_date)
{
	struct strbuf b;

	strbuf_init(&b, 1000);
	clock_fake_start(0, SECONDS(784111777));
	http_put_status_line(&b, 200);
	assert_strv(strbuf_view(&b), "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
	strbuf_reset(&b);
	clock_fake_advance(MILLIS(999));
	http_put_status_line(&b, 404);
	assert_strv(
	    strbuf_view(&b), "HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
	strbuf_reset(&b);
	clock_fake_advance(MILLIS(1));
	http_put_status_line(&b, 599);
	assert_strv(
	    strbuf_view(&b), "HTTP/1.1 599 Unknown\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
	clock_fake_end();
	strbuf_done(&b);
}

TEST(fields_cannot_break_out)
{
	struct strbuf b;

	strbuf_init(&b, 1000);
	http_put_field(&b, STRV("A"), STRV("b c"));
	http_put_field(&b, STRV("B"), STRV("x\r\nSet-Cookie: y"));
	http_put_field(&b, STRV("C"), STRV("x\ny"));
	http_put_field(&b, STRV("D"), STRV("x\0y"));
	http_put_field(&b, STRV("E\r\nX"), STRV("y"));
	http_put_field(&b, STRV(""), STRV("y"));
	http_put_field(&b, STRV("F"), STRV(""));
	assert_strv(strbuf_view(&b), "A: b c\r\nF: \r\n");
	strbuf_done(&b);
}

TEST(hop_by_hop)
{
	const char *hop[] = { "connection", "Keep-Alive", "PROXY-CONNECTION", "te", "Trailer",
		"Transfer-Encoding", "upgrade", "X-Named", "other" };
	const char *end[] = { "Host", "X-Name", "Authorization", "tex", "a" };
	struct http1 *p = http1_new(false);
	struct strv piece,
	    in = STRV("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x-named, \"a\r\n"
	              "Connection: Other\r\n\r\n");
	struct strv plain = STRV("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\n\r\n");

	assert_int_equal(http1_next(p, &in, &piece), HTTP1_HEAD);
	for (size_t i = 0; i < ARRAY_LEN(hop); i++)
		assert_true(http_is_hop_by_hop(http1_head(p), strv_of(hop[i])));
	for (size_t i = 0; i < ARRAY_LEN(end); i++)
		assert_false(http_is_hop_by_hop(http1_head(p), strv_of(end[i])));
	http1_reset(p);
	assert_int_equal(http1_next(p, &plain, &piece), HTTP1_HEAD);
	assert_false(http1_head(p)->connection_names);
	assert_false(http_is_hop_by_hop(http1_head(p), STRV("close")));
	assert_true(http_is_hop_by_hop(http1_head(p), STRV("Upgrade")));
	http1_free(p);
}

static void
check_path(const char *in, const char *want)
{
	struct strbuf b;
	int r;

	strbuf_init(&b, 1000);
	strbuf_adds(&b, "before");
	r = http_clean_path(strv_of(in), &b);
	if (want == NULL) {
		assert_int_equal(r, -1);
	} else {
		assert_int_equal(r, 0);
		assert_int_equal(strncmp(b.p, "before", 6), 0);
		assert_string_equal(b.p + 6, want);
		assert_int_equal(b.n, strlen(want) + 6);
	}
	strbuf_done(&b);
}

TEST(clean_paths)
{
	check_path("", "/");
	check_path("/", "/");
	check_path("a", "/a");
	check_path("/a/b", "/a/b");
	check_path("/a/b/", "/a/b");
	check_path("//a///b//", "/a/b");
	check_path("/a/./b/.", "/a/b");
	check_path("/a/../b", "/b");
	check_path("/../../a", "/a");
	check_path("/a/b/../../..", "/");
	check_path("/a/..", "/");
	check_path("/.../..a/a..", "/.../..a/a..");
	check_path("/%61%2Fb", "/a/b");
	check_path("/a/%2e%2E/b", "/b");
	check_path("/a%2f..%2f..%2fb", "/b");
	check_path("/a b+c", "/a b+c");
	check_path("/%C3%BC", "/\xc3\xbc");
	check_path("/%", NULL);
	check_path("/%g0", NULL);
	check_path("/a%00", NULL);
}

T_MAIN(T(status_texts), T(status_line_with_date), T(fields_cannot_break_out), T(hop_by_hop),
    T(clean_paths))
