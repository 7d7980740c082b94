/* Probes and metrics of the controller: /healthz, /readyz (cache in sync; a standby is ready too),
 * /metrics. */
#include "base/clock.h"
#include "controller/app.h"

#define METRICS_TEXT_MAX ((size_t)1024 * 1024)

static void
answer(struct http_req *r, int status, const char *type, struct strv body)
{
	const struct http_field field = { STRV("Content-Type"), strv_of(type) };

	http_reply(r, status, &field, 1, body);
}

static void
get_metrics(struct app *app, struct http_req *r)
{
	struct strbuf b;

	strbuf_init(&b, METRICS_TEXT_MAX);
	metrics_render(app->metrics, &b);
	answer(r, 200, "text/plain; version=0.0.4; charset=utf-8", strbuf_view(&b));
	strbuf_done(&b);
}

static void
get_healthz(struct app *app UNUSED, struct http_req *r)
{
	answer(r, 200, "application/json",
	    STRV("{\"status\":\"ok\",\"version\":\"" AGENT_SANDBOX_VERSION "\"}"));
}

static void
get_readyz(struct app *app, struct http_req *r)
{
	if (!settings_ready(app->settings) || !sandbox_view_synced(app->view) ||
	    !sandbox_view_fresh(app->view, VIEW_SILENCE))
		answer(r, 503, "application/json",
		    STRV("{\"code\":503,\"message\":\"the caches are not in sync\"}"));
	else
		answer(r, 200, "application/json", STRV("{\"status\":\"ready\"}"));
}

static const struct {
	const char *path;
	void (*handler)(struct app *app, struct http_req *r);
} routes[] = {
	{ "/metrics", get_metrics },
	{ "/healthz", get_healthz },
	{ "/readyz", get_readyz },
};

void
health_handle(struct http_req *r, const struct http_head *h, void *app)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (h->method == HTTP_GET && strv_is(h->path, routes[i].path)) {
			routes[i].handler(app, r);
			return;
		}
	}
	answer(r, 404, "application/json", STRV("{\"code\":404,\"message\":\"no such path\"}"));
}
