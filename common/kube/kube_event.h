/*
 * Records Kubernetes Events (core v1) about an object, with client-go's limits: the same event
 * within 10 minutes becomes a count on the first one; per object a burst of 25, then one in 5
 * minutes; 4096 keys remembered. Best effort: a failure is a metric, never an error of the action.
 */
#ifndef KUBE_EVENT_H
#define KUBE_EVENT_H

#include "kube/kube_client.h"

struct kube_recorder;

struct kube_ref {
	const struct kube_res *res;
	const char *ns, *name, *uid;
};

/* component: reported as source and reportingComponent; instance: this process. */
struct kube_recorder *kube_recorder_new(
    struct kube *k, const char *component, const char *instance);
void kube_recorder_free(struct kube_recorder *r);
/* reason is CamelCase; message one sentence without secrets (cut at 1024 bytes). */
void kube_event(struct kube_recorder *r, const struct kube_ref *on, bool warning,
    const char *reason, const char *fmt, ...) PRINTF(5, 6);

#endif
