#include "t.h"

#include "base/rand.h"

TEST(bytes_fill_all)
{
	unsigned char p[1000] = { 0 }, seen[256] = { 0 };
	int kinds = 0;

	rand_bytes(p, sizeof(p) - 1);
	assert_int_equal(p[999], 0);
	for (size_t i = 0; i < 999; i++)
		seen[p[i]] = 1;
	for (int i = 0; i < 256; i++)
		kinds += seen[i];
	assert_true(kinds > 200); /* fails once in the age of the universe */
	rand_bytes(p, 0);
}

TEST(below_is_below_and_reaches_all)
{
	int count[7] = { 0 };

	for (int i = 0; i < 7000; i++) {
		uint32_t v = rand_below(7);

		assert_in_range(v, 0, 6);
		count[v]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(count[i], 800, 1200);
	assert_int_equal(rand_below(1), 0);
	assert_true(rand_below(UINT32_MAX) < UINT32_MAX);
}

static void
below_zero(void *arg UNUSED)
{
	rand_below(0);
}

TEST(below_zero_is_a_bug)
{
	assert_true(t_aborts(below_zero, NULL));
}

TEST(uuids)
{
	char a[UUID_TEXT], b[UUID_TEXT];

	rand_uuid(a);
	rand_uuid(b);
	assert_string_not_equal(a, b);
	assert_int_equal(strlen(a), 36);
	for (size_t i = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23)
			assert_int_equal(a[i], '-');
		else
			assert_non_null(strchr("0123456789abcdef", a[i]));
	}
	assert_int_equal(a[14], '4');
	assert_non_null(strchr("89ab", a[19]));
}

TEST(base36)
{
	char text[10001], *none = text;
	int count[128] = { 0 };

	rand_base36(text, 10000);
	assert_int_equal(strlen(text), 10000);
	for (size_t i = 0; i < 10000; i++)
		count[(unsigned char)text[i]]++;
	for (const char *c = "abcdefghijklmnopqrstuvwxyz0123456789"; *c; c++)
		assert_in_range(count[(unsigned char)*c], 150, 420);
	assert_int_equal(strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789"), 10000);
	rand_base36(none, 0);
	assert_string_equal(none, "");
}

TEST(constant_time_compare)
{
	assert_true(equal_consttime(STRV("abc"), STRV("abc")));
	assert_true(equal_consttime(STRV_NONE, STRV("")));
	assert_false(equal_consttime(STRV("abc"), STRV("abd")));
	assert_false(equal_consttime(STRV("xbc"), STRV("abc")));
	assert_false(equal_consttime(STRV("abc"), STRV("ab")));
	assert_false(equal_consttime(STRV("a\0b"), STRV("a\0c")));
}

T_MAIN(T(bytes_fill_all), T(below_is_below_and_reaches_all), T(below_zero_is_a_bug), T(uuids),
    T(base36), T(constant_time_compare))
