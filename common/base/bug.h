/*
 * Assertions and compiler helpers. Owns nothing; includes nothing of ours.
 *
 * BUG_ON is for what cannot happen whatever comes in from outside; it stays in release
 * builds, since a server that goes on with broken state does more harm than one that is
 * restarted (all state lives in Kubernetes).
 */
#ifndef BASE_BUG_H
#define BASE_BUG_H

#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define UNUSED __attribute__((unused))

/* Runs fn(&var) when var leaves its scope; fn must accept a zeroed var. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

NORETURN void bug_fail(const char *file, int line, const char *cond);

#define BUG_ON(cond)                                                                               \
	do {                                                                                       \
		if (__builtin_expect(!!(cond), 0))                                                 \
			bug_fail(__FILE__, __LINE__, #cond);                                       \
	} while (0)

#endif
