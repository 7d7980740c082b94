/*
 * HTTP/1.1 server: connections, keep-alive, pipelining (one request at a time, in order), streaming
 * both ways with back-pressure, Expect: 100-continue, upgrade, limits, drain. Used by apiserver
 * (API and gateway), controller (health) and envd. It knows nothing of routes.
 *
 * Life of a request: on_request(head) → the handler sets r->ops (and r->arg) or answers at once →
 * on_body* → on_end; meanwhile http_reply… in any order. For the handler the request is over, and r
 * must not be touched any more, when http_reply, http_reply_end or http_reply_abort has returned or
 * on_abort was called. (A tunnel: see http_req_tunnel.) What is left of the request body is read
 * and dropped by the server, up to 256 KiB; beyond that the connection is closed.
 *
 * A handler that cannot answer within on_request and does not want the body yet (it asks somebody
 * first) calls http_req_pause(r, true) there, and sets ops before it ends the pause: on_body and
 * on_end wait for that.
 *
 * Callbacks run from the loop only, never inside a function that the handler calls. A handler may
 * call everything from inside its callbacks, http_reply_abort included.
 *
 * A client that sends FIN after its request may have only half-closed: it still gets its answer
 * (ops->on_hangup tells). A reset gives on_abort.
 *
 * Memory: an idle connection is under 400 bytes besides its two events; a request adds about 500
 * from a free list, while it lasts; bytes that came too early (pipelining, pause) at most 64 KiB.
 * Timeouts are checked by a tick of a second (or a quarter of the shortest), so they come up to two
 * ticks late.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "http/http1.h"
#include "http/sock.h"
#include "http/tls.h"

struct http_server;
struct http_req;

struct http_req_ops {
	/* A piece of the request body, borrowed. After http_req_pause(r, true) none comes. May be
	 * NULL: the body is read and thrown away. */
	void (*on_body)(struct http_req *r, const char *p, size_t n);
	/* The request body is complete (at once for none). May be NULL. */
	void (*on_end)(struct http_req *r);
	/* Output that was pending is gone. May be NULL. */
	void (*on_drain)(struct http_req *r);
	/* The client went away or the connection was cut; r is dead when this returns. May be NULL.
	 */
	void (*on_abort)(struct http_req *r, const char *why);
	/* The client sent FIN: it is gone or has only half-closed. Noticed at once while the server
	 * reads, within two seconds while it does not (pause, pipelined bytes). At most once; the
	 * reply can still be sent. A handler that waits for something costly may give up here by
	 * http_reply_abort. May be NULL. */
	void (*on_hangup)(struct http_req *r);
};

struct http_server_conf {
	/* All in ns; 0 = default. */
	int64_t head_timeout; /* first byte to complete head, TLS handshake; default 10 s */
	/* Between requests and before the first; default 610 s (above every client's own). */
	int64_t idle_timeout;
	int64_t body_timeout; /* no byte of an expected body; default 60 s; never applies while
	                         paused */
	int64_t
	    write_timeout;  /* no byte taken by the client while output is pending; default 300 s */
	unsigned max_conns; /* beyond it accept pauses; default 10000 */
	const char *server_name; /* value of the Server field; NULL: none */
	/* New request. The head is valid only until this returns (http_req_keep_head to keep it).
	 */
	void (*on_request)(struct http_req *r, const struct http_head *h, void *arg);
	/* Answer to a request that could not be parsed: fills a complete body (JSON …) and its
	 * content type. NULL: plain text. */
	void (*on_bad_request)(
	    int status, const char *why, struct strbuf *body, const char **type, void *arg);
	/* A request is over, the last that is heard of it (for access log and metrics): r's
	 * read-only fields are valid, r->arg may dangle. status 0: no reply was begun. May be NULL.
	 */
	void (*on_done)(struct http_req *r, void *arg);
	void *arg;
};

int http_server_new(struct loop *l, const struct http_server_conf *conf, struct http_server **ret,
    struct err *e) MUST_USE;
/* Adds a listener; tls may be NULL (plain). Several are allowed (8). */
int http_server_listen(struct http_server *s, const char *addr, struct tls_server *tls, int *port,
    struct err *e) MUST_USE;
/* Stop accepting, close idle connections, send Connection: close on the others; on_drained when the
 * last one is gone. */
void http_server_drain(struct http_server *s, void (*on_drained)(void *arg), void *arg);
/* Cuts every connection (on_abort is called). Memory goes at the end of the turn. Accepts NULL. */
void http_server_free(struct http_server *s);
unsigned http_server_conns(const struct http_server *s);
/* How often max_conns was reached, so that accept paused; for metrics. */
uint64_t http_server_accept_pauses(const struct http_server *s);

