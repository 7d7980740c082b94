/*
 * One complete list of a collection in pages. The next page is asked for as soon as its token is
 * known, which is before the current one is complete, so the server writes while we read. A page
 * that fails is asked for again from its token. Private to common/kube; knows nothing of what the
 * items are.
 */
#ifndef KUBE_LIST_H
#define KUBE_LIST_H

#include "base/err.h"
#include "base/str.h"
#include "kube/kube_client.h"
#include "kube/kube_watch.h"

struct kube_list;

struct kube_list_ops {
	/* One item, borrowed; an item may come twice. Runs inside the transport: must not free the
	 * list. */
	void (*on_item)(struct strv item, void *arg);
	/* Every item has been delivered; version is the list's, borrowed. May free the list. */
	void (*on_done)(const char *version, void *arg);
	/* Given up. May free the list. */
	void (*on_failed)(const struct err *e, void *arg);
};

/* path: as for kube_watch_new. tuning is borrowed. */
struct kube_list *kube_list_new(struct kube *k, const char *path, unsigned page,
    const struct kube_watch_tuning *tuning, const struct kube_list_ops *ops, void *arg);
void kube_list_free(struct kube_list *l);

#endif
