/*
 * A hash table of objects that hold their own key, at about 11 bytes an object; struct map costs
 * ten times that, which counts with 200,000 sandboxes. Open addressing, the same keyed hash as
 * struct map. Private to sandbox_view.c.
 */
#ifndef DOMAIN_ID_TABLE_H
#define DOMAIN_ID_TABLE_H

#include <stddef.h>

#include "base/str.h"

struct id_table {
	void **slot; /* NULL: free */
	size_t cap;  /* 0 or a power of two */
	size_t n;
	struct strv (*key)(const void *object);
};

void id_table_init(struct id_table *t, struct strv (*key)(const void *object));
void id_table_done(struct id_table *t, void (*free_object)(void *object));
void *id_table_get(const struct id_table *t, struct strv key);
/* The key must not be in the table. The object's key must stay the same while it is in. */
void id_table_add(struct id_table *t, void *object);
/* The object must be in the table. */
void id_table_del(struct id_table *t, const void *object);

#endif
