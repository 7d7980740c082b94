/*
 * Long answer bodies of known length, from socket to socket through a pipe: the kernel moves pages
 * and nothing is copied to us and back. Only plain connections, only towards the client. Owns the
 * pipes; what it moved is told to the parser (which counts the body) and to the HTTP server (which
 * watches over slow clients).
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "apiserver/gw.h"
#include "base/alloc.h"

#define FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
#define TURNS 2 /* pipes full in one callback */

struct gw_pipe {
	SLIST_ENTRY(gw_pipe) link;
	int in, out;
	size_t n; /* bytes inside */
};

static struct gw_pipe *
pipe_get(struct gateway *g)
{
	struct gw_pipe *p = SLIST_FIRST(&g->pipes);
	int fd[2];

	if (p) {
		SLIST_REMOVE_HEAD(&g->pipes, link);
		g->pipe_n--;
		return p;
	}
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) == -1)
		return NULL; /* no descriptors: copying does it too */
	p = xcalloc(1, sizeof(*p));
	p->out = fd[0];
	p->in = fd[1];
	return p;
}

static void
pipe_free(struct gw_pipe *p)
{
	close(p->in);
	close(p->out);
	xfree(p);
}

void
gw_splice_end(struct gw_session *s)
{
	struct gateway *g = s->g;
	struct gw_pipe *p = s->pipe;

	s->pipe = NULL;
	if (p->n > 0 || g->pipe_n >= GW_SPARE_PIPES_MAX) {
		pipe_free(p);
		return;
	}
	SLIST_INSERT_HEAD(&g->pipes, p, link);
	g->pipe_n++;
}

void
gw_splice_free_all(struct gateway *g)
{
	struct gw_pipe *p;

	while ((p = SLIST_FIRST(&g->pipes))) {
		SLIST_REMOVE_HEAD(&g->pipes, link);
		pipe_free(p);
	}
}

void
gw_splice_begin(struct gw_session *s)
{
	if (s->framing != GW_FRAME_LENGTH || s->r->tls ||
	    http1_body_left(s->up->parser) < GW_SPLICE_MIN)
		return;
	s->pipe = pipe_get(s->g);
	if (s->pipe)
		sock_limit_kernel(
		    http_req_sock(s->r)); /* else it takes megabytes for a slow client */
}

/* From the pipe to the client. Returns false if the session has ended. */
static bool
push(struct gw_session *s)
{
	struct gw_pipe *p = s->pipe;
	struct http_req *r = s->r;
	ssize_t n;

	n = splice(p->out, NULL, http_req_sock(r)->fd, NULL, p->n, FLAGS);
	if (n > 0) {
		p->n -= (size_t)n;
		http_reply_moved(r, (uint64_t)n);
		return true;
	}
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return true;
	gw_session_end(s, "client_gone", false);
	http_reply_abort(r, "client gone");
	return false;
}

/* From the sandbox into the empty pipe. Returns false if the session has ended. */
static bool
fill(struct gw_session *s)
{
	struct http1 *parser = s->up->parser;
	int64_t left = http1_body_left(parser);
	ssize_t n;

	n = splice(s->up->sock.fd, NULL, s->pipe->in, NULL,
	    left < GW_PIPE_SIZE ? (size_t)left : GW_PIPE_SIZE, FLAGS);
	if (n > 0) {
		s->pipe->n = (size_t)n;
		s->up->sock.bytes_in += (uint64_t)n;
		http1_body_skip(parser, (uint64_t)n);
		return true;
	}
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return true;
	gw_session_cut(s, GW_FAIL_PORT_CLOSED, "answer cut short");
	return false;
}

/* One side is waited for, the slower one: the client while the pipe holds something, else the
 * sandbox. The other stays as it is, so a long transfer needs no epoll_ctl. */
static void
move(struct gw_session *s, bool by_client)
{
	struct gw_pipe *p = s->pipe;

	for (int turn = 0; turn < TURNS; turn++) {
		if (p->n == 0 && http1_body_left(s->up->parser) == 0) {
			gw_splice_end(s);
			gw_pump_complete(s);
			return;
		}
		if (p->n == 0 && !fill(s))
			return;
		if (p->n == 0) { /* nothing there */
			sock_read_set(&s->up->sock, true);
			return;
		}
		if (!push(s))
			return;
		if (p->n > 0)
			break;
	}
	if (p->n > 0 || by_client) {
		sock_read_set(&s->up->sock, false);
		http_reply_wait(s->r);
	}
}

void
gw_splice_in(struct gw_session *s)
{
	gw_session_moved(s);
	move(s, false);
}

void
gw_splice_out(struct gw_session *s)
{
	move(s, true);
}
