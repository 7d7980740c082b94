/*
 * A listening TCP socket (declared in sock.h). Options that accepted sockets inherit on Linux
 * (TCP_NODELAY, keep-alive) are set once here instead of on each connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "http/sock.h"

#define ACCEPT_BATCH 64 /* connections taken in one callback */
#define FULL_WAIT SECONDS(1)
#define ADDR_TEXT_MAX 128

struct listener {
	struct loop *loop;
	int fd;
	void (*on_accept)(int fd, const char *peer, void *arg);
	void *arg;
	struct event ev;
	struct timer full; /* running: no fds or memory, accept waits */
	struct defer free; /* listener_free may be called from inside on_accept */
	bool paused;
};

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage any;
};

/* "1.2.3.4:80", "[::1]:80", ":80". */
static int
address_parse(const char *text, union address *a, socklen_t *n)
{
	char host[ADDR_TEXT_MAX];
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	uint64_t port;

	if (colon == NULL || len >= sizeof(host) ||
	    strv_u64(strv_of(colon + 1), 65535, &port) == -1)
		return -1;
	memset(a, 0, sizeof(*a));
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		memcpy(host, text + 1, len - 2);
		host[len - 2] = '\0';
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons((uint16_t)port);
		*n = sizeof(a->in6);
		return inet_pton(AF_INET6, host, &a->in6.sin6_addr) == 1 ? 0 : -1;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	a->in.sin_family = AF_INET;
	a->in.sin_port = htons((uint16_t)port);
	*n = sizeof(a->in);
	return len == 0 || inet_pton(AF_INET, host, &a->in.sin_addr) == 1 ? 0 : -1;
}

/* The address without its port; IPv4 inside IPv6 as IPv4. */
static void
address_format(const union address *a, char out[INET6_ADDRSTRLEN])
{
	const void *bytes = &a->in.sin_addr;
	int family = a->sa.sa_family;

	out[0] = '\0';
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) {
		bytes = &a->in6.sin6_addr.s6_addr[12];
		family = AF_INET;
	} else if (family == AF_INET6) {
		bytes = &a->in6.sin6_addr;
	} else if (family != AF_INET) {
		return;
	}
	inet_ntop(family, bytes, out, INET6_ADDRSTRLEN);
}

static bool
is_exhaustion(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void
arm(struct listener *ls)
{
	bool on = !ls->paused && !timer_pending(&ls->full);

	if (on)
		BUG_ON(event_add(&ls->ev, NULL) == -1);
	else
		event_del(&ls->ev);
}

static void
on_full_over(void *arg)
{
	arm(arg);
}

static void
on_connection(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct listener *ls = arg;
	char peer[INET6_ADDRSTRLEN];

	for (int i = 0; i < ACCEPT_BATCH && !ls->paused; i++) {
		union address a = { .sa.sa_family = AF_UNSPEC };
		socklen_t n = sizeof(a);
		int c = accept4(fd, &a.sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (c == -1 && is_exhaustion(errno)) {
			/* A level-triggered listener would spin until something is closed. */
			log_warn("cannot accept, waiting a second", log_i("errno", errno));
			timer_start(&ls->full, FULL_WAIT);
			arm(ls);
			return;
		}
		if (c == -1 && errno == EAGAIN)
			return;
		if (c == -1)
			continue; /* the connection died in the queue */
		address_format(&a, peer);
		ls->on_accept(c, peer, ls->arg);
	}
}

static void
set_options(int fd, int family)
{
	const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_REUSEADDR, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
		{ IPPROTO_IPV6, IPV6_V6ONLY, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (options[i].level != IPPROTO_IPV6 || family == AF_INET6)
			setsockopt(
			    fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
	}
}

static int
listen_on(const char *addr, int backlog, int *ret, struct err *e)
{
	union address a = { .sa.sa_family = AF_UNSPEC };
	socklen_t n;
	int fd;

	if (address_parse(addr, &a, &n) == -1)
		return err_set(e, ERR_INVALID, "bad address %s: need IP:PORT or [IP]:PORT", addr);
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return err_errno(e, ERR_IO, "socket");
	set_options(fd, a.sa.sa_family);
	if (bind(fd, &a.sa, n) == -1 || listen(fd, backlog) == -1) {
		err_errno(e, ERR_IO, "listen on %s", addr);
		close(fd);
		return -1;
	}
	*ret = fd;
	return 0;
}

int
listener_new(struct loop *l, const char *addr, int backlog,
    void (*on_accept)(int fd, const char *peer, void *arg), void *arg, struct listener **ret,
    struct err *e)
{
	struct listener *ls;
	int fd = -1;

	if (listen_on(addr, backlog, &fd, e) == -1)
		return -1;
	ls = xcalloc(1, sizeof(*ls));
	ls->loop = l;
	ls->fd = fd;
	ls->on_accept = on_accept;
	ls->arg = arg;
	defer_init(&ls->free, xfree, ls);
	timer_init(&ls->full, l, on_full_over, ls);
	event_assign(&ls->ev, loop_base(l), fd, EV_READ | EV_PERSIST, on_connection, ls);
	arm(ls);
	*ret = ls;
	return 0;
}

int
listener_port(const struct listener *ls)
{
	union address a = { .sa.sa_family = AF_UNSPEC };
	socklen_t n = sizeof(a);

	if (getsockname(ls->fd, &a.sa, &n) == -1)
		return -1;
	return ntohs(a.sa.sa_family == AF_INET6 ? a.in6.sin6_port : a.in.sin_port);
}

void
listener_pause(struct listener *ls, bool on)
{
	if (ls->paused == on)
		return;
	ls->paused = on;
	arm(ls);
}

void
listener_free(struct listener *ls)
{
	if (ls == NULL)
		return;
	event_del(&ls->ev);
	timer_stop(&ls->full);
	close(ls->fd);
	ls->paused = true;
	loop_defer(ls->loop, &ls->free);
}
