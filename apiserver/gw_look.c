/*
 * A request for a sandbox that the view does not know: another replica may have made it a moment
 * ago, so one look at the API server settles it before "not found" is said. Owns the requests that
 * wait for such a look; a bounded number, and whoever looks bounds its own rate.
 */
#include "apiserver/gw.h"
#include "base/alloc.h"

struct gw_look {
	TAILQ_ENTRY(gw_look) link;
	struct gateway *g;
	struct http_req *r;
	const struct http_head *head; /* kept by the request */
	void *handle;
};

static void
look_free(struct gw_look *l)
{
	TAILQ_REMOVE(&l->g->looks, l, link);
	l->g->look_n--;
	xfree(l);
}

static void
on_looked(void *arg)
{
	struct gw_look *l = arg;
	struct gateway *g = l->g;
	struct http_req *r = l->r;
	const struct http_head *head = l->head;

	look_free(l);
	http_req_pause(r, false);
	if (!gateway_wants(g, head))
		BUG_ON(true); /* it was one of ours when it came */
	gw_handle_known(g, r, head);
}

static void
on_abort(struct http_req *r, const char *why UNUSED)
{
	struct gw_look *l = r->arg;

	l->g->conf.look_cancel(l->handle, l->g->conf.arg);
	look_free(l);
}

static const struct http_req_ops look_ops = { .on_abort = on_abort };

bool
gw_look(struct gateway *g, struct http_req *r, const struct http_head *h, struct strv id)
{
	struct sandbox_entry entry;
	struct gw_look *l;

	if (g->conf.look == NULL || g->look_n >= GW_LOOKS_MAX || !sandbox_id_valid(id) ||
	    sandbox_view_by_id(g->conf.view, id, &entry))
		return false;
	l = xcalloc(1, sizeof(*l));
	l->g = g;
	l->r = r;
	TAILQ_INSERT_TAIL(&g->looks, l, link);
	g->look_n++;
	r->ops = &look_ops;
	r->arg = l;
	http_req_pause(r, true);
	l->handle = g->conf.look(id, on_looked, l, g->conf.arg);
	l->head = http_req_keep_head(r, h);
	return true;
}

void
gw_look_free_all(struct gateway *g)
{
	struct gw_look *l;

	while ((l = TAILQ_FIRST(&g->looks))) {
		struct http_req *r = l->r;

		g->conf.look_cancel(l->handle, g->conf.arg);
		look_free(l);
		http_reply_abort(r, "shutting down");
	}
}
