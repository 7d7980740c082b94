/*
 * Wiring: makes the parts in order of need, hands requests to the gateway or the API, drains at the
 * end.
 */
#include "apiserver/app.h"

#include <sys/resource.h>

#include "apiserver/api.h"
#include "apiserver/gateway_hooks.h"
#include "apiserver/health.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trim.h"

#define TICK SECONDS(30)
#define SETTLED SECONDS(20)     /* the start is over by then */
#define TRIM_EVERY SECONDS(300) /* a busy time leaves pages behind, too; about 1 ms each time */

/* Two descriptors per gateway session and a reserve: take what the system grants. */
static void
raise_fd_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

static void
on_request(struct http_req *r, const struct http_head *h, void *arg)
{
	struct app *app = arg;

	if (gateway_wants(app->gateway, h))
		gateway_handle(app->gateway, r, h);
	else
		api_handle(app, r, h);
}

static void
on_metrics_request(struct http_req *r, const struct http_head *h, void *arg)
{
	health_handle(arg, r, h);
}

static void
on_settings_problem(const char *what, const struct err *e, void *arg UNUSED)
{
	log_error(
	    "settings refused, the last good ones stay in use", log_s("what", what), log_err(e));
}

static void
on_settings_ready(void *arg UNUSED)
{
	log_info("settings loaded");
}

static void
on_view_synced(void *arg)
{
	struct app *app = arg;

	log_info("cache in sync", log_i("sandboxes", (int64_t)sandbox_view_count(app->view)));
}

static void
on_tick(void *arg)
{
	struct app *app = arg;
	struct err e;

	if (app->tls != NULL && tls_server_refresh(app->tls, &e) == -1)
		log_error("certificate not renewed, the old one stays in use", log_err(&e));
	timer_start(&app->tick, TICK);
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
	const char *ns = conf_text(app->conf, "SANDBOX_NAMESPACE");

	if (kube_config_load(conf_text(app->conf, "KUBECONFIG"), &config, e) == -1 ||
	    kube_new(app->loop, config, &app->kube, e) == -1)
		return -1;
	if (ns[0] == '\0')
		ns = kube_conf(app->kube)->ns != NULL ? kube_conf(app->kube)->ns : "default";
	app->ns = ns;
	app->recorder = kube_recorder_new(
	    app->kube, "agent-sandbox-apiserver", conf_text(app->conf, "POD_NAME"));
	app->settings = settings_new(&(struct settings_conf){ .kube = app->kube,
	    .ns = ns,
	    .configmap = conf_text(app->conf, "CONFIGMAP_NAME"),
	    .install_secret = conf_text(app->conf, "INSTALL_SECRET"),
	    .keys_secret = conf_text(app->conf, "KEYS_SECRET"),
	    .system_token = conf_text(app->conf, "SYSTEM_TOKEN"),
	    .raw_tokens = conf_text(app->conf, "API_TOKENS_RAW"),
	    .on_ready = on_settings_ready,
	    .on_problem = on_settings_problem,
	    .arg = app });
	app->view = sandbox_view_new(app->kube, ns, on_view_synced, app);
	app->service = service_new(&(struct service_conf){ .loop = app->loop,
	    .kube = app->kube,
	    .settings = app->settings,
	    .view = app->view,
	    .recorder = app->recorder,
	    .metrics = app->metrics,
	    .ns = ns,
	    .envd_image = conf_text(app->conf, "ENVD_IMAGE"),
	    .default_template = conf_text(app->conf, "SANDBOX_DEFAULT_TEMPLATE"),
	    .max_lifetime = conf_int(app->conf, "MAX_LIFETIME") });
	return 0;
}

