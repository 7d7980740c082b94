#include "t.h"

#include "base/clock.h"
#include "envd/connect.h"

/* Two envelopes: flags 0 "abc", flags 2 "". */
static const char wire[] = "\0\0\0\0\3abc\2\0\0\0\0";

TEST(envelopes_in_pieces_of_every_size)
{
	for (size_t step = 1; step < sizeof(wire); step++) {
		struct connect_reader r = { .max = 10 };
		struct strv payload;
		struct err e;
		unsigned flags, seen = 0;

		for (size_t i = 0; i < sizeof(wire) - 1; i += step) {
			size_t n = sizeof(wire) - 1 - i < step ? sizeof(wire) - 1 - i : step;
			struct strv in = { wire + i, n };

			while (
			    connect_reader_next(&r, &in, &flags, &payload, &e) == CONNECT_MESSAGE) {
				assert_int_equal(flags, seen == 0 ? 0 : 2);
				assert_strv(payload, seen == 0 ? "abc" : "");
				seen++;
			}
			assert_int_equal(in.n, 0);
		}
		assert_int_equal(seen, 2);
		assert_true(connect_reader_idle(&r));
		connect_reader_done(&r);
	}
}

TEST(an_announced_length_is_bounded_and_allocates_nothing)
{
	struct connect_reader r = { .max = 1 << 20 };
	struct strv payload, in = { "\0\0\x0f\xff\xff", 5 };
	struct err e;
	unsigned flags;

	assert_int_equal(connect_reader_next(&r, &in, &flags, &payload, &e), CONNECT_MORE);
	assert_false(connect_reader_idle(&r));
	assert_true(r.body_cap <= 4096);
	connect_reader_done(&r);
	r.max = 1 << 20;
	in = (struct strv){ "\0\0\x10\0\1", 5 };
	assert_int_equal(connect_reader_next(&r, &in, &flags, &payload, &e), CONNECT_BAD);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	connect_reader_done(&r);
}

TEST(headers)
{
	unsigned char h[CONNECT_HEADER];

	connect_put_header(h, CONNECT_FLAG_END, 0x01020304);
	assert_memory_equal(h, "\2\1\2\3\4", 5);
}

TEST(timeouts)
{
	struct strv v = STRV("1500");
	int64_t ns = 7;
	struct err e;

	assert_ok(e, connect_timeout(NULL, &ns, &e));
	assert_int_equal(ns, 0);
	assert_ok(e, connect_timeout(&v, &ns, &e));
	assert_int_equal(ns, MILLIS(1500));
	v = STRV("9999999999");
	assert_ok(e, connect_timeout(&v, &ns, &e));
	v = STRV("99999999999");
	assert_fails(e, ERR_INVALID, connect_timeout(&v, &ns, &e));
	v = STRV("1s");
	assert_fails(e, ERR_INVALID, connect_timeout(&v, &ns, &e));
	v = STRV("");
	assert_fails(e, ERR_INVALID, connect_timeout(&v, &ns, &e));
}

TEST(codes_have_names_and_statuses)
{
	for (int c = CONNECT_OK; c < CONNECT_CODE_COUNT; c++) {
		assert_non_null(connect_code_name((enum connect_code)c));
		assert_true(connect_code_status((enum connect_code)c) >= 200);
	}
	for (int c = ERR_NONE; c < ERR_CODE_COUNT; c++)
		assert_int_not_equal(connect_code_of((enum err_code)c), CONNECT_OK);
	assert_string_equal(connect_code_name(connect_code_of(ERR_NOT_FOUND)), "not_found");
	assert_int_equal(connect_code_status(CONNECT_UNAUTHENTICATED), 401);
	assert_int_equal(connect_code_status(CONNECT_RESOURCE_EXHAUSTED), 429);
}

T_MAIN(T(envelopes_in_pieces_of_every_size),
    T(an_announced_length_is_bounded_and_allocates_nothing), T(headers), T(timeouts),
    T(codes_have_names_and_statuses))
