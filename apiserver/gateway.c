/*
 * Sessions: the states of a request on its way. Owns the session objects, the table of moves,
 * waiting (for a wake, for the view, for a port) with its limits, and the gateway's own answers.
 * Must not know who may pass (gw_admit.c), how bytes move (gw_pump.c) nor how connections are kept
 * (gw_upstream.c).
 */
#include "apiserver/gw.h"

#include "base/alloc.h"
#include "base/log.h"

/* One line per request at info would cost more than the request itself. */
#define GW_LOG LOG_DEBUG

#define HOST_MAX 4096
#define BODY_MAX 8192
#define CLEAN_MAX (HTTP1_TARGET_MAX + 1)
#define MASK_PORT "${PORT}"

static const char *const state_names[GW_STATE_COUNT] = {
	[GW_HEAD] = "head",
	[GW_RESOLVE] = "resolve",
	[GW_RESUME] = "resume",
	[GW_WAIT] = "wait",
	[GW_CONNECT] = "connect",
	[GW_STREAM] = "stream",
	[GW_TUNNEL] = "tunnel",
	[GW_DEAD] = "dead",
};

#define TO(state) (1u << (state))
static const unsigned short next[GW_STATE_COUNT] = {
	[GW_HEAD] = TO(GW_RESOLVE),
	[GW_RESOLVE] = TO(GW_RESUME) | TO(GW_WAIT) | TO(GW_CONNECT) | TO(GW_STREAM) | TO(GW_DEAD),
	[GW_RESUME] = TO(GW_RESOLVE) | TO(GW_DEAD),
	[GW_WAIT] = TO(GW_RESOLVE) | TO(GW_DEAD),
	[GW_CONNECT] = TO(GW_STREAM) | TO(GW_RESOLVE) | TO(GW_DEAD),
	[GW_STREAM] = TO(GW_TUNNEL) | TO(GW_RESOLVE) | TO(GW_DEAD),
	[GW_TUNNEL] = TO(GW_DEAD),
	[GW_DEAD] = TO(GW_HEAD),
};

static bool
is_waiting(enum gw_state state)
{
	return state == GW_RESUME || state == GW_WAIT;
}

void
gw_session_set(struct gw_session *s, enum gw_state state)
{
	struct gateway *g = s->g;
	enum gw_state old = s->state;

	BUG_ON(!(next[old] & TO(state)));
	s->state = state;
	g->state_n[old]--;
	g->state_n[state]++;
	if (old == GW_STREAM || state == GW_STREAM)
		return; /* the hot path: nothing waits there, and the end is logged anyway */
	g->waiting_n += is_waiting(state);
	g->waiting_n -= is_waiting(old);
	log_at(LOG_DEBUG, "gateway session", log_s("sandbox", s->box->id), log_i("port", s->port),
	    log_s("from", state_names[old]), log_s("to", state_names[state]));
	if (old == GW_RESUME)
		gw_box_wake_left(s->box);
}

void
gw_timer(struct gw_session *s, int64_t ns)
{
	if (ns > 0)
		timer_start(&s->timer, ns);
	else if (s->timed)
		timer_stop(&s->timer);
	s->timed = ns > 0;
}

void
gw_session_moved(struct gw_session *s)
{
	struct gateway *g = s->g;
	int64_t now = loop_now(g->conf.loop);

	gw_box_moved(s->box);
	if (now - s->moved < SECONDS(1))
		return;
	s->moved = now;
	TAILQ_REMOVE(&g->active, s, in_age);
	TAILQ_INSERT_TAIL(&g->active, s, in_age);
}

/* --- answers of our own --- */

static void
answer(struct gateway *g, struct http_req *r, const struct gw_hints *hints, const struct gw_fail *f,
    int retry_after)
{
	struct http_field fields[2];
	char seconds[16];
	size_t n = 1;

	strbuf_reset(&g->body);
	fields[0].name = STRV("Content-Type");
	fields[0].value = strv_of(gw_fail_body(f, gw_hints_want_page(hints), &g->body));
	if (retry_after == 0 && gw_fail_status(f->kind) == 503)
		retry_after = 1;
	if (retry_after > 0) {
		snprintf(seconds, sizeof(seconds), "%d", retry_after);
		fields[n].name = STRV("Retry-After");
		fields[n++].value = strv_of(seconds);
	}
	gw_count_result(gw_fail_label(f->kind));
	http_reply(r, gw_fail_status(f->kind), fields, n, strbuf_view(&g->body));
}

