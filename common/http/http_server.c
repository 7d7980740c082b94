/*
 * The server around its connections: listeners, the lists of waiting connections with their
 * timeouts, the pool of exchanges, drain and end. Must not know what happens on a connection.
 *
 * Timeouts: one list for each kind of wait, oldest first, looked at by one tick. A connection that
 * gives a sign of life is moved to the tail at most once a tick, so a busy one costs a comparison.
 */
#include "http/http_server.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "http/http_conn.h"

#define BACKLOG 1024
#define EXPIRE_MAX 256 /* of one list in one tick */
/* Exchanges kept for reuse. None under AddressSanitizer, so that a use after the end is seen. */
#if !defined(SPARE_MAX) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPARE_MAX 0
#endif
#endif
#if !defined(SPARE_MAX) && defined(__SANITIZE_ADDRESS__)
#define SPARE_MAX 0
#elif !defined(SPARE_MAX)
#define SPARE_MAX 256
#endif

static void on_tick(void *arg);
static void on_later(void *arg);

static int64_t
or_default(int64_t value, int64_t dflt)
{
	return value > 0 ? value : dflt;
}

static void
set_timeouts(struct http_server *s)
{
	const struct http_server_conf *conf = &s->conf;
	int64_t tick = SECONDS(1);

	s->timeout[HC_WAIT_HEAD] = or_default(conf->head_timeout, SECONDS(10));
	s->timeout[HC_WAIT_IDLE] = or_default(conf->idle_timeout, SECONDS(610));
	s->timeout[HC_WAIT_BODY] = or_default(conf->body_timeout, SECONDS(60));
	s->timeout[HC_WAIT_WRITE] = or_default(conf->write_timeout, SECONDS(300));
	s->timeout[HC_WAIT_LINGER] = HTTP_LINGER;
	for (int i = HC_WAIT_IDLE; i <= HC_WAIT_WRITE; i++) {
		if (s->timeout[i] / 4 < tick)
			tick = s->timeout[i] / 4;
	}
	s->tick_time = tick > MILLIS(1) ? tick : MILLIS(1);
}

int
http_server_new(
    struct loop *l, const struct http_server_conf *conf, struct http_server **ret, struct err *e)
{
	struct http_server *s;

	if (conf->on_request == NULL)
		return err_set(e, ERR_INTERNAL, "HTTP server without on_request");
	s = xcalloc(1, sizeof(*s));
	s->loop = l;
	s->conf = *conf;
	if (s->conf.max_conns == 0)
		s->conf.max_conns = 10000;
	set_timeouts(s);
	for (int i = 0; i < HC_WAITS; i++)
		TAILQ_INIT(&s->waiting[i]);
	timer_init(&s->tick, l, on_tick, s);
	defer_init(&s->later, on_later, s);
	strbuf_init(&s->out, HTTP_HEAD_OUT_MAX);
	rand_bytes(&s->next_id, sizeof(s->next_id));
	*ret = s;
	return 0;
}

static void
set_full(struct http_server *s, bool full)
{
	if (s->full == full)
		return;
	s->full = full;
	s->pauses += full;
	for (unsigned i = 0; i < s->n_listeners; i++)
		listener_pause(s->listeners[i].listener, full);
}

/* --- connections --- */

static void
on_accept(int fd, const char *peer, void *arg)
{
	struct http_listener *ls = arg;
	struct http_server *s = ls->server;
	struct conn *c = xcalloc(1, sizeof(*c));
	struct err e;

	c->server = s;
	memcpy(c->peer, peer, strlen(peer) + 1);
	defer_init(&c->later, conn_later, c);
	sock_init(&c->sock, s->loop, &conn_cb);
	if (ls->layer && ls->layer->attach(ls->layer, &c->sock, &e) == -1) {
		log_warn("connection refused", log_err(&e));
		close(fd);
		xfree(c);
		return;
	}
	c->tls = ls->layer != NULL;
	c->wait = HC_WAIT_NONE;
	TAILQ_INSERT_TAIL(&s->waiting[HC_WAIT_NONE], c, link);
	if (s->n_conns++ == 0)
		timer_start(&s->tick, s->tick_time);
	if (s->n_conns >= s->conf.max_conns)
		set_full(s, true);
	conn_start(c, fd);
}

int
http_server_listen(
    struct http_server *s, const char *addr, struct tls_server *tls, int *port, struct err *e)
{
	struct http_listener *ls = &s->listeners[s->n_listeners];

