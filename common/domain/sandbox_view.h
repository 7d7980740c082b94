/*
 * The live picture of all sandboxes: two caches (ReplicaSets, Pods) joined by sandbox id, with
 * indexes and change notices. Both programs read the world through it.
 */
#ifndef DOMAIN_SANDBOX_VIEW_H
#define DOMAIN_SANDBOX_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/list.h"
#include "domain/sandbox.h"
#include "kube/kube_cache.h"

struct sandbox_view;

/* One sandbox with its pods. Valid until the next turn or the next change of it. */
struct sandbox_entry {
	const struct sandbox
	    *sandbox; /* NULL: pods without a ReplicaSet (orphans, or not seen yet) */
	size_t pod_n;
	const struct pod *const *pods;
	enum sandbox_state state; /* of the above; SANDBOX_DELETING when sandbox is NULL */
};

/* Begins to list and watch. on_synced (may be NULL) runs once when both caches are complete. */
struct sandbox_view *sandbox_view_new(
    struct kube *k, const char *ns, void (*on_synced)(void *arg), void *arg);
void sandbox_view_free(struct sandbox_view *v);
bool sandbox_view_synced(const struct sandbox_view *v);
/* The API server counts as away when a watch has been down for so long. */
#define VIEW_SILENCE SECONDS(5)
/* Both watches established, or silent for less than `within` ns? */
bool sandbox_view_fresh(const struct sandbox_view *v, int64_t within);
struct kube_cache *sandbox_view_replicasets(struct sandbox_view *v); /* for apply/forget */

/* false: unknown. */
bool sandbox_view_by_id(const struct sandbox_view *v, struct strv id, struct sandbox_entry *ret);
bool sandbox_view_by_name(
    const struct sandbox_view *v, struct strv name, struct sandbox_entry *ret);
/* Sandboxes with a ReplicaSet: all, those in a state, a tenant's that are not being deleted. */
size_t sandbox_view_count(const struct sandbox_view *v);
size_t sandbox_view_count_state(const struct sandbox_view *v, enum sandbox_state state);
size_t sandbox_view_count_tenant(const struct sandbox_view *v, struct strv tenant);
/* Every entry that has a ReplicaSet; return false to end. Order is undefined. fn must not change
 * the view (no apply, no forget). */
void sandbox_view_each(const struct sandbox_view *v,
    bool (*fn)(const struct sandbox_entry *entry, void *arg), void *arg);

/* Change notices: fn runs after every change of a sandbox or one of its pods; also when it vanished
 * (entry.sandbox == NULL and no pods). Embedded in the subscriber. id: a 0 length = all sandboxes.
 * Inside fn the subscriber may unsubscribe itself or others. */
struct view_sub {
	TAILQ_ENTRY(view_sub) link;
	struct sandbox_view *view;
	char id[SANDBOX_ID_MAX + 1];
	void (*fn)(struct strv id, const struct sandbox_entry *entry, void *arg);
	void *arg;
};
void sandbox_view_subscribe(struct sandbox_view *v, struct view_sub *sub, struct strv id,
    void (*fn)(struct strv id, const struct sandbox_entry *entry, void *arg), void *arg);
void sandbox_view_unsubscribe(struct view_sub *sub); /* accepts a zeroed one, or one done already */

#endif
