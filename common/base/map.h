/*
 * Hash table from text (any bytes) to a pointer, with a hash keyed per process (SipHash), so that
 * names chosen by clients cannot flood one bucket. The only user of uthash. Keys are copied; values
 * are borrowed. Iteration order is insertion order.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "str.h"

struct map;

struct map *map_new(void);
/* free_value may be NULL. Accepts NULL map. */
void map_free(struct map *m, void (*free_value)(void *));
size_t map_count(const struct map *m);
void *map_get(const struct map *m, struct strv key); /* NULL if absent */
/* Returns the value that was replaced, or NULL. value must not be NULL. */
void *map_set(struct map *m, struct strv key, void *value);
/* Removes and returns the value, or NULL. */
void *map_del(struct map *m, struct strv key);

/* Visits every entry; the callback may delete the entry it is given, nothing else. Returning
 * false ends the visit. */
void map_each(struct map *m, bool (*fn)(struct strv key, void *value, void *arg), void *arg);

/* The keyed hash itself (SipHash-2-4 with the process key), for tables elsewhere. */
uint64_t map_hash(const void *p, size_t n);
/* The same with a key of the caller's; for tests of the algorithm. */
uint64_t map_siphash(const uint64_t key[2], const void *p, size_t n);

#endif
