/*
 * What the gateway's own files share: its three objects and the calls between the files. Nobody
 * else includes this.
 *
 *	session   one request of a client, from its head to the end of its answer (or tunnel)
 *	box       one sandbox that has traffic: where its pod is, its sessions, its connections
 *	up        one connection to a port of a pod: carries a session, or idles in its box
 *
 * gateway.c owns sessions and their states, gw_box.c boxes and what the view says, gw_upstream.c
 * ups, gw_pump.c moves bytes.
 */
#ifndef APISERVER_GW_H
#define APISERVER_GW_H

#include <sys/socket.h>

#include "apiserver/gateway.h"
#include "apiserver/gw_errors.h"
#include "apiserver/gw_headers.h"
#include "apiserver/gw_route.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "http/sock.h"

/* --- limits --- */
#define GW_BOX_SESSIONS_MAX 2000   /* requests and tunnels of one sandbox at a time */
#define GW_WAITERS_MAX 1024        /* requests of one gateway that wait for sandboxes */
#define GW_WAIT_MAX SECONDS(60)    /* for a sandbox that starts or resumes */
#define GW_READY_MAX SECONDS(30)   /* for envd to have taken its settings */
#define GW_READY_PAUSE MILLIS(250) /* between two tries when the view already says running */
#define GW_BODY_KEPT_MAX 65536     /* body kept for a second try */
#define GW_CONNECT_TRIES 5         /* with waits of 100, 200, 300, 400 ms between them */
#define GW_CONNECT_STEP MILLIS(100)
#define GW_CONNECT_MAX SECONDS(30) /* all tries together */
#define GW_EXPECT_MAX SECONDS(1)   /* for the sandbox's own 100 Continue */
#define GW_EARLY_REST_MAX 65536    /* body still read after an early answer, to keep the */
#define GW_EARLY_WAIT SECONDS(2)   /* connection, and for how long */
#define GW_HANGUP_MAX SECONDS(60)  /* a silent sandbox after the client's FIN */
#define GW_IDLE_MAX SECONDS(86400) /* no byte in either direction */
#define GW_POOL_PORT_MAX 512       /* idle connections to one port; they go after a second */
#define GW_POOL_MAX 4096           /* idle connections of one gateway */
/* Common servers close after 2 s (gunicorn), 5 s (Node, uvicorn) or more; our envd after 610 s. */
#define GW_POOL_IDLE SECONDS(1)
#define GW_POOL_IDLE_ENVD SECONDS(60)
/* Unused objects kept. None under AddressSanitizer, so that a use after the end is seen. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GW_SPARE_SESSIONS_MAX 0
#endif
#endif
#if !defined(GW_SPARE_SESSIONS_MAX) && defined(__SANITIZE_ADDRESS__)
#define GW_SPARE_SESSIONS_MAX 0
#elif !defined(GW_SPARE_SESSIONS_MAX)
#define GW_SPARE_SESSIONS_MAX 1024
#endif
#define GW_SPARE_BUF_MAX 4096 /* bytes of head buffer that an unused session keeps */
#define GW_SPLICE_MIN 65536   /* rest of a body that is worth a pipe */
/* A pipe's default size; more gained nothing, and a stalled client holds it. */
#define GW_PIPE_SIZE 65536
#define GW_SPARE_PIPES_MAX 64
#define GW_SMALL_BODY 4096 /* copied behind the head instead of sent as a second piece */

enum gw_state {
	GW_HEAD = 0, /* not in use: between two requests */
	GW_RESOLVE,  /* which pod? */
	GW_RESUME,   /* a wake was asked for */
	GW_WAIT,     /* the view must say something first */
	GW_CONNECT,
	GW_STREAM,
	GW_TUNNEL,
	GW_DEAD, /* answered or cut */
	GW_STATE_COUNT
};

TAILQ_HEAD(gw_session_list, gw_session);
TAILQ_HEAD(gw_up_list, gw_up);
TAILQ_HEAD(gw_port_list, gw_port);
SLIST_HEAD(gw_pipe_list, gw_pipe);

