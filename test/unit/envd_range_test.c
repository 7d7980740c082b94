#include "t.h"

#include "envd/range.h"

static struct http_head head;

static void
field(const char *name, const char *value)
{
	head.field[head.n++] = (struct http_field){ strv_of(name), strv_of(value) };
}

/* Status and range for one Range value and a file of 10 bytes. */
static void
range(const char *value, int status, int64_t first, int64_t last)
{
	int64_t a = -9, b = -9;

	head.n = 0;
	field("Range", value);
	assert_int_equal(range_decide(&head, 10, 1000, &a, &b), status);
	if (status == 206) {
		assert_int_equal(a, first);
		assert_int_equal(b, last);
	}
}

TEST(ranges)
{
	range("bytes=0-3", 206, 0, 3);
	range("bytes=3-", 206, 3, 9);
	range("bytes=-4", 206, 6, 9);
	range("bytes=-40", 206, 0, 9);
	range("bytes=5-100", 206, 5, 9);
	range("BYTES=9-9", 206, 9, 9);
	range(" bytes= 1 - 2 ", 206, 1, 2);
	range("bytes=10-", 416, 0, 0);
	range("bytes=-0", 416, 0, 0);
	range("bytes=5-3", 200, 0, 0);
	range("bytes=a-b", 200, 0, 0);
	range("bytes=-", 200, 0, 0);
	range("bytes=0-1,3-4", 200, 0, 0);
	range("lines=0-3", 200, 0, 0);
	range("bytes=99999999999999999999-", 200, 0, 0);
	range("", 200, 0, 0);
}

TEST(an_empty_file_has_no_range)
{
	int64_t a, b;

	head.n = 0;
	field("Range", "bytes=0-");
	assert_int_equal(range_decide(&head, 0, 0, &a, &b), 416);
	head.n = 0;
	field("Range", "bytes=-1");
	assert_int_equal(range_decide(&head, 0, 0, &a, &b), 416);
}

TEST(dates)
{
	assert_int_equal(range_date(STRV("Sun, 06 Nov 1994 08:49:37 GMT")), 784111777);
	assert_int_equal(range_date(STRV("Thu, 01 Jan 1970 00:00:00 GMT")), 0);
	assert_int_equal(range_date(STRV("Sun, 06 Foo 1994 08:49:37 GMT")), -1);
	assert_int_equal(range_date(STRV("Sun, 06 Nov 1994 08:49:37")), -1);
	assert_int_equal(range_date(STRV("")), -1);
}

static int
with(const char *name, const char *value)
{
	int64_t a, b;

	head.n = 0;
	field(name, value);
	return range_decide(&head, 10, 784111777, &a, &b);
}

TEST(conditions)
{
	int64_t a, b;

	assert_int_equal(with("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"), 304);
	assert_int_equal(with("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT"), 200);
	assert_int_equal(with("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:36 GMT"), 412);
	assert_int_equal(with("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"), 200);
	assert_int_equal(with("If-None-Match", "*"), 304);
	assert_int_equal(with("If-None-Match", "\"x\""), 200);
	assert_int_equal(with("If-Match", "*"), 200);
	assert_int_equal(with("If-Match", "\"x\""), 412);
	head.n = 0;
	field("Range", "bytes=0-1");
	field("If-Range", "Sun, 06 Nov 1994 08:49:37 GMT");
	assert_int_equal(range_decide(&head, 10, 784111777, &a, &b), 206);
	assert_int_equal(range_decide(&head, 10, 784111778, &a, &b), 200);
}

static bool
identity(const char *value)
{
	head.n = 0;
	if (value)
		field("Accept-Encoding", value);
	return range_identity_ok(&head);
}

TEST(codings)
{
	assert_true(identity(NULL));
	assert_true(identity("gzip, deflate"));
	assert_true(identity("gzip;q=1.0, *;q=0.5"));
	assert_true(identity("identity;q=0.5, *;q=0"));
	assert_true(identity("*;q=0, identity"));
	assert_false(identity("gzip, identity;q=0"));
	assert_false(identity("gzip, *;q=0.000"));
	assert_true(identity("identity;q=0.01"));
}

T_MAIN(T(ranges), T(an_empty_file_has_no_range), T(dates), T(conditions), T(codings))
