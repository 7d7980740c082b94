/* Random bytes from the kernel. UUIDs are in uuid.c, so that only their users link libuuid. */
#include "rand.h"

#include <errno.h>
#include <sys/random.h>

void
rand_bytes(void *p, size_t n)
{
	unsigned char *at = p;

	while (n > 0) {
		ssize_t r = getrandom(at, n, 0);

		if (r == -1 && errno == EINTR)
			continue;
		BUG_ON(r <= 0);
		at += r;
		n -= (size_t)r;
	}
}

uint32_t
rand_below(uint32_t n)
{
	uint32_t v, skip;

	BUG_ON(n == 0);
	/* 2^32 mod n values at the low end would make some results likelier: draw again. */
	skip = -n % n;
	do {
		rand_bytes(&v, sizeof(v));
	} while (v < skip);
	return v % n;
}

void
rand_base36(char *out, size_t n)
{
	static const char abc[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	unsigned char pool[64];
	size_t left = 0;

	for (size_t i = 0; i < n;) {
		unsigned char c;

		if (left == 0) {
			rand_bytes(pool, sizeof(pool));
			left = sizeof(pool);
		}
		c = pool[--left];
		if (c < 252) /* 7 * 36: uniform */
			out[i++] = abc[c % 36];
	}
	out[n] = '\0';
}

bool
equal_consttime(struct strv a, struct strv b)
{
	volatile unsigned char diff = 0;

	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		diff = diff | (unsigned char)(a.p[i] ^ b.p[i]);
	return diff == 0;
}
