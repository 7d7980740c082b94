/*
 * The pull parser: walks llhttp over what it is fed and hands out events. llhttp finds the end of
 * heads and of chunks; http1_head.c judges heads; Content-Length bodies are counted here. The only
 * file that calls llhttp. It must not know of sockets.
 */
#include "http/http1.h"

#include <string.h>

#include "base/alloc.h"
#include "http1_priv.h"

#define OVERHEAD_MAX 16384 /* chunk lines between two pieces of body; trailers */
#define PART_MIN 512

/* What the next call works on. */
enum state {
	ST_HEAD = 0, /* between messages, or inside a head */
	ST_LENGTH,
	ST_CHUNKED,
	ST_TRAILERS, /* behind the last chunk's line */
	ST_UNTIL_CLOSE,
	ST_END, /* everything is read: DONE is due */
	ST_UPGRADE,
	ST_ERROR
};

/* Where in a trailer line the next byte stands. */
enum trailer { TR_START = 0, TR_NAME, TR_VALUE, TR_LF, TR_LAST_LF };

struct http1 {
	llhttp_t ll; /* valid from the first byte of a message */
	enum state state;
	enum http1_error error;
	const char *why;
	uint64_t left;  /* ST_LENGTH */
	uint32_t have;  /* bytes of this head so far */
	uint32_t extra; /* chunk lines and trailers since the last piece of body */
	bool response, head_request;
	bool interim;     /* a 1xx head was read: another one must follow */
	bool upgrade;     /* UPGRADE instead of DONE */
	bool last_chunk;  /* its line was read */
	uint8_t trailer;  /* enum trailer */
	bool part_is_old; /* the part belongs to the head that was handed out */
	struct strv piece;
	/* Only for a head that came in pieces: its bytes, and the copy of the scan. */
	char *part;
	size_t part_cap;
	struct http1_scan *saved;
};

/* Shared by all parsers: filled within one http1_next. */
static struct http1_scan scan;
static const char *scan_base;
static struct http_head shared_head;
static llhttp_settings_t settings;

static void
span_add(struct http1_span *s, const char *at, size_t n)
{
	if (s->len == 0)
		s->off = (uint32_t)(at - scan_base);
	s->len += (uint32_t)n;
}

static int
on_method(llhttp_t *ll UNUSED, const char *at, size_t n)
{
	span_add(&scan.method, at, n);
	return 0;
}

static int
on_url(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;

	span_add(&scan.target, at, n);
	if (scan.target.len <= HTTP1_TARGET_MAX)
		return 0;
	p->error = HTTP1_URI_TOO_LONG;
	p->why = "request target too long";
	return HPE_USER;
}

static int
on_version(llhttp_t *ll UNUSED, const char *at, size_t n)
{
	span_add(&scan.version, at, n);
	return 0;
}

static int
on_status(llhttp_t *ll UNUSED, const char *at, size_t n)
{
	span_add(&scan.reason, at, n);
	return 0;
}

static int
on_header_field(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;
	struct http1_span *last = scan.n > 0 ? &scan.name[scan.n - 1] : NULL;
	uint32_t off = (uint32_t)(at - scan_base);

	/* A name goes on after a split; otherwise a colon and a value lie between two names. */
	if (last && last->off + last->len == off) {
		last->len += (uint32_t)n;
		return 0;
	}
	if (scan.n == HTTP1_FIELDS_MAX) {
		p->error = HTTP1_TOO_LARGE;
		p->why = "too many fields";
		return HPE_USER;
	}
	scan.name[scan.n++] = (struct http1_span){ off, (uint32_t)n };
	return 0;
}

static int
on_headers_complete(llhttp_t *ll UNUSED)
{
	return HPE_PAUSED;
}

static int
on_body(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;

	p->piece = (struct strv){ at, n };
	return HPE_PAUSED;
}

static int
on_chunk_header(llhttp_t *ll)
{
	struct http1 *p = ll->data;

	if (ll->content_length > 0)
		return 0;
	p->last_chunk = true;
	return HPE_PAUSED;
}