	if (s->n_listeners == HTTP_LISTENERS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d listeners", HTTP_LISTENERS_MAX);
	ls->server = s;
	ls->layer = tls_server_layer(tls);
	if (listener_new(s->loop, addr, BACKLOG, on_accept, ls, &ls->listener, e) == -1)
		return -1;
	if (port)
		*port = listener_port(ls->listener);
	s->n_listeners++;
	return 0;
}

unsigned
http_server_conns(const struct http_server *s)
{
	return s->n_conns;
}

uint64_t
http_server_accept_pauses(const struct http_server *s)
{
	return s->pauses;
}

/* The connection is dead: out of every list; its memory follows by itself. */
void
server_conn_gone(struct conn *c)
{
	struct http_server *s = c->server;

	TAILQ_REMOVE(&s->waiting[c->wait], c, link);
	s->n_conns--;
	set_full(s, s->n_conns >= s->conf.max_conns);
	if (s->n_conns > 0)
		return;
	timer_stop(&s->tick);
	if (s->draining)
		loop_defer(s->loop, &s->later);
}

/* --- exchanges --- */

struct exchange *
server_exchange(struct http_server *s)
{
	struct exchange *x = s->spare;
	struct http1 *parser;

	if (x) {
		s->spare = x->spare;
		s->n_spare--;
		parser = x->parser;
	} else {
		x = xmalloc(sizeof(*x));
		parser = http1_new(false);
	}
	memset(x, 0, sizeof(*x));
	x->parser = parser;
	return x;
}

void
server_exchange_free(struct http_server *s, struct exchange *x)
{
	xfree(x->r.kept);
	collect_free(x->collect);
	if (s->n_spare >= SPARE_MAX) {
		http1_free(x->parser);
		xfree(x);
		return;
	}
	http1_reset(x->parser);
	x->spare = s->spare;
	s->spare = x;
	s->n_spare++;
}

/* --- timeouts --- */

void
server_wait(struct conn *c, enum conn_wait wait)
{
	struct http_server *s = c->server;

	TAILQ_REMOVE(&s->waiting[c->wait], c, link);
	c->wait = (uint8_t)wait;
	c->since = loop_now(s->loop);
	TAILQ_INSERT_TAIL(&s->waiting[wait], c, link);
}

void
server_touch(struct conn *c)
{
	if (loop_now(c->server->loop) - c->since >= c->server->tick_time)
		server_wait(c, (enum conn_wait)c->wait);
}

static void
expire(struct http_server *s, enum conn_wait wait, int64_t timeout)
{
	int64_t now = loop_now(s->loop);
	struct conn *c;

	for (int i = 0; i < EXPIRE_MAX; i++) {
		c = TAILQ_FIRST(&s->waiting[wait]);
		if (c == NULL || now - c->since < timeout)
			return;
		conn_timeout(c); /* dead or in another list, else: */
		if (c->state != HC_DEAD && c->wait == wait)
			server_wait(c, wait);
	}
}

static void
on_tick(void *arg)
{
	struct http_server *s = arg;

	/* A sign of life may be a tick older than it looks. */
	for (int i = HC_WAIT_IDLE; i < HC_WAITS; i++)
		expire(s, (enum conn_wait)i, s->timeout[i] + s->tick_time);
	if (s->n_conns > 0)
		timer_start(&s->tick, s->tick_time);
}

/* --- end --- */

static void
close_listeners(struct http_server *s)
{
	for (unsigned i = 0; i < s->n_listeners; i++)
		listener_free(s->listeners[i].listener);
	s->n_listeners = 0;
}

static void
server_destroy(struct http_server *s)
{
	struct exchange *x;

	while ((x = s->spare)) {
		s->spare = x->spare;
		http1_free(x->parser);
		xfree(x);
	}
	strbuf_done(&s->out);
	xfree(s);
}

static void
on_later(void *arg)
{
	struct http_server *s = arg;
	void (*on_drained)(void *) = s->on_drained;

	if (s->freed) {
		server_destroy(s);
		return;
	}
	s->on_drained = NULL;
	if (on_drained)
		on_drained(s->drained_arg);
}

void
http_server_drain(struct http_server *s, void (*on_drained)(void *arg), void *arg)
{
	struct conn *c, *tmp;

	s->draining = true;
	s->on_drained = on_drained;
	s->drained_arg = arg;
	close_listeners(s);
	TAILQ_FOREACH_SAFE (c, &s->waiting[HC_WAIT_IDLE], link, tmp) {
		/* One that is busy in this very turn may still stand here. */
		if (c->state == HC_IDLE && c->stash == NULL && !c->running)
			conn_close(c);
	}
	if (s->n_conns == 0)
		loop_defer(s->loop, &s->later);
}

void
http_server_free(struct http_server *s)
{
	struct conn *c;

	if (s == NULL || s->freed)
		return;
	close_listeners(s);
	s->on_drained = NULL;
	for (int i = 0; i < HC_WAITS; i++) {
		while ((c = TAILQ_FIRST(&s->waiting[i])))
			conn_abort(c, "server stops", false);
	}
	timer_stop(&s->tick);
	s->freed = true;
	/* Behind the connections' own: they were queued before. */
	loop_undefer(s->loop, &s->later);
	loop_defer(s->loop, &s->later);
}
