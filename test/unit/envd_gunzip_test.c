#include "t.h"

#include <zlib.h>

#include "envd/gunzip.h"

static int
collect(void *arg, const char *p, size_t n, struct err *e UNUSED)
{
	strbuf_add(arg, p, n);
	return 0;
}

static size_t
gzip(const char *text, size_t n, unsigned char *out, size_t cap)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)(uintptr_t)text;
	z.avail_in = (unsigned)n;
	z.next_out = out;
	z.avail_out = (unsigned)cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return cap - z.avail_out;
}

/* 0 good, -1 bad; what came out is in b. */
static int
run(const unsigned char *in, size_t n, size_t step, struct strbuf *b)
{
	struct gunzip *g = gunzip_new(collect, b);
	struct err e;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i += step)
		r = gunzip_feed(g, (const char *)in + i, n - i < step ? n - i : step, &e);
	if (r == 0)
		r = gunzip_finish(g, &e);
	if (r == -1)
		assert_int_equal(e.code, ERR_INVALID);
	gunzip_free(g);
	return r;
}

TEST(pieces_of_every_size)
{
	unsigned char z[256];
	size_t n = gzip("Hello, World!", 13, z, sizeof(z));
	struct strbuf b;

	strbuf_init(&b, 1000);
	for (size_t step = 1; step <= n; step++) {
		strbuf_reset(&b);
		assert_int_equal(run(z, n, step, &b), 0);
		assert_strv(strbuf_view(&b), "Hello, World!");
	}
	strbuf_done(&b);
}

TEST(members_in_a_row_and_large_output)
{
	static char zeros[1000000];
	static unsigned char z[100000];
	size_t n = gzip(zeros, sizeof(zeros), z, sizeof(z));
	struct strbuf b;

	n += gzip("x", 1, z + n, sizeof(z) - n);
	strbuf_init(&b, 2000000);
	assert_int_equal(run(z, n, n, &b), 0);
	assert_int_equal(b.n, sizeof(zeros) + 1);
	assert_int_equal(b.p[sizeof(zeros)], 'x');
	strbuf_done(&b);
}

TEST(what_is_not_gzip)
{
	unsigned char z[256];
	size_t n = gzip("Hello, World!", 13, z, sizeof(z));
	struct strbuf b;

	strbuf_init(&b, 1000);
	assert_int_equal(run((const unsigned char *)"garbage", 7, 7, &b), -1);
	assert_int_equal(run(z, 0, 1, &b), -1);
	assert_int_equal(run(z, n - 1, n, &b), -1);
	z[n - 6] ^= 1; /* the checksum */
	assert_int_equal(run(z, n, n, &b), -1);
	strbuf_done(&b);
}

T_MAIN(T(pieces_of_every_size), T(members_in_a_row_and_large_output), T(what_is_not_gzip))
