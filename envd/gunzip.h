/* Streaming gzip decoding on zlib: bytes in, callback out, constant memory. */
#ifndef ENVD_GUNZIP_H
#define ENVD_GUNZIP_H

#include <stddef.h>

#include "base/bug.h"
#include "base/err.h"

struct gunzip;

/* fn gets decoded pieces (borrowed); -1 with e ends the decoding. */
struct gunzip *gunzip_new(int (*fn)(void *arg, const char *p, size_t n, struct err *e), void *arg);
void gunzip_free(struct gunzip *g); /* accepts NULL */
/* ERR_INVALID for what is not gzip. Several members in a row are one content. */
int gunzip_feed(struct gunzip *g, const char *p, size_t n, struct err *e) MUST_USE;
/* ERR_INVALID if the stream is cut. */
int gunzip_finish(struct gunzip *g, struct err *e) MUST_USE;

#endif
