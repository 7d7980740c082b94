#include "t.h"

#include "envd/multipart.h"

#define B "--XyZ"

/* Writes what the parser says as text: "[disposition]data|". */
static int
on_part(void *arg, struct strv d, struct err *e UNUSED)
{
	struct strbuf *b = arg;

	strbuf_addf(b, "[" STRV_FMT "]", STRV_ARG(d));
	return 0;
}

static int
on_data(void *arg, const char *p, size_t n, struct err *e UNUSED)
{
	strbuf_add(arg, p, n);
	return 0;
}

static int
on_part_end(void *arg, struct err *e UNUSED)
{
	strbuf_addc(arg, '|');
	return 0;
}

static const struct multipart_cb cb = { on_part, on_data, on_part_end };

/* Feeds body in pieces of `step`; "?" is added when the end is missing, "!" on an error. */
static char *
parse(const char *body, size_t n, size_t step)
{
	struct strbuf b;
	struct multipart *m;
	struct err e;
	char *text;
	bool bad = false;

	strbuf_init(&b, 1 << 20);
	m = multipart_new(STRV("XyZ"), &cb, &b);
	assert_non_null(m);
	for (size_t i = 0; i < n && !bad; i += step)
		bad = multipart_feed(m, body + i, n - i < step ? n - i : step, &e) == -1;
	if (bad)
		strbuf_addc(&b, '!');
	else if (multipart_finish(m, &e) == -1)
		strbuf_addc(&b, '?');
	multipart_free(m);
	if (b.n == 0)
		strbuf_addc(&b, '0');
	assert_int_equal(strbuf_take(&b, &text, &e), 0);
	return text;
}

static void
check_n(const char *body, size_t n, const char *want)
{
	for (size_t step = 1; step <= n; step++) {
		CLEANUP(xfreep) char *got = parse(body, n, step);

		assert_string_equal(got, want);
	}
}

static void
check(const char *body, const char *want)
{
	check_n(body, strlen(body), want);
}

TEST(one_part)
{
	check(B "\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nHello\r\n" B "--\r\n",
	    "[form-data; name=\"file\"]Hello|");
}

TEST(several_parts_preamble_and_epilogue)
{
	check("ignored\r\n--XyZno\r\n" B "\r\nContent-Disposition: a\r\nX: y\r\n\r\n1\r\n2\r\n" B
	      " \t\r\ncontent-disposition:b\r\n\r\n\r\n" B "--\r\nepilogue " B "\r\n",
	    "[a]1\r\n2|[b]|");
}

TEST(part_without_headers_or_content)
{
	check(B "\r\n\r\nx\r\n" B "\r\n\r\n\r\n" B "--", "[]x|[]|");
	/* the head's line end serves as the delimiter's, too */
	check(B "\r\nContent-Disposition: a\r\n\r\n" B "--", "[a]|");
}

TEST(content_that_looks_like_a_delimiter)
{
	check(B "\r\n\r\n\r\n--XyZX\r\n--Xy\r\n--XyZ-\r\n\r\n-\r\r\n--XyZ \r-\r\n" B "--",
	    "[]\r\n--XyZX\r\n--Xy\r\n--XyZ-\r\n\r\n-\r\r\n--XyZ \r-|");
	check(B "\r\n\r\n--XyQ\r\n" B "--", "[]--XyQ|");
	check(B "\r\n\r\n--XyZ-Q\r\n" B "--", "[]--XyZ-Q|");
}

TEST(bytes_of_all_values)
{
	char body[400], want[300];
	size_t n = 0, m = 0;

	n += (size_t)snprintf(body, sizeof(body), "%s\r\n\r\n", B);
	m += (size_t)snprintf(want, sizeof(want), "[]");
	for (int i = 1; i < 256; i++) { /* the result is compared as text: no NUL */
		body[n++] = (char)i;
		want[m++] = (char)i;
	}
	n += (size_t)snprintf(body + n, sizeof(body) - n, "\r\n%s--", B);
	snprintf(want + m, sizeof(want) - m, "|");
	check_n(body, n, want);
}

TEST(cut_bodies)
{
	check("", "?");
	check("abc", "?");
	check(B "\r\nContent-Disposition: a\r\n\r\nHello\r\n", "[a]Hello?");
	check(B "\r\nContent-Disposition: a\r\n\r\nHello\r\n" B, "[a]Hello?");
	check(B "\r\nContent-Disposition: a\r\n\r\nHello\r\n" B "-", "[a]Hello?");
}

TEST(headers_have_a_limit)
{
	size_t n = MULTIPART_HEAD_MAX + 100;
	char *body = xmalloc(n), *got;

	memset(body, 'x', n);
	memcpy(body, B "\r\n", 7);
	got = parse(body, n, n);
	assert_string_equal(got, "!");
	xfree(got);
	xfree(body);
}

TEST(boundaries_are_checked)
{
	char longest[MULTIPART_BOUNDARY_MAX + 1];
	struct multipart *m;

	memset(longest, 'b', sizeof(longest));
	assert_null(multipart_new(STRV_NONE, &cb, NULL));
	assert_null(multipart_new(STRV("a\r\nb"), &cb, NULL));
	assert_null(multipart_new((struct strv){ longest, sizeof(longest) }, &cb, NULL));
	m = multipart_new((struct strv){ longest, sizeof(longest) - 1 }, &cb, NULL);
	assert_non_null(m);
	multipart_free(m);
}

T_MAIN(T(one_part), T(several_parts_preamble_and_epilogue), T(part_without_headers_or_content),
    T(content_that_looks_like_a_delimiter), T(bytes_of_all_values), T(cut_bodies),
    T(headers_have_a_limit), T(boundaries_are_checked))
