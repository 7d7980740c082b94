/*
 * Bodies of the gateway's failure answers. Owns the table of kinds; must not know of connections.
 */
#include "apiserver/gw_errors.h"

#include "base/bug.h"

#define SECURED "Sandbox is secured with traffic access token. "

static const struct kind {
	int status;
	const char *label;
	const char *message; /* of the JSON body, or the plain text */
	const char *title;   /* of the page; NULL: there is none */
} kinds[GW_FAIL_COUNT] = {
	[GW_FAIL_NONE] = { 500, "internal", "Internal error", NULL },
	[GW_FAIL_NOT_FOUND] = { 502, "not_found", "The sandbox was not found",
	    "Sandbox Not Found" },
	[GW_FAIL_PORT_CLOSED] = { 502, "port_closed", "The sandbox is running but port is not open",
	    "Closed Port Error" },
	[GW_FAIL_TOKEN_MISSING] = { 403, "denied",
	    SECURED "Token header 'e2b-traffic-access-token' is missing",
	    "Missing Traffic Access Token" },
	[GW_FAIL_TOKEN_WRONG] = { 403, "denied",
	    SECURED "Provided token in header 'e2b-traffic-access-token' is invalid",
	    "Invalid Traffic Access Token" },
	[GW_FAIL_RESUME_DENIED] = { 403, "denied",
	    "This sandbox can't be resumed with the credentials provided. Check your access token "
	    "and try again.",
	    "Unable to Resume Sandbox" },
	[GW_FAIL_TRANSITION] = { 409, "transition",
	    "The sandbox is still transitioning. Try again in a moment.",
	    "Sandbox Still Transitioning" },
	[GW_FAIL_LIMIT] = { 429, "limit", "Sandbox limit reached", "Sandbox Limit Reached" },
	[GW_FAIL_CONNECTIONS] = { 429, "connections",
	    "The sandbox has too many concurrent incoming connections", "Too Many Connections" },
	[GW_FAIL_RESERVED] = { 404, "reserved",
	    "This endpoint is reserved for the E2B control plane and is not reachable through the "
	    "sandbox URL",
	    "Endpoint Not Available" },
	[GW_FAIL_BUSY] = { 503, "busy",
	    "Too many requests wait for sandboxes to start. Try again in a moment.",
	    "Too Many Waiting Requests" },
	[GW_FAIL_UNAVAILABLE] = { 503, "unavailable",
	    "The sandbox could not be started now. Try again in a moment.", "Sandbox Unavailable" },
	[GW_FAIL_NOT_READY] = { 503, "not_ready",
	    "The sandbox is still starting. Try again in a moment.", "Sandbox Still Starting" },
	[GW_FAIL_BAD_HOST] = { 400, "bad_request", "Invalid host", NULL },
	[GW_FAIL_BAD_ID] = { 400, "bad_request", "Invalid sandbox ID", NULL },
	[GW_FAIL_MISSING_HEADER] = { 400, "bad_request", "missing header", NULL },
	[GW_FAIL_BAD_PORT] = { 400, "bad_request", "Invalid sandbox port", NULL },
	[GW_FAIL_BAD_PATH] = { 400, "bad_request", "Invalid path", NULL },
	[GW_FAIL_METHOD] = { 405, "bad_request", "Method not allowed", NULL },
};

int
gw_fail_status(enum gw_fail_kind kind)
{
	return kinds[kind].status;
}

const char *
gw_fail_label(enum gw_fail_kind kind)
{
	return kinds[kind].label;
}

static struct strv
value_of(const struct http_head *h, const char *name)
{
	const struct strv *v = http_head_get(h, name);

	return v ? *v : STRV_NONE;
}

struct gw_hints
gw_hints_of_head(const struct http_head *h)
{
	return (struct gw_hints){
		.accept = value_of(h, "accept"),
		.fetch_mode = value_of(h, "sec-fetch-mode"),
		.requested_with = value_of(h, "x-requested-with"),
		.user_agent = value_of(h, "user-agent"),
	};
}

