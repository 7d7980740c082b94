/*
 * Connections to pods: making, reusing, closing. Owns the pools: per box and port, last used first,
 * so that a quiet port shrinks to the few connections it needs. A box drops its pool when its pod
 * changes, so a connection never outlives the incarnation it belongs to. Must not know what a
 * session does with the bytes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "apiserver/gw.h"
#include "base/alloc.h"

static void on_open(struct sock *sock);
static bool on_readable(struct sock *sock);
static void on_data(struct sock *sock, char *p, size_t n);
static void on_eof(struct sock *sock);
static void on_drain(struct sock *sock);
static void on_fail(struct sock *sock, const char *why);

static const struct sock_cb up_cb = {
	.on_open = on_open,
	.on_readable = on_readable,
	.on_data = on_data,
	.on_eof = on_eof,
	.on_drain = on_drain,
	.on_fail = on_fail,
};

static struct gw_port *
port_find(struct gw_box *box, int port)
{
	struct gw_port *p;

	TAILQ_FOREACH (p, &box->ports, link) {
		if (p->port == port)
			return p;
	}
	return NULL;
}

static struct gw_port *
port_get(struct gw_box *box, int port)
{
	struct gw_port *p = port_find(box, port);

	if (p == NULL) {
		p = xcalloc(1, sizeof(*p));
		p->port = port;
		TAILQ_INIT(&p->idle);
		TAILQ_INSERT_TAIL(&box->ports, p, link);
	}
	return p;
}

static struct gw_up_list *
idle_list(struct gw_up *up)
{
	return &up->g->idle[up->port->port == ENVD_PORT];
}

static int64_t
idle_limit(int port)
{
	return port == ENVD_PORT ? GW_POOL_IDLE_ENVD : GW_POOL_IDLE;
}

static void
unpool(struct gw_up *up)
{
	if (!up->pooled)
		return;
	TAILQ_REMOVE(&up->port->idle, up, in_port);
	TAILQ_REMOVE(idle_list(up), up, in_idle);
	up->port->idle_n--;
	up->g->idle_n--;
	up->pooled = false;
}

static void
up_free(void *arg)
{
	struct gw_up *up = arg;

	http1_free(up->parser);
	xfree(up);
}

void
gw_up_close(struct gw_up *up)
{
	struct gw_box *box = up->box;

	unpool(up);
	sock_close(&up->sock);
	if (up->session)
		up->session->up = NULL;
	up->session = NULL;
	if (--up->port->users == 0) {
		TAILQ_REMOVE(&box->ports, up->port, link);
		xfree(up->port);
	}
	up->port = NULL;
	up->g->up_n--;
	gw_box_release(box);
	loop_defer(up->g->conf.loop, &up->free);
}

void
gw_up_close_idle(struct gw_box *box)
{
	struct gw_port *p, *next_port;
	struct gw_up *up, *next;

	TAILQ_FOREACH_SAFE (p, &box->ports, link, next_port) {
		TAILQ_FOREACH_SAFE (up, &p->idle, in_port, next)
			gw_up_close(up); /* the last one frees p */
	}
}

void
gw_up_expire(struct gateway *g, int64_t now)
{
	struct gw_up *up;

	for (int i = 0; i < 2; i++) {
		int64_t limit = i ? GW_POOL_IDLE_ENVD : GW_POOL_IDLE;

		while ((up = TAILQ_FIRST(&g->idle[i])) && now - up->idle_since > limit)
			gw_up_close(up);
	}
}

