#include "t.h"

#include <errno.h>

TEST(set_fills)
{
	struct err e = { .retry_after = 9 };

	assert_int_equal(err_set(&e, ERR_NOT_FOUND, "no %s %d", "pod", 3), -1);
	assert_int_equal(e.code, ERR_NOT_FOUND);
	assert_string_equal(e.msg, "no pod 3");
	assert_int_equal(e.retry_after, 0);
}

TEST(null_is_fine)
{
	assert_int_equal(err_set(NULL, ERR_IO, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
	assert_int_equal(err_errno(NULL, ERR_IO, "x"), -1);
}

TEST(arguments_may_be_the_message)
{
	struct err e;

	err_set(&e, ERR_INVALID, "inner");
	err_set(&e, ERR_INVALID, "again: %s", e.msg);
	assert_string_equal(e.msg, "again: inner");
	err_wrap(&e, "outer %s", e.msg);
	assert_string_equal(e.msg, "outer again: inner: again: inner");
}

TEST(wrap_keeps_code_and_retry)
{
	struct err e, none = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "down");
	e.retry_after = 5;
	assert_int_equal(err_wrap(&e, "list %s", "pods"), -1);
	assert_int_equal(e.code, ERR_UNAVAILABLE);
	assert_int_equal(e.retry_after, 5);
	assert_string_equal(e.msg, "list pods: down");
	err_wrap(&none, "x");
	assert_int_equal(none.code, ERR_INTERNAL);
}

TEST(long_text_is_cut)
{
	char text[1000];
	struct err e;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&e, ERR_INVALID, "%s", text);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	err_wrap(&e, "ab");
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	assert_memory_equal(e.msg, "ab: xxx", 7);
	err_wrap(&e, "%s", text);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

/* A cut in the middle of a character must leave valid text: it goes into JSON answers. */
TEST(cut_keeps_utf8)
{
	static const char *const chars[] = { "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x90\xB3" };

	for (size_t c = 0; c < ARRAY_LEN(chars); c++) {
		for (size_t lead = 0; lead < 4; lead++) {
			char text[1000] = "xxxx";
			struct err e;

			text[lead] = '\0';
			for (int i = 0; i < 200; i++)
				strncat(text, chars[c], 5);
			err_set(&e, ERR_INVALID, "%s", text);
			assert_true(utf8_valid(strv_of(e.msg)));
			assert_true(strlen(e.msg) >= sizeof(e.msg) - 4);
		}
	}
}

TEST(errno_is_told_and_kept)
{
	struct err e;

	errno = ENOENT;
	assert_int_equal(err_errno(&e, ERR_IO, "open %s", "/x"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(e.code, ERR_IO);
	assert_string_equal(e.msg, "open /x: No such file or directory");
}

TEST(every_code_has_a_name)
{
	for (int i = 0; i < ERR_CODE_COUNT; i++) {
		assert_non_null(err_name((enum err_code)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(
			    err_name((enum err_code)i), err_name((enum err_code)k));
	}
	assert_string_equal(err_name(ERR_NOT_FOUND), "not_found");
	assert_string_equal(err_name(ERR_CODE_COUNT), "unknown");
}

static void
set_none(void *arg)
{
	err_set(arg, ERR_NONE, "x");
}

TEST(setting_no_error_is_a_bug)
{
	struct err e;

	assert_true(t_aborts(set_none, &e));
}

T_MAIN(T(set_fills), T(null_is_fine), T(arguments_may_be_the_message), T(wrap_keeps_code_and_retry),
    T(long_text_is_cut), T(cut_keeps_utf8), T(errno_is_told_and_kept), T(every_code_has_a_name),
    T(setting_no_error_is_a_bug))