struct gw_session {
	struct gateway *g;
	struct http_req *r; /* NULL once the client's side is over */
	struct gw_box *box;
	struct gw_up *up;
	enum gw_state state;
	int port;
	TAILQ_ENTRY(gw_session) in_box;
	TAILQ_ENTRY(gw_session) in_age; /* by last move; or on the dead or spare list */
	int64_t moved;                  /* loop time */
	int64_t since;                  /* the head was complete */
	int64_t deadline;               /* of waiting; 0 not begun */
	struct timer timer;             /* means what the state says; see gw_timer */
	struct defer flush;             /* the head must go, body or not */
	struct gw_buf head;             /* as sent, and behind it the body that is kept */
	/* Everything from here on is zeroed for the next request. */
	size_t head_n;
	int64_t connect_by;
	struct gw_pipe *pipe; /* the rest of the answer goes through it */
	int64_t body_left;    /* request body by Content-Length; -1 unknown */
	unsigned tries;
	int status;
	uint8_t minor; /* of the client */
	uint8_t framing;
	bool has_body, chunked; /* of the request */
	bool idempotent, head_request, upgrade, client_keep;
	bool head_unsent;  /* held back until the first piece of body or the end of the turn */
	bool expecting;    /* the client waits for 100 Continue */
	bool keep_body;    /* body goes to head.p as well */
	bool kept_all;     /* nothing of the body is missing there */
	bool req_done;     /* the request has been forwarded whole */
	bool fresh;        /* only a new connection will do */
	bool want_running; /* GW_WAIT: a live pod is not enough */
	bool woken;        /* a wake for it succeeded */
	bool pausing;      /* GW_WAIT: for a moment only */
	bool not_ready;    /* envd answered 425: try again */
	bool answered;     /* the response head went to the client */
	bool up_keep;      /* the sandbox will keep its connection */
	bool answer_done;  /* early answer is out, rest of the request is read */
	bool paused;       /* the client's body is not read */
	bool timed;        /* the timer runs */
	bool up_full;      /* the sandbox does not take the body at the moment */
	bool down_full;    /* the client does not take the answer at the moment */
	bool client_fin, up_fin; /* GW_TUNNEL */
};

enum gw_verdict {
	GW_BOX_GONE = 0, /* no such sandbox, for clients */
	GW_BOX_ASLEEP,   /* paused, may be woken */
	GW_BOX_STARTING, /* no pod to talk to yet */
	GW_BOX_LIVE      /* a pod has an address */
};

struct gw_port {
	TAILQ_ENTRY(gw_port) link;
	int port;
	unsigned idle_n, users; /* users: ups, idle or not */
	struct gw_up_list idle; /* last used first */
};

struct gw_box {
	struct gateway *g;
	char id[SANDBOX_ID_MAX + 1];
	enum gw_verdict verdict;
	bool running; /* the view says SANDBOX_RUNNING */
	bool secure, private_ingress;
	char *mask_host; /* NULL: none */
	char pod_uid[64];
	union {
		struct sockaddr sa;
		struct sockaddr_in6 in6; /* the larger one */
	} addr;
	socklen_t addr_n;
	int default_port; /* of the template; 0 none, -1 not looked up yet */
	struct gw_session_list sessions;
	unsigned session_n;
	struct gw_port_list ports;
	void *wake; /* handle of a wake in flight */
	bool waking;
	unsigned wake_waiters;
	int64_t active; /* loop time of the last activity report */
	struct defer gc;
};

struct gw_up {
	struct gateway *g;
	struct gw_box *box;
	struct gw_port *port;
	struct gw_session *session; /* NULL: idle or closing */
	struct sock sock;
	struct http1 *parser;
	uint64_t mark_in, mark_out; /* sock's counters when the request began */
	bool reused;                /* carried a request before */
	bool pooled;
	int64_t idle_since;
	TAILQ_ENTRY(gw_up) in_port;
	TAILQ_ENTRY(gw_up) in_idle; /* g->idle[class], oldest first */
	struct defer free;
};

TAILQ_HEAD(gw_look_list, gw_look);

struct gateway {
	struct gateway_conf conf;
	struct gw_look_list looks;
	unsigned look_n;
	struct strv domain;
	char *domain_text;
	struct gw_route *route; /* of the head that was looked at last */
	struct map *boxes;
	struct gw_session_list active; /* longest silent first */
	struct gw_session_list dead, spare;
	struct defer reap; /* dead ones become spare ones at the end of the turn */
	unsigned session_n, spare_n, waiting_n;
	unsigned state_n[GW_STATE_COUNT];
	struct gw_up_list idle[2]; /* user ports, envd */
	unsigned idle_n, up_n;
	struct gw_pipe_list pipes; /* empty ones, for reuse */
	unsigned pipe_n;
	struct gw_buf out;               /* answers on their way to a client */
	struct strbuf clean, host, body; /* scratch */
	struct timer tick;
	bool ticking;
	struct view_sub sub;
	char date[TIME_TEXT_MAX];
	int64_t date_at;
};

