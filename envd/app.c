/* See app.h: putting the parts together, and taking them down. */
#include "envd/app.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "envd/call.h"
#include "envd/process.h"
#include "envd/reaper.h"
#include "envd/routes.h"
#include "envd/rpc.h"
#include "envd/startup.h"
#include "envd/state.h"
#include "envd/usage.h"
#include "envd/users.h"
#include "envd/watch.h"
#include "envd/watch_rpc.h"

#define IDLE_TIMEOUT SECONDS(640)    /* above the gateway's own: we never close first */
#define SILENT_TIMEOUT SECONDS(3600) /* of a body that does not come or is not taken */
#define MAX_CONNS 4096
#define GRACE SECONDS(1)      /* between SIGTERM and SIGKILL */
#define GRACE_LOOK MILLIS(20) /* how often we look whether all have gone */

/* The end, step by step. */
struct ending {
	struct app *app;
	struct timer timer;
	int64_t deadline;
	bool killed;
};

/* Every stream is a descriptor and every command up to four: take what the kernel allows. */
static void
raise_nofile(struct app *a)
{
	struct rlimit all;

	if (getrlimit(RLIMIT_NOFILE, &a->nofile) == -1)
		return;
	all = a->nofile;
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
}

static void
on_request(struct http_req *r, const struct http_head *h, void *arg)
{
	routes_dispatch(call_new(arg, r, h), h);
}

static void
on_bad_request(
    int status, const char *why, struct strbuf *body, const char **type, void *arg UNUSED)
{
	*type = "application/json; charset=utf-8";
	strbuf_addf(body, "{\"code\":%d,\"message\":", status);
	strbuf_add_json(body, strv_of(why));
	strbuf_addc(body, '}');
}

/* On all addresses: of both families where the kernel has IPv6, else of IPv4. */
static int
listen_on(struct app *a, const char *want, int *port, struct err *e)
{
	char addr[32];
	const struct http_server_conf conf = {
		.idle_timeout = IDLE_TIMEOUT,
		.body_timeout = SILENT_TIMEOUT,
		.write_timeout = SILENT_TIMEOUT,
		.max_conns = MAX_CONNS,
		.on_request = on_request,
		.on_bad_request = on_bad_request,
		.arg = a,
	};

	if (http_server_new(a->loop, &conf, &a->server, e) == -1)
		return -1;
	snprintf(addr, sizeof(addr), "[::]:%.8s", want);
	if (http_server_listen(a->server, addr, NULL, port, NULL) == 0)
		return 0;
	snprintf(addr, sizeof(addr), "0.0.0.0:%.8s", want);
	return http_server_listen(a->server, addr, NULL, port, e);
}

int
app_new(const struct app_conf *conf, struct app **ret, int *port, struct err *e)
{
	struct app *a = xcalloc(1, sizeof(*a));

	TAILQ_INIT(&a->rpcs);
	raise_nofile(a);
	a->pid1 = getpid() == 1;
	/* orphans of commands become ours also where we are not PID 1 */
	if (!a->pid1)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	a->path = conf->path;
	a->loop = loop_new();
	a->state = state_new(conf->require_init);
	a->users = users_new("/etc/passwd", "/etc/group");
	a->reaper = reaper_new(a->loop);
	a->procs = proc_table_new(a);
	a->startup = startup_new(a);
	a->usage = usage_new("/sys/fs/cgroup", "/proc");
	if (listen_on(a, conf->port, port, e) == -1) {
		app_free(a);
		return -1;
	}
	*ret = a;
	return 0;
}

void
app_free(struct app *a)
{
	if (a == NULL)
		return;
	rpc_abort_all(a);
	http_server_free(a->server);
	watch_rpc_free(a);
	watches_free(a->watches);
	startup_free(a->startup);
	proc_table_free(a->procs);
	reaper_free(a->reaper);
	usage_free(a->usage);
	users_free(a->users);
	state_free(a->state);
	loop_free(a->loop);
	xfree(a);
}

static void
look_again(void *arg)
{
	struct ending *x = arg;
	struct app *a = x->app;

	if (!reaper_empty() && loop_now(a->loop) < x->deadline) {
		timer_start(&x->timer, GRACE_LOOK);
		return;
	}
	if (!x->killed && !reaper_empty()) {
		x->killed = true;
		x->deadline = loop_now(a->loop) + GRACE;
		reaper_signal_all(a->reaper, a->pid1, SIGKILL);
		timer_start(&x->timer, GRACE_LOOK);
		return;
	}
	timer_stop(&x->timer);
	loop_stop(a->loop);
	xfree(x);
}

void
app_stop(struct app *a)
{
	struct ending *x;

	if (a->stopping)
		return;
	a->stopping = true;
	log_info("stopping", log_b("pid1", a->pid1));
	/* clients must see broken connections, not ends that look regular */
	rpc_abort_all(a);
	reaper_signal_all(a->reaper, a->pid1, SIGTERM);
	x = xcalloc(1, sizeof(*x));
	x->app = a;
	x->deadline = loop_now(a->loop) + GRACE;
	timer_init(&x->timer, a->loop, look_again, x);
	timer_start(&x->timer, 0);
}
