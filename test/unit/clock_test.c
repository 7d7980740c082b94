#include "t.h"

#include "base/clock.h"

static int64_t
parse(const char *text)
{
	int64_t v = -1;

	if (time_parse(strv_of(text), &v) == -1)
		fail_msg("%s is not taken", text);
	return v;
}

TEST(clocks_move)
{
	int64_t a = clock_mono(), b = clock_mono();

	assert_true(a > 0 && b >= a);
	assert_true(clock_wall() > parse("2024-01-01T00:00:00Z"));
	assert_false(clock_is_fake());
}

TEST(fake_clock)
{
	clock_fake_start(5, 100);
	assert_true(clock_is_fake());
	assert_int_equal(clock_mono(), 5);
	assert_int_equal(clock_wall(), 100);
	clock_fake_advance(SECONDS(2));
	assert_int_equal(clock_mono(), 2000000005);
	assert_int_equal(clock_wall(), 2000000100);
	clock_fake_end();
	assert_true(clock_wall() > 2000000100);
	assert_int_equal(MILLIS(3), 3000000);
}

static void
advance(void *arg)
{
	clock_fake_advance(*(int64_t *)arg);
}

TEST(fake_clock_misuse_is_a_bug)
{
	int64_t one = 1, back = -1;

	assert_true(t_aborts(advance, &one)); /* not started */
	clock_fake_start(5, 5);
	assert_true(t_aborts(advance, &back));
	clock_fake_end();
}

static const char *
format(int64_t wall, int digits)
{
	static char out[TIME_TEXT_MAX];

	time_format(wall, digits, out);
	return out;
}

TEST(formats)
{
	assert_string_equal(format(0, 0), "1970-01-01T00:00:00Z");
	assert_string_equal(format(1, 9), "1970-01-01T00:00:00.000000001Z");
	assert_string_equal(format(-1, 9), "1969-12-31T23:59:59.999999999Z");
	assert_string_equal(format(INT64_C(1709210096123456789), 0), "2024-02-29T12:34:56Z");
	assert_string_equal(format(INT64_C(1709210096123456789), 3), "2024-02-29T12:34:56.123Z");
	assert_string_equal(format(INT64_C(1709210096123456789), 6), "2024-02-29T12:34:56.123456Z");
	assert_string_equal(format(INT64_C(951782400000000000), 0), "2000-02-29T00:00:00Z");
	assert_string_equal(format(INT64_MAX, 9), "2262-04-11T23:47:16.854775807Z");
	assert_string_equal(format(INT64_MIN, 9), "1677-09-21T00:12:43.145224192Z");
}

static void
format_bad(void *arg)
{
	char out[TIME_TEXT_MAX];

	time_format(0, *(int *)arg, out);
}

TEST(odd_digits_are_a_bug)
{
	int digits = 4;

	assert_true(t_aborts(format_bad, &digits));
}

TEST(http_date)
{
	char out[TIME_TEXT_MAX];

	time_http_date(SECONDS(784111777), out);
	assert_string_equal(out, "Sun, 06 Nov 1994 08:49:37 GMT");
	time_http_date(-1, out);
	assert_string_equal(out, "Wed, 31 Dec 1969 23:59:59 GMT");
}

TEST(parses)
{
	assert_int_equal(parse("1970-01-01T00:00:00Z"), 0);
	assert_int_equal(parse("1970-01-01t00:00:00.5z"), 500000000);
	assert_int_equal(parse("1970-01-01T00:00:00.123456789Z"), 123456789);
	assert_int_equal(parse("1970-01-01T01:30:00+01:30"), 0);
	assert_int_equal(parse("1969-12-31T23:00:00-01:00"), 0);
	assert_int_equal(parse("1970-01-01T00:00:00-00:00"), 0);
	assert_int_equal(parse("2016-12-31T23:59:60Z"), parse("2017-01-01T00:00:00Z"));
	assert_int_equal(parse("2024-02-29T00:00:00Z"), SECONDS(1709164800));
	assert_int_equal(parse("2262-04-11T23:47:16.854775807Z"), INT64_MAX);
}

TEST(parse_refuses)
{
	static const char *const bad[] = { "", "2024-02-29", "2024-02-29T00:00:00",
		"2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
		"2024-00-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-04-31T00:00:00Z",
		"2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z",
		"2024-01-01T00:00:00.Z", "2024-01-01T00:00:00.1234567890Z",
		"2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+01:60",
		"2024-01-01T00:00:00+0100", "2024-01-01T00:00:00+01", "2024-01-01 00:00:00Z",
		"2024-1-1T00:00:00Z", "2024-01-01T00:00:00ZZ", " 2024-01-01T00:00:00Z",
		"2024-01-01T00:00:00,5Z", "-024-01-01T00:00:00Z", "+2024-01-01T00:00:00Z",
		"2262-04-11T23:47:16.854775808Z", "2300-01-01T00:00:00Z", "1600-01-01T00:00:00Z",
		"9999-12-31T23:59:59Z", "2024-01-01T0x:00:00Z" };
	int64_t v = 77;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (time_parse(strv_of(bad[i]), &v) != -1)
			fail_msg("%s is taken", bad[i]);
	}
	assert_int_equal(time_parse((struct strv){ "2024-01-01T00:00:00\0", 20 }, &v), -1);
	assert_int_equal(v, 77);
}

/* Every day of four centuries there and back. */
TEST(calendar_round_trip)
{
	for (int64_t day = -100000; day <= 100000; day += 1) {
		int64_t wall = SECONDS(day * 86400 + 86399);

		if (parse(format(wall, 0)) != wall)
			fail_msg("day %lld", (long long)day);
	}
}

T_MAIN(T(clocks_move), T(fake_clock), T(fake_clock_misuse_is_a_bug), T(formats),
    T(odd_digits_are_a_bug), T(http_date), T(parses), T(parse_refuses), T(calendar_round_trip))
