/* See health.h. */
#include "apiserver/health.h"

#include "base/json.h"

#define METRICS_TEXT_MAX ((size_t)4 * 1024 * 1024)

static void
get_healthz(struct api_call *c)
{
	api_json(c, 200, json_pack("{s:s,s:s}", "status", "ok", "version", AGENT_SANDBOX_VERSION));
}

static void
get_readyz(struct api_call *c)
{
	const char *why = "the server is ending";

	if (c->app->draining || !service_ready(c->app->service, &why))
		api_fail_with(c, ERR_UNAVAILABLE, "%s", why);
	else
		api_json(c, 200, json_pack("{s:s}", "status", "ready"));
}

/* E2B's own probe answers this text. */
static void
get_health(struct api_call *c)
{
	api_text(c, 200, "Health check successful");
}

const struct route health_routes[] = {
	{ HTTP_GET, "/healthz", ROUTE_OPEN | ROUTE_ANYTIME, get_healthz, "the process is alive" },
	{ HTTP_GET, "/readyz", ROUTE_OPEN | ROUTE_ANYTIME, get_readyz, "caches are in sync" },
	{ HTTP_GET, "/health", ROUTE_OPEN | ROUTE_ANYTIME, get_health, "E2B's health check" },
};
const size_t health_routes_n = ARRAY_LEN(health_routes);

void
health_handle(struct app *app, struct http_req *r, const struct http_head *h)
{
	const struct http_field type = { STRV("Content-Type"),
		STRV("text/plain; version=0.0.4; charset=utf-8") };
	struct strbuf b;

	if (!strv_is(h->path, "/metrics") || h->method != HTTP_GET) {
		api_handle(app, r, h);
		return;
	}
	strbuf_init(&b, METRICS_TEXT_MAX);
	metrics_render(app->metrics, &b);
	http_reply(r, 200, &type, 1, strbuf_view(&b));
	strbuf_done(&b);
}