/* The peer's FIN may lie in the socket while the loop has not come to it yet. */
static bool
is_open(const struct gw_up *up)
{
	char c;

	return recv(up->sock.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

static void
attach(struct gw_up *up, struct gw_session *s)
{
	up->session = s;
	s->up = up;
	up->mark_in = up->sock.bytes_in;
	up->mark_out = up->sock.bytes_out;
	s->up_keep = false;
}

struct gw_up *
gw_up_take(struct gw_session *s, bool safe)
{
	struct gw_port *p = port_find(s->box, s->port);
	int64_t oldest = loop_now(s->g->conf.loop) - idle_limit(s->port);
	struct gw_up *up;

	while (p && (up = TAILQ_FIRST(&p->idle))) {
		bool last = p->users == 1;

		if (up->idle_since >= oldest && (!safe || is_open(up))) {
			unpool(up);
			up->reused = true;
			attach(up, s);
			gw_count_reuse();
			return up;
		}
		gw_up_close(up);
		if (last)
			break; /* p is gone */
	}
	return NULL;
}

static void
set_keepalive(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 20 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 10 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 6 },
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

int
gw_up_connect(struct gw_session *s, struct err *e)
{
	struct gw_box *box = s->box;
	struct gw_up *up = xcalloc(1, sizeof(*up));
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;

	memcpy(&addr, &box->addr, box->addr_n);
	if (addr.sa.sa_family == AF_INET)
		addr.in.sin_port = htons((uint16_t)s->port);
	else
		addr.in6.sin6_port = htons((uint16_t)s->port);
	sock_init(&up->sock, s->g->conf.loop, &up_cb);
	if (sock_connect(&up->sock, &addr.sa, box->addr_n, e) == -1) {
		xfree(up);
		return -1;
	}
	set_keepalive(up->sock.fd);
	up->g = s->g;
	up->box = box;
	up->port = port_get(box, s->port);
	up->port->users++;
	up->parser = http1_new(true);
	defer_init(&up->free, up_free, up);
	up->g->up_n++;
	attach(up, s);
	return 0;
}

void
gw_up_release(struct gw_up *up, bool keep)
{
	struct gateway *g = up->g;

	up->session->up = NULL;
	up->session = NULL;
	if (!keep || up->sock.state != SOCK_OPEN || up->port->idle_n >= GW_POOL_PORT_MAX ||
	    up->box->verdict != GW_BOX_LIVE) {
		gw_up_close(up);
		return;
	}
	if (g->idle_n >= GW_POOL_MAX) {
		gw_count_limit("pool");
		gw_up_close(up);
		return;
	}
	sock_read_set(&up->sock, true);
	up->idle_since = loop_now(g->conf.loop);
	TAILQ_INSERT_HEAD(&up->port->idle, up, in_port);
	TAILQ_INSERT_TAIL(idle_list(up), up, in_idle);
	up->port->idle_n++;
	g->idle_n++;
	up->pooled = true;
	gw_tick_start(g);
}

static struct gw_up *
up_of(struct sock *sock)
{
	return container_of(sock, struct gw_up, sock);
}

static void
on_open(struct sock *sock)
{
	gw_count_connect(true);
	gw_session_connected(up_of(sock)->session);
}

static bool
on_readable(struct sock *sock)
{
	struct gw_session *s = up_of(sock)->session;

	if (s == NULL || s->pipe == NULL)
		return false;
	gw_splice_in(s);
	return true;
}

static void
on_data(struct sock *sock, char *p, size_t n)
{
	struct gw_up *up = up_of(sock);

	if (up->session)
		gw_pump_data(up, p, n);
	else
		gw_up_close(up); /* nobody asked: out of step */
}

static void
on_eof(struct sock *sock)
{
	struct gw_up *up = up_of(sock);

	if (up->session)
		gw_pump_eof(up, NULL);
	else
		gw_up_close(up);
}

static void
on_drain(struct sock *sock)
{
	struct gw_up *up = up_of(sock);

	if (up->session)
		gw_pump_drain(up);
}

static void
on_fail(struct sock *sock, const char *why)
{
	struct gw_up *up = up_of(sock);
	struct gw_session *s = up->session;

	if (s == NULL) {
		gw_up_close(up);
	} else if (s->state == GW_CONNECT) {
		gw_count_connect(false);
		gw_up_close(up);
		gw_session_lost(s, why);
	} else {
		gw_pump_eof(up, why);
	}
}
