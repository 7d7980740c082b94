/*
 * Who may pass: reserved paths, existence, private ingress, the right to wake, limits. Owns the
 * order of these checks (E2B's); must not know of sessions. Tokens are compared in constant time.
 */
#include "apiserver/gw.h"

#include "base/rand.h"

static bool
token_fits(const struct gateway *g, const struct gw_box *box, const struct strv *given,
    void (*make)(const struct install_key *k, struct strv id, char out[TOKEN_LEN + 1]))
{
	char want[TOKEN_LEN + 1];

	if (given == NULL || given->n == 0 || !g->conf.key->known)
		return false;
	make(g->conf.key, strv_of(box->id), want);
	return equal_consttime(*given, (struct strv){ want, TOKEN_LEN });
}

/* A request that would wake a sandbox must show what the awake sandbox would ask for. */
static enum gw_fail_kind
check_waker(const struct gateway *g, const struct gw_box *box, const struct http_head *h, int port)
{
	bool ok = true;

	if (port == ENVD_PORT && box->secure)
		ok = token_fits(g, box, http_head_get(h, "x-access-token"), token_envd);
	else if (port != ENVD_PORT && box->private_ingress)
		ok = token_fits(g, box, http_head_get(h, GW_HEADER_TRAFFIC), token_traffic);
	return ok ? GW_FAIL_NONE : GW_FAIL_RESUME_DENIED;
}

static enum gw_fail_kind
check_box(const struct gateway *g, const struct gw_box *box, const struct http_head *h, int port,
    struct gw_fail *f)
{
	const struct strv *token;

	if (box->verdict == GW_BOX_GONE)
		return GW_FAIL_NOT_FOUND;
	if (!g->conf.key->known) /* no token can be judged yet */
		return GW_FAIL_UNAVAILABLE;
	if (box->verdict == GW_BOX_ASLEEP) {
		enum gw_fail_kind kind = check_waker(g, box, h, port);

		if (kind != GW_FAIL_NONE)
			return kind;
	} else if (box->private_ingress && port != ENVD_PORT) {
		token = http_head_get(h, GW_HEADER_TRAFFIC);
		if (token == NULL || token->n == 0)
			return GW_FAIL_TOKEN_MISSING;
		if (!token_fits(g, box, token, token_traffic))
			return GW_FAIL_TOKEN_WRONG;
	}
	if (box->session_n >= GW_BOX_SESSIONS_MAX) {
		gw_count_limit("sandbox_sessions");
		f->limit = GW_BOX_SESSIONS_MAX;
		return GW_FAIL_CONNECTIONS;
	}
	return GW_FAIL_NONE;
}

static struct gw_box *
find_box(struct gateway *g, const struct gw_route *route)
{
	struct sandbox_entry entry;

	if (route->how != GW_BY_PATH_NAME)
		return gw_box_get(g, route->id);
	if (!sandbox_view_by_name(g->conf.view, route->id, &entry) || entry.sandbox == NULL)
		return NULL;
	return gw_box_get(g, strv_of(entry.sandbox->id));
}

/* Before the first list is in, "not found" would be a lie that makes clients give a sandbox up. */
static enum gw_fail_kind
unknown(const struct gateway *g)
{
	return sandbox_view_synced(g->conf.view) ? GW_FAIL_NOT_FOUND : GW_FAIL_UNAVAILABLE;
}

struct gw_box *
gw_admit(struct gateway *g, const struct http_head *h, struct gw_route *route, struct gw_fail *f)
{
	struct gw_box *box;
	int reserved;

	f->kind = route->fail;
	f->id = route->id;
	if (f->kind != GW_FAIL_NONE)
		return NULL;
	if (route->port == ENVD_PORT) {
		reserved = gw_route_reserved(route->path, &g->clean);
		f->path = strbuf_view(&g->clean);
		f->kind = reserved > 0 ? GW_FAIL_RESERVED
		    : reserved < 0     ? GW_FAIL_BAD_PATH
		                       : GW_FAIL_NONE;
		if (f->kind != GW_FAIL_NONE)
			return NULL;
	}
	box = find_box(g, route);
	if (box && route->port == 0) {
		route->port = gw_box_default_port(box);
		if (route->port == ENVD_PORT)
			return gw_admit(g, h, route, f);
	}
	f->kind = box == NULL  ? unknown(g)
	    : route->port == 0 ? GW_FAIL_BAD_PORT
	                       : check_box(g, box, h, route->port, f);
	return f->kind == GW_FAIL_NONE ? box : NULL;
}