static enum gw_fail_kind
kind_of_error(const struct err *e, enum gw_fail_kind dflt)
{
	switch ((int)e->code) {
	case ERR_NOT_FOUND:
	case ERR_GONE:
		return GW_FAIL_NOT_FOUND;
	case ERR_LIMIT:
		return GW_FAIL_LIMIT;
	case ERR_CONFLICT:
	case ERR_TIMEOUT:
		return GW_FAIL_TRANSITION;
	case ERR_UNAUTHORIZED:
	case ERR_FORBIDDEN:
		return GW_FAIL_RESUME_DENIED;
	default:
		return dflt;
	}
}

void
gw_session_fail(struct gw_session *s, enum gw_fail_kind kind, const struct err *e)
{
	struct http_req *r = s->r;
	struct gateway *g = s->g;
	struct gw_hints hints = gw_hints_of_text((struct strv){ s->head.p, s->head_n });
	struct gw_fail f = { .kind = e ? kind_of_error(e, kind) : kind, .port = s->port };
	char id[SANDBOX_ID_MAX + 1];

	BUG_ON(s->answered);
	memcpy(id, s->box->id, sizeof(id));
	f.id = strv_of(id);
	if (e)
		f.message = strv_of(e->msg);
	gw_session_end(s, NULL, false); /* its head stays readable until the end of the turn */
	answer(g, r, &hints, &f, e ? e->retry_after : 0);
}

void
gw_session_cut(struct gw_session *s, enum gw_fail_kind kind, const char *why)
{
	struct http_req *r = s->r;

	if (r && !s->answered) {
		gw_session_fail(s, kind, NULL);
		return;
	}
	gw_session_end(s, kind == GW_FAIL_NOT_FOUND ? "stopped" : "broken", false);
	if (r)
		http_reply_abort(r, why);
}

/* --- sessions --- */

static void session_timer(void *arg);
static void session_flush(void *arg);

static struct gw_session *
session_alloc(struct gateway *g)
{
	struct gw_session *s = TAILQ_FIRST(&g->spare);
	struct gw_buf head;

	if (s) {
		TAILQ_REMOVE(&g->spare, s, in_age);
		g->spare_n--;
		return s;
	}
	s = xcalloc(1, sizeof(*s));
	head = s->head;
	s->g = g;
	s->head = head;
	timer_init(&s->timer, g->conf.loop, session_timer, s);
	defer_init(&s->flush, session_flush, s);
	g->state_n[GW_HEAD]++;
	return s;
}

/* Everything behind the parts that outlive a request. */
static void
session_clear(struct gw_session *s)
{
	size_t from = offsetof(struct gw_session, head_n);

	memset((char *)s + from, 0, sizeof(*s) - from);
	s->r = NULL;
	s->box = NULL;
	s->up = NULL;
	s->since = s->deadline = 0;
	s->head.n = 0;
	if (s->head.cap > GW_SPARE_BUF_MAX)
		gw_buf_done(&s->head);
}

static void
session_free(struct gw_session *s)
{
	gw_buf_done(&s->head);
	xfree(s);
}

static void
on_reap(void *arg)
{
	struct gateway *g = arg;
	struct gw_session *s;

	while ((s = TAILQ_FIRST(&g->dead))) {
		TAILQ_REMOVE(&g->dead, s, in_age);
		session_clear(s);
		g->state_n[GW_DEAD]--;
		if (g->spare_n >= GW_SPARE_SESSIONS_MAX) {
			session_free(s);
			continue;
		}
		s->state = GW_HEAD;
		g->state_n[GW_HEAD]++;
		g->spare_n++;
		TAILQ_INSERT_HEAD(&g->spare, s, in_age);
	}
}

void
gw_session_end(struct gw_session *s, const char *result, bool keep_up)
{
	struct gateway *g = s->g;
	struct gw_box *box = s->box;
	int64_t took = loop_now(g->conf.loop) - s->since;

	if (result) {
		gw_count_result(result);
		log_at(GW_LOG, "gateway request", log_s("sandbox", box->id), log_i("port", s->port),
		    log_s("result", result), log_i("status", s->status),
		    log_i("us", took / NS_PER_US));
	}
	if (s->state != GW_TUNNEL)
		gw_count_latency(took);
	gw_timer(s, 0);
	if (s->pipe)
		gw_splice_end(s);
	if (s->flush.queued)
		loop_undefer(g->conf.loop, &s->flush);
	if (s->up)
		gw_up_release(s->up, keep_up);
	if (s->r)
		gw_pump_leave(s->r);
	s->r = NULL;
	gw_session_set(s, GW_DEAD);
	TAILQ_REMOVE(&box->sessions, s, in_box);
	box->session_n--;
	gw_box_release(box);
	g->session_n--;
	TAILQ_REMOVE(&g->active, s, in_age);
	TAILQ_INSERT_HEAD(&g->dead, s, in_age);
	loop_defer(g->conf.loop, &g->reap);
}

