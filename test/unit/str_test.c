#include "t.h"

TEST(compare)
{
	assert_true(strv_eq(STRV_NONE, STRV("")));
	assert_true(strv_eq(STRV("ab"), STRV("ab")));
	assert_false(strv_eq(STRV("ab"), STRV("abc")));
	assert_false(strv_eq(STRV("ab"), STRV("aB")));
	assert_true(strv_is(STRV("x"), "x"));
	assert_true(strv_is(STRV_NONE, NULL));
	assert_true(strv_caseis(STRV("Content-TYPE"), "content-type"));
	assert_false(strv_caseis(STRV("@"), "`")); /* differ by the case bit only */
	assert_false(strv_caseeq(STRV("\xC4"), STRV("\xE4")));
	assert_true(strv_prefix(STRV("Bearer x"), STRV("Bearer ")));
	assert_false(strv_prefix(STRV("Bear"), STRV("Bearer ")));
	assert_true(strv_prefix(STRV_NONE, STRV_NONE));
	assert_strv(strv_of(NULL), "");
}

TEST(trim_and_cut)
{
	struct strv rest;

	assert_strv(strv_trim(STRV(" \t a b\t ")), "a b");
	assert_strv(strv_trim(STRV(" \t ")), "");
	assert_strv(strv_trim(STRV_NONE), "");
	assert_strv(strv_trim(STRV("\na\n")), "\na\n");
	assert_strv(strv_cut(STRV("a=b=c"), '=', &rest), "a");
	assert_strv(rest, "b=c");
	assert_strv(strv_cut(STRV("a="), '=', &rest), "a");
	assert_non_null(rest.p); /* there, and empty */
	assert_int_equal(rest.n, 0);
	assert_strv(strv_cut(STRV("abc"), '=', &rest), "abc");
	assert_null(rest.p);
	rest = STRV("x,y");
	assert_strv(strv_cut(rest, ',', &rest), "x"); /* in and out may be one */
	assert_strv(rest, "y");
	assert_int_equal(strv_chr(STRV("abc"), 'c'), 2);
	assert_int_equal(strv_chr(STRV("abc"), 'x'), -1);
	assert_int_equal(strv_chr(STRV_NONE, 'x'), -1);
}

