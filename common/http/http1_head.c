/*
 * From the spans that llhttp found to a checked struct http_head. This is the policy: what llhttp
 * lets through and we do not is refused here. It takes only the places of the names from llhttp and
 * finds the values by itself, so both must agree on every line break (folded values, CR inside a
 * value and CVE-2023-30589 end here). No state.
 */
#include <string.h>

#include "http/http_msg.h"
#include "http1_priv.h"

struct builder {
	const char *base;
	size_t n;
	const struct http1_facts *facts;
	struct http_head *h;
	const char *why;
	unsigned hosts, lengths, codings;
};

static struct strv
span_view(const char *base, struct http1_span s)
{
	return (struct strv){ base + s.off, s.len };
}

static enum http1_error
refuse(struct builder *b, enum http1_error error, const char *why)
{
	b->why = why;
	return error;
}

/* A comma-separated list: next element, trimmed; false at the end. */
static bool
next_token(struct strv *list, struct strv *token)
{
	while (list->n > 0) {
		*token = strv_trim(strv_cut(*list, ',', list));
		if (token->n > 0)
			return true;
	}
	return false;
}

const struct strv *
http_head_get(const struct http_head *h, const char *name)
{
	struct strv want = strv_of(name);

	for (unsigned i = 0; i < h->n; i++) {
		if (h->field[i].name.n == want.n && strv_caseeq(h->field[i].name, want))
			return &h->field[i].value;
	}
	return NULL;
}

bool
http_head_has_token_v(const struct http_head *h, const char *name, struct strv token)
{
	struct strv want = strv_of(name);

	for (unsigned i = 0; i < h->n; i++) {
		struct strv list = h->field[i].value, t;

		if (h->field[i].name.n != want.n || !strv_caseeq(h->field[i].name, want))
			continue;
		while (next_token(&list, &t)) {
			if (strv_caseeq(t, token))
				return true;
		}
	}
	return false;
}

bool
http_head_has_token(const struct http_head *h, const char *name, const char *token)
{
	return http_head_has_token_v(h, name, strv_of(token));
}

/* What a character may be part of: a token (RFC 9110 5.6.2), a host with its port. */
enum { CLASS_TOKEN = 1, CLASS_HOST = 2 };
static const unsigned char class_of[256] = {
	['0' ... '9'] = CLASS_TOKEN | CLASS_HOST,
	['A' ... 'Z'] = CLASS_TOKEN | CLASS_HOST,
	['a' ... 'z'] = CLASS_TOKEN | CLASS_HOST,
	['-'] = CLASS_TOKEN | CLASS_HOST,
	['.'] = CLASS_TOKEN | CLASS_HOST,
	['_'] = CLASS_TOKEN | CLASS_HOST,
	['~'] = CLASS_TOKEN | CLASS_HOST,
	['%'] = CLASS_TOKEN | CLASS_HOST,
	['!'] = CLASS_TOKEN,
	['#'] = CLASS_TOKEN,
	['$'] = CLASS_TOKEN,
	['&'] = CLASS_TOKEN,
	['\''] = CLASS_TOKEN,
	['*'] = CLASS_TOKEN,
	['+'] = CLASS_TOKEN,
	['^'] = CLASS_TOKEN,
	['`'] = CLASS_TOKEN,
	['|'] = CLASS_TOKEN,
	[':'] = CLASS_HOST,
	['['] = CLASS_HOST,
	[']'] = CLASS_HOST,
};

bool
http1_is_token(unsigned char c)
{
	return class_of[c] & CLASS_TOKEN;
}

static bool
token_valid(struct strv v)
{
	for (size_t i = 0; i < v.n; i++) {
		if (!(class_of[(unsigned char)v.p[i]] & CLASS_TOKEN))
			return false;
	}
	return v.n > 0;
}

/* Letters, digits and what names, addresses and ports need; no '@', so no user part. */
static bool
host_valid(struct strv host)
{
	for (size_t i = 0; i < host.n; i++) {
		if (!(class_of[(unsigned char)host.p[i]] & CLASS_HOST))
			return false;
	}
	return true;
}

static enum http1_error
field_length(struct builder *b, struct strv value)
{
	uint64_t length;

	if (++b->lengths > 1)
		return refuse(b, HTTP1_BAD, "more than one Content-Length");
	if (strv_u64(value, INT64_MAX, &length) == -1)
		return refuse(b, HTTP1_BAD, "bad Content-Length");
	b->h->length = (int64_t)length;
	return HTTP1_OK;
}

