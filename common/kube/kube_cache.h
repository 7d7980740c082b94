/*
 * An informer: list in pages, then watch with bookmarks; re-list on 410; back-off 0.8-30 s; own
 * silence timer per watch; deletions missed while away are found by comparing (client-go's
 * reflector semantics). It holds decoded objects, not JSON: the owner gives a decoder, so 200,000
 * objects fit in memory. The list body is decoded item by item as it arrives.
 *
 * Overlay: a write's answer is newer than the cache; kube_cache_apply puts it in at once, and older
 * watch events of that object (by resourceVersion, compared as unsigned numbers: Kubernetes >= 1.35
 * allows it, earlier versions behave so) do not undo it.
 */
#ifndef KUBE_CACHE_H
#define KUBE_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/str.h"
#include "kube/kube_client.h"

struct kube_cache;
struct kube_watch_tuning;

enum kube_change { KUBE_ADDED = 0, KUBE_MODIFIED, KUBE_DELETED };

struct kube_cache_conf {
	const struct kube_res *res;
	const char *ns;
	const char *label_selector, *field_selector; /* NULL: none */
	unsigned page;                               /* list page size; 0: 500 */
	/* JSON object → the owner's object (a reference that the cache keeps), or NULL with e to
	 * skip it (logged once per object version). */
	void *(*decode)(const json_t *obj, struct err *e, void *arg);
	void (*release)(void *obj);
	/* old is NULL for ADDED, obj is the last known one for DELETED. Both are borrowed. During
	 * the first list every object is ADDED. May call kube_cache_* getters, kube_cache_apply and
	 * kube_cache_forget for any object, the reported one too (what these change is reported
	 * before they return); must not free the cache, must not block. */
	void (*on_change)(enum kube_change what, void *old, void *obj, void *arg);
	/* The first complete list is in (once). May be NULL. */
	void (*on_synced)(void *arg);
	void *arg;
	const struct kube_watch_tuning *tuning; /* NULL: defaults; borrowed; for tests */
};

/* Begins at once. conf is copied, the texts in it too. */
struct kube_cache *kube_cache_new(struct kube *k, const struct kube_cache_conf *conf);
void kube_cache_free(struct kube_cache *c);
bool kube_cache_synced(const struct kube_cache *c);
/* Loop time of the last sign of life from the watch (event, bookmark, list page); for readiness and
 * metrics. */
int64_t kube_cache_alive(const struct kube_cache *c);
/* Is the watch established right now? */
bool kube_cache_connected(const struct kube_cache *c);
/* Borrowed until the next turn; NULL if absent. name as in metadata.name (one namespace per cache).
 */
void *kube_cache_get(const struct kube_cache *c, struct strv name);
/* fn must not call kube_cache_apply or kube_cache_forget. */
void kube_cache_each(struct kube_cache *c, bool (*fn)(void *obj, void *arg), void *arg);
/* Puts the answer of an own write in, if it is newer than what is known. on_change runs inside this
 * call. obj must match the selectors: nothing would take it out again otherwise. */
void kube_cache_apply(struct kube_cache *c, const json_t *obj);
/* An own DELETE was accepted and the object is gone (or NOT_FOUND). Events of that object that are
 * still on their way do not bring it back; a new one with the same name does. */
void kube_cache_forget(struct kube_cache *c, struct strv name);

/* --- for its own unit tests and for other users of list bodies --- */

/* Splits a List document that arrives in pieces into its items; every item is handed out as text
 * once complete. metadata.continue and resourceVersion are collected. Bounded: one item at most 16
 * MiB. */
struct kube_list_split;
struct kube_list_split *kube_list_split_new(
    void (*on_item)(struct strv item, void *arg), void *arg);
int kube_list_split_feed(
    struct kube_list_split *s, const char *p, size_t n, struct err *e) MUST_USE;
/* The continue token as soon as metadata was seen ("" before): Kubernetes writes metadata in front
 * of items, so the next page can be asked for while this one comes in. */
const char *kube_list_split_continue(const struct kube_list_split *s);
/* After the last byte: 0 if the document was complete. Texts are borrowed; "" if absent. */
int kube_list_split_end(struct kube_list_split *s, const char **resource_version,
    const char **continue_token, struct err *e) MUST_USE;
void kube_list_split_free(struct kube_list_split *s);

#endif
