#include "t.h"

TEST(zero_sizes_give_pointers)
{
	void *a = xmalloc(0), *b = xcalloc(0, 8), *c = xcalloc(8, 0), *d = xrealloc(NULL, 0);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_non_null(d);
	d = xrealloc(d, 0); /* stays a live pointer, not a free */
	assert_non_null(d);
	xfree(a);
	xfree(b);
	xfree(c);
	xfree(d);
	xfree(NULL);
}

TEST(calloc_zeroes)
{
	unsigned char *p = xcalloc(7, 9);

	for (size_t i = 0; i < 63; i++)
		assert_int_equal(p[i], 0);
	xfree(p);
}

TEST(realloc_keeps_content)
{
	char *p = xmemdup0("abc", 3);

	p = xrealloc(p, 100000);
	assert_string_equal(p, "abc");
	xfree(p);
}

TEST(copies)
{
	char *a = xstrdup("x"), *b = xmemdup0("a\0b", 3), *c = xmemdup0(NULL, 0);

	assert_null(xstrdup(NULL));
	assert_string_equal(a, "x");
	assert_memory_equal(b, "a\0b\0", 4);
	assert_string_equal(c, "");
	xfree(a);
	xfree(b);
	xfree(c);
}

TEST(freep_clears)
{
	char *p = xmalloc(3);

	xfreep(&p);
	assert_null(p);
	xfreep(&p);
	{
		CLEANUP(xfreep) char *scoped = xmalloc(4); /* the sanitizer would see a leak */
		CLEANUP(xfreep) char *never = NULL;

		assert_non_null(scoped);
		assert_null(never);
	}
}

static void
overflow(void *arg)
{
	volatile size_t n = SIZE_MAX / 2;
	void *volatile p;

	switch (*(int *)arg) {
	case 0:
		p = xcalloc(n, 3);
		break;
	case 1:
		p = xmemdup0("", SIZE_MAX);
		break;
	case 2:
		p = xmalloc(n);
		break;
	default:
		p = xrealloc(NULL, n);
		break;
	}
	(void)p;
}

static int
aborts(int what)
{
	return t_aborts(overflow, &what);
}

TEST(exhaustion_aborts)
{
	/* The sanitizers' allocators end the process on their own for sizes like these; only a
	 * plain build shows what ours does. */
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if !__has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
	assert_true(aborts(0));
	assert_true(aborts(2));
	assert_true(aborts(3));
#endif
	assert_true(aborts(1));
}

T_MAIN(T(zero_sizes_give_pointers), T(calloc_zeroes), T(realloc_keeps_content), T(copies),
    T(freep_clears), T(exhaustion_aborts))
