/*
 * One Connect call: finds the method, checks and reads the request, hands the handler a tree, and
 * frames what it answers. An rpc frees itself: after rpc_reply, rpc_reply_encoded, rpc_finish,
 * rpc_fail or rpc_fail_err it must not be touched, nor after on_gone returned.
 */
#ifndef ENVD_RPC_H
#define ENVD_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "envd/app.h"
#include "envd/call.h"
#include "envd/codec.h"
#include "envd/connect.h"
#include "envd/users.h"

#define RPC_BODY_MAX ((size_t)32 * 1024 * 1024) /* one message from a client */
#define RPC_KEEPALIVE_DEFAULT 90                /* seconds */

enum rpc_kind { RPC_UNARY = 0, RPC_SERVER_STREAM, RPC_CLIENT_STREAM };

struct rpc_method {
	const char *path; /* "/process.Process/Start" */
	const char *in, *out;
	enum rpc_kind kind;
	bool own_deadline; /* the handler looks after rpc->timeout */
	/* RPC_CLIENT_STREAM: called without a message; the handler sets ops for what comes. */
	void (*handle)(struct rpc *c, const json_t *in);
	json_t *(*keepalive)(void); /* message for silent times of a stream; may be NULL */
};

struct rpc_ops {
	void (*on_message)(struct rpc *c, const json_t *m); /* RPC_CLIENT_STREAM */
	void (*on_end)(struct rpc *c);                      /* RPC_CLIENT_STREAM: no more come */
	void (*on_drain)(struct rpc *c);
	/* The client is gone or the deadline passed: give up what c->arg holds. */
	void (*on_gone)(struct rpc *c);
};

struct rpc {
	struct app *app;
	struct call *call;
	const struct rpc_method *method;
	const struct codec *codec;
	const struct rpc_ops *ops; /* the handler's; may stay NULL */
	void *arg;
	int64_t timeout; /* ns; 0: none */
	/* ---- private ---- */
	TAILQ_ENTRY(rpc) link;
	struct user *user; /* by Authorization; NULL: the default one */
	struct err bad;    /* what the head had wrong */
	int64_t keepalive, last_sent;
	struct timer idle, deadline;
	struct connect_reader in;
	bool head_sent, in_handler, dead;
};

/* Takes the call over. */
void rpc_begin(struct call *c, const struct rpc_method *m, const struct http_head *h);
/* The caller's user; *ret is the caller's (user_free). */
int rpc_user(struct rpc *c, struct user **ret, struct err *e) MUST_USE;

/* The answer of a unary or client-stream call; steals m. */
void rpc_reply(struct rpc *c, json_t *m);
/* The answer of a unary call that the codec has encoded already; takes its memory. */
void rpc_reply_encoded(struct rpc *c, struct strbuf *encoded);
/* A message of a stream; steals m. Bytes pending: stop until on_drain when > 0. */
size_t rpc_send(struct rpc *c, json_t *m);
/* A message of a stream that is one bytes field (see codec.h). */
size_t rpc_send_bytes(struct rpc *c, const char *const *path, const void *p, size_t n);
void rpc_finish(struct rpc *c); /* ends a stream without an error */
void rpc_fail(struct rpc *c, enum connect_code code, const char *fmt, ...) PRINTF(3, 4);
void rpc_fail_err(struct rpc *c, const struct err *e);
/* RPC_CLIENT_STREAM: stops or resumes on_message. */
void rpc_pause(struct rpc *c, bool on);

/* Cuts every call that is in flight: the sandbox ends. */
void rpc_abort_all(struct app *a);

/* The methods of both services, by path; NULL if there is none. */
const struct rpc_method *rpc_method_find(struct strv path);

#endif
