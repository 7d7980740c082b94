/*
 * How messages look on the wire. Handlers work on trees only; a codec turns bytes into a tree and
 * back. JSON is the only one now; a binary one needs the message's type, which is why every
 * function is told its name.
 */
#ifndef ENVD_CODEC_H
#define ENVD_CODEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

struct codec {
	const char *unary_type;  /* content type of unary calls */
	const char *stream_type; /* of streams */
	/* *ret is a new object. max bytes are accepted. */
	int (*decode)(struct strv in, const char *type, size_t max, json_t **ret, struct err *e);
	void (*encode)(const json_t *m, const char *type, struct strbuf *out);
	/* A message of one bytes field inside of others of one field each: path names them, from
	 * the outside in, NULL at the end. Without a tree, since all output of processes goes here.
	 */
	void (*bytes)(
	    const char *const *path, const char *type, const void *p, size_t n, struct strbuf *out);
	/* A message whose only field is a repeated one, element by element, so that a long list is
	 * never a tree as a whole. i counts from 0; list_end is told how many there were. */
	void (*list_item)(
	    const json_t *item, const char *type, const char *field, size_t i, struct strbuf *out);
	void (*list_end)(const char *type, size_t n, struct strbuf *out);
};

/* By Content-Type (parameters are ignored); NULL if there is none. *stream tells which of its two
 * types it was. */
const struct codec *codec_find(struct strv content_type, bool *stream);

#endif
