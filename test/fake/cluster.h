/*
 * A scripted Kubernetes API server for unit tests, on the loop of what is tested: any resource by
 * its path, list, watch, get, create, merge patch and delete with preconditions, and faults on
 * demand. It knows nothing of what the objects mean: who needs a kubelet plays one in on_change.
 * Lists have one page; label selectors are "key=value[,…]", field selectors "metadata.name=…".
 */
#ifndef FAKE_CLUSTER_H
#define FAKE_CLUSTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"
#include "kube/kube_client.h"

struct cluster;

/* Listens on a port of 127.0.0.1. */
struct cluster *cluster_new(struct loop *l);
void cluster_free(struct cluster *f);
/* A client of it, with the namespace "ns". */
struct kube *cluster_client(struct cluster *f);

/* Collections are named by plural: "replicasets", "pods", "secrets" … All objects are in "ns". */

/* Creates or replaces (stolen); sets resourceVersion, and uid and creationTimestamp where absent.
 * Watches hear of it. Returns the stored object, borrowed until its next change. */
const json_t *cluster_put(struct cluster *f, const char *plural, json_t *obj);
/* Merge patch (stolen) of a stored object. */
const json_t *cluster_merge(struct cluster *f, const char *plural, const char *name, json_t *patch);
void cluster_remove(struct cluster *f, const char *plural, const char *name);
/* NULL: not there. */
const json_t *cluster_get(const struct cluster *f, const char *plural, const char *name);
size_t cluster_count(const struct cluster *f, const char *plural);
/* The first object by order of creation; NULL: none. */
const json_t *cluster_first(const struct cluster *f, const char *plural);

/* Called at the end of the turn after a client's write was done: obj is the object as it is now,
 * or was last (deleted). */
void cluster_on_change(struct cluster *f,
    void (*fn)(const char *plural, const json_t *obj, bool deleted, void *arg), void *arg);

/* Requests of this method on the collection or one of its objects ("watch" is a method, too) that
 * came so far, faults included. */
unsigned cluster_calls(const struct cluster *f, const char *method, const char *plural);

/* The next `times` such requests are answered by this Status and do nothing. after: they are done
 * first, so only the answer is wrong. status 0: the connection is cut instead. */
struct cluster_fault {
	const char *method, *plural; /* literals */
	int status;
	const char *reason, *message; /* literals; NULL: "" */
	int retry_after;              /* seconds, 0: no such field */
	bool after;
	unsigned times;
};
void cluster_fail(struct cluster *f, const struct cluster_fault *fault);
void cluster_no_faults(struct cluster *f);

/* Such requests wait; cluster_release lets those that wait through, in order, as if they came
 * then. Held until released: also the ones that come later. */
void cluster_hold(struct cluster *f, const char *method, const char *plural);
void cluster_release(struct cluster *f);
size_t cluster_held(const struct cluster *f); /* requests that wait now */

/* Nothing listens any more and every connection is cut / it is back on the same port. */
void cluster_down(struct cluster *f);
void cluster_up(struct cluster *f);
/* The same for watches alone: open ones end, and what happened meanwhile is forgotten: the next
 * watch from an old version gets 410. */
void cluster_expire_watches(struct cluster *f);
/* An event that only tells the version, to every watch. */
void cluster_bookmark(struct cluster *f);

#endif