static bool
is_idempotent(enum http_method m)
{
	return m == HTTP_GET || m == HTTP_HEAD || m == HTTP_OPTIONS || m == HTTP_PUT ||
	    m == HTTP_DELETE || m == HTTP_TRACE;
}

static struct gw_session *
session_new(struct gateway *g, struct http_req *r, const struct http_head *h, struct gw_box *box)
{
	struct gw_session *s = session_alloc(g);

	s->r = r;
	s->box = box;
	s->since = s->moved = loop_now(g->conf.loop);
	s->body_left = h->has_body ? h->length : 0;
	s->minor = (uint8_t)h->minor;
	s->has_body = h->has_body;
	s->chunked = h->chunked;
	s->req_done = !h->has_body;
	s->idempotent = is_idempotent(h->method) && !h->has_body;
	s->head_request = h->method == HTTP_HEAD;
	s->client_keep = h->keep_alive;
	s->expecting = h->expect_continue;
	TAILQ_INSERT_TAIL(&box->sessions, s, in_box);
	box->session_n++;
	g->session_n++;
	TAILQ_INSERT_TAIL(&g->active, s, in_age);
	r->ops = &gw_client_ops;
	r->arg = s;
	http_req_patient(r); /* GW_IDLE_MAX instead */
	gw_tick_start(g);
	return s;
}

/* The Host that the sandbox sees, and what hides behind it. */
static void
choose_host(struct gateway *g, const struct gw_box *box, const struct http_head *h,
    const struct gw_route *route, struct gw_request_opts *opts)
{
	const char *mask = box->mask_host, *at;

	strbuf_reset(&g->host);
	opts->host = h->host.n > 0 ? h->host : STRV("localhost");
	if (mask && route->port != ENVD_PORT) {
		while ((at = strstr(mask, MASK_PORT))) {
			strbuf_add(&g->host, mask, (size_t)(at - mask));
			strbuf_add_u64(&g->host, (uint64_t)route->port);
			mask = at + sizeof(MASK_PORT) - 1;
		}
		strbuf_adds(&g->host, mask);
		opts->forwarded_host = opts->host;
	} else if (route->how == GW_BY_SHARED_HOST) {
		strbuf_addf(&g->host, "%d-%s.", route->port, box->id);
		strbuf_addv(&g->host, route->host_rest);
	} else {
		return;
	}
	if (!g->host.failed)
		opts->host = strbuf_view(&g->host);
}

static void
write_head(struct gw_session *s, const struct http_head *h, const struct gw_route *route)
{
	struct gw_request_opts opts = {
		.path = route->path,
		.tail = route->tail,
		.drop_port_param = route->drop_port_param,
		.prefix = route->prefix,
	};

	s->port = route->port;
	/* A tunnel to envd would get round the reserved paths (h2c inside of it). */
	s->upgrade = opts.upgrade = h->upgrade && !h->has_body && s->port != ENVD_PORT;
	choose_host(s->g, s->box, h, route, &opts);
	gw_put_request(&s->head, h, &opts);
	s->head_n = s->head.n;
	s->keep_body = h->has_body && s->port == ENVD_PORT && !s->box->running;
	s->kept_all = s->keep_body || !h->has_body;
}

/* --- waiting and connecting --- */

static void
wait_for(struct gw_session *s, enum gw_state state, int64_t most)
{
	int64_t now = loop_now(s->g->conf.loop);

	if (s->g->waiting_n >= GW_WAITERS_MAX) {
		gw_count_limit("waiters");
		gw_session_fail(s, GW_FAIL_BUSY, NULL);
		return;
	}
	if (s->deadline == 0)
		s->deadline = now + most;
	if (s->deadline <= now) {
		gw_session_fail(s, s->not_ready ? GW_FAIL_NOT_READY : GW_FAIL_TRANSITION, NULL);
		return;
	}
	gw_session_set(s, state);
	gw_timer(s, s->deadline - now);
	gw_pump_update(s);
	if (state == GW_RESUME) {
		s->box->wake_waiters++;
		gw_box_wake(s->box);
	}
}

static void
try_connect(struct gw_session *s)
{
	struct err e;
	int64_t left = s->connect_by - loop_now(s->g->conf.loop);

	if (left > 0 && gw_up_connect(s, &e) == 0) {
		gw_timer(s, left);
		return;
	}
	gw_count_connect(false);
	gw_session_lost(s, "cannot connect");
}

