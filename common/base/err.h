/*
 * The one error type. Library code fills it and never logs; the place that decides what to
 * do logs it once. apiserver/api_error.c maps codes to HTTP and JSON-RPC answers, once.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>

#include "bug.h"

enum err_code {
	ERR_NONE = 0,
	ERR_INVALID,      /* the caller's input is wrong */
	ERR_UNAUTHORIZED, /* no or unknown credentials */
	ERR_FORBIDDEN,    /* known, but not allowed */
	ERR_NOT_FOUND,
	ERR_CONFLICT, /* state or resourceVersion does not fit */
	ERR_EXISTS,
	ERR_TOO_LARGE,   /* body, field or queue beyond its limit */
	ERR_LIMIT,       /* a tenant's or the installation's quota (429) */
	ERR_GONE,        /* Kubernetes 410: list again */
	ERR_UNSUPPORTED, /* not offered here (501) */
	ERR_UNAVAILABLE, /* Kubernetes or the sandbox cannot be reached now (503) */
	ERR_TIMEOUT,     /* a wait reached its named limit (504) */
	ERR_CANCELED,    /* the caller went away */
	ERR_IO,          /* a system call failed */
	ERR_INTERNAL,
	ERR_CODE_COUNT
};

struct err {
	enum err_code code;
	int retry_after; /* seconds a client should wait; 0 = not said */
	char msg[240];   /* one sentence for people; text from outside is truncated, not escaped */
};

/* Fills e (may be NULL) and returns -1, so that `return err_set(...)` reads as one step. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
int err_vset(struct err *e, enum err_code code, const char *fmt, va_list ap) PRINTF(3, 0);
/* Puts "prefix: " in front of e's message, keeps its code, returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* Like err_set with ": <text of errno>" behind it. */
int err_errno(struct err *e, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
#ifdef __clang_analyzer__
/* So that the analyzer sees what is returned; otherwise it follows paths that do not exist. */
#define err_set(...) (err_set(__VA_ARGS__), -1)
#define err_wrap(...) (err_wrap(__VA_ARGS__), -1)
#define err_errno(...) (err_errno(__VA_ARGS__), -1)
#endif
/* Stable lower-case word, for logs and metric labels. */
const char *err_name(enum err_code code);

#endif