static void
settings_prepare(void)
{
	llhttp_settings_init(&settings);
	settings.on_method = on_method;
	settings.on_url = on_url;
	settings.on_version = on_version;
	settings.on_status = on_status;
	settings.on_header_field = on_header_field;
	settings.on_headers_complete = on_headers_complete;
	settings.on_body = on_body;
	settings.on_chunk_header = on_chunk_header;
}

struct http1 *
http1_new(bool response)
{
	struct http1 *p = xcalloc(1, sizeof(*p));

	if (settings.on_body == NULL)
		settings_prepare();
	p->response = response;
	return p;
}

static void
part_drop(struct http1 *p)
{
	xfree(p->part);
	p->part = NULL;
	xfree(p->saved);
	p->saved = NULL;
	p->part_cap = 0;
	p->part_is_old = false;
}

void
http1_free(struct http1 *p)
{
	if (p == NULL)
		return;
	part_drop(p);
	xfree(p);
}

void
http1_reset(struct http1 *p)
{
	if (p->part)
		part_drop(p);
	p->state = ST_HEAD;
	p->error = HTTP1_OK;
	p->why = NULL;
	p->have = 0;
	p->left = 0;
	p->extra = 0;
	p->head_request = false;
	p->interim = false;
	p->upgrade = false;
	p->last_chunk = false;
	p->trailer = TR_START;
}

void
http1_expect(struct http1 *p, bool head_request)
{
	p->head_request = head_request;
}

static enum http1_event
fail(struct http1 *p, enum http1_error error, const char *why)
{
	part_drop(p);
	p->state = ST_ERROR;
	p->error = error;
	p->why = why ? why : "malformed message";
	return HTTP1_ERROR;
}

static enum http1_event
fail_llhttp(struct http1 *p, llhttp_errno_t error)
{
	if (error == HPE_USER && p->error != HTTP1_OK)
		return fail(p, p->error, p->why);
	if (error == HPE_INVALID_VERSION || error == HPE_PAUSED_H2_UPGRADE)
		return fail(p, HTTP1_VERSION, "not HTTP/1.0 or HTTP/1.1");
	return fail(p, HTTP1_BAD, llhttp_get_error_reason(&p->ll));
}

/* Keeps the bytes of an unfinished head and what is known of it. */
static void
part_save(struct http1 *p, const char *bytes, size_t n)
{
	size_t size = offsetof(struct http1_scan, name) + scan.n * sizeof(scan.name[0]);

	if (p->part == NULL) {
		p->part_cap = n < PART_MIN ? PART_MIN : n;
		p->part = xmalloc(p->part_cap);
		memcpy(p->part, bytes, n);
	}
	p->saved = xrealloc(p->saved, size);
	memcpy(p->saved, &scan, size);
}

/* Puts the next n bytes behind the part, and the saved scan into the shared one. */
static void
part_resume(struct http1 *p, const char *bytes, size_t n)
{
	size_t size = offsetof(struct http1_scan, name);

	if (p->have + n > p->part_cap) {
		p->part_cap = 2 * (p->have + n);
		if (p->part_cap > HTTP1_HEAD_MAX)
			p->part_cap = HTTP1_HEAD_MAX;
		p->part = xrealloc(p->part, p->part_cap);
	}
	memcpy(p->part + p->have, bytes, n);
	memcpy(&scan, p->saved, size);
	memcpy(scan.name, (char *)p->saved + size, scan.n * sizeof(scan.name[0]));
}

static void
skip_blank_lines(struct strv *in)
{
	while (in->n > 0 && (*in->p == '\r' || *in->p == '\n')) {
		in->p++;
		in->n--;
	}
}

/* The head is judged: what comes behind it? */
static void
choose_body(struct http1 *p, const struct http_head *h)
{
	p->upgrade = h->upgrade || h->method == HTTP_CONNECT;
	if (p->response && h->status < 200 && h->status != 101) {
		p->interim = true;
		p->have = 0;
		return;
	}
	if (!h->has_body) {
		p->state = ST_END;
	} else if (h->chunked) {
		p->state = ST_CHUNKED;
		llhttp_resume(&p->ll);
	} else if (h->length >= 0) {
		p->state = ST_LENGTH;
		p->left = (uint64_t)h->length;
	} else {
		p->state = ST_UNTIL_CLOSE;
	}
}