static void
begin_connect(struct gw_session *s)
{
	if (!s->fresh && gw_up_take(s, !s->idempotent)) {
		gw_session_set(s, GW_STREAM);
		gw_pump_start(s);
		return;
	}
	gw_session_set(s, GW_CONNECT);
	s->tries = 0;
	s->connect_by = loop_now(s->g->conf.loop) + GW_CONNECT_MAX;
	gw_pump_update(s);
	try_connect(s);
}

void
gw_session_resolve(struct gw_session *s)
{
	gw_timer(s, 0);
	if (s->up)
		gw_up_close(s->up);
	gw_session_set(s, GW_RESOLVE);
	switch (s->box->verdict) {
	case GW_BOX_GONE:
		gw_session_fail(s, GW_FAIL_NOT_FOUND, NULL);
		return;
	case GW_BOX_ASLEEP:
		wait_for(s, s->woken ? GW_WAIT : GW_RESUME, GW_WAIT_MAX);
		return;
	case GW_BOX_STARTING:
		wait_for(s, GW_WAIT, GW_WAIT_MAX);
		return;
	case GW_BOX_LIVE:
		if (s->want_running && !s->box->running) {
			wait_for(s, GW_WAIT, GW_WAIT_MAX);
			return;
		}
		s->want_running = false;
		begin_connect(s);
		return;
	}
}

void
gw_session_connected(struct gw_session *s)
{
	gw_timer(s, 0);
	gw_session_set(s, GW_STREAM);
	gw_pump_start(s);
}

/* A port that is closed while the sandbox starts may open yet. */
static void
port_closed(struct gw_session *s)
{
	if (s->box->verdict == GW_BOX_LIVE && s->box->running) {
		gw_session_fail(s, GW_FAIL_PORT_CLOSED, NULL);
		return;
	}
	s->want_running = true;
	gw_session_resolve(s);
}

void
gw_session_lost(struct gw_session *s, const char *why)
{
	struct gw_up *up = s->up;
	int64_t now = loop_now(s->g->conf.loop);

	log_at(LOG_DEBUG, "gateway upstream lost", log_s("sandbox", s->box->id),
	    log_i("port", s->port), log_s("why", why));
	if (s->state == GW_CONNECT) {
		if (up)
			gw_up_close(up);
		if (++s->tries < GW_CONNECT_TRIES && now < s->connect_by)
			gw_timer(s, s->tries * GW_CONNECT_STEP);
		else
			port_closed(s);
		return;
	}
	/* RFC 9110 9.2.2, RFC 9112 9.3.1: a server may close an idle connection at any time. */
	if (up->reused && up->sock.bytes_in == up->mark_in && s->idempotent && !s->fresh) {
		gw_count_retry("stale");
		s->fresh = true;
		gw_session_resolve(s);
		return;
	}
	gw_session_fail(s, GW_FAIL_PORT_CLOSED, NULL);
}

void
gw_session_not_ready(struct gw_session *s)
{
	int64_t now = loop_now(s->g->conf.loop);

	if (!s->kept_all) {
		gw_session_fail(s, GW_FAIL_NOT_READY, NULL);
		return;
	}
	if (!s->not_ready)
		s->deadline = now + GW_READY_MAX;
	s->not_ready = true;
	s->want_running = true;
	gw_count_retry("not_ready");
	gw_up_close(s->up);
	gw_session_set(s, GW_RESOLVE);
	wait_for(s, GW_WAIT, GW_READY_MAX);
	/* The view may say running of an incarnation that is gone: look again soon then. */
	if (s->state == GW_WAIT && s->box->running && s->deadline - now > GW_READY_PAUSE) {
		s->pausing = true;
		gw_timer(s, GW_READY_PAUSE);
	}
}

static void
session_timer(void *arg)
{
	struct gw_session *s = arg;

	s->timed = false;
	switch (s->state) {
	case GW_RESUME:
	case GW_WAIT:
		if (s->pausing) {
			s->pausing = false;
			s->want_running = false;
			gw_session_resolve(s);
			return;
		}
		gw_session_fail(s, s->not_ready ? GW_FAIL_NOT_READY : GW_FAIL_TRANSITION, NULL);
		return;
	case GW_CONNECT:
		if (s->up == NULL) {
			try_connect(s);
		} else {
			gw_count_connect(false);
			gw_session_lost(s, "connect took too long");
		}
		return;
	case GW_STREAM:
		gw_pump_timer(s);
		return;
	case GW_HEAD:
	case GW_RESOLVE:
	case GW_TUNNEL:
	case GW_DEAD:
	case GW_STATE_COUNT:
		break;
	}
	BUG_ON(true);
}

