/*
 * Sandboxes that have traffic: what the view says of them, in the form that the request path needs
 * (refreshed by the view's notices, so that a request costs one table lookup), and one wake for all
 * that wait for one. When a sandbox is gone or its pod is another one, everything that was
 * forwarded to the old pod is cut here; the view has forgotten it by then, so a client that asks
 * again at once gets the right answer.
 */
#include <arpa/inet.h>

#include "apiserver/gw.h"
#include "base/alloc.h"
#include "base/json.h"

#define DATA_MAX 262144 /* of the sandbox-data text that is read for its port */

static bool
is_live_state(enum sandbox_state state)
{
	return state == SANDBOX_CREATING || state == SANDBOX_RESUMING ||
	    state == SANDBOX_RESTARTING || state == SANDBOX_RUNNING;
}

static bool
set_address(struct gw_box *box, const struct pod *pod)
{
	struct sockaddr_in6 *in6 = &box->addr.in6;
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&box->addr;

	memset(&box->addr, 0, sizeof(box->addr));
	if (inet_pton(AF_INET, pod->ip, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		box->addr_n = sizeof(*in);
	} else if (inet_pton(AF_INET6, pod->ip, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		box->addr_n = sizeof(*in6);
	} else {
		return false;
	}
	return true;
}

/* Visible ASCII without blanks: it becomes a Host field. */
static bool
mask_usable(const char *mask)
{
	if (*mask == '\0')
		return false;
	for (; *mask; mask++) {
		if (*mask <= ' ' || *mask > '~')
			return false;
	}
	return true;
}

static void
read_sandbox(struct gw_box *box, const struct sandbox *sb)
{
	const char *mask = sb->mask_host ? sb->mask_host : "";

	box->secure = sb->secure;
	box->private_ingress = sb->private_ingress;
	if (box->mask_host == NULL || strcmp(box->mask_host, mask) != 0) {
		xfree(box->mask_host);
		box->mask_host = mask_usable(mask) ? xstrdup(mask) : NULL;
	}
	box->default_port = -1;
}

static enum gw_verdict
verdict_of(struct gw_box *box, const struct sandbox_entry *entry, const char **uid)
{
	const struct sandbox *sb = entry->sandbox;
	const struct pod *pod;

	*uid = "";
	if (sb == NULL)
		return GW_BOX_GONE;
	if (entry->state == SANDBOX_PAUSED || entry->state == SANDBOX_PAUSING)
		return sb->auto_resume && box->g->conf.wake ? GW_BOX_ASLEEP : GW_BOX_GONE;
	if (!is_live_state(entry->state))
		return GW_BOX_GONE;
	pod = sandbox_live_pod(entry->pods, entry->pod_n);
	if (pod == NULL || !set_address(box, pod))
		return GW_BOX_STARTING;
	*uid = pod->uid;
	return GW_BOX_LIVE;
}

/* Returns whether connections to the old pod are void. */
static bool
refresh(struct gw_box *box, const struct sandbox_entry *entry)
{
	const char *uid;
	bool moved;

	box->verdict = verdict_of(box, entry, &uid);
	box->running = entry->sandbox && entry->state == SANDBOX_RUNNING;
	if (entry->sandbox)
		read_sandbox(box, entry->sandbox);
	moved = strncmp(box->pod_uid, uid, sizeof(box->pod_uid) - 1) != 0;
	if (moved) {
		size_t n = strnlen(uid, sizeof(box->pod_uid) - 1);

		memcpy(box->pod_uid, uid, n);
		box->pod_uid[n] = '\0';
	}
	return moved;
}

static void
box_free(struct gw_box *box)
{
	struct gateway *g = box->g;

	map_del(g->boxes, strv_of(box->id));
	loop_undefer(g->conf.loop, &box->gc);
	if (box->waking && g->conf.wake_cancel)
		g->conf.wake_cancel(box->wake, g->conf.arg);
	xfree(box->mask_host);
	xfree(box);
}

static void
on_gc(void *arg)
{
	struct gw_box *box = arg;

	if (box->session_n == 0 && TAILQ_EMPTY(&box->ports))
		box_free(box);
}

void
gw_box_release(struct gw_box *box)
{
	if (box->session_n == 0 && TAILQ_EMPTY(&box->ports))
		loop_defer(box->g->conf.loop, &box->gc);
}

static struct gw_box *
box_new(struct gateway *g, const struct sandbox_entry *entry, struct strv id)
{
	struct gw_box *box = xcalloc(1, sizeof(*box));

	BUG_ON(id.n > SANDBOX_ID_MAX);
	box->g = g;
	memcpy(box->id, id.p, id.n);
	TAILQ_INIT(&box->sessions);
	TAILQ_INIT(&box->ports);
	defer_init(&box->gc, on_gc, box);
	refresh(box, entry);
	map_set(g->boxes, id, box);
	gw_box_release(box); /* until a session holds it */
	return box;
}

struct gw_box *
gw_box_get(struct gateway *g, struct strv id)
{
	struct gw_box *box = map_get(g->boxes, id);
	struct sandbox_entry entry;

	if (box)
		return box;
	if (!sandbox_view_by_id(g->conf.view, id, &entry) || entry.sandbox == NULL)
		return NULL;
	return box_new(g, &entry, id);
}

void
gw_box_moved(struct gw_box *box)
{
	int64_t now = loop_now(box->g->conf.loop);

	if (box->g->conf.activity == NULL || now - box->active < SECONDS(1))
		return;
	box->active = now;
	box->g->conf.activity(strv_of(box->id), box->g->conf.arg);
}

int
gw_box_default_port(struct gw_box *box)
{
	struct sandbox_entry entry;
	json_t *data = NULL;
	int64_t port;

	if (box->default_port >= 0)
		return box->default_port;
	box->default_port = 0;
	if (!sandbox_view_by_id(box->g->conf.view, strv_of(box->id), &entry) ||
	    entry.sandbox == NULL || entry.sandbox->data == NULL)
		return 0;
	if (json_parse(strv_of(entry.sandbox->data), DATA_MAX, &data, NULL) == -1)
		return 0;
	port = json_get_int(data, "port", 0);
	json_decref(data);
	if (port > 0 && port <= 65535)
		box->default_port = (int)port;
	return box->default_port;
}

static void
on_woken(const struct err *e, void *arg)
{
	struct gw_box *box = arg;
	struct gw_session *s, *next;

	box->waking = false;
	box->wake = NULL;
	TAILQ_FOREACH_SAFE (s, &box->sessions, in_box, next) {
		if (s->state != GW_RESUME)
			continue;
		if (e) {
			gw_session_fail(s, GW_FAIL_UNAVAILABLE, e);
		} else {
			s->woken = true;
			gw_session_resolve(s);
		}
	}
}

void
gw_box_wake(struct gw_box *box)
{
	struct gateway *g = box->g;

	if (box->waking)
		return;
	box->waking = true;
	box->wake = g->conf.wake(strv_of(box->id), on_woken, box, g->conf.arg);
}

void
gw_box_wake_left(struct gw_box *box)
{
	struct gateway *g = box->g;

	if (--box->wake_waiters > 0 || !box->waking)
		return;
	if (g->conf.wake_cancel)
		g->conf.wake_cancel(box->wake, g->conf.arg);
	box->waking = false;
	box->wake = NULL;
}

static void
cut_forwarded(struct gw_session *s)
{
	if (s->state == GW_STREAM || s->state == GW_TUNNEL)
		gw_session_cut(s, GW_FAIL_NOT_FOUND, "sandbox stopped");
	else if (s->state == GW_CONNECT)
		gw_session_resolve(s);
}

static void
look_again(struct gw_session *s)
{
	const struct gw_box *box = s->box;

	bool settled = box->verdict != GW_BOX_STARTING &&
	    (box->verdict != GW_BOX_LIVE || box->running || !s->want_running);

	if ((s->state == GW_WAIT && settled) ||
	    (s->state == GW_RESUME && (box->verdict == GW_BOX_GONE || box->running)))
		gw_session_resolve(s);
}

void
gw_box_on_view(struct strv id, const struct sandbox_entry *entry, void *arg)
{
	struct gateway *g = arg;
	struct gw_box *box = map_get(g->boxes, id);
	struct gw_session *s, *next;
	bool moved;

	if (box == NULL)
		return;
	moved = refresh(box, entry);
	if (moved)
		gw_up_close_idle(box);
	TAILQ_FOREACH_SAFE (s, &box->sessions, in_box, next) {
		if (moved)
			cut_forwarded(s);
		look_again(s);
	}
}

static bool
free_one(struct strv key UNUSED, void *value, void *arg UNUSED)
{
	struct gw_box *box = value;

	gw_up_close_idle(box);
	BUG_ON(box->session_n > 0 || !TAILQ_EMPTY(&box->ports));
	box_free(box);
	return true;
}

void
gw_box_free_all(struct gateway *g)
{
	map_each(g->boxes, free_one, NULL);
	map_free(g->boxes, NULL);
}