struct gw_hints
gw_hints_of_text(struct strv head)
{
	struct gw_hints hints = { .accept = STRV_NONE };
	const struct {
		const char *name;
		struct strv *to;
	} want[] = {
		{ "accept", &hints.accept },
		{ "sec-fetch-mode", &hints.fetch_mode },
		{ "x-requested-with", &hints.requested_with },
		{ "user-agent", &hints.user_agent },
	};

	strv_cut(head, '\n', &head);
	while (head.n > 0) {
		struct strv line = strv_cut(head, '\n', &head), value;
		struct strv name = strv_cut(line, ':', &value);

		if (strv_trim(line).n == 0 || strv_is(line, "\r"))
			break;
		for (size_t i = 0; i < ARRAY_LEN(want); i++) {
			if (want[i].to->p == NULL && strv_caseis(name, want[i].name)) {
				if (value.n > 0 && value.p[value.n - 1] == '\r')
					value.n--;
				*want[i].to = strv_trim(value);
			}
		}
	}
	return hints;
}

/* word is lower-case. */
static bool
has_word(struct strv text, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= text.n; i++) {
		if (strv_caseeq((struct strv){ text.p + i, n }, (struct strv){ word, n }))
			return true;
	}
	return false;
}

bool
gw_hints_want_page(const struct gw_hints *hints)
{
	static const char *const script_modes[] = { "cors", "no-cors", "same-origin", "websocket" };
	static const char *const browsers[] = { "mozilla", "chrome", "safari", "firefox", "edge",
		"opera", "msie" };

	if (has_word(hints->accept, "application/json") && !has_word(hints->accept, "text/html"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(script_modes); i++) {
		if (strv_caseis(hints->fetch_mode, script_modes[i]))
			return false;
	}
	if (!strv_caseis(hints->fetch_mode, "navigate") && hints->requested_with.n > 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(browsers); i++) {
		if (has_word(hints->user_agent, browsers[i]))
			return true;
	}
	return false;
}

static struct strv
message_of(const struct gw_fail *f)
{
	if (f->message.n > 0 && (f->kind == GW_FAIL_LIMIT || f->kind == GW_FAIL_UNAVAILABLE))
		return f->message;
	return strv_of(kinds[f->kind].message);
}

static void
put_page(const struct gw_fail *f, struct strbuf *b)
{
	const char *title = kinds[f->kind].title;

	strbuf_adds(b, "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
	strbuf_adds(b, title);
	strbuf_adds(b,
	    "</title></head><body style=\"font-family:sans-serif;margin:4em auto;"
	    "max-width:40em\"><h1>");
	strbuf_adds(b, title);
	strbuf_adds(b, "</h1><p>");
	if (f->kind == GW_FAIL_PORT_CLOSED) {
		strbuf_addf(b,
		    "The sandbox is running, but there is no service running on port %d.", f->port);
	} else {
		strbuf_add_html(b, message_of(f));
	}
	strbuf_adds(b, "</p>");
	if (f->id.n > 0) {
		strbuf_adds(b, "<p>Sandbox: <code>");
		strbuf_add_html(b, f->id);
		strbuf_adds(b, "</code></p>");
	}
	strbuf_adds(b, "</body></html>");
}

static void
put_json(const struct gw_fail *f, struct strbuf *b)
{
	strbuf_addc(b, '{');
	if (f->kind != GW_FAIL_RESERVED) {
		strbuf_adds(b, "\"sandboxId\":");
		strbuf_add_json(b, f->id);
		strbuf_addc(b, ',');
	}
	strbuf_adds(b, "\"message\":");
	if (f->kind == GW_FAIL_CONNECTIONS) {
		strbuf_addf(b, "\"%s (limit: %u)\"", kinds[f->kind].message, f->limit);
	} else {
		strbuf_add_json(b, message_of(f));
	}
	if (f->kind == GW_FAIL_PORT_CLOSED)
		strbuf_addf(b, ",\"port\":%d", f->port);
	if (f->kind == GW_FAIL_RESERVED) {
		strbuf_adds(b, ",\"path\":");
		strbuf_add_json(b, f->path);
	}
	strbuf_addf(b, ",\"code\":%d", kinds[f->kind].status);
	if (f->kind == GW_FAIL_CONNECTIONS)
		strbuf_addf(b, ",\"connectionLimit\":%u", f->limit);
	strbuf_addc(b, '}');
}

const char *
gw_fail_body(const struct gw_fail *f, bool page, struct strbuf *b)
{
	if (kinds[f->kind].title == NULL) {
		strbuf_adds(b, kinds[f->kind].message);
		return "text/plain; charset=utf-8";
	}
	if (page) {
		put_page(f, b);
		return "text/html; charset=utf-8";
	}
	put_json(f, b);
	return "application/json; charset=utf-8";
}