static enum http1_error
field_coding(struct builder *b, struct strv value)
{
	if (++b->codings > 1)
		return refuse(b, HTTP1_BAD, "more than one Transfer-Encoding");
	if (b->facts->minor == 0)
		return refuse(b, HTTP1_BAD, "Transfer-Encoding in HTTP/1.0");
	if (!strv_caseis(value, "chunked"))
		return refuse(b, HTTP1_CODING, "unknown transfer coding");
	b->h->chunked = true;
	return HTTP1_OK;
}

static void
field_connection(struct builder *b, struct strv value)
{
	struct strv t;

	while (next_token(&value, &t)) {
		if (!strv_caseis(t, "keep-alive") && !strv_caseis(t, "close") &&
		    !strv_caseis(t, "upgrade"))
			b->h->connection_names = true;
	}
}

/* The few fields that mean something here, told apart by length first. */
static enum http1_error
field_known(struct builder *b, struct strv name, struct strv value)
{
	switch (name.n) {
	case 4:
		if (strv_caseis(name, "host")) {
			if (++b->hosts > 1)
				return refuse(b, HTTP1_BAD, "more than one Host");
			if (!host_valid(value))
				return refuse(b, HTTP1_BAD, "bad Host");
			b->h->host = value;
		}
		break;
	case 6:
		if (strv_caseis(name, "expect") && strv_caseis(value, "100-continue"))
			b->h->expect_continue = true;
		break;
	case 10:
		if (strv_caseis(name, "connection"))
			field_connection(b, value);
		break;
	case 14:
		if (strv_caseis(name, "content-length"))
			return field_length(b, value);
		break;
	case 17:
		if (strv_caseis(name, "transfer-encoding"))
			return field_coding(b, value);
		break;
	default:
		break;
	}
	return HTTP1_OK;
}

/* The field whose name is at span; its line must end with CRLF exactly at end. */
static enum http1_error
add_field(struct builder *b, struct http1_span span, size_t end)
{
	struct http_field *f = &b->h->field[b->h->n];
	size_t start = (size_t)span.off + span.len + 1;
	const char *cr;

	if (start + 2 > end || b->base[start - 1] != ':')
		return refuse(b, HTTP1_BAD, "bad field");
	if (span.len > HTTP1_NAME_MAX)
		return refuse(b, HTTP1_TOO_LARGE, "field name too long");
	if (!token_valid(span_view(b->base, span)))
		return refuse(b, HTTP1_BAD, "bad field name");
	cr = memchr(b->base + start, '\r', end - start);
	if (cr != b->base + end - 2 || cr[1] != '\n')
		return refuse(b, HTTP1_BAD, "line break in a field value");
	f->name = span_view(b->base, span);
	f->value = strv_trim((struct strv){ b->base + start, end - 2 - start });
	b->h->n++;
	return field_known(b, f->name, f->value);
}

static enum http1_error
add_fields(struct builder *b, const struct http1_scan *scan)
{
	enum http1_error error;

	if (b->n < 4 || memcmp(b->base + b->n - 4, "\r\n\r\n", 4) != 0)
		return refuse(b, HTTP1_BAD, "bad end of head");
	for (uint32_t i = 0; i < scan->n; i++) {
		size_t end = i + 1 < scan->n ? scan->name[i + 1].off : b->n - 2;

		error = add_field(b, scan->name[i], end);
		if (error != HTTP1_OK)
			return error;
	}
	return HTTP1_OK;
}

static enum http_method
method_of(struct strv m)
{
	for (int i = HTTP_GET; i <= HTTP_TRACE; i++) {
		if (strv_is(m, http_method_name((enum http_method)i)))
			return (enum http_method)i;
	}
	return HTTP_OTHER;
}

/* "http://host:port/path": the authority replaces Host (RFC 9112 3.2.2). */
static enum http1_error
target_absolute(struct builder *b, struct strv t)
{
	size_t scheme = strv_prefix(t, STRV("http://")) ? 7
	    : strv_prefix(t, STRV("https://"))          ? 8
	                                                : 0;
	size_t end = scheme;

	if (scheme == 0)
		return refuse(b, HTTP1_BAD, "bad request target");
	while (end < t.n && t.p[end] != '/' && t.p[end] != '?')
		end++;
	b->h->host = (struct strv){ t.p + scheme, end - scheme };
	if (end == scheme || !host_valid(b->h->host))
		return refuse(b, HTTP1_BAD, "bad authority in the request target");
	b->h->path = (struct strv){ t.p + end, t.n - end };
	return HTTP1_OK;
}