static int
start_server(struct app *app, struct err *e)
{
	const char *tls_addr = conf_text(app->conf, "TLS_ADDR");
	struct http_server_conf conf = { .max_conns =
		                             (unsigned)conf_int(app->conf, "MAX_CONNECTIONS"),
		.on_request = on_request,
		.on_bad_request = api_bad_request,
		.arg = app };

	if (http_server_new(app->loop, &conf, &app->server, e) == -1 ||
	    http_server_listen(app->server, conf_text(app->conf, "SERVER_ADDR"), NULL, NULL, e) ==
	        -1)
		return -1;
	if (tls_addr[0] != '\0' &&
	    (tls_server_new(conf_text(app->conf, "TLS_CERT_FILE"),
	         conf_text(app->conf, "TLS_KEY_FILE"), &app->tls, e) == -1 ||
	        http_server_listen(app->server, tls_addr, app->tls, NULL, e) == -1))
		return -1;
	conf.on_request = on_metrics_request;
	conf.max_conns = 100;
	if (http_server_new(app->loop, &conf, &app->metrics_server, e) == -1)
		return -1;
	return http_server_listen(
	    app->metrics_server, conf_text(app->conf, "METRICS_ADDR"), NULL, NULL, e);
}

/* What is told to clients may have a port; a request's host is compared without. */
static void
start_gateway(struct app *app)
{
	struct strv port,
	    host = strv_cut(strv_of(conf_text(app->conf, "SANDBOX_DOMAIN")), ':', &port);
	CLEANUP(xfreep) char *domain = strv_dup(host);

	app->gateway = gateway_new(&(struct gateway_conf){ .loop = app->loop,
	    .view = app->view,
	    .key = settings_install_key(app->settings),
	    .metrics = app->metrics,
	    .domain = domain,
	    .look = gateway_hook_look,
	    .look_cancel = gateway_hook_look_cancel,
	    .arg = app });
}

int
app_start(struct app *app, struct err *e)
{
	raise_fd_limit();
	app->metrics = metrics_new();
	timer_init(&app->settle, app->loop, on_settled, app);
	timer_start(&app->settle, SETTLED);
	api_metrics(app->metrics);
	kube_metrics_add(app->metrics);
	timer_init(&app->tick, app->loop, on_tick, app);
	timer_start(&app->tick, TICK);
	if (start_kube(app, e) == -1)
		return -1;
	start_gateway(app);
	if (start_server(app, e) == -1)
		return -1;
	log_info("apiserver started", log_s("version", AGENT_SANDBOX_VERSION),
	    log_s("namespace", app->ns), log_s("addr", conf_text(app->conf, "SERVER_ADDR")),
	    log_s("tls", conf_text(app->conf, "TLS_ADDR")));
	return 0;
}

static void
stop(void *arg)
{
	struct app *app = arg;

	loop_stop(app->loop);
}

/* By now nobody sends new clients here: let the requests that run finish. */
static void
begin_drain(void *arg)
{
	struct app *app = arg;

	timer_init(&app->tick, app->loop, stop, app);
	timer_start(&app->tick, SECONDS(conf_int(app->conf, "DRAIN_SECONDS")));
	http_server_drain(app->server, stop, app);
}

void
app_drain(struct app *app)
{
	if (app->draining) {
		loop_stop(app->loop);
		return;
	}
	app->draining = true; /* /readyz says so */
	timer_stop(&app->tick);
	timer_init(&app->tick, app->loop, begin_drain, app);
	timer_start(&app->tick, SECONDS(conf_int(app->conf, "DRAIN_DELAY")));
}

void
app_done(struct app *app)
{
	timer_stop(&app->tick);
	timer_stop(&app->settle);
	http_server_free(app->server);
	http_server_free(app->metrics_server);
	gateway_free(app->gateway);
	service_free(app->service);
	sandbox_view_free(app->view);
	settings_free(app->settings);
	kube_recorder_free(app->recorder);
	kube_free(app->kube);
	tls_server_free(app->tls);
	metrics_free(app->metrics);
	loop_free(app->loop);
	conf_free(app->conf);
}
