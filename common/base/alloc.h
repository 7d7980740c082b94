/*
 * Memory that cannot fail: every function aborts the process when memory is exhausted
 * (after one line on stderr). Sizes that come from outside must be checked against a named
 * limit before they get here. The only place where malloc and friends are called.
 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
/* Zeroed; aborts on overflow of n * size. */
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
/* NULL stays NULL, so optional text copies without a test. */
char *xstrdup(const char *s);
char *xmemdup0(const void *p, size_t n) __attribute__((returns_nonnull)); /* adds a NUL */
/* Accepts NULL. */
void xfree(void *p);

/* For CLEANUP(xfreep) on any pointer variable. */
void xfreep(void *pp);

#endif
