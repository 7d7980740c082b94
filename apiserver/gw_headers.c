/*
 * Writes heads. Owns the lists of fields that end at the gateway; must not know of connections.
 *
 * Room is reserved once per head, for the sum of all fields, and then only copied: this is the
 * hottest loop of the gateway's own code.
 */
#include "apiserver/gw_headers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "http/http_msg.h"

#define EXTRA_MAX 256 /* fixed text of one head: version, framing, connection, date */
#define BUF_MIN 2048

char *
gw_buf_room(struct gw_buf *b, size_t n)
{
	if (b->cap - b->n < n) {
		b->cap = b->n + n < BUF_MIN ? BUF_MIN : b->n + n;
		b->p = xrealloc(b->p, b->cap);
	}
	return b->p + b->n;
}

void
gw_buf_add(struct gw_buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	memcpy(gw_buf_room(b, n), p, n);
	b->n += n;
}

void
gw_buf_done(struct gw_buf *b)
{
	xfree(b->p);
	*b = (struct gw_buf){ .p = NULL };
}

static inline char *
put(char *d, struct strv v)
{
	if (v.n > 0)
		memcpy(d, v.p, v.n);
	return d + v.n;
}

#define PUT_LIT(d, lit) (memcpy((d), (lit), sizeof(lit) - 1), (d) + sizeof(lit) - 1)

static inline char *
put_field(char *d, struct strv name, struct strv value)
{
	d = put(d, name);
	d = PUT_LIT(d, ": ");
	d = put(d, value);
	return PUT_LIT(d, "\r\n");
}

static char *
put_number(char *d, uint64_t v)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	return put(d, (struct strv){ digits + at, sizeof(digits) - at });
}

size_t
gw_chunk_line(char out[GW_CHUNK_LINE_MAX], size_t n)
{
	static const char hex[] = "0123456789abcdef";
	char digits[16];
	size_t at = sizeof(digits), len;

	do {
		digits[--at] = hex[n & 15];
		n >>= 4;
	} while (n > 0);
	len = sizeof(digits) - at;
	memcpy(out, digits + at, len);
	out[len++] = '\r';
	out[len++] = '\n';
	return len;
}

static size_t
fields_size(const struct http_head *h)
{
	size_t n = 0;

	for (unsigned i = 0; i < h->n; i++)
		n += h->field[i].name.n + h->field[i].value.n + 4;
	return n;
}

static bool
has_prefix(struct strv name, const char *prefix, size_t n)
{
	return name.n > n && strv_caseeq((struct strv){ name.p, n }, (struct strv){ prefix, n });
}

#define HAS_PREFIX(name, lit) has_prefix(name, lit, sizeof(lit) - 1)

/* Fields that concern one hop, or that the gateway writes itself; both directions. */
static bool
ends_here(struct strv name)
{
	switch (name.n) {
	case 2:
		return strv_caseis(name, "te");
	case 7:
		return strv_caseis(name, "trailer") || strv_caseis(name, "upgrade");
	case 10:
		return strv_caseis(name, "connection") || strv_caseis(name, "keep-alive");
	case 14:
		return strv_caseis(name, "content-length");
	case 17:
		return strv_caseis(name, "transfer-encoding");
	default:
		return (name.p[0] | 0x20) == 'p' && HAS_PREFIX(name, "proxy-");
	}
}

static bool
request_ends_here(struct strv name)
{
	switch (name.n) {
	case 4:
		return strv_caseis(name, "host");
	case 9:
		return strv_caseis(name, "forwarded");
	case 24:
		return strv_caseis(name, "e2b-traffic-access-token");
	default:
		break;
	}
	if ((name.p[0] | 0x20) == 'x' && HAS_PREFIX(name, "x-forwarded-"))
		return true;
	return ends_here(name);
}

/* The query without its `port` parameters; d has room for all of tail. */
static char *
put_tail(char *d, struct strv tail, bool drop_port)
{
	char sep = '?';
	struct strv rest, value;

	if (!drop_port)
		return put(d, tail);
	rest = (struct strv){ tail.p + 1, tail.n - 1 };
	while (rest.n > 0) {
		struct strv pair = strv_cut(rest, '&', &rest);

		if (pair.n == 0 || query_get(pair, "port", &value))
			continue;
		*d++ = sep;
		sep = '&';
		d = put(d, pair);
	}
	return d;
}

static char *
put_upgrade(char *d, const struct http_head *h)
{
	d = PUT_LIT(d, "Connection: Upgrade\r\n");
	for (unsigned i = 0; i < h->n; i++) {
		if (strv_caseis(h->field[i].name, "upgrade"))
			d = put_field(d, h->field[i].name, h->field[i].value);
	}
	return d;
}

