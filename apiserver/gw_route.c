/*
 * Recognises sandbox traffic. Owns the forms of addressing; must not know whether a sandbox exists.
 */
#include "apiserver/gw_route.h"

#include <arpa/inet.h>

#include "domain/names.h"
#include "domain/sandbox.h"
#include "http/http_msg.h"

#define PORT_MAX 65535

static bool
is_digits(struct strv s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	}
	return s.n > 0;
}

/* Host without its port; an IPv6 literal keeps its brackets. */
static struct strv
host_name(struct strv host)
{
	struct strv rest;

	if (host.n > 0 && host.p[0] == '[') {
		ptrdiff_t end = strv_chr(host, ']');

		return end < 0 ? host : (struct strv){ host.p, (size_t)end + 1 };
	}
	return strv_cut(host, ':', &rest);
}

static bool
is_address(struct strv name)
{
	char text[INET_ADDRSTRLEN];
	struct in_addr a;

	if (name.n > 0 && name.p[0] == '[')
		return true;
	if (name.n >= sizeof(text) || name.n == 0 || name.p[0] < '0' || name.p[0] > '9')
		return false;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	return inet_pton(AF_INET, text, &a) == 1;
}

/* The shape of the ids that we make: such a part of a label can mean nothing else. */
static bool
is_own_id(struct strv part)
{
	return part.n == SANDBOX_ID_LEN && part.p[0] == 'i' && sandbox_id_valid(part);
}

static bool
names_own_id(struct strv label)
{
	while (label.n > 0) {
		if (is_own_id(strv_cut(label, '-', &label)))
			return true;
	}
	return false;
}

static enum gw_fail_kind
check(struct gw_route *r, struct strv port)
{
	uint64_t n;

	if (!is_digits(port) || strv_u64(port, PORT_MAX, &n) == -1 || n == 0)
		return GW_FAIL_BAD_PORT;
	r->port = (int)n;
	return sandbox_id_valid(r->id) ? GW_FAIL_NONE : GW_FAIL_BAD_ID;
}

/* <port>-<id>[-more].<suffix>. The suffix is not looked at, as in E2B. */
static bool
by_label(struct strv domain, struct strv name, struct gw_route *r)
{
	struct strv suffix, rest, more;
	struct strv label = strv_cut(name, '.', &suffix);
	bool dotted = label.n < name.n;
	struct strv port = strv_cut(label, '-', &rest);

	if (port.n == label.n) { /* no dash */
		if (!dotted || !is_digits(port) || domain.n == 0 || !strv_caseeq(suffix, domain))
			return false;
		r->fail = GW_FAIL_BAD_HOST;
	} else if (!is_digits(port) && !names_own_id(rest)) {
		return false;
	} else if (!dotted) {
		r->fail = GW_FAIL_BAD_HOST;
	} else {
		r->id = strv_cut(rest, '-', &more);
		r->fail = check(r, port);
	}
	r->how = GW_BY_LABEL;
	return true;
}

/* Is path "/root" or below it? */
static bool
is_under(struct strv path, const char *root)
{
	struct strv r = strv_of(root);

	return strv_prefix(path, r) && (path.n == r.n || path.p[r.n] == '/');
}

/* The API's own paths, whatever headers a client sends with them (an SDK sends the routing headers
 * with its control plane call `connect` too). Without the /e2b/v1 prefix E2B's routes are served on
 * api.<domain>; envd has no path of these names either. */
static bool
is_api_path(struct strv path, bool api_host, bool envd)
{
	static const char *const always[] = { "/e2b/v1", "/api/v1", "/mcp", "/ui" };
	static const char *const bare[] = { "/sandboxes", "/v2", "/v3", "/templates", "/teams",
		"/snapshots", "/volumes", "/volumecontent", "/secrets", "/api-keys",
		"/access-tokens", "/nodes", "/admin" };

	while (path.n > 1 && path.p[0] == '/' && path.p[1] == '/') {
		path.p++;
		path.n--;
	}
	for (size_t i = 0; i < ARRAY_LEN(always); i++) {
		if (is_under(path, always[i]))
			return true;
	}
	for (size_t i = 0; (api_host || envd) && i < ARRAY_LEN(bare); i++) {
		if (is_under(path, bare[i]))
			return true;
	}
	return false;
}

static bool
is_api_host(struct strv domain, struct strv name)
{
	struct strv suffix;

	return domain.n > 0 && strv_caseis(strv_cut(name, '.', &suffix), "api") &&
	    strv_caseeq(suffix, domain);
}

