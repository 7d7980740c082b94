/*
 * Leader election by a Lease (client-go's rules): lease 15 s, renew deadline 10 s, retry 2 s; only
 * local times of seen changes count, never the timestamps inside; updates carry the
 * resourceVersion. It does not fence by itself: writers use preconditions, and stop at once when
 * on_lost runs.
 */
#ifndef KUBE_LEASE_H
#define KUBE_LEASE_H

#include <stdbool.h>

#include "kube/kube_client.h"

#define LEASE_DURATION SECONDS(15)
#define LEASE_RENEW_DEADLINE SECONDS(10)
#define LEASE_RETRY SECONDS(2)

struct kube_lease;

struct kube_lease_conf {
	const char *ns, *name;
	const char *identity; /* unique per process life */
	void (*on_gained)(void *arg);
	void (*on_lost)(void *arg);
	void *arg;
	int64_t duration, renew_deadline, retry; /* ns; 0: the values above */
};

struct kube_lease *kube_lease_new(struct kube *k, const struct kube_lease_conf *conf);
bool kube_lease_held(const struct kube_lease *l);
/* Holder as last seen; "" if none. */
const char *kube_lease_holder(const struct kube_lease *l);
/* Gives the lease up (empties the holder) so that another takes over at once; done runs when that
 * was answered or failed, and may free the lease. From this call on nothing is held and neither
 * on_lost nor on_gained runs. */
void kube_lease_release(struct kube_lease *l, void (*done)(void *arg), void *arg);
void kube_lease_free(struct kube_lease *l);

#endif