static void
session_flush(void *arg)
{
	gw_pump_flush(arg);
}

/* --- the gateway --- */

static void
on_tick(void *arg)
{
	struct gateway *g = arg;
	int64_t now = loop_now(g->conf.loop);
	struct gw_session *s;

	g->ticking = false;
	gw_up_expire(g, now);
	while ((s = TAILQ_FIRST(&g->active)) && now - s->moved > GW_IDLE_MAX) {
		gw_count_limit("idle");
		gw_session_cut(s, GW_FAIL_PORT_CLOSED, "silent for too long");
	}
	if (g->idle_n > 0 || g->session_n > 0)
		gw_tick_start(g);
}

void
gw_tick_start(struct gateway *g)
{
	if (g->ticking)
		return;
	g->ticking = true;
	timer_start(&g->tick, SECONDS(1));
}

struct gateway *
gateway_new(const struct gateway_conf *conf)
{
	struct gateway *g = xcalloc(1, sizeof(*g));

	g->conf = *conf;
	g->domain_text = xstrdup(conf->domain ? conf->domain : "");
	g->domain = strv_of(g->domain_text);
	g->route = xcalloc(1, sizeof(*g->route));
	g->boxes = map_new();
	TAILQ_INIT(&g->active);
	TAILQ_INIT(&g->dead);
	TAILQ_INIT(&g->spare);
	TAILQ_INIT(&g->idle[0]);
	TAILQ_INIT(&g->idle[1]);
	defer_init(&g->reap, on_reap, g);
	timer_init(&g->tick, conf->loop, on_tick, g);
	TAILQ_INIT(&g->looks);
	strbuf_init(&g->clean, CLEAN_MAX);
	strbuf_init(&g->host, HOST_MAX);
	strbuf_init(&g->body, BODY_MAX);
	gw_metrics_add(g);
	sandbox_view_subscribe(
	    (struct sandbox_view *)(uintptr_t)conf->view, &g->sub, STRV_NONE, gw_box_on_view, g);
	return g;
}

void
gateway_free(struct gateway *g)
{
	struct gw_session *s;

	if (g == NULL)
		return;
	sandbox_view_unsubscribe(&g->sub);
	gw_look_free_all(g);
	while ((s = TAILQ_FIRST(&g->active)))
		gw_session_cut(s, GW_FAIL_UNAVAILABLE, "shutting down");
	gw_box_free_all(g);
	timer_stop(&g->tick);
	loop_undefer(g->conf.loop, &g->reap);
	on_reap(g);
	while ((s = TAILQ_FIRST(&g->spare))) {
		TAILQ_REMOVE(&g->spare, s, in_age);
		session_free(s);
	}
	gw_splice_free_all(g);
	gw_buf_done(&g->out);
	strbuf_done(&g->clean);
	strbuf_done(&g->host);
	strbuf_done(&g->body);
	xfree(g->domain_text);
	xfree(g->route);
	xfree(g);
}

bool
gateway_wants(const struct gateway *g, const struct http_head *h)
{
	gw_route_find(g->domain, h, g->route);
	return g->route->how != GW_BY_NOTHING;
}

static void
handle(struct gateway *g, struct http_req *r, const struct http_head *h, bool look)
{
	struct gw_fail f = { .kind = GW_FAIL_NONE };
	struct gw_route *route = g->route;
	struct gw_session *s;
	struct gw_hints hints;
	struct gw_box *box;

	BUG_ON(route->how == GW_BY_NOTHING);
	box = gw_admit(g, h, route, &f);
	if (box == NULL && look && f.kind == GW_FAIL_NOT_FOUND && route->how != GW_BY_PATH_NAME &&
	    gw_look(g, r, h, route->id))
		return;
	if (box == NULL) {
		f.port = route->port;
		hints = gw_hints_of_head(h);
		answer(g, r, &hints, &f, 0);
		return;
	}
	s = session_new(g, r, h, box);
	write_head(s, h, route);
	route->how = GW_BY_NOTHING;
	gw_box_moved(box);
	gw_session_resolve(s);
}

void
gateway_handle(struct gateway *g, struct http_req *r, const struct http_head *h)
{
	handle(g, r, h, true);
}

void
gw_handle_known(struct gateway *g, struct http_req *r, const struct http_head *h)
{
	handle(g, r, h, false);
}