static bool
by_headers(struct strv domain, struct strv name, const struct http_head *h, struct gw_route *r)
{
	const struct strv *id = http_head_get(h, GW_HEADER_ID);
	const struct strv *port = http_head_get(h, GW_HEADER_PORT);
	bool has_id = id && id->n > 0, has_port = port && port->n > 0;
	static const struct strv shared = { "sandbox.", sizeof("sandbox.") - 1 };

	if (!has_id && !has_port)
		return false;
	if (is_api_path(
	        h->path, is_api_host(domain, name), has_port && strv_is(*port, ENVD_PORT_TEXT)))
		return false;
	r->how = GW_BY_HEADERS;
	if (name.n > shared.n && strv_caseeq((struct strv){ name.p, shared.n }, shared)) {
		r->how = GW_BY_SHARED_HOST;
		r->host_rest = (struct strv){ h->host.p + shared.n, h->host.n - shared.n };
	}
	if (!has_id || !has_port) {
		r->fail = GW_FAIL_MISSING_HEADER;
		return true;
	}
	r->id = *id;
	r->fail = check(r, *port);
	return true;
}

/* Cuts n bytes off the front of the path; what is left begins with '/'. */
static void
cut_prefix(struct gw_route *r, struct strv path, size_t n)
{
	r->prefix = (struct strv){ path.p, n };
	r->path = (struct strv){ path.p + n, path.n - n };
	if (r->path.n == 0)
		r->path = STRV("/");
}

static bool
by_path_id(struct strv path, struct gw_route *r)
{
	struct strv prefix = STRV(GW_PREFIX_ID), rest, more, port;

	if (!strv_prefix(path, prefix))
		return false;
	rest = (struct strv){ path.p + prefix.n, path.n - prefix.n };
	r->how = GW_BY_PATH_ID;
	r->id = strv_cut(rest, '/', &rest);
	port = strv_cut(rest, '/', &more);
	r->fail = check(r, port);
	if (r->fail != GW_FAIL_BAD_PORT)
		cut_prefix(r, path, prefix.n + r->id.n + 1 + port.n);
	return true;
}

static bool
is_name(struct strv s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
			return false;
	}
	return s.n > 0 && s.n <= SANDBOX_NAME_MAX;
}

static bool
by_path_name(const struct http_head *h, struct gw_route *r)
{
	struct strv prefix = STRV(GW_PREFIX_NAME), path = h->path, rest, value;
	uint64_t port;

	if (!strv_prefix(path, prefix) || path.n == prefix.n)
		return false;
	rest = (struct strv){ path.p + prefix.n, path.n - prefix.n };
	r->how = GW_BY_PATH_NAME;
	r->id = strv_cut(rest, '/', &rest);
	cut_prefix(r, path, prefix.n + r->id.n);
	if (!is_name(r->id)) {
		r->fail = GW_FAIL_BAD_ID;
	} else if (h->query.n > 0 && query_get(h->query, "port", &value)) {
		r->drop_port_param = true;
		if (strv_u64(value, PORT_MAX, &port) == -1 || port == 0)
			r->fail = GW_FAIL_BAD_PORT;
		else
			r->port = (int)port;
	}
	return true;
}

/* '?' and what follows, exactly as sent. */
static struct strv
tail_of(const struct http_head *h)
{
	ptrdiff_t at = strv_chr(h->target, '?');

	return at < 0 ? STRV_NONE : (struct strv){ h->target.p + at, h->target.n - (size_t)at };
}

void
gw_route_find(struct strv domain, const struct http_head *h, struct gw_route *ret)
{
	struct strv name = host_name(h->host);

	*ret = (struct gw_route){ .how = GW_BY_NOTHING, .path = h->path };
	if (is_address(name) || !by_label(domain, name, ret)) {
		if (!by_headers(domain, name, h, ret) && !by_path_id(h->path, ret) &&
		    !by_path_name(h, ret))
			return;
	}
	ret->tail = tail_of(h);
	if (ret->path.n == 0)
		ret->path = STRV("/");
	if (h->method == HTTP_CONNECT)
		ret->fail = GW_FAIL_METHOD;
}

static bool
is_reserved(struct strv path)
{
	static const char *const reserved[] = { "/init", "/freeze", "/unfreeze", "/fsfreeze",
		"/fsthaw", "/collapse", "/upgrade" };

	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		if (strv_is(path, reserved[i]))
			return true;
	}
	return false;
}

/* Nothing in it that cleaning would change? */
static bool
is_clean(struct strv path)
{
	for (size_t i = 0; i < path.n; i++) {
		char c = path.p[i];

		if (c == '%' || (c == '/' && i + 1 == path.n) || c == '\\')
			return false;
		if (c == '/' && (path.p[i + 1] == '/' || path.p[i + 1] == '.'))
			return false;
	}
	return path.n > 0 && path.p[0] == '/';
}

int
gw_route_reserved(struct strv path, struct strbuf *clean)
{
	strbuf_reset(clean);
	if (is_clean(path)) {
		if (!is_reserved(path))
			return 0;
		strbuf_addv(clean, path);
		return 1;
	}
	if (path.n == 1 && path.p[0] == '/')
		return 0;
	if (http_clean_path(path, clean) == -1 || clean->failed)
		return -1;
	return is_reserved(strbuf_view(clean));
}
