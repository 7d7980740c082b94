/*
 * Calls to the Kubernetes API on libcurl's multi interface (HTTP/1.1, keep-alive) driven by the
 * loop. Two multi handles: short calls (bounded connections) and streams (watches, logs; no bound),
 * since a bounded pool would let watches starve calls. Knows paths, verbs and Status objects;
 * nothing of sandboxes.
 *
 * It also makes plain HTTP calls to other servers (envd), see http_call.
 */
#ifndef KUBE_CLIENT_H
#define KUBE_CLIENT_H

#include <jansson.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/str.h"
#include "kube/kube_config.h"

struct kube;
struct kube_call; /* one call in flight */

#define KUBE_BODY_MAX ((size_t)256 * 1024 * 1024) /* of one answer; a list page is far below */
#define KUBE_CALL_TIMEOUT SECONDS(30)
#define KUBE_CONNECT_TIMEOUT SECONDS(5)
#define KUBE_CALLS_MAX 256 /* connections for short calls; more calls wait in line */

/* A resource type: group "" is core. */
struct kube_res {
	const char *group, *version, *plural, *kind;
};
extern const struct kube_res KUBE_PODS, KUBE_REPLICASETS, KUBE_CONFIGMAPS, KUBE_SECRETS,
    KUBE_LEASES, KUBE_EVENTS;

/* config is taken over. */
int kube_new(struct loop *l, struct kube_config *config, struct kube **ret, struct err *e) MUST_USE;
/* Cancels what is in flight. Not inside the callback of a call, and not before the caches, leases
 * and recorders on it. */
void kube_free(struct kube *k);
/* Registers the metrics of common/kube. */
void kube_metrics_add(struct metrics *m);
const struct kube_config *kube_conf(const struct kube *k);
struct loop *kube_loop(struct kube *k);

/* The end of a call. e == NULL: status is 2xx and obj its JSON body (borrowed; NULL if the answer
 * had none). Otherwise e has the code mapped from the HTTP status and Status.reason: 404 NOT_FOUND,
 * 409 CONFLICT or EXISTS (reason AlreadyExists), 403 FORBIDDEN (quota: LIMIT, when the message says
 * "exceeded quota"), 410 GONE, 422 INVALID, 429 UNAVAILABLE with retry_after, 5xx and transport
 * failures UNAVAILABLE (retry_after where given), 504/deadline TIMEOUT; status is 0 when no answer
 * came. The callback never runs inside the function that starts the call. */
typedef void (*kube_fn)(int status, const json_t *obj, const struct err *e, void *arg);

enum kube_patch { KUBE_PATCH_MERGE = 0, KUBE_PATCH_JSON, KUBE_PATCH_APPLY };

/* ns NULL: all namespaces / cluster scope. Bodies are borrowed (serialised at once). Each returns
 * the call, for kube_cancel, valid until its callback has run. */
struct kube_call *kube_get(struct kube *k, const struct kube_res *r, const char *ns,
    const char *name, kube_fn fn, void *arg);
/* dry_run: validated by the server, not stored. */
struct kube_call *kube_create(struct kube *k, const struct kube_res *r, const char *ns,
    const json_t *obj, bool dry_run, kube_fn fn, void *arg);
struct kube_call *kube_update(struct kube *k, const struct kube_res *r, const char *ns,
    const char *name, const json_t *obj, kube_fn fn, void *arg);
/* subresource NULL or "status", "scale", … A resourceVersion inside the merge patch's metadata
 * makes it conditional. */
struct kube_call *kube_patch(struct kube *k, const struct kube_res *r, const char *ns,
    const char *name, const char *subresource, enum kube_patch type, const json_t *patch,
    kube_fn fn, void *arg);
struct kube_delete_opts {
	const char *uid, *resource_version; /* preconditions; NULL: none */
	const char *propagation;            /* NULL: Background */
	int grace;                          /* seconds; -1: the object's own */
};
struct kube_call *kube_delete(struct kube *k, const struct kube_res *r, const char *ns,
    const char *name, const struct kube_delete_opts *opts, kube_fn fn, void *arg);
/* Anything else: path begins with '/', query included. body may be NULL. */
struct kube_call *kube_raw(struct kube *k, const char *method, const char *path, const json_t *body,
    kube_fn fn, void *arg);
/* After this the callback does not run. Accepts NULL. */
void kube_cancel(struct kube_call *c);

/* A stream (watch, log): bytes as they come, then the end (e NULL: clean end of stream). The error
 * is mapped as above when the status is not 2xx (its body is collected up to 64 KiB, not
 * delivered). */
struct kube_stream_ops {
	void (*on_open)(void *arg); /* a 2xx head is there; may be NULL */
	void (*on_bytes)(const char *p, size_t n, void *arg);
	void (*on_end)(const struct err *e, void *arg);
};
struct kube_call *kube_stream(
    struct kube *k, const char *path, const struct kube_stream_ops *ops, void *arg);

/* --- plain HTTP to anything (envd in a pod): same loop and pool, no Kubernetes credentials. --- */
struct http_call_req {
	const char *method, *url;
	const char *const *headers; /* "Name: value" lines, NULL-terminated; may be NULL */
	struct strv body;
	const char *content_type; /* NULL: none */
	int64_t timeout;          /* ns, whole call */
	int64_t connect_timeout;  /* ns */
	size_t max_answer;        /* bytes */
};
/* status 0 and e set when no answer came (ERR_UNAVAILABLE: not even connected, so a repeat is
 * harmless; ERR_IO: broken later; ERR_TIMEOUT). Any status is an answer: e is NULL. */
typedef void (*http_call_fn)(int status, struct strv body, const struct err *e, void *arg);
struct kube_call *http_call(
    struct kube *k, const struct http_call_req *req, http_call_fn fn, void *arg);

/* "/apis/apps/v1/namespaces/ns/replicasets[/name[/sub]]"; caller frees. */
char *kube_path(const struct kube_res *r, const char *ns, const char *name, const char *sub);

#endif
