/*
 * The decoded sandbox-data annotation, shared by all sandboxes whose text is the same (a pool, many
 * creates of one template). Private to sandbox.c.
 */
#ifndef DOMAIN_SANDBOX_DATA_H
#define DOMAIN_SANDBOX_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "domain/sandbox.h"

struct sandbox_data {
	unsigned refs;
	bool secure, private_traffic;
	const char *template_id, *mask_host; /* "" if absent */
	size_t metadata_n;
	const struct kv *metadata;
	char text[]; /* the annotation itself; the rest of the allocation is behind it */
};

/* A reference to the decoded form of text; never NULL. Text that is no JSON object reads as an
 * empty one. */
struct sandbox_data *sandbox_data_get(const char *text);
/* From its text member. */
static inline struct sandbox_data *
sandbox_data_of(const char *text)
{
	return container_of((uintptr_t)text, struct sandbox_data, text);
}
void sandbox_data_unref(struct sandbox_data *d); /* accepts NULL */

#endif
