/* See gunzip.h. */
#include "envd/gunzip.h"

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#include "base/alloc.h"

#define OUT_SIZE ((size_t)32 * 1024)
#define WINDOW_GZIP (15 + 16)

struct gunzip {
	z_stream z;
	int (*fn)(void *arg, const char *p, size_t n, struct err *e);
	void *arg;
	bool begun, ended; /* anything was fed; at the end of a member */
	char out[OUT_SIZE];
};

static void *
z_alloc(void *opaque UNUSED, unsigned n, unsigned size)
{
	return xcalloc(n, size);
}

static void
z_free(void *opaque UNUSED, void *p)
{
	xfree(p);
}

struct gunzip *
gunzip_new(int (*fn)(void *arg, const char *p, size_t n, struct err *e), void *arg)
{
	struct gunzip *g = xcalloc(1, sizeof(*g));

	g->fn = fn;
	g->arg = arg;
	g->z.zalloc = z_alloc;
	g->z.zfree = z_free;
	BUG_ON(inflateInit2(&g->z, WINDOW_GZIP) != Z_OK);
	return g;
}

void
gunzip_free(struct gunzip *g)
{
	if (g == NULL)
		return;
	inflateEnd(&g->z);
	xfree(g);
}

int
gunzip_feed(struct gunzip *g, const char *p, size_t n, struct err *e)
{
	g->z.next_in = (unsigned char *)(uintptr_t)p;
	g->z.avail_in = (unsigned)n;
	g->begun = g->begun || n > 0;
	while (g->z.avail_in > 0) {
		int r;

		if (g->ended) {
			inflateReset(&g->z);
			g->ended = false;
		}
		do {
			size_t got;

			g->z.next_out = (unsigned char *)g->out;
			g->z.avail_out = OUT_SIZE;
			r = inflate(&g->z, Z_NO_FLUSH);
			if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
				return err_set(e, ERR_INVALID, "invalid gzip body");
			got = OUT_SIZE - g->z.avail_out;
			if (got > 0 && g->fn(g->arg, g->out, got, e) == -1)
				return -1;
		} while (r == Z_OK && g->z.avail_out == 0);
		g->ended = r == Z_STREAM_END;
		if (r == Z_BUF_ERROR)
			break;
	}
	return 0;
}

int
gunzip_finish(struct gunzip *g, struct err *e)
{
	if (!g->ended)
		return err_set(e, ERR_INVALID,
		    g->begun ? "invalid gzip body: unexpected end" : "invalid gzip body: empty");
	return 0;
}
