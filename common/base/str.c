/*
 * Slices, number parsing and the bounded builder. Encodings (JSON, URL, HTML, hex, base64, UTF-8)
 * are in str_code.c.
 */
#include "str.h"

#include <stdio.h>

#include "alloc.h"

static unsigned char
lower(char c)
{
	unsigned char u = (unsigned char)c;

	return u >= 'A' && u <= 'Z' ? (unsigned char)(u + ('a' - 'A')) : u;
}

bool
strv_eq(struct strv a, struct strv b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Eight characters at once, ASCII capitals as small letters. */
static uint64_t
lower8(uint64_t v)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t low = v & (0x7f * ones);
	uint64_t from_a = low + (0x80 - 'A') * ones;
	uint64_t above_z = low + (0x7f - 'Z') * ones;
	uint64_t capital = (from_a ^ above_z) & ~v & (0x80 * ones);

	return v | capital >> 2;
}

static uint64_t
load8(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

bool
strv_caseeq(struct strv a, struct strv b)
{
	const char *p = a.p, *q = b.p;
	size_t n = a.n;

	if (n != b.n)
		return false;
	if (n < 8) {
		for (size_t i = 0; i < n; i++) {
			if (lower(p[i]) != lower(q[i]))
				return false;
		}
		return true;
	}
	/* Whole words, then the last eight once more as far as they overlap. */
	for (; n > 8; n -= 8, p += 8, q += 8) {
		if (lower8(load8(p)) != lower8(load8(q)))
			return false;
		if (n < 16) {
			p -= 16 - n;
			q -= 16 - n;
			n = 16;
		}
	}
	return lower8(load8(p)) == lower8(load8(q));
}

bool
strv_prefix(struct strv s, struct strv prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

struct strv
strv_trim(struct strv s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

struct strv
strv_cut(struct strv s, char c, struct strv *rest)
{
	ptrdiff_t i = strv_chr(s, c);
	struct strv head = s;

	if (i < 0) {
		*rest = STRV_NONE;
		return head;
	}
	head.n = (size_t)i;
	*rest = (struct strv){ s.p + i + 1, s.n - (size_t)i - 1 };
	return head;
}

char *
strv_dup(struct strv s)
{
	return xmemdup0(s.p, s.n);
}

ptrdiff_t
strv_chr(struct strv s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? at - s.p : -1;
}

int
strv_u64(struct strv s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0)
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		unsigned d = (unsigned)((unsigned char)s.p[i]) - '0';

		if (d > 9)
			return -1;
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return -1;
	}
	if (v > max)
		return -1;
	*ret = v;
	return 0;
}

int
strv_i64(struct strv s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = s.n > 0 && s.p[0] == '-';
	uint64_t u;
	int64_t v;

	if (negative) {
		if (min >= 0)
			return -1;
		s.p++;
		s.n--;
	}
	if (strv_u64(s, negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, &u) == -1)
		return -1;
	/* -(u - 1) - 1 reaches INT64_MIN without overflow. */
	v = !negative || u == 0 ? (int64_t)u : -(int64_t)(u - 1) - 1;
	if (v < min || v > max)
		return -1;
	*ret = v;
	return 0;
}

void
strbuf_init(struct strbuf *b, size_t max)
{
	*b = (struct strbuf){ .max = max < SIZE_MAX / 4 ? max : SIZE_MAX / 4 };
}

void
strbuf_done(struct strbuf *b)
{
	xfree(b->p);
	b->p = NULL;
	b->n = b->cap = 0;
	b->failed = false;
}

void
strbuf_reset(struct strbuf *b)
{
	b->n = 0;
	b->failed = false;
	if (b->cap > 0)
		b->p[0] = '\0';
}

/* Makes room for n more bytes and a NUL; false (and failed) when that passes the maximum. */
static bool
reserve(struct strbuf *b, size_t n)
{
	size_t want, cap;

	if (b->failed)
		return false;
	if (n > b->max - b->n) {
		b->failed = true;
		return false;
	}
	want = b->n + n + 1;
	if (want <= b->cap)
		return true;
	cap = b->cap < 64 ? 64 : b->cap * 2;
	if (cap > b->max + 1)
		cap = b->max + 1;
	if (cap < want)
		cap = want;
	b->p = xrealloc(b->p, cap);
	b->cap = cap;
	b->p[b->n] = '\0';
	return true;
}

void
strbuf_add(struct strbuf *b, const void *p, size_t n)
{
	if (n == 0 || !reserve(b, n))
		return;
	memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
}

void
strbuf_addc(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void
strbuf_adds(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void
strbuf_addv(struct strbuf *b, struct strv v)
{
	strbuf_add(b, v.p, v.n);
}

void
strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(b, fmt, ap);
	va_end(ap);
}

void
strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
{
	size_t room = b->cap - b->n;
	va_list again;
	int n;

	if (b->failed)
		return;
	va_copy(again, ap);
	n = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
	if (n < 0 || (size_t)n > b->max - b->n) {
		b->failed = true;
	} else if ((size_t)n < room) {
		b->n += (size_t)n;
	} else if (n > 0 && reserve(b, (size_t)n)) {
		vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
		b->n += (size_t)n;
	}
	if (b->cap > 0)
		b->p[b->n] = '\0';
	va_end(again);
}

void
strbuf_add_u64(struct strbuf *b, uint64_t v)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	strbuf_add(b, digits + i, sizeof(digits) - i);
}

void
strbuf_consume(struct strbuf *b, size_t n)
{
	BUG_ON(n > b->n);
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->n - n + 1);
	b->n -= n;
}

int
strbuf_take(struct strbuf *b, char **ret, struct err *e)
{
	if (b->failed) {
		err_set(e, ERR_TOO_LARGE, "text is longer than %zu bytes", b->max);
		strbuf_done(b);
		return -1;
	}
	*ret = b->p ? b->p : xmemdup0("", 0);
	b->p = NULL;
	b->n = b->cap = 0;
	return 0;
}
