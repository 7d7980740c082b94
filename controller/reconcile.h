/*
 * The leader's loop: view changes and due times → queue → decide → act. Owns carrying actions out,
 * each as one conditional write, and their Events. Acts only between reconcile_start and
 * reconcile_stop (leadership).
 */
#ifndef CONTROLLER_RECONCILE_H
#define CONTROLLER_RECONCILE_H

#include "base/metrics.h"
#include "domain/sandbox_view.h"
#include "domain/settings.h"
#include "kube/kube_client.h"
#include "kube/kube_event.h"

#define RECONCILE_SWEEP SECONDS(60) /* everything is looked at again so often */
#define RECONCILE_INIT_TIME SECONDS(60)

struct reconciler;

struct reconciler_conf {
	struct loop *loop;
	struct kube *kube;
	struct settings *settings;
	struct sandbox_view *view;
	struct kube_recorder *recorder;
	struct metrics *metrics;
	const char *ns;
};

struct reconciler *reconciler_new(const struct reconciler_conf *conf);
/* We lead: look at everything now, overdue ones first. */
void reconciler_start(struct reconciler *r);
/* We do not lead any more: nothing is begun, what is in flight is cancelled. */
void reconciler_stop(struct reconciler *r);
void reconciler_free(struct reconciler *r);

#endif