void
gw_put_request(struct gw_buf *b, const struct http_head *h, const struct gw_request_opts *o)
{
	char *d;

	b->n = 0;
	d = gw_buf_room(b,
	    h->method_text.n + o->path.n + o->tail.n + o->host.n + o->forwarded_host.n +
	        o->prefix.n + fields_size(h) + EXTRA_MAX);
	d = put(d, h->method_text);
	*d++ = ' ';
	d = put(d, o->path);
	if (o->tail.n > 0)
		d = put_tail(d, o->tail, o->drop_port_param);
	d = PUT_LIT(d, " HTTP/1.1\r\nHost: ");
	d = put(d, o->host);
	d = PUT_LIT(d, "\r\n");
	for (unsigned i = 0; i < h->n; i++) {
		struct strv name = h->field[i].name;

		if (request_ends_here(name))
			continue;
		if (h->connection_names && http_is_hop_by_hop(h, name))
			continue;
		d = put_field(d, name, h->field[i].value);
	}
	if (h->chunked) {
		d = PUT_LIT(d, "Transfer-Encoding: chunked\r\n");
	} else if (h->length >= 0) {
		d = PUT_LIT(d, "Content-Length: ");
		d = put_number(d, (uint64_t)h->length);
		d = PUT_LIT(d, "\r\n");
	}
	if (o->forwarded_host.p)
		d = put_field(d, STRV("X-Forwarded-Host"), o->forwarded_host);
	if (o->prefix.n > 0)
		d = put_field(d, STRV("X-Forwarded-Prefix"), o->prefix);
	if (o->upgrade && h->upgrade)
		d = put_upgrade(d, h);
	d = PUT_LIT(d, "\r\n");
	b->n = (size_t)(d - b->p);
}

enum gw_framing
gw_response_framing(const struct http_head *h, int minor)
{
	if (!h->has_body)
		return GW_FRAME_NONE;
	if (!h->chunked && h->length >= 0)
		return GW_FRAME_LENGTH;
	/* A body that ends with the sandbox's connection gets chunks, so that the client's can go
	 * on and a cut shows. */
	return minor >= 1 ? GW_FRAME_CHUNKED : GW_FRAME_CLOSE;
}

/* Is Content-Length part of this head? It describes the body, or (HEAD, 304) what there would be.
 */
static bool
tells_length(const struct http_head *h, const struct gw_response_opts *o)
{
	if (h->length < 0 || h->chunked || h->status < 200 || h->status == 204)
		return false;
	return o->framing == GW_FRAME_LENGTH || o->head_request || h->status == 304 ||
	    h->length == 0;
}

static char *
put_connection(char *d, const struct http_head *h, const struct gw_response_opts *o)
{
	if (h->status == 101)
		return put_upgrade(d, h);
	if (h->status < 200)
		return d;
	if (!o->keep)
		return PUT_LIT(d, "Connection: close\r\n");
	return o->minor == 0 ? PUT_LIT(d, "Connection: keep-alive\r\n") : d;
}

void
gw_put_response(struct gw_buf *b, const struct http_head *h, const struct gw_response_opts *o)
{
	bool dated = o->date == NULL || h->status < 200;
	char *d = gw_buf_room(b, h->reason.n + fields_size(h) + EXTRA_MAX);

	d = PUT_LIT(d, "HTTP/1.1 ");
	d = put_number(d, (uint64_t)h->status);
	*d++ = ' ';
	d = put(d, h->reason);
	d = PUT_LIT(d, "\r\n");
	for (unsigned i = 0; i < h->n; i++) {
		struct strv name = h->field[i].name;

		if (ends_here(name))
			continue;
		if (h->connection_names && http_is_hop_by_hop(h, name))
			continue;
		if (!dated && name.n == 4 && strv_caseis(name, "date"))
			dated = true;
		d = put_field(d, name, h->field[i].value);
	}
	if (o->framing == GW_FRAME_CHUNKED) {
		d = PUT_LIT(d, "Transfer-Encoding: chunked\r\n");
	} else if (tells_length(h, o)) {
		d = PUT_LIT(d, "Content-Length: ");
		d = put_number(d, (uint64_t)h->length);
		d = PUT_LIT(d, "\r\n");
	}
	if (!dated)
		d = put_field(d, STRV("Date"), strv_of(o->date));
	d = put_connection(d, h, o);
	d = PUT_LIT(d, "\r\n");
	b->n = (size_t)(d - b->p);
}