/* --- gateway.c: sessions --- */
void gw_session_set(struct gw_session *s, enum gw_state state);
/* Starts the session's timer, or stops it (0). */
void gw_timer(struct gw_session *s, int64_t ns);
/* Bytes moved. */
void gw_session_moved(struct gw_session *s);
/* The once-a-second timer runs while there is something to look at. */
void gw_tick_start(struct gateway *g);
/* The view or a wake changed what is known: goes on from RESOLVE, RESUME, WAIT or CONNECT. */
void gw_session_resolve(struct gw_session *s);
/* Answers with a failure (nothing was answered yet) and ends. */
void gw_session_fail(struct gw_session *s, enum gw_fail_kind kind, const struct err *e);
/* Ends it in whatever way its state allows: failure answer, or a cut of the client's connection. */
void gw_session_cut(struct gw_session *s, enum gw_fail_kind kind, const char *why);
/* Ends it; the request is the caller's from here on. keep_up: its connection may serve again. */
void gw_session_end(struct gw_session *s, const char *result, bool keep_up);
/* The connection is there. */
void gw_session_connected(struct gw_session *s);
/* It could not be made, or was lost before a byte of the answer. */
void gw_session_lost(struct gw_session *s, const char *why);
/* envd answered that it has no settings yet. */
void gw_session_not_ready(struct gw_session *s);

/* --- gw_admit.c --- */
/* The box, or NULL with *f saying why not. Fills route->port in where the template's is meant. */
struct gw_box *gw_admit(
    struct gateway *g, const struct http_head *h, struct gw_route *route, struct gw_fail *f);

/* --- gw_look.c --- */
#define GW_LOOKS_MAX 256
/* Starts a look for a sandbox that the view does not know; the request goes on by itself. false:
 * nothing was started. */
bool gw_look(struct gateway *g, struct http_req *r, const struct http_head *h, struct strv id);
void gw_look_free_all(struct gateway *g);
/* gateway_handle without looking: what the view does not know is not there. */
void gw_handle_known(struct gateway *g, struct http_req *r, const struct http_head *h);

/* --- gw_box.c --- */
/* By id; NULL: no such sandbox. The result lives while it has sessions or connections. */
struct gw_box *gw_box_get(struct gateway *g, struct strv id);
/* Frees it, at the end of the turn, if nothing holds it then. */
void gw_box_release(struct gw_box *box);
void gw_box_moved(struct gw_box *box);
int gw_box_default_port(struct gw_box *box); /* 0: none */
void gw_box_wake(struct gw_box *box);        /* no-op while a wake is in flight */
void gw_box_wake_left(struct gw_box *box);   /* a waiter is gone */
void gw_box_on_view(struct strv id, const struct sandbox_entry *entry, void *arg);
void gw_box_free_all(struct gateway *g);

/* --- gw_upstream.c --- */
/* An idle connection to the session's port, now carrying it, or NULL. safe: it must be looked at
 * first, since a lost request could not be repeated. */
struct gw_up *gw_up_take(struct gw_session *s, bool safe);
/* Begins to connect: gw_session_connected or gw_session_lost follow. */
int gw_up_connect(struct gw_session *s, struct err *e) MUST_USE;
/* The session leaves it. keep: it may carry another one. */
void gw_up_release(struct gw_up *up, bool keep);
void gw_up_close(struct gw_up *up);
void gw_up_close_idle(struct gw_box *box);
void gw_up_expire(struct gateway *g, int64_t now);

/* --- gw_pump.c --- */
extern const struct http_req_ops gw_client_ops;
/* Sends the head (and what is kept of the body) on a connection that is open. */
void gw_pump_start(struct gw_session *s);
/* Sends a head that was held back. */
void gw_pump_flush(struct gw_session *s);
/* Should the client's body be read now? Called after every change of what it depends on. */
void gw_pump_update(struct gw_session *s);
void gw_pump_data(struct gw_up *up, char *p, size_t n);
/* why NULL: the sandbox's FIN; else the connection broke. */
void gw_pump_eof(struct gw_up *up, const char *why);
void gw_pump_drain(struct gw_up *up);
void gw_pump_timer(struct gw_session *s);
/* The request is no longer the session's; its server may still end it in its own time. */
void gw_pump_leave(struct http_req *r);

void gw_pump_complete(struct gw_session *s);

/* --- gw_splice.c --- */
/* Moves what is left of the answer's body without copying it, if that is possible and worth it. */
void gw_splice_begin(struct gw_session *s);
/* The sandbox's socket is readable. */
void gw_splice_in(struct gw_session *s);
/* The client's socket is writable. */
void gw_splice_out(struct gw_session *s);
void gw_splice_end(struct gw_session *s);
void gw_splice_free_all(struct gateway *g);

/* --- gw_metrics.c --- */
void gw_metrics_add(struct gateway *g);
void gw_count_result(const char *label);
void gw_count_connect(bool ok);
void gw_count_reuse(void);
void gw_count_retry(const char *why);
void gw_count_limit(const char *which);
void gw_count_latency(int64_t ns);

#endif
