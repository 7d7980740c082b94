/*
 * A stream socket on the loop: reads into the loop's shared buffer, writes at once, and owns memory
 * only for what the kernel did not take. Used for both sides of the gateway, for the API server and
 * in envd. Knows nothing of HTTP. TLS is put under it by tls.h through struct sock_io.
 *
 * Embedded in its owner; zero it, then sock_init. Callbacks run from the loop only, never inside a
 * function of this file that the owner calls. After sock_close none runs; the memory must live
 * until the end of the turn (loop_defer), since the caller of a callback still holds it.
 *
 * Order: on_open (connect or handshake) → on_data* → on_eof; on_drain and on_progress at any time
 * after a short write; on_fail last of all. Events are level-triggered.
 */
#ifndef HTTP_SOCK_H
#define HTTP_SOCK_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/loop.h"

struct sock;

struct sock_cb {
	/* connect() finished, or the TLS handshake of an accepted one. */
	void (*on_open)(struct sock *s);
	/* The fd is readable: true if the owner has read from it by itself (splice), false: on_data
	 * follows. May be NULL. */
	bool (*on_readable)(struct sock *s);
	/* n > 0 bytes, in the loop's read buffer: consume or copy before returning. The owner may
	 * close (and defer-free) the socket inside. */
	void (*on_data)(struct sock *s, char *p, size_t n);
	/* The peer sent FIN; nothing more will be read. Writing is still possible. */
	void (*on_eof)(struct sock *s);
	/* The peer's FIN, seen (once) by sock_watch_close while reading is stopped: unread data may
	 * be left, and comes by on_data (then on_eof) if reading is started. NULL: on_eof is called
	 * instead. */
	void (*on_hangup)(struct sock *s);
	/* Everything that was pending has been taken by the kernel. Only after a sock_write that
	 * left something pending. */
	void (*on_drain)(struct sock *s);
	/* The kernel took a part of what was pending, for write timeouts. May be NULL. */
	void (*on_progress)(struct sock *s);
	/* Broken (reset, connect failed, TLS error, pending beyond the limit). Close it. why is
	 * constant text for logs. Never called from inside sock_write. After a failed write what
	 * the peer had sent is still delivered first (an early answer), if reading is on. */
	void (*on_fail)(struct sock *s, const char *why);
};

/* The transport under a socket; NULL in struct sock = plain recv/sendmsg. Functions return like
 * recv/sendmsg, with errno EAGAIN when they must wait; io_want_write tells for which direction.
 * read must leave nothing in its own buffers that the fd would not announce again. writev may be
 * called again after EAGAIN with the same bytes and more behind them. */
struct sock_io {
	ssize_t (*read)(struct sock *s, void *p, size_t n);
	ssize_t (*writev)(struct sock *s, const struct iovec *iov, int n);
	int (*handshake)(struct sock *s); /* 0 done, -1 with errno EAGAIN, or failed */
	void (*shutdown)(struct sock *s); /* send the transport's own end of stream, best effort */
	void (*free)(struct sock *s);
};

/* Makes a transport: what a listener needs to know of TLS without linking it. */
struct sock_layer {
	/* Puts the transport under s, which must be initialised and not opened yet. */
	int (*attach)(struct sock_layer *l, struct sock *s, struct err *e);
};

enum sock_state { SOCK_CLOSED = 0, SOCK_CONNECTING, SOCK_HANDSHAKE, SOCK_OPEN, SOCK_FAILED };

/* With more than this unsent, nothing may be added; what one call hands over is always taken whole.
 * Producers stop at sock_pending() > 0, so only a bug comes here. */
#define SOCK_PENDING_MAX 262144

struct sock {
	struct loop *loop;
	const struct sock_cb *cb;
	const struct sock_io *io; /* NULL: plain */
	void *io_state;           /* owned by io */
	int fd;
	uint8_t state; /* enum sock_state */
	uint8_t armed; /* what rd is registered for */
	bool reading, watching, want_fin, fin_sent, eof_seen, hangup_told, io_want_write, wr_armed,
	    limited, want_write, lost; /* lost: bytes that were to be sent will never be */
	struct event rd, wr;
	char *out; /* pending output */
	size_t out_off, out_len, out_cap;
	uint64_t bytes_in, bytes_out;
	struct defer fail;
	const char *fail_why;
};

void sock_init(struct sock *s, struct loop *l, const struct sock_cb *cb);
/* Takes over a connected, non-blocking fd. Reading starts enabled. With io set before, the
 * handshake runs first and on_open reports it; without, the socket is open at once and on_open is
 * not called. */
void sock_open(struct sock *s, int fd);
/* Starts a non-blocking connect; on_open or on_fail follows. The caller keeps the deadline. */
int sock_connect(struct sock *s, const struct sockaddr *sa, socklen_t n, struct err *e) MUST_USE;
/* Sends what the kernel takes and keeps a copy of the rest. Returns the number of bytes now pending
 * (0 = all gone); a failure arrives later by on_fail. The copy is as large as the caller makes it:
 * only what was pending before is held against SOCK_PENDING_MAX. */
size_t sock_writev(struct sock *s, const struct iovec *iov, int n);
size_t sock_write(struct sock *s, const void *p, size_t n);
static inline size_t
sock_pending(const struct sock *s)
{
	return s->out_len - s->out_off;
}
/* For an owner that writes to fd by itself (splice; plain sockets with nothing pending): on_drain
 * when the kernel takes bytes again. */
void sock_want_write(struct sock *s);
/* Stops or starts delivering on_data/on_eof. While stopped, a reset or close of the peer is still
 * reported by on_fail/on_eof if sock_watch_close was asked for. */
void sock_read_set(struct sock *s, bool on);
/* While reading is stopped or the peer's FIN was read, watch the peer: its FIN gives on_hangup, a
 * reset gives on_fail. Not while output is pending: then the write notices. Two epoll_ctl; for
 * waits, not for the hot path. */
void sock_watch_close(struct sock *s, bool on);
/* FIN after all pending output. */
void sock_finish(struct sock *s);
/* Removes events and closes the fd at once; no callback runs afterwards. Pending output is lost
 * unless the kernel has it. After a failure that lost output it is a sock_reset. Safe on a zeroed
 * or closed one. */
void sock_close(struct sock *s);
/* Close with RST (SO_LINGER 0), so that a cut stream does not look complete to the peer. */
void sock_reset(struct sock *s);
/* TCP_NOTSENT_LOWAT: bounds what the kernel keeps for a slow reader. Call after the first short
 * write. */
void sock_limit_kernel(struct sock *s);

/* One listening TCP socket. accept() stops for a second at the fd limit or while paused. */
struct listener;
/* addr "1.2.3.4:80", "[::]:80" or "0.0.0.0:80"; port 0 picks one (listener_port). on_accept takes
 * over fd (non-blocking, close-on-exec, TCP_NODELAY set); peer is the client's address as text. */
int listener_new(struct loop *l, const char *addr, int backlog,
    void (*on_accept)(int fd, const char *peer, void *arg), void *arg, struct listener **ret,
    struct err *e) MUST_USE;
int listener_port(const struct listener *ls);
void listener_pause(struct listener *ls, bool on);
void listener_free(struct listener *ls); /* accepts NULL; closes the listening socket */

#endif
