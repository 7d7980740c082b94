/*
 * Packs the texts of a decoded object behind the object itself, so that one allocation holds all of
 * it. Private to the decoders of this folder.
 */
#ifndef DOMAIN_PACK_H
#define DOMAIN_PACK_H

#include <stddef.h>
#include <string.h>

/* Bytes that pack_move needs for the texts (NULL and empty ones need none). */
static inline size_t
pack_size(const char **const *fields, size_t n)
{
	size_t size = 0;

	for (size_t i = 0; i < n; i++) {
		const char *text = *fields[i];

		if (text != NULL && text[0] != '\0')
			size += strlen(text) + 1;
	}
	return size;
}

/* Copies each text to `to` and lets its field point to the copy. */
static inline void
pack_move(char *to, const char **const *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = *fields[i];
		size_t size;

		if (text == NULL)
			continue;
		if (text[0] == '\0') {
			*fields[i] = "";
			continue;
		}
		size = strlen(text) + 1;
		memcpy(to, text, size);
		*fields[i] = to;
		to += size;
	}
}

#endif