TEST(unsigned_numbers)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1a", "0x1",
		"18446744073709551616", "99999999999999999999999", "/", ":" };
	uint64_t v = 77;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(strv_u64(strv_of(bad[i]), UINT64_MAX, &v), -1);
		assert_int_equal(v, 77);
	}
	assert_int_equal(strv_u64(STRV("18446744073709551615"), UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(strv_u64(STRV("0007"), 7, &v), 0);
	assert_int_equal(v, 7);
	assert_int_equal(strv_u64(STRV("8"), 7, &v), -1);
	assert_int_equal(strv_u64((struct strv){ "12", 1 }, 9, &v), 0); /* not beyond the slice */
	assert_int_equal(v, 1);
	assert_int_equal(strv_u64((struct strv){ "1\0", 2 }, 9, &v), -1);
}

TEST(signed_numbers)
{
	int64_t v = 77;

	assert_int_equal(strv_i64(STRV("-9223372036854775808"), INT64_MIN, INT64_MAX, &v), 0);
	assert_true(v == INT64_MIN);
	assert_int_equal(strv_i64(STRV("9223372036854775807"), INT64_MIN, INT64_MAX, &v), 0);
	assert_true(v == INT64_MAX);
	assert_int_equal(strv_i64(STRV("-0"), -1, 1, &v), 0);
	assert_int_equal(v, 0);
	v = 77;
	assert_int_equal(strv_i64(STRV("-9223372036854775809"), INT64_MIN, INT64_MAX, &v), -1);
	assert_int_equal(strv_i64(STRV("9223372036854775808"), INT64_MIN, INT64_MAX, &v), -1);
	assert_int_equal(strv_i64(STRV("-"), -5, 5, &v), -1);
	assert_int_equal(strv_i64(STRV("--1"), -5, 5, &v), -1);
	assert_int_equal(strv_i64(STRV("-0"), 0, 5, &v), -1); /* no sign where none is allowed */
	assert_int_equal(strv_i64(STRV("6"), -5, 5, &v), -1);
	assert_int_equal(strv_i64(STRV("-6"), -5, 5, &v), -1);
	assert_int_equal(strv_i64(STRV_NONE, -5, 5, &v), -1);
	assert_int_equal(v, 77);
}

TEST(buffer_builds)
{
	CLEANUP(strbuf_done) struct strbuf b;
	struct err e;
	char *text;

	strbuf_init(&b, 1000);
	strbuf_adds(&b, "a");
	strbuf_addc(&b, 'b');
	strbuf_addv(&b, STRV("cd"));
	strbuf_addv(&b, STRV_NONE);
	strbuf_addf(&b, "%s-%d", "x", 5);
	strbuf_add_u64(&b, 0);
	strbuf_add_u64(&b, UINT64_MAX);
	assert_ok(e, strbuf_take(&b, &text, &e));
	assert_string_equal(text, "abcdx-5018446744073709551615");
	xfree(text);
	assert_int_equal(b.n, 0);
	assert_ok(e, strbuf_take(&b, &text, &e)); /* empty, but never NULL */
	assert_string_equal(text, "");
	xfree(text);
	strbuf_adds(&b, "again");
	assert_strv(strbuf_view(&b), "again");
}

TEST(buffer_maximum_is_sticky)
{
	struct strbuf b;
	struct err e;
	char *text = NULL;

	strbuf_init(&b, 5);
	strbuf_adds(&b, "12345");
	assert_false(b.failed);
	strbuf_adds(&b, "");
	assert_false(b.failed);
	strbuf_addc(&b, '6');
	assert_true(b.failed);
	assert_strv(strbuf_view(&b), "12345");
	strbuf_consume(&b, 5);
	strbuf_addc(&b, '7'); /* would fit now, but text is missing in between */
	assert_int_equal(b.n, 0);
	assert_fails(e, ERR_TOO_LARGE, strbuf_take(&b, &text, &e));
	assert_null(text);
	assert_false(b.failed);
	strbuf_adds(&b, "ok");
	assert_ok(e, strbuf_take(&b, &text, &e));
	assert_string_equal(text, "ok");
	xfree(text);
}

TEST(buffer_format_at_the_limit)
{
	for (size_t max = 0; max < 70; max++) {
		struct strbuf b;

		strbuf_init(&b, max);
		strbuf_addf(&b, "%s", "");
		assert_false(b.failed);
		strbuf_addf(&b, "%064d", 7);
		assert_int_equal(b.failed, max < 64);
		assert_int_equal(b.n, max < 64 ? 0 : 64);
		if (b.cap > 0)
			assert_int_equal(strlen(b.p), b.n);
		strbuf_done(&b);
	}
}

TEST(buffer_reset_consume_zeroed)
{
	struct strbuf b, zero = { 0 };

	strbuf_done(&zero);
	strbuf_addc(&zero, 'x'); /* no maximum, no room */
	assert_true(zero.failed);
	strbuf_init(&b, 10);
	strbuf_reset(&b);
	strbuf_consume(&b, 0);
	strbuf_adds(&b, "0123456789x");
	assert_true(b.failed);
	strbuf_reset(&b);
	assert_false(b.failed);
	strbuf_adds(&b, "0123456789");
	strbuf_consume(&b, 4);
	assert_string_equal(b.p, "456789");
	strbuf_adds(&b, "abcd");
	assert_string_equal(b.p, "456789abcd");
	strbuf_consume(&b, 10);
	assert_string_equal(b.p, "");
	strbuf_done(&b);
	strbuf_done(&b);
}

TEST(buffer_grows_to_large_texts)
{
	struct strbuf b;

	strbuf_init(&b, SIZE_MAX);
	for (int i = 0; i < 100000; i++)
		strbuf_addf(&b, "%05d", i);
	assert_false(b.failed);
	assert_int_equal(b.n, 500000);
	assert_memory_equal(b.p + 499995, "99999", 6);
	strbuf_done(&b);
}

static void
consume_too_much(void *arg)
{
	strbuf_consume(arg, 3);
}

TEST(consume_beyond_the_end_is_a_bug)
{
	CLEANUP(strbuf_done) struct strbuf b;

	strbuf_init(&b, 10);
	strbuf_adds(&b, "ab");
	assert_true(t_aborts(consume_too_much, &b));
}

static const char *
with(void (*fn)(struct strbuf *, struct strv), struct strv v)
{
	static char out[1000];
	struct strbuf b;

	strbuf_init(&b, sizeof(out) - 1);
	fn(&b, v);
	memcpy(out, b.n ? b.p : "", b.n + 1);
	strbuf_done(&b);
	return out;
}

TEST(json_strings)
{
	assert_string_equal(with(strbuf_add_json, STRV_NONE), "\"\"");
	assert_string_equal(with(strbuf_add_json, STRV("a\"b\\c/")), "\"a\\\"b\\\\c/\"");
	assert_string_equal(with(strbuf_add_json, STRV("\b\t\n\f\r\x01\x1f\x7f")),
	    "\"\\b\\t\\n\\f\\r\\u0001\\u001f\x7f\"");
	assert_string_equal(with(strbuf_add_json, STRV("a\0b")), "\"a\\u0000b\"");
	assert_string_equal(with(strbuf_add_json, STRV("\xE2\x82\xAC")), "\"\xE2\x82\xAC\"");
	assert_string_equal(
	    with(strbuf_add_json, STRV("x\xFFy\xC3")), "\"x\xEF\xBF\xBDy\xEF\xBF\xBD\"");
	/* a cut three-byte sequence: each bad byte for itself */
	assert_string_equal(
	    with(strbuf_add_json, STRV("\xE2\x82\"")), "\"\xEF\xBF\xBD\xEF\xBF\xBD\\\"\"");
	assert_string_equal(with(strbuf_add_utf8, STRV("a\"\n\xFF")), "a\"\n\xEF\xBF\xBD");
}

TEST(url_and_html)
{
	struct strv raw;
	CLEANUP(strbuf_done) struct strbuf b;

	assert_string_equal(
	    with(strbuf_add_url, STRV("aZ09-._~ /?%\xC3\xA4")), "aZ09-._~%20%2F%3F%25%C3%A4");
	assert_string_equal(with(strbuf_add_html, STRV("<a href=\"x\">'&")),
	    "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
	strbuf_init(&b, 100);
	assert_int_equal(url_decode(STRV("a%20b+c%2f%00"), false, &b), 0);
	assert_int_equal(b.n, 7);
	assert_memory_equal(b.p, "a b+c/\0", 8);
	strbuf_reset(&b);
	assert_int_equal(url_decode(STRV("a+b"), true, &b), 0);
	assert_strv(strbuf_view(&b), "a b");
	assert_int_equal(url_decode(STRV("%"), false, &b), -1);
	assert_int_equal(url_decode(STRV("%2"), false, &b), -1);
	assert_int_equal(url_decode(STRV("%g0"), false, &b), -1);
	assert_int_equal(url_decode(STRV("%0g"), false, &b), -1);
	assert_int_equal(url_decode((struct strv){ "%20", 2 }, false, &b), -1);
	assert_int_equal(url_decode(STRV_NONE, false, &b), 0);

	assert_true(query_get(STRV("a=1&b=2&b=3&&c&d="), "b", &raw));
	assert_strv(raw, "2");
	assert_true(query_get(STRV("a=1&c&d="), "c", &raw));
	assert_int_equal(raw.n, 0);
	assert_true(query_get(STRV("x=1=2"), "x", &raw));
	assert_strv(raw, "1=2");
	assert_true(query_get(STRV("user%6Eame=%41+b"), "username", &raw));
	assert_strv(raw, "%41+b");
	assert_false(query_get(STRV("user=1"), "username", &raw));
	assert_false(query_get(STRV("username2=1"), "username", &raw));
	assert_false(query_get(STRV("user%6=1"), "user", &raw));
	assert_false(query_get(STRV("&&"), "", &raw));
	assert_true(query_get(STRV("=v"), "", &raw));
	assert_false(query_get(STRV_NONE, "a", &raw));
}

TEST(utf8)
{
	static const char *const good[] = { "", "abc", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
		"\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80",
		"\xF4\x8F\xBF\xBF" };
	static const char *const bad[] = { "\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41",
		"\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xE2\x82", "\xF0\x8F\xBF\xBF",
		"\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xF0\x9F\x90" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(utf8_valid(strv_of(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(utf8_valid(strv_of(bad[i])));
	assert_true(utf8_valid(STRV_NONE));
	assert_int_equal(utf8_seq(STRV("\xE2\x82\xACx")), 3);
	assert_int_equal(utf8_seq(STRV_NONE), 0);
}

TEST(hex)
{
	unsigned char out[3] = { 9, 9, 9 };
	char text[7];

	hex_encode("\x00\x7f\xff", 3, text);
	assert_string_equal(text, "007fff");
	assert_int_equal(hex_decode(STRV("00fFa1"), out, 3), 0);
	assert_memory_equal(out, "\x00\xff\xa1", 3);
	assert_int_equal(hex_decode(STRV("00"), out, 3), -1);
	assert_int_equal(hex_decode(STRV("00000"), out, 2), -1);
	assert_int_equal(hex_decode(STRV("11111x"), out, 3), -1);
	assert_memory_equal(out, "\x00\xff\xa1", 3); /* untouched */
	assert_int_equal(hex_decode(STRV_NONE, out, 0), 0);
}

TEST(base64)
{
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" } };
	static const char *const bad[] = { "Z", "Zg=", "Zg===", "=",
		"==", "====", "Zm9v=", "Zm9v====", "Zm 9", "Zm9v\n", "Zh==", "Zm9=", "Z=g=", "Zm8.",
		"AA=A" };
	unsigned char out[32];
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct strv in = strv_of(pairs[i][1]);
		size_t n = strlen(pairs[i][0]);

		assert_int_equal(base64_encode(pairs[i][0], n, text), BASE64_LEN(n));
		assert_string_equal(text, pairs[i][1]);
		assert_int_equal(base64_decode(in, out), n);
		assert_memory_equal(out, pairs[i][0], n);
		while (in.n > 0 && in.p[in.n - 1] == '=')
			in.n--;
		assert_int_equal(base64_decode(in, out), n);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(base64_decode(strv_of(bad[i]), out), -1);
	assert_int_equal(base64_decode(STRV("+/-_"), out), 3); /* both alphabets */
	assert_memory_equal(out, "\xfb\xff\xbf", 3);
}

TEST(base64_of_every_byte)
{
	unsigned char in[256], *out;
	char *text;

	for (size_t n = 0; n <= 256; n++) {
		for (size_t i = 0; i < n; i++)
			in[i] = (unsigned char)(i * 7 + n);
		text = xmalloc(BASE64_LEN(n) + 1);
		base64_encode(in, n, text);
		out = xmalloc(BASE64_LEN(n) * 3 / 4 + 3);
		assert_int_equal(base64_decode(strv_of(text), out), n);
		assert_memory_equal(in, out, n);
		xfree(out);
		xfree(text);
	}
}

T_MAIN(T(compare), T(trim_and_cut), T(unsigned_numbers), T(signed_numbers), T(buffer_builds),
    T(buffer_maximum_is_sticky), T(buffer_format_at_the_limit), T(buffer_reset_consume_zeroed),
    T(buffer_grows_to_large_texts), T(consume_beyond_the_end_is_a_bug), T(json_strings),
    T(url_and_html), T(utf8), T(hex), T(base64), T(base64_of_every_byte))
