/*
 * Pieces of HTTP messages. Owns the cached Date line; must not know of connections.
 */
#include "http/http_msg.h"

#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"

static const struct {
	int status;
	const char *text;
} status_texts[] = {
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 102, "Processing" },
	{ 103, "Early Hints" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 203, "Non-Authoritative Information" },
	{ 204, "No Content" },
	{ 205, "Reset Content" },
	{ 206, "Partial Content" },
	{ 207, "Multi-Status" },
	{ 300, "Multiple Choices" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 402, "Payment Required" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 407, "Proxy Authentication Required" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 423, "Locked" },
	{ 425, "Too Early" },
	{ 426, "Upgrade Required" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 451, "Unavailable For Legal Reasons" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
	{ 511, "Network Authentication Required" },
};

static const char *const method_names[] = {
	[HTTP_OTHER] = "OTHER",
	[HTTP_GET] = "GET",
	[HTTP_HEAD] = "HEAD",
	[HTTP_POST] = "POST",
	[HTTP_PUT] = "PUT",
	[HTTP_DELETE] = "DELETE",
	[HTTP_PATCH] = "PATCH",
	[HTTP_OPTIONS] = "OPTIONS",
	[HTTP_CONNECT] = "CONNECT",
	[HTTP_TRACE] = "TRACE",
};

const char *
http_status_text(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(status_texts); i++) {
		if (status_texts[i].status == status)
			return status_texts[i].text;
	}
	return "Unknown";
}

const char *
http_method_name(enum http_method m)
{
	BUG_ON((size_t)m >= ARRAY_LEN(method_names));
	return method_names[m];
}

bool
http_is_hop_by_hop(const struct http_head *h, struct strv name)
{
	bool hit = false;

	switch (name.n) {
	case 2:
		hit = strv_caseis(name, "te");
		break;
	case 7:
		hit = strv_caseis(name, "trailer") || strv_caseis(name, "upgrade");
		break;
	case 10:
		hit = strv_caseis(name, "connection") || strv_caseis(name, "keep-alive");
		break;
	case 16:
		hit = strv_caseis(name, "proxy-connection");
		break;
	case 17:
		hit = strv_caseis(name, "transfer-encoding");
		break;
	default:
		break;
	}
	/* Rare: most messages name nothing, so the fields are not searched for each name. */
	return hit || (h->connection_names && http_head_has_token_v(h, "connection", name));
}

/* The Date field as text; the clock is read for each reply, the text made once a second. */
static struct strv
date_line(void)
{
	static int64_t made = -1;
	static char line[TIME_TEXT_MAX + 10];
	static size_t n;
	int64_t wall = clock_wall();
	char date[TIME_TEXT_MAX];

	if (wall / NS_PER_S != made) {
		time_http_date(wall, date);
		n = (size_t)snprintf(line, sizeof(line), "Date: %s\r\n", date);
		made = wall / NS_PER_S;
	}
	return (struct strv){ line, n };
}

void
http_put_status_line(struct strbuf *b, int status)
{
	if (status == 200) {
		strbuf_addv(b, STRV("HTTP/1.1 200 OK\r\n"));
	} else {
		strbuf_addv(b, STRV("HTTP/1.1 "));
		strbuf_add_u64(b, (uint64_t)status);
		strbuf_addc(b, ' ');
		strbuf_adds(b, http_status_text(status));
		strbuf_addv(b, STRV("\r\n"));
	}
	strbuf_addv(b, date_line());
}

static bool
has_line_break(struct strv v)
{
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] == '\r' || v.p[i] == '\n' || v.p[i] == '\0')
			return true;
	}
	return false;
}

void
http_put_field(struct strbuf *b, struct strv name, struct strv value)
{
	if (name.n == 0 || has_line_break(name) || has_line_break(value))
		return;
	strbuf_addv(b, name);
	strbuf_addv(b, STRV(": "));
	strbuf_addv(b, value);
	strbuf_addv(b, STRV("\r\n"));
}

/* Puts the segments of p, n bytes that start behind a '/', in place over themselves with "." and
 * ".." resolved and empty ones dropped. Returns the new length. */
static size_t
clean_segments(char *p, size_t n)
{
	size_t from = 0, to = 0;

	while (from < n) {
		size_t end = from;

		while (end < n && p[end] != '/')
			end++;
		if (end - from == 2 && p[from] == '.' && p[from + 1] == '.') {
			while (to > 0 && p[--to] != '/')
				;
		} else if (end > from && !(end - from == 1 && p[from] == '.')) {
			if (to > 0)
				p[to++] = '/';
			memmove(p + to, p + from, end - from);
			to += end - from;
		}
		from = end + 1;
	}
	return to;
}

int
http_clean_path(struct strv path, struct strbuf *out)
{
	size_t base = out->n, len;
	char *p;

	if (path.n == 0 || path.p[0] != '/')
		strbuf_addc(out, '/');
	if (url_decode(path, false, out) == -1 || out->failed)
		return -1;
	p = out->p + base;
	len = out->n - base;
	if (memchr(p, '\0', len) != NULL)
		return -1;
	len = 1 + clean_segments(p + 1, len - 1);
	out->n = base + len;
	out->p[out->n] = '\0';
	return 0;
}
