/* See connect.h. */
#include "envd/connect.h"

#include "base/alloc.h"
#include "base/clock.h"

#define TIMEOUT_DIGITS 10
#define BODY_FIRST 1024

static const struct {
	const char *name;
	int status;
} codes[CONNECT_CODE_COUNT] = {
	[CONNECT_OK] = { "ok", 200 },
	[CONNECT_CANCELED] = { "canceled", 499 },
	[CONNECT_UNKNOWN] = { "unknown", 500 },
	[CONNECT_INVALID_ARGUMENT] = { "invalid_argument", 400 },
	[CONNECT_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
	[CONNECT_NOT_FOUND] = { "not_found", 404 },
	[CONNECT_ALREADY_EXISTS] = { "already_exists", 409 },
	[CONNECT_PERMISSION_DENIED] = { "permission_denied", 403 },
	[CONNECT_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
	[CONNECT_FAILED_PRECONDITION] = { "failed_precondition", 400 },
	[CONNECT_ABORTED] = { "aborted", 409 },
	[CONNECT_OUT_OF_RANGE] = { "out_of_range", 400 },
	[CONNECT_UNIMPLEMENTED] = { "unimplemented", 501 },
	[CONNECT_INTERNAL] = { "internal", 500 },
	[CONNECT_UNAVAILABLE] = { "unavailable", 503 },
	[CONNECT_DATA_LOSS] = { "data_loss", 500 },
	[CONNECT_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

static const enum connect_code of_err[ERR_CODE_COUNT] = {
	[ERR_NONE] = CONNECT_INTERNAL,
	[ERR_INVALID] = CONNECT_INVALID_ARGUMENT,
	[ERR_UNAUTHORIZED] = CONNECT_UNAUTHENTICATED,
	[ERR_FORBIDDEN] = CONNECT_PERMISSION_DENIED,
	[ERR_NOT_FOUND] = CONNECT_NOT_FOUND,
	[ERR_CONFLICT] = CONNECT_FAILED_PRECONDITION,
	[ERR_EXISTS] = CONNECT_ALREADY_EXISTS,
	[ERR_TOO_LARGE] = CONNECT_RESOURCE_EXHAUSTED,
	[ERR_LIMIT] = CONNECT_RESOURCE_EXHAUSTED,
	[ERR_GONE] = CONNECT_NOT_FOUND,
	[ERR_UNSUPPORTED] = CONNECT_UNIMPLEMENTED,
	[ERR_UNAVAILABLE] = CONNECT_UNAVAILABLE,
	[ERR_TIMEOUT] = CONNECT_DEADLINE_EXCEEDED,
	[ERR_CANCELED] = CONNECT_CANCELED,
	[ERR_IO] = CONNECT_INTERNAL,
	[ERR_INTERNAL] = CONNECT_INTERNAL,
};

const char *
connect_code_name(enum connect_code c)
{
	return codes[c].name;
}

int
connect_code_status(enum connect_code c)
{
	return codes[c].status;
}

enum connect_code
connect_code_of(enum err_code code)
{
	return of_err[code];
}

void
connect_put_header(unsigned char out[CONNECT_HEADER], unsigned flags, size_t n)
{
	BUG_ON(n > UINT32_MAX);
	out[0] = (unsigned char)flags;
	out[1] = (unsigned char)(n >> 24);
	out[2] = (unsigned char)(n >> 16);
	out[3] = (unsigned char)(n >> 8);
	out[4] = (unsigned char)n;
}

static size_t
take(struct strv *in, void *to, size_t n)
{
	if (n > in->n)
		n = in->n;
	if (n > 0)
		memcpy(to, in->p, n);
	in->p += n;
	in->n -= n;
	return n;
}

/* Room for what has arrived, doubling: an announced length alone allocates nothing. */
static void
grow(struct connect_reader *r, size_t more)
{
	size_t need = r->body_n + more + 1;

	if (need <= r->body_cap)
		return;
	if (r->body_cap == 0)
		r->body_cap = BODY_FIRST;
	while (r->body_cap < need)
		r->body_cap *= 2;
	r->body = xrealloc(r->body, r->body_cap);
}

enum connect_event
connect_reader_next(
    struct connect_reader *r, struct strv *in, unsigned *flags, struct strv *payload, struct err *e)
{
	size_t left;

	if (r->head_n < CONNECT_HEADER) {
		r->head_n += take(in, r->head + r->head_n, CONNECT_HEADER - r->head_n);
		if (r->head_n < CONNECT_HEADER)
			return CONNECT_MORE;
		r->want = (size_t)r->head[1] << 24 | (size_t)r->head[2] << 16 |
		    (size_t)r->head[3] << 8 | r->head[4];
		r->body_n = 0;
		if (r->want > r->max) {
			err_set(e, ERR_TOO_LARGE, "message size %zu is larger than %zu", r->want,
			    r->max);
			return CONNECT_BAD;
		}
	}
	left = r->want - r->body_n;
	if (left > in->n)
		left = in->n;
	grow(r, left);
	r->body_n += take(in, r->body + r->body_n, left);
	if (r->body_n < r->want)
		return CONNECT_MORE;
	r->body[r->body_n] = '\0';
	r->head_n = 0;
	*flags = r->head[0];
	*payload = (struct strv){ r->body, r->body_n };
	return CONNECT_MESSAGE;
}

int
connect_reader_idle(const struct connect_reader *r)
{
	return r->head_n == 0;
}

void
connect_reader_done(struct connect_reader *r)
{
	xfree(r->body);
	*r = (struct connect_reader){ 0 };
}

int
connect_timeout(const struct strv *header, int64_t *ns, struct err *e)
{
	uint64_t ms;

	*ns = 0;
	if (header == NULL)
		return 0;
	if (header->n > TIMEOUT_DIGITS || strv_u64(*header, UINT64_MAX, &ms) == -1)
		return err_set(e, ERR_INVALID, "protocol error: invalid Connect-Timeout-Ms");
	*ns = MILLIS((int64_t)ms);
	return 0;
}
