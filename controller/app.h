/* Everything a running controller holds. */
#ifndef CONTROLLER_APP_H
#define CONTROLLER_APP_H

#include <stdbool.h>

#include "base/conf.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "controller/reconcile.h"
#include "http/http_server.h"
#include "kube/kube_client.h"
#include "kube/kube_event.h"
#include "kube/kube_lease.h"

struct app {
	struct loop *loop;
	struct conf *conf;
	struct metrics *metrics;
	struct kube *kube;
	struct kube_recorder *recorder;
	struct settings *settings;
	struct sandbox_view *view;
	struct reconciler *reconciler;
	struct kube_lease *lease;
	struct http_server *server;
	struct timer give_up, settle;
	char identity[128];
	const char *ns;
	bool ending;
};

extern const struct conf_option controller_options[];
extern const size_t controller_options_n;

int app_start(struct app *app, struct err *e) MUST_USE;
/* Gives leadership up, then stops the loop; a second call stops at once. */
void app_end(struct app *app);
void app_done(struct app *app);

/* health.c: the probes and /metrics. */
void health_handle(struct http_req *r, const struct http_head *h, void *app);

#endif
