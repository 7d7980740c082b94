/* Random bytes and ids (getrandom, libuuid), and comparison in constant time. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "str.h"

void rand_bytes(void *p, size_t n); /* aborts when the kernel has none */
uint32_t rand_below(uint32_t n);    /* uniform in [0, n); n > 0 */

#define UUID_TEXT 37 /* 36 characters and NUL */
void rand_uuid(char out[UUID_TEXT]);
/* `n` random characters of [a-z0-9] and a NUL. */
void rand_base36(char *out, size_t n);

/* Time depends only on the lengths. */
bool equal_consttime(struct strv a, struct strv b);

#endif
