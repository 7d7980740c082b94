/* What the gateway counts. Owns the metric objects; must not know of sessions' insides. */
#include "apiserver/gw.h"

static struct metric requests = COUNTER("agentsandbox_gateway_requests_total",
    "Requests to sandboxes, by class of the sandbox's status or by the gateway's own verdict",
    "result");
static struct metric sessions = GAUGE("agentsandbox_gateway_sessions_count",
    "Requests and tunnels in flight, by what they are at", "state");
static struct metric connects = COUNTER("agentsandbox_gateway_upstream_connects_total",
    "Attempts to connect to a port of a sandbox", "result");
static struct metric reuses = COUNTER("agentsandbox_gateway_upstream_reuses_total",
    "Requests that went over a connection that was there already", NULL);
static struct metric connections = GAUGE("agentsandbox_gateway_upstream_connections_count",
    "Connections to sandboxes, by whether they carry a request", "use");
static struct metric retries = COUNTER(
    "agentsandbox_gateway_retries_total", "Requests sent a second time, by reason", "reason");
static struct metric limits = COUNTER(
    "agentsandbox_gateway_limits_total", "Times that a limit of the gateway was reached", "limit");
static struct histogram latency = HISTOGRAM("agentsandbox_gateway_request_seconds",
    "Time from a request's head to the end of its answer, tunnels left out");

static void
on_render(void *arg)
{
	static const struct {
		enum gw_state state;
		const char *label;
	} shown[] = {
		{ GW_RESUME, "resume" },
		{ GW_WAIT, "wait" },
		{ GW_CONNECT, "connect" },
		{ GW_STREAM, "stream" },
		{ GW_TUNNEL, "tunnel" },
	};
	const struct gateway *g = arg;

	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		metric_set(&sessions, shown[i].label, g->state_n[shown[i].state]);
	metric_set(&connections, "idle", g->idle_n);
	metric_set(&connections, "busy", g->up_n - g->idle_n);
}

void
gw_metrics_add(struct gateway *g)
{
	struct metric *all[] = { &requests, &sessions, &connects, &reuses, &connections, &retries,
		&limits };

	if (g->conf.metrics == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		metrics_add(g->conf.metrics, all[i]);
	metrics_add_histogram(g->conf.metrics, &latency);
	metrics_on_render(g->conf.metrics, on_render, g);
}

void
gw_count_result(const char *label)
{
	metric_add(&requests, label, 1);
}

void
gw_count_connect(bool ok)
{
	metric_add(&connects, ok ? "ok" : "failed", 1);
}

void
gw_count_reuse(void)
{
	metric_add(&reuses, NULL, 1);
}

void
gw_count_retry(const char *why)
{
	metric_add(&retries, why, 1);
}

void
gw_count_limit(const char *which)
{
	metric_add(&limits, which, 1);
}

void
gw_count_latency(int64_t ns)
{
	histogram_observe(&latency, (double)ns / (double)NS_PER_S);
}
