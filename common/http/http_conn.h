/*
 * Private to the HTTP server's files: the connection and the exchange (one request and its reply).
 *
 *	http_server.c  listeners, connection lists, timeouts, drain, the pool of exchanges
 *	http_conn.c    the state machine: bytes in, parser, handler, end of requests and connections
 *	http_reply.c   replies
 *	http_req.c     the rest of the handler's interface
 */
#ifndef HTTP_HTTP_CONN_H
#define HTTP_HTTP_CONN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "base/str.h"
#include "http/http1.h"
#include "http/http_server.h"
#include "http/sock.h"

#define HTTP_LISTENERS_MAX 8
#define HTTP_DRAIN_MAX 262144    /* rest of a body that is read to keep a connection */
#define HTTP_LINGER_MAX 8388608  /* read and dropped while a connection closes … */
#define HTTP_LINGER SECONDS(2)   /* … at most this long */
#define HTTP_RUN_MAX 32          /* pipelined requests of one connection in a row */
#define HTTP_HEAD_OUT_MAX 131072 /* head of a reply */
#define HTTP_ONE_WRITE_MAX 4096  /* bodies up to this are copied behind their head */

/* States of a connection; http_conn.c has the allowed moves. */
enum conn_state {
	HC_HANDSHAKE = 0, /* TLS */
	HC_IDLE,          /* between requests, nothing read */
	HC_HEAD,          /* a part of a head is there */
	HC_BODY,          /* handler at work, request body not complete */
	HC_REPLY,         /* handler at work, request body complete */
	HC_DRAIN,         /* reply complete, rest of the body is dropped */
	HC_FLUSH,         /* request over, output pending: the next one waits */
	HC_TUNNEL,
	HC_CLOSING, /* flush, FIN, then drop what comes until the peer closes */
	HC_DEAD,    /* freed at the end of the turn */
	HC_STATES
};

/* What a connection waits for; each class has one timeout and a list, oldest first. */
enum conn_wait {
	HC_WAIT_NONE = 0, /* for the handler */
	HC_WAIT_IDLE,
	HC_WAIT_HEAD,
	HC_WAIT_BODY,
	HC_WAIT_WRITE,
	HC_WAIT_WATCH, /* reading is off: after a tick the peer's close is watched */
	HC_WAIT_LINGER,
	HC_WAITS
};

enum framing { FRAME_NONE = 0, FRAME_LENGTH, FRAME_CHUNKED, FRAME_RAW };

struct collect {
	struct strbuf body;
	size_t max;
	bool over;
	void (*fn)(struct http_req *r, struct strv body, void *arg);
	void *arg;
	const struct http_req_ops *user;
};

/* A request and its reply, from the first byte of its head. From a free list of the server. */
struct exchange {
	struct http_req r; /* first member */
	struct conn *c;
	struct http1 *parser;
	struct exchange *spare;
	struct collect *collect;
	uint64_t reply_left; /* FRAME_LENGTH */
	uint64_t dropped;    /* bytes of body read after the reply */
	uint8_t framing;     /* enum framing */
	uint8_t minor;       /* of the request's version */
	bool started;        /* on_request was called */
	bool keep;           /* the client and the messages allow another request */
	bool expect;         /* the client waits for 100 … */
	bool continued;      /* … and got it, or did not wait */
	bool paused, discard;
	bool patient; /* no timeout for the body while the handler is at work */
	bool end_given, hangup_given;
	bool reply_done;
	bool over; /* cut: the handler is being told, and can do nothing more */
};

TAILQ_HEAD(conn_list, conn);

struct conn {
	struct sock sock;
	struct http_server *server;
	struct exchange *x; /* NULL while idle */
	TAILQ_ENTRY(conn) link;
	int64_t since; /* loop time of the last sign of life in this wait; moved once a tick */
	char *stash;   /* bytes that came too early; reading is off while there are some */
	uint32_t stash_off, stash_len;
	uint32_t seq;     /* requests ended; tells whether a callback ended its own */
	uint32_t dropped; /* bytes dropped in HC_CLOSING */
	struct defer later;
	const char *cut; /* conn_run must cut the connection, for this reason */
	uint8_t state, wait;
	bool running; /* inside conn_run: the loop there goes on by itself */
	bool eof;     /* the client's FIN was read */
	bool tls;
	bool linger; /* the client may still send: FIN and wait instead of close */
	char peer[INET6_ADDRSTRLEN];
};

_Static_assert(sizeof(struct conn) - 2 * sizeof(struct event) <= 400, "idle connections are small");

struct http_server {
	struct loop *loop;
	struct http_server_conf conf;
	struct http_listener {
		struct http_server *server;
		struct listener *listener;
		struct sock_layer *layer; /* NULL: plain */
	} listeners[HTTP_LISTENERS_MAX];
	unsigned n_listeners, n_conns, n_spare;
	struct conn_list waiting[HC_WAITS];
	int64_t timeout[HC_WAITS], tick_time;
	struct timer tick;
	struct exchange *spare;
	struct strbuf out; /* head of the reply being built, small bodies behind it */
	uint64_t next_id, pauses;
	bool full, draining, freed;
	void (*on_drained)(void *arg);
	void *drained_arg;
	struct defer later; /* drained callback, and the free itself */
};

static inline struct exchange *
exchange_of(struct http_req *r)
{
	return (struct exchange *)(void *)r;
}

/* --- http_server.c --- */
struct exchange *server_exchange(struct http_server *s);
void server_exchange_free(struct http_server *s, struct exchange *x);
void server_wait(struct conn *c, enum conn_wait wait); /* moves c to that list, time starts */
void server_touch(struct conn *c);                     /* sign of life: time starts again */
void server_conn_gone(struct conn *c);

/* --- http_conn.c --- */
extern const struct sock_cb conn_cb;
void conn_start(struct conn *c, int fd);
void conn_later(void *arg); /* of c->later */
/* Goes on with the connection at the end of the turn, or in the running conn_run. */
void conn_kick(struct conn *c);
void conn_set(struct conn *c, enum conn_state next);
void conn_timeout(struct conn *c);
/* The handler's part of the reply is complete. */
void conn_reply_done(struct conn *c);
/* Cuts the connection, with RST if asked for or if a reply has begun and is not all sent; on_abort
 * is called if why is set (NULL: the handler itself asked). */
void conn_abort(struct conn *c, const char *why, bool reset);
/* For a handler that does not expect it: its writes go nowhere, and on_abort follows from the loop.
 */
void conn_cut(struct conn *c, const char *why);
void conn_close(struct conn *c);
void conn_closing(struct conn *c);
void conn_tunnel_over(struct conn *c); /* both sides of it have ended */

/* --- http_reply.c --- */
void reply_bad(struct conn *c, int status, const char *why);

/* --- http_req.c --- */
void collect_free(struct collect *col);
void collect_over(struct exchange *x);
bool exchange_will_close(const struct exchange *x);

#endif
