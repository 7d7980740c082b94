/*
 * Linear probing, at most 7/8 full; deleting closes the gap, so there are no marks of former
 * objects.
 */
#include "domain/id_table.h"

#include "base/alloc.h"
#include "base/bug.h"
#include "base/map.h"

#define CAP_MIN 16

void
id_table_init(struct id_table *t, struct strv (*key)(const void *object))
{
	*t = (struct id_table){ .key = key };
}

void
id_table_done(struct id_table *t, void (*free_object)(void *object))
{
	for (size_t i = 0; i < t->cap; i++) {
		if (t->slot[i] != NULL)
			free_object(t->slot[i]);
	}
	xfree(t->slot);
	t->slot = NULL;
	t->cap = t->n = 0;
}

static size_t
home(const struct id_table *t, struct strv key)
{
	return map_hash(key.p, key.n) & (t->cap - 1);
}

/* Where the key is, or the free slot where it would be. */
static size_t
find(const struct id_table *t, struct strv key)
{
	size_t i = home(t, key);

	while (t->slot[i] != NULL && !strv_eq(t->key(t->slot[i]), key))
		i = (i + 1) & (t->cap - 1);
	return i;
}

static void
resize(struct id_table *t, size_t cap)
{
	void **old = t->slot;
	size_t old_cap = t->cap;

	t->slot = xcalloc(cap, sizeof(*t->slot));
	t->cap = cap;
	for (size_t i = 0; i < old_cap; i++) {
		if (old[i] != NULL)
			t->slot[find(t, t->key(old[i]))] = old[i];
	}
	xfree(old);
}

void *
id_table_get(const struct id_table *t, struct strv key)
{
	return t->cap > 0 ? t->slot[find(t, key)] : NULL;
}

void
id_table_add(struct id_table *t, void *object)
{
	size_t i;

	if (t->n >= t->cap / 8 * 7)
		resize(t, t->cap > 0 ? t->cap * 2 : CAP_MIN);
	i = find(t, t->key(object));
	BUG_ON(t->slot[i] != NULL);
	t->slot[i] = object;
	t->n++;
}

void
id_table_del(struct id_table *t, const void *object)
{
	size_t mask = t->cap - 1, gap, i;

	BUG_ON(t->n == 0);
	gap = find(t, t->key(object));
	BUG_ON(t->slot[gap] != object);
	/* An object may move into the gap unless its home lies behind it. */
	for (i = (gap + 1) & mask; t->slot[i] != NULL; i = (i + 1) & mask) {
		if (((i - home(t, t->key(t->slot[i]))) & mask) >= ((i - gap) & mask)) {
			t->slot[gap] = t->slot[i];
			gap = i;
		}
	}
	t->slot[gap] = NULL;
	t->n--;
	if (t->cap > CAP_MIN && t->n < t->cap / 8)
		resize(t, t->cap / 2);
}
