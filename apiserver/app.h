/*
 * Everything a running apiserver holds; no globals elsewhere. Made by app_start, ended by
 * app_drain.
 */
#ifndef APISERVER_APP_H
#define APISERVER_APP_H

#include <stdbool.h>

#include "apiserver/gateway.h"
#include "apiserver/service.h"
#include "base/conf.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "domain/sandbox_view.h"
#include "domain/settings.h"
#include "http/http_server.h"
#include "http/tls.h"
#include "kube/kube_client.h"
#include "kube/kube_event.h"

struct app {
	struct loop *loop;
	struct conf *conf;
	struct metrics *metrics;
	struct kube *kube;
	struct kube_recorder *recorder;
	struct settings *settings;
	struct sandbox_view *view;
	struct service *service;
	struct gateway *gateway;
	struct tls_server *tls;
	struct http_server *server, *metrics_server;
	struct timer tick;   /* certificate refresh; while draining, the next step */
	struct timer settle; /* gives memory back, after the start and now and then */
	const char *ns;      /* borrowed from conf or kube */
	bool draining;
};

extern const struct conf_option apiserver_options[];
extern const size_t apiserver_options_n;

/* Starts everything that runs on the loop. On -1 the process should end; nothing is released. */
int app_start(struct app *app, struct err *e) MUST_USE;
/* Turns unready, after a moment stops accepting, lets requests finish, then stops the loop. A
 * second call stops at once. */
void app_drain(struct app *app);
void app_done(struct app *app);

#endif