static enum http1_error
split_target(struct builder *b)
{
	struct http_head *h = b->h;
	struct strv t = h->target;
	enum http1_error error = HTTP1_OK;

	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];

		if (c <= ' ' || c == 0x7f || c == '#')
			return refuse(b, HTTP1_BAD, "bad character in the request target");
	}
	if (h->method == HTTP_CONNECT) {
		h->host = t;
		return host_valid(t) ? HTTP1_OK : refuse(b, HTTP1_BAD, "bad CONNECT target");
	}
	if (t.p[0] == '/' || (t.p[0] == '*' && t.n == 1))
		h->path = t;
	else
		error = target_absolute(b, t);
	h->path = strv_cut(h->path, '?', &h->query);
	if (h->path.n == 0)
		h->path = STRV("/");
	return error;
}

/* METHOD SP target SP HTTP/1.x CRLF, single blanks; in front of the first field or the end. */
static enum http1_error
request_line(struct builder *b, const struct http1_scan *scan)
{
	struct http_head *h = b->h;
	size_t method_end = (size_t)scan->method.off + scan->method.len;
	size_t target_end = (size_t)scan->target.off + scan->target.len;
	size_t version_end = (size_t)scan->version.off + scan->version.len;
	size_t fields = scan->n > 0 ? scan->name[0].off : b->n - 2;

	if (scan->method.len == 0 || scan->target.len == 0 || scan->version.len != 3)
		return refuse(b, HTTP1_VERSION, "bad request line");
	if (scan->target.off != method_end + 1 || b->base[method_end] != ' ' ||
	    b->base[target_end] != ' ' || scan->version.off != target_end + 6 ||
	    memcmp(b->base + target_end + 1, "HTTP/", 5) != 0 || fields != version_end + 2 ||
	    memcmp(b->base + version_end, "\r\n", 2) != 0)
		return refuse(b, HTTP1_BAD, "bad request line");
	h->method_text = span_view(b->base, scan->method);
	h->method = method_of(h->method_text);
	h->target = span_view(b->base, scan->target);
	return HTTP1_OK;
}

static enum http1_error
status_line(struct builder *b, const struct http1_scan *scan)
{
	size_t fields = scan->n > 0 ? scan->name[0].off : b->n - 2;

	if (scan->version.len != 3 || b->facts->status < 100 || b->facts->status > 599)
		return refuse(b, HTTP1_BAD, "bad status line");
	if (memcmp(b->base + fields - 2, "\r\n", 2) != 0 ||
	    memchr(b->base, '\r', fields) != b->base + fields - 2)
		return refuse(b, HTTP1_BAD, "bad status line");
	b->h->status = b->facts->status;
	b->h->reason = span_view(b->base, scan->reason);
	return HTTP1_OK;
}

static bool
response_has_body(const struct builder *b)
{
	int status = b->facts->status;

	if (b->facts->head_request || status < 200 || status == 204 || status == 304)
		return false;
	return b->h->chunked || b->h->length != 0;
}

enum http1_error
http1_head_build(const char *base, size_t n, const struct http1_scan *scan,
    const struct http1_facts *facts, struct http_head *h, const char **why)
{
	struct builder b = { .base = base, .n = n, .facts = facts, .h = h };
	enum http1_error error;

	memset(h, 0, offsetof(struct http_head, field));
	h->length = -1;
	h->minor = facts->minor;
	if (facts->major != 1 || facts->minor > 1)
		error = refuse(&b, HTTP1_VERSION, "not HTTP/1.0 or HTTP/1.1");
	else
		error = facts->response ? status_line(&b, scan) : request_line(&b, scan);
	if (error == HTTP1_OK)
		error = add_fields(&b, scan);
	if (error == HTTP1_OK && b.codings > 0 && b.lengths > 0)
		error = refuse(&b, HTTP1_BAD, "Content-Length beside Transfer-Encoding");
	if (error == HTTP1_OK && !facts->response && facts->minor == 1 && b.hosts == 0)
		error = refuse(&b, HTTP1_BAD, "no Host");
	if (error == HTTP1_OK && !facts->response)
		error = split_target(&b);
	h->keep_alive = facts->keep_alive;
	if (facts->response) {
		h->upgrade = facts->status == 101;
		h->has_body = response_has_body(&b);
	} else {
		h->upgrade = facts->upgrade && facts->minor == 1 && h->method != HTTP_CONNECT;
		h->has_body = h->method != HTTP_CONNECT && (h->chunked || h->length > 0);
	}
	h->expect_continue = h->expect_continue && h->has_body && facts->minor == 1;
	*why = b.why;
	return error;
}
