/* Wiring of the controller: caches and health run always, the reconciler only while the Lease is
 * ours. */
#include "controller/app.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/trim.h"

#define SETTLED SECONDS(20)     /* the start is over by then */
#define TRIM_EVERY SECONDS(300) /* a busy time leaves pages behind, too; about 1 ms each time */
#define RELEASE_TIME SECONDS(5) /* for giving the Lease up at the end */

static void
on_gained(void *arg)
{
	struct app *app = arg;

	log_info("leading", log_s("identity", app->identity));
	if (sandbox_view_synced(app->view) && settings_ready(app->settings))
		reconciler_start(app->reconciler);
}

static void
on_lost(void *arg)
{
	struct app *app = arg;

	log_warn("not leading any more", log_s("holder", kube_lease_holder(app->lease)));
	reconciler_stop(app->reconciler);
}

/* Leadership, a complete cache and settings may come in any order. */
static void
start_if_all_there(struct app *app)
{
	if (app->lease != NULL && kube_lease_held(app->lease))
		on_gained(app);
}

static void
on_synced(void *arg)
{
	struct app *app = arg;

	log_info("cache in sync", log_i("sandboxes", (int64_t)sandbox_view_count(app->view)));
	start_if_all_there(app);
}

static void
on_settings_ready(void *arg)
{
	start_if_all_there(arg);
}

static void
on_settings_problem(const char *what, const struct err *e, void *arg UNUSED)
{
	log_error(
	    "settings refused, the last good ones stay in use", log_s("what", what), log_err(e));
}

static void
on_settled(void *arg)
{
	struct app *app = arg;
	size_t bytes = trim_memory();

	log_debug("memory given back", log_i("bytes", (int64_t)bytes));
	timer_start(&app->settle, TRIM_EVERY);
}

static int
start_kube(struct app *app, struct err *e)
{
	struct kube_config *config;
	const char *pod = conf_text(app->conf, "POD_NAME");
	char uuid[UUID_TEXT];

	if (kube_config_load(conf_text(app->conf, "KUBECONFIG"), &config, e) == -1 ||
	    kube_new(app->loop, config, &app->kube, e) == -1)
		return -1;
	app->ns = conf_text(app->conf, "SANDBOX_NAMESPACE");
	if (app->ns[0] == '\0')
		app->ns = kube_conf(app->kube)->ns != NULL ? kube_conf(app->kube)->ns : "default";
	rand_uuid(uuid);
	(void)snprintf(app->identity, sizeof(app->identity), "%.80s_%s",
	    pod[0] != '\0' ? pod : "controller", uuid);
	return 0;
}

int
app_start(struct app *app, struct err *e)
{
	app->metrics = metrics_new();
	timer_init(&app->settle, app->loop, on_settled, app);
	timer_start(&app->settle, SETTLED);
	kube_metrics_add(app->metrics);
	if (http_server_new(app->loop,
	        &(struct http_server_conf){
	            .max_conns = 100, .on_request = health_handle, .arg = app },
	        &app->server, e) == -1)
		return -1;
	if (start_kube(app, e) == -1)
		return -1;
	app->recorder = kube_recorder_new(
	    app->kube, "agent-sandbox-controller", conf_text(app->conf, "POD_NAME"));
	app->view = sandbox_view_new(app->kube, app->ns, on_synced, app);
	app->settings = settings_new(&(struct settings_conf){ .kube = app->kube,
	    .ns = app->ns,
	    .configmap = conf_text(app->conf, "CONFIGMAP_NAME"),
	    .install_secret = conf_text(app->conf, "INSTALL_SECRET"),
	    .on_ready = on_settings_ready,
	    .on_problem = on_settings_problem,
	    .arg = app });
	app->reconciler = reconciler_new(&(struct reconciler_conf){ .loop = app->loop,
	    .kube = app->kube,
	    .settings = app->settings,
	    .view = app->view,
	    .recorder = app->recorder,
	    .metrics = app->metrics,
	    .ns = app->ns });
	app->lease = kube_lease_new(app->kube,
	    &(struct kube_lease_conf){ .ns = app->ns,
	        .name = conf_text(app->conf, "LEADER_NAME"),
	        .identity = app->identity,
	        .on_gained = on_gained,
	        .on_lost = on_lost,
	        .arg = app });
	if (http_server_listen(app->server, conf_text(app->conf, "METRICS_ADDR"), NULL, NULL, e) ==
	    -1)
		return -1;
	log_info("controller started", log_s("version", AGENT_SANDBOX_VERSION),
	    log_s("namespace", app->ns), log_s("identity", app->identity));
	return 0;
}

static void
stop(void *arg)
{
	struct app *app = arg;

	loop_stop(app->loop);
}

void
app_end(struct app *app)
{
	if (app->ending) {
		loop_stop(app->loop);
		return;
	}
	app->ending = true;
	reconciler_stop(app->reconciler);
	timer_init(&app->give_up, app->loop, stop, app);
	timer_start(&app->give_up, RELEASE_TIME);
	kube_lease_release(app->lease, stop, app);
}

void
app_done(struct app *app)
{
	timer_stop(&app->give_up);
	timer_stop(&app->settle);
	http_server_free(app->server);
	kube_lease_free(app->lease);
	reconciler_free(app->reconciler);
	sandbox_view_free(app->view);
	settings_free(app->settings);
	kube_recorder_free(app->recorder);
	kube_free(app->kube);
	metrics_free(app->metrics);
	loop_free(app->loop);
	conf_free(app->conf);
}
