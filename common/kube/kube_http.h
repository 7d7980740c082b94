/*
 * HTTP exchanges on libcurl's multi interface, driven by the loop. Owns easy and multi handles,
 * sockets, deadlines and the lines in which exchanges wait for a connection. Knows the API server's
 * TLS credentials; knows nothing of Kubernetes' paths, verbs or bodies. Private to common/kube.
 *
 * curl is never called from inside one of its own callbacks: starting and cancelling only note what
 * is wanted, a deferred call does it.
 */
#ifndef KUBE_HTTP_H
#define KUBE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "kube/kube_config.h"

struct kube_http;
struct kube_op; /* one exchange */

/* Each lane has its own handles, options and limit. Short calls and plain calls share one multi
 * (they cannot starve each other, since the limits are per lane and ours, not curl's); streams have
 * the other. */
enum kube_lane {
	KUBE_LANE_CALL = 0, /* API server, reused connections, at most KUBE_CALLS_MAX */
	KUBE_LANE_PLAIN,    /* any server, one connection each, no credentials */
	KUBE_LANE_STREAM,   /* API server, long answers handed out as they come */
	KUBE_LANE_COUNT
};

#define KUBE_PLAIN_MAX 1024       /* connections of KUBE_LANE_PLAIN */
#define KUBE_WAITING_MAX 16384    /* exchanges in line, per lane; more are refused */
#define KUBE_ERROR_BODY_MAX 65536 /* body of a refused stream */

/* The end of an exchange; everything is borrowed. */
struct kube_answer {
	int status; /* 0: no complete answer */
	struct strv body;
	int retry_after; /* seconds, 0: not said */
	struct err err;  /* code ERR_NONE: there is an answer (of any status) */
};

struct kube_op_ops {
	/* Streams: a 2xx head is there. May be NULL. */
	void (*on_open)(void *arg);
	/* Streams: a piece of the body of a 2xx answer. Runs inside curl, so nothing may be freed
	 * that owns the kube_http; kube_op_cancel is fine. */
	void (*on_bytes)(const char *p, size_t n, void *arg);
	/* Last callback; op is freed when it returns. */
	void (*on_end)(struct kube_op *op, const struct kube_answer *a, void *arg);
};

struct kube_op_req {
	enum kube_lane lane;
	const char *method;
	const char *url;
	const char *const *headers; /* "Name: value", NULL-terminated; copied; may be NULL */
	char *body;                 /* taken over (xfree); NULL: none */
	size_t body_len;
	int64_t timeout;         /* ns from now, waiting in line included; 0: none (streams) */
	int64_t connect_timeout; /* ns */
	size_t max_answer;       /* bytes of a body that is collected */
};

/* config is borrowed and must outlive the result. */
int kube_http_new(struct loop *l, const struct kube_config *config, struct kube_http **ret,
    struct err *e) MUST_USE;
/* Cancels everything. Must not run inside a callback of an exchange. */
void kube_http_free(struct kube_http *h);

/* Never fails at once: trouble is reported by on_end, later. */
struct kube_op *kube_op_start(
    struct kube_http *h, const struct kube_op_req *req, const struct kube_op_ops *ops, void *arg);
/* No callback runs after this; op is gone. */
void kube_op_cancel(struct kube_op *op);
/* Moves the request body out, inside on_end, to send it again. */
char *kube_op_take_body(struct kube_op *op);

#endif