static enum http1_event
head_complete(struct http1 *p, size_t n)
{
	struct http1_facts facts = {
		.response = p->response,
		.head_request = p->head_request,
		.keep_alive = llhttp_should_keep_alive(&p->ll),
		.upgrade = p->ll.upgrade,
		.status = p->ll.status_code,
		.major = p->ll.http_major,
		.minor = p->ll.http_minor,
	};
	enum http1_error error;
	const char *why;

	error = http1_head_build(scan_base, n, &scan, &facts, &shared_head, &why);
	if (error != HTTP1_OK)
		return fail(p, error, why);
	/* What llhttp thinks of a response without length is right only if there is a body. */
	if (p->response && !shared_head.has_body)
		shared_head.keep_alive = p->ll.http_minor == 1
		    ? !(p->ll.flags & F_CONNECTION_CLOSE)
		    : (p->ll.flags & F_CONNECTION_KEEP_ALIVE) != 0;
	p->part_is_old = p->part != NULL;
	choose_body(p, &shared_head);
	return HTTP1_HEAD;
}

static enum http1_event
next_head(struct http1 *p, struct strv *in)
{
	size_t take, used;
	llhttp_errno_t error;

	if (p->have == 0 && !p->response)
		skip_blank_lines(in);
	if (in->n == 0)
		return HTTP1_MORE;
	take = in->n < HTTP1_HEAD_MAX - p->have ? in->n : HTTP1_HEAD_MAX - p->have;
	if (p->have == 0) {
		llhttp_init(&p->ll, p->response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
		p->ll.data = p;
		memset(&scan, 0, offsetof(struct http1_scan, name));
		scan_base = in->p;
	} else {
		part_resume(p, in->p, take);
		scan_base = p->part;
	}
	error = llhttp_execute(&p->ll, scan_base + p->have, take);
	if (error != HPE_OK && error != HPE_PAUSED)
		return fail_llhttp(p, error);
	used = error == HPE_OK ? take : (size_t)(p->ll.error_pos - scan_base) - p->have;
	in->p += used;
	in->n -= used;
	p->have += (uint32_t)used;
	if (error == HPE_PAUSED)
		return head_complete(p, p->have);
	if (p->have >= HTTP1_HEAD_MAX)
		return fail(p, HTTP1_TOO_LARGE, "head too large");
	part_save(p, scan_base, p->have);
	return HTTP1_MORE;
}

static enum http1_event
next_length(struct http1 *p, struct strv *in, struct strv *body)
{
	size_t n = in->n < p->left ? in->n : (size_t)p->left;

	if (n == 0)
		return HTTP1_MORE;
	*body = (struct strv){ in->p, n };
	in->p += n;
	in->n -= n;
	p->left -= n;
	if (p->left == 0)
		p->state = ST_END;
	return HTTP1_BODY;
}

static enum http1_event
next_chunked(struct http1 *p, struct strv *in, struct strv *body)
{
	llhttp_errno_t error;
	size_t used;

	if (in->n == 0)
		return HTTP1_MORE;
	p->piece = STRV_NONE;
	error = llhttp_execute(&p->ll, in->p, in->n);
	used = error == HPE_OK ? in->n : (size_t)(p->ll.error_pos - in->p);
	p->extra += (uint32_t)(used - p->piece.n);
	if (p->extra > OVERHEAD_MAX)
		return fail(p, HTTP1_TOO_LARGE, "chunk lines too large");
	if (error != HPE_OK && error != HPE_PAUSED)
		return fail_llhttp(p, error);
	in->p += used;
	in->n -= used;
	if (p->last_chunk) {
		p->state = ST_TRAILERS;
		p->extra = 0;
		return http1_next(p, in, body);
	}
	if (error == HPE_PAUSED)
		llhttp_resume(&p->ll);
	if (p->piece.n == 0)
		return HTTP1_MORE;
	p->extra = 0;
	*body = p->piece;
	return HTTP1_BODY;
}

static enum http1_event
next_end(struct http1 *p)
{
	if (p->upgrade) {
		p->state = ST_UPGRADE;
		return HTTP1_UPGRADE;
	}
	http1_reset(p);
	return HTTP1_DONE;
}

/* One byte of the trailers; false if it cannot stand there. They are dropped, but where they end
 * must be beyond doubt, and llhttp takes a bare LF here. */
static bool
trailer_byte(struct http1 *p, unsigned char c)
{
	switch ((enum trailer)p->trailer) {
	case TR_START:
		p->trailer = c == '\r' ? TR_LAST_LF : TR_NAME;
		return c == '\r' || http1_is_token(c);
	case TR_NAME:
		if (c == ':')
			p->trailer = TR_VALUE;
		return c == ':' || http1_is_token(c);
	case TR_VALUE:
		if (c == '\r')
			p->trailer = TR_LF;
		return c == '\r' || c == '\t' || (c >= ' ' && c != 0x7f);
	case TR_LF:
		p->trailer = TR_START;
		return c == '\n';
	case TR_LAST_LF:
		p->state = ST_END;
		return c == '\n';
	}
	BUG_ON(true);
}

static enum http1_event
next_trailers(struct http1 *p, struct strv *in)
{
	while (in->n > 0 && p->state == ST_TRAILERS) {
		if (++p->extra > OVERHEAD_MAX)
			return fail(p, HTTP1_TOO_LARGE, "trailers too large");
		if (!trailer_byte(p, (unsigned char)*in->p))
			return fail(p, HTTP1_BAD, "bad trailer");
		in->p++;
		in->n--;
	}
	return p->state == ST_END ? next_end(p) : HTTP1_MORE;
}

static enum http1_event
next_until_close(struct strv *in, struct strv *body)
{
	if (in->n == 0)
		return HTTP1_MORE;
	*body = *in;
	in->p += in->n;
	in->n = 0;
	return HTTP1_BODY;
}

enum http1_event
http1_next(struct http1 *p, struct strv *in, struct strv *body)
{
	if (p->part_is_old)
		part_drop(p);
	switch (p->state) {
	case ST_HEAD:
		return next_head(p, in);
	case ST_LENGTH:
		return next_length(p, in, body);
	case ST_CHUNKED:
		return next_chunked(p, in, body);
	case ST_TRAILERS:
		return next_trailers(p, in);
	case ST_UNTIL_CLOSE:
		return next_until_close(in, body);
	case ST_END:
		return next_end(p);
	case ST_UPGRADE:
		return HTTP1_UPGRADE;
	case ST_ERROR:
		return HTTP1_ERROR;
	}
	BUG_ON(true);
}

int
http1_finish(struct http1 *p)
{
	switch (p->state) {
	case ST_HEAD:
		return p->have == 0 && !p->interim ? 0 : -1;
	case ST_LENGTH:
	case ST_CHUNKED:
	case ST_TRAILERS:
	case ST_ERROR:
		return -1;
	case ST_UNTIL_CLOSE:
		p->state = ST_END;
		return 0;
	case ST_END:
	case ST_UPGRADE:
		return 0;
	}
	BUG_ON(true);
}

const struct http_head *
http1_head(const struct http1 *p UNUSED)
{
	return &shared_head;
}

enum http1_error
http1_error(const struct http1 *p)
{
	return p->error;
}

const char *
http1_error_text(const struct http1 *p)
{
	return p->why ? p->why : "";
}

int
http1_error_status(const struct http1 *p)
{
	switch (p->error) {
	case HTTP1_TOO_LARGE:
		return 431;
	case HTTP1_URI_TOO_LONG:
		return 414;
	case HTTP1_VERSION:
		return 505;
	case HTTP1_CODING:
		return 501;
	case HTTP1_OK:
	case HTTP1_BAD:
		break;
	}
	return 400;
}

bool
http1_idle(const struct http1 *p)
{
	return p->state == ST_HEAD && p->have == 0 && !p->interim;
}

int64_t
http1_body_left(const struct http1 *p)
{
	if (p->state == ST_LENGTH)
		return (int64_t)p->left;
	return p->state >= ST_CHUNKED && p->state <= ST_UNTIL_CLOSE ? -1 : 0;
}

void
http1_body_skip(struct http1 *p, uint64_t n)
{
	BUG_ON(p->state != ST_LENGTH || n > p->left);
	p->left -= n;
	if (p->left == 0)
		p->state = ST_END;
}