/* One request. Fields above the line are the handler's; below is read-only for it. */
struct http_req {
	const struct http_req_ops *ops;
	void *arg;
	/* ---- */
	struct http_server *server;
	const char *peer; /* client address as text, lives as long as r */
	bool tls;
	enum http_method method;
	bool head_sent;               /* reply head has been written */
	bool body_done;               /* request body complete */
	int status;                   /* of the reply, once known */
	int64_t start;                /* loop_now when the head was complete */
	uint64_t bytes_in, bytes_out; /* body bytes */
	char id[17];                  /* request id: 16 hex, for logs and X-Request-Id; no secret */
	void *kept;                   /* see http_req_keep_head */
};

/* Copies the head; the copy lives as long as r. */
const struct http_head *http_req_keep_head(struct http_req *r, const struct http_head *h);
/* Stops or resumes on_body. While paused the client's disconnect is still noticed. */
void http_req_pause(struct http_req *r, bool on);
/* Sends "100 Continue" if the client waits for it and no reply was started; the server does it by
 * itself before it reads the first body byte for a handler that has set ops. */
void http_req_continue(struct http_req *r);
/* No body_timeout for this request: its handler keeps watch (streams that may be silent). */
void http_req_patient(struct http_req *r);
/* Do not keep the connection after this reply. */
void http_req_close_after(struct http_req *r);
/* Will the connection be closed after the reply, as things are (client's wish, drain, a rest of
 * body that is too long)? For callers of http_reply_raw who write Connection themselves. */
bool http_req_will_close(const struct http_req *r);

/* Complete answer in one write. fields may be NULL; Content-Length, Date, Server and Connection are
 * added (and left out of fields, like Transfer-Encoding); status >= 200. For HEAD the body is left
 * out but counted. body is copied as far as the kernel does not take it.
 */
void http_reply(
    struct http_req *r, int status, const struct http_field *fields, size_t n, struct strv body);
/* A head that is larger than 128 KiB (a bug) cuts the connection; on_abort follows.
 * Streaming answer: length -1 = chunked (close-delimited for HTTP/1.0 clients). */
void http_reply_start(
    struct http_req *r, int status, const struct http_field *fields, size_t n, int64_t length);
/* Adds body bytes; returns what is pending: stop producing until on_drain when it is > 0. Bytes
 * beyond the declared length are dropped. One call is always taken whole, but a call while more
 * than SOCK_PENDING_MAX is pending cuts the connection (RST). */
size_t http_reply_write(struct http_req *r, const void *p, size_t n);
/* For a handler that moves body bytes to http_req_sock's fd by itself (splice; not with TLS, and
 * only while nothing is pending): n of them were moved, for the count and the timeouts. */
void http_reply_moved(struct http_req *r, uint64_t n);
/* The same handler met a full socket: on_drain follows, write_timeout runs. */
void http_reply_wait(struct http_req *r);
/* Fewer bytes than the declared length: the connection is cut, as by http_reply_abort. */
void http_reply_end(struct http_req *r);
/* A reply that cannot be completed: cut the connection (RST) so that it does not look complete. */
void http_reply_abort(struct http_req *r, const char *why);

/* For the gateway: starts a reply whose status line and fields are already in head (everything up
 * to and with the blank line, hop-by-hop fields and framing included), with a first piece of body
 * in the same write. body_len: -1 chunked by the server, -2 the caller writes final bytes that need
 * no framing (content-length passes through, or until close), else a declared length. keep: the
 * connection may be reused after http_reply_end. */
size_t http_reply_raw(struct http_req *r, int status, struct strv head, struct strv body,
    int64_t body_len, bool keep);
/* An interim (1xx) head, complete with blank line. */
void http_reply_interim(struct http_req *r, struct strv head);

/* Upgrade: sends head (status line to blank line) and turns the connection into a byte tunnel. From
 * then on ops works on raw bytes: on_body = bytes from the client, on_end = client's FIN,
 * http_reply_write = raw bytes to it, http_reply_end = FIN to it. The request ends when both sides
 * have ended, or by http_reply_abort: r is dead when http_reply_end returns after on_end was
 * called, or when on_end returns after http_reply_end was called. Before r->body_done the
 * connection is cut instead (on_abort follows). ops may be changed before the call. No timeout but
 * write_timeout: idle tunnels are the owner's. */
void http_req_tunnel(struct http_req *r, int status, struct strv head);
/* The client's socket, for splice and TCP options. */
struct sock *http_req_sock(struct http_req *r);

/* Collects the whole body up to max bytes, then calls fn(r, body, arg) (body is borrowed,
 * NUL-terminated, never NULL); beyond max: fn with body.p == NULL, and the rest is dropped. Takes
 * the place of r->ops until fn is called; what r->ops was then is in force again, and its on_abort
 * and on_hangup are called in between, too. fn is never called inside http_req_collect. */
void http_req_collect(struct http_req *r, size_t max,
    void (*fn)(struct http_req *r, struct strv body, void *arg), void *arg);

#endif
