/* Text map on uthash with SipHash-2-4. The only file that includes uthash. */
#include "map.h"

#include <limits.h>

#include "alloc.h"
#include "rand.h"

#define uthash_malloc(n) xmalloc(n)
#define uthash_free(p, n) xfree(p)
#define uthash_fatal(text) bug_fail(__FILE__, __LINE__, text)
#define HASH_FUNCTION(key, n, out) (out) = (unsigned)map_hash(key, n)
#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	void *value;
	size_t n;
	char key[];
};

struct map {
	struct entry *head;
};

static uint64_t
rotl(uint64_t v, unsigned by)
{
	return v << by | v >> (64 - by);
}

static void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

uint64_t
map_siphash(const uint64_t key[2], const void *p, size_t n)
{
	uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d), key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573) };
	const unsigned char *in = p;
	uint64_t word, last = (uint64_t)n << 56;
	size_t left = n;

	for (; left >= 8; left -= 8, in += 8) {
		memcpy(&word, in, 8); /* little endian, like all our machines */
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)in[i] << (8 * i);
	v[3] ^= last;
	sip_round(v);
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xFF;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "map_siphash reads words as they are");

uint64_t
map_hash(const void *p, size_t n)
{
	static uint64_t key[2];
	static bool keyed;

	if (!keyed) {
		rand_bytes(key, sizeof(key));
		keyed = true;
	}
	return map_siphash(key, p, n);
}

struct map *
map_new(void)
{
	return xcalloc(1, sizeof(struct map));
}

static struct entry *
find(const struct map *m, struct strv key)
{
	struct entry *e = NULL;

	if (key.n <= UINT_MAX)
		HASH_FIND(hh, m->head, key.n ? key.p : "", (unsigned)key.n, e);
	return e;
}

void
map_free(struct map *m, void (*free_value)(void *))
{
	struct entry *e, *next;

	if (m == NULL)
		return;
	HASH_ITER (hh, m->head, e, next) {
		HASH_DEL(m->head, e);
		if (free_value)
			free_value(e->value);
		xfree(e);
	}
	xfree(m);
}

size_t
map_count(const struct map *m)
{
	return HASH_COUNT(m->head);
}

void *
map_get(const struct map *m, struct strv key)
{
	struct entry *e = find(m, key);

	return e ? e->value : NULL;
}

void *
map_set(struct map *m, struct strv key, void *value)
{
	struct entry *e = find(m, key);

	BUG_ON(value == NULL || key.n > UINT_MAX);
	if (e) {
		void *old = e->value;

		e->value = value;
		return old;
	}
	e = xcalloc(1, sizeof(*e) + key.n + 1);
	e->value = value;
	e->n = key.n;
	if (key.n > 0)
		memcpy(e->key, key.p, key.n);
	HASH_ADD_KEYPTR(hh, m->head, e->key, (unsigned)key.n, e);
	return NULL;
}

void *
map_del(struct map *m, struct strv key)
{
	struct entry *e = find(m, key);
	void *value;

	if (e == NULL)
		return NULL;
	value = e->value;
	HASH_DEL(m->head, e);
	xfree(e);
	return value;
}

void
map_each(struct map *m, bool (*fn)(struct strv key, void *value, void *arg), void *arg)
{
	struct entry *e, *next;

	HASH_ITER (hh, m->head, e, next) {
		if (!fn((struct strv){ e->key, e->n }, e->value, arg))
			return;
	}
}
