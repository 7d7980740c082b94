/*
 * The HTTP/1.1 parser. The first byte chooses requests, responses or responses to HEAD, the second
 * seeds the cuts; the rest is fed
 *   - in one piece, byte by byte and in pieces of random sizes, which must give the same events;
 * and every head that is accepted
 *   - holds no line break or NUL in its names and values,
 *   - says the same again when it is written out by http_put_field and parsed anew.
 * Each piece is a heap block of its exact size, so that AddressSanitizer sees any byte too far.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/str.h"
#include "http/http1.h"
#include "http/http_msg.h"

#define TRACE_MAX (1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct http1 *p;
	bool response, head_request;
	bool in_body, stopped;
	struct strbuf trace;
};

static void
put_view(struct strbuf *b, const char *what, struct strv v)
{
	strbuf_adds(b, what);
	strbuf_add_u64(b, v.n);
	strbuf_addc(b, ':');
	strbuf_addv(b, v);
}

static void
check_text(struct strv v)
{
	for (size_t i = 0; i < v.n; i++)
		BUG_ON(v.p[i] == '\r' || v.p[i] == '\n' || v.p[i] == '\0');
}

static void
put_head(struct strbuf *b, const struct http_head *h)
{
	strbuf_addf(b, "HEAD %d %d 1.%d %d%d%d%d%d%d %lld", (int)h->method, h->status, h->minor,
	    h->keep_alive, h->chunked, h->upgrade, h->expect_continue, h->has_body,
	    h->connection_names, (long long)h->length);
	put_view(b, " m", h->method_text);
	put_view(b, " t", h->target);
	put_view(b, " p", h->path);
	put_view(b, " q", h->query);
	put_view(b, " h", h->host);
	for (unsigned i = 0; i < h->n; i++) {
		check_text(h->field[i].name);
		check_text(h->field[i].value);
		BUG_ON(h->field[i].name.n == 0 || h->field[i].name.n > HTTP1_NAME_MAX);
		put_view(b, " n", h->field[i].name);
		put_view(b, " v", h->field[i].value);
	}
	check_text(h->target);
	strbuf_addc(b, '\n');
}

/* The head as we would send it on. */
static void
write_head(struct strbuf *b, const struct http_head *h, bool response)
{
	if (response)
		strbuf_addf(b, "HTTP/1.%d %d ", h->minor, h->status);
	else
		strbuf_addf(b, STRV_FMT " " STRV_FMT " HTTP/1.%d", STRV_ARG(h->method_text),
		    STRV_ARG(h->target), h->minor);
	strbuf_adds(b, "\r\n");
	for (unsigned i = 0; i < h->n; i++)
		http_put_field(b, h->field[i].name, h->field[i].value);
	strbuf_adds(b, "\r\n");
}

/* The last head in the trace, written out and parsed, must read the same. */
static void
check_round_trip(const struct run *r, size_t from)
{
	struct http1 *again = http1_new(r->response);
	struct strbuf text, trace;
	struct strv in, piece;

	strbuf_init(&text, 2 * HTTP1_HEAD_MAX);
	strbuf_init(&trace, TRACE_MAX);
	write_head(&text, http1_head(r->p), r->response);
	in = strbuf_view(&text);
	http1_expect(again, r->head_request);
	/* A ": " for each ":" may make it longer than what we take. */
	if (text.n <= HTTP1_HEAD_MAX) {
		BUG_ON(http1_next(again, &in, &piece) != HTTP1_HEAD || in.n != 0);
		put_head(&trace, http1_head(again));
		BUG_ON(trace.n != r->trace.n - from);
		BUG_ON(memcmp(trace.p, r->trace.p + from, trace.n) != 0);
	}
	http1_free(again);
	strbuf_done(&text);
	strbuf_done(&trace);
}

static void
end_body(struct run *r)
{
	if (r->in_body)
		strbuf_addc(&r->trace, '\n');
	r->in_body = false;
}

static void
feed(struct run *r, const uint8_t *data, size_t n)
{
	char *copy = xmalloc(n);
	struct strv in = { copy, n }, piece;

	memcpy(copy, data, n);
	while (!r->stopped) {
		enum http1_event ev = http1_next(r->p, &in, &piece);
		size_t from;

		if (ev == HTTP1_MORE) {
			BUG_ON(in.n != 0);
			break;
		}
		if (ev == HTTP1_BODY) {
			BUG_ON(piece.n == 0);
			strbuf_addv(&r->trace, piece);
			r->in_body = true;
			continue;
		}
		end_body(r);
		from = r->trace.n;
		if (ev == HTTP1_HEAD) {
			put_head(&r->trace, http1_head(r->p));
			check_round_trip(r, from);
		} else if (ev == HTTP1_DONE) {
			strbuf_adds(&r->trace, "DONE\n");
			http1_expect(r->p, r->head_request);
		} else {
			strbuf_adds(&r->trace, ev == HTTP1_UPGRADE ? "UPGRADE\n" : "ERROR\n");
			BUG_ON(ev == HTTP1_ERROR && http1_error_status(r->p) < 400);
			r->stopped = true;
		}
	}
	xfree(copy);
}

/* cut: 0 = one piece, 1 = bytes, else the seed of random sizes. */
static void
run(struct run *r, uint8_t kind, const uint8_t *data, size_t n, unsigned cut)
{
	size_t at = 0;

	memset(r, 0, sizeof(*r));
	r->response = kind % 3 > 0;
	r->head_request = kind % 3 == 2;
	r->p = http1_new(r->response);
	http1_expect(r->p, r->head_request);
	strbuf_init(&r->trace, TRACE_MAX);
	strbuf_adds(&r->trace, ">");
	while (at < n && !r->stopped) {
		size_t step = cut == 0 ? n : cut == 1 ? 1 : 1 + cut % 61;

		cut = cut > 1 ? cut * 1103515245u + 12345u : cut;
		cut = cut == 0 && step < n ? 2 : cut;
		step = step < n - at ? step : n - at;
		feed(r, data + at, step);
		at += step;
	}
	if (!r->stopped) {
		end_body(r);
		strbuf_addf(&r->trace, "FINISH %d", http1_finish(r->p));
	}
	http1_free(r->p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run whole, split;
	unsigned cuts[2];

	if (size < 2)
		return 0;
	cuts[0] = 1;
	cuts[1] = 2u + data[1] * 2654435761u % 65521u;
	run(&whole, data[0], data + 2, size - 2, 0);
	for (int i = 0; i < 2; i++) {
		run(&split, data[0], data + 2, size - 2, cuts[i]);
		BUG_ON(split.trace.n != whole.trace.n);
		BUG_ON(memcmp(split.trace.p, whole.trace.p, whole.trace.n) != 0);
		strbuf_done(&split.trace);
	}
	strbuf_done(&whole.trace);
	return 0;
}
