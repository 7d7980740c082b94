/*
 * The Connect protocol's words and frames: error codes with their HTTP statuses, and envelopes
 * (flags, big-endian length, payload). No I/O, no JSON.
 */
#ifndef ENVD_CONNECT_H
#define ENVD_CONNECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

enum connect_code {
	CONNECT_OK = 0,
	CONNECT_CANCELED,
	CONNECT_UNKNOWN,
	CONNECT_INVALID_ARGUMENT,
	CONNECT_DEADLINE_EXCEEDED,
	CONNECT_NOT_FOUND,
	CONNECT_ALREADY_EXISTS,
	CONNECT_PERMISSION_DENIED,
	CONNECT_RESOURCE_EXHAUSTED,
	CONNECT_FAILED_PRECONDITION,
	CONNECT_ABORTED,
	CONNECT_OUT_OF_RANGE,
	CONNECT_UNIMPLEMENTED,
	CONNECT_INTERNAL,
	CONNECT_UNAVAILABLE,
	CONNECT_DATA_LOSS,
	CONNECT_UNAUTHENTICATED,
	CONNECT_CODE_COUNT
};

const char *connect_code_name(enum connect_code c);
int connect_code_status(enum connect_code c);
enum connect_code connect_code_of(enum err_code code);

#define CONNECT_HEADER 5
enum { CONNECT_FLAG_COMPRESSED = 1, CONNECT_FLAG_END = 2 };

/* Writes the five bytes before a payload of n. */
void connect_put_header(unsigned char out[CONNECT_HEADER], unsigned flags, size_t n);

/* Cuts a byte stream into envelopes. Zero it with its max set; done with connect_reader_done. */
struct connect_reader {
	size_t max; /* longest payload */
	unsigned char head[CONNECT_HEADER];
	size_t head_n;
	char *body; /* grows with what arrives, never beyond the announced length */
	size_t body_n, body_cap, want;
};

enum connect_event { CONNECT_MORE = 0, CONNECT_MESSAGE, CONNECT_BAD };

/* Takes bytes from *in up to the end of one envelope. MESSAGE: *flags and *payload (valid until the
 * next call). BAD: e says why; the stream cannot be read on. */
enum connect_event connect_reader_next(struct connect_reader *r, struct strv *in, unsigned *flags,
    struct strv *payload, struct err *e);
/* Nothing of an unfinished envelope is held. */
int connect_reader_idle(const struct connect_reader *r);
void connect_reader_done(struct connect_reader *r);

/* "grpc-timeout"-like header: decimal milliseconds, at most 10 digits. *ns = 0 for none or 0. */
int connect_timeout(const struct strv *header, int64_t *ns, struct err *e) MUST_USE;

#endif
