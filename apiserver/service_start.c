/*
 * Waiting for a sandbox to start, for create and resume: the pod by watch, envd's settings by
 * /init, and failures that will not heal answered at once with their reason.
 */
#include "apiserver/service_op.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "domain/sandbox_patch.h"

static struct histogram start_seconds =
    HISTOGRAM("agentsandbox_sandbox_start_seconds", "Time from the request to a usable sandbox.");
static struct metric starts = COUNTER("agentsandbox_sandbox_starts_total",
    "Creates and resumes that were waited for, by result.", "result");

void
service_start_metrics(struct metrics *m)
{
	metrics_add(m, &starts);
	metrics_add_histogram(m, &start_seconds);
}

/* What the kubelet reports of a container that will never run as it is. */
static const struct {
	const char *reason;
	bool transient; /* may be a hiccup: several are needed */
	enum err_code code;
} hopeless[] = {
	{ "ErrImagePull", true, ERR_INVALID },
	{ "ImagePullBackOff", true, ERR_INVALID },
	{ "InvalidImageName", false, ERR_INVALID },
	{ "ErrImageNeverPull", false, ERR_INVALID },
	{ "CreateContainerConfigError", false, ERR_INTERNAL },
	{ "CreateContainerError", true, ERR_INTERNAL },
	{ "RunContainerError", true, ERR_INTERNAL },
	{ "CrashLoopBackOff", false, ERR_INTERNAL },
};

static void start_failed(struct service_op *op, const struct err *e);

static void
start_fail(struct service_op *op, enum err_code code, const char *what, const char *detail)
{
	struct err e;

	err_set(&e, code, "%s%s%s", what, detail[0] != '\0' ? ": " : "", detail);
	start_failed(op, &e);
}

void
op_start_release(struct service_op *op)
{
	sandbox_view_unsubscribe(&op->sub);
	timer_stop(&op->deadline);
	timer_stop(&op->unschedulable);
	sandbox_init_cancel(op->init);
	op->init = NULL;
	if (op->in_flight)
		op->svc->flights--;
	op->in_flight = false;
}

static void
half_made_removed(
    int status UNUSED, const json_t *obj UNUSED, const struct err *e, void *arg UNUSED)
{
	/* Not fatal: the controller's sweep removes what nobody was told of, at its end time at the
	 * latest. */
	if (e != NULL && e->code != ERR_NOT_FOUND)
		log_warn("half-made sandbox not removed", log_err(e));
}

/* Nobody was told of this sandbox: it must not stay. */
static void
remove_half_made(struct service_op *op)
{
	struct service *s = op->svc;
	struct sandbox_entry entry;

	if (!op->created || !sandbox_view_by_id(s->conf.view, strv_of(op->id), &entry) ||
	    entry.sandbox == NULL)
		return;
	kube_delete(s->conf.kube, &KUBE_REPLICASETS, s->conf.ns, entry.sandbox->name,
	    &(struct kube_delete_opts){ .uid = entry.sandbox->uid, .grace = -1 }, half_made_removed,
	    NULL);
	op_forget(op);
}

static void
start_failed(struct service_op *op, const struct err *e)
{
	struct sandbox_entry entry;
	struct err copy = *e;

	metric_add(&starts, err_name(e->code), 1);
	if (e->code != ERR_INTERNAL) /* which op_end logs */
		log_warn("sandbox did not start", log_s("action", op->kind->name),
		    log_s("sandbox", op->id), log_err(e));
	if (sandbox_view_by_id(op->svc->conf.view, strv_of(op->id), &entry) &&
	    entry.sandbox != NULL)
		op_event(op->svc, entry.sandbox, true, "StartFailed", copy.msg);
	sandbox_view_unsubscribe(&op->sub);
	remove_half_made(op);
	op_end(op, NULL, &copy);
}

/* A resume that nobody waits for any more goes on by itself (the controller finishes it). */
void
op_abandon(struct service_op *op)
{
	if (op->created && op->call == NULL) {
		log_info("caller left before the sandbox was ready", log_s("sandbox", op->id));
		sandbox_view_unsubscribe(&op->sub);
		remove_half_made(op);
		op_free(op);
	} else if (op->call == NULL) {
		op_free(op);
	}
	/* else: a write is on its way; its answer ends the operation. */
}

static void
act_restart_time(struct service_op *op, const struct sandbox_entry *entry)
{
	int64_t now = clock_wall();

	op_write(op, entry->sandbox,
	    sandbox_patch_restart_time(now, op_end_after(op->svc, now, op->timeout)));
}

static const struct op_kind kind_restart_time = { .name = "restart time", .act = act_restart_time };

/* Who waited long for a sandbox gets the whole time that was asked for, at the price of one more
 * write. */
static void
restart_time(struct service_op *op, const struct sandbox_entry *entry)
{
	sandbox_view_unsubscribe(&op->sub);
	timer_stop(&op->deadline);
	timer_stop(&op->unschedulable);
	op->kind = &kind_restart_time;
	op->tries = 0;
	op->kind->act(op, entry);
}

static void
on_initialised(const struct err *e, void *arg)
{
	struct service_op *op = arg;
	struct service *s = op->svc;
	struct sandbox_entry entry;
	double seconds = (double)(loop_now(s->conf.loop) - op->asked) / 1e9;

	op->init = NULL; /* it ends with this call */
	if (e != NULL) {
		start_failed(op, e);
		return;
	}
	if (!op_visible(op, &entry)) {
		start_fail(op, ERR_NOT_FOUND, "the sandbox was killed while it started", "");
		return;
	}
	histogram_observe(&start_seconds, seconds);
	metric_add(&starts, "ok", 1);
	log_info("sandbox started", log_s("action", op->kind->name), log_s("sandbox", op->id),
	    log_s("tenant", entry.sandbox->tenant), log_s("template", entry.sandbox->template_id),
	    log_i("ms", (int64_t)(seconds * 1e3)));
	if (op->timeout >= 0 && clock_wall() - entry.sandbox->started > SERVICE_SLOW_START &&
	    (op->created || op->resumed))
		restart_time(op, &entry);
	else
		op_end(op, &entry, NULL);
}

static void
start_init(struct service_op *op, const struct sandbox *sb, const struct pod *pod)
{
	struct service *s = op->svc;

	if (op->init != NULL && strcmp(op->pod_uid, pod->uid) == 0 &&
	    op->pod_restarts == pod->restarts)
		return;
	sandbox_init_cancel(op->init); /* it died and runs again: another incarnation */
	memcpy(op->pod_uid, pod->uid, strnlen(pod->uid, sizeof(op->pod_uid) - 1) + 1);
	op->pod_restarts = pod->restarts;
	op->init = sandbox_init_start(&(struct sandbox_init_conf){ .kube = s->conf.kube,
	                                  .ns = s->conf.ns,
	                                  .key = settings_install_key(s->conf.settings),
	                                  .deadline = op->asked + SERVICE_START_TIMEOUT },
	    sb, pod, on_initialised, op);
}

static void
on_unschedulable(void *arg)
{
	struct service_op *op = arg;
	struct sandbox_entry entry;
	const char *why = "";

	if (sandbox_view_by_id(op->svc->conf.view, strv_of(op->id), &entry) && entry.pod_n > 0)
		why = entry.pods[0]->unschedulable;
	start_fail(op, ERR_UNAVAILABLE, "no node has room for the sandbox", why);
}

/* Returns true when the operation was ended. */
static bool
check_hopeless(struct service_op *op, const struct pod *pod)
{
	if (pod->unschedulable[0] == '\0')
		timer_stop(&op->unschedulable);
	else if (!timer_pending(&op->unschedulable))
		timer_start(&op->unschedulable, SERVICE_UNSCHEDULABLE);
	if (strcmp(pod->waiting_reason, op->last_waiting) == 0)
		return false;
	memcpy(op->last_waiting, pod->waiting_reason,
	    strnlen(pod->waiting_reason, sizeof(op->last_waiting) - 1) + 1);
	op->last_waiting[sizeof(op->last_waiting) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(hopeless); i++) {
		if (strcmp(pod->waiting_reason, hopeless[i].reason) != 0)
			continue;
		if (hopeless[i].transient && ++op->image_errors < SERVICE_IMAGE_ERRORS)
			return false;
		start_fail(op, hopeless[i].code, pod->waiting_reason, pod->waiting_message);
		return true;
	}
	return false;
}

static void
check(struct service_op *op)
{
	struct sandbox_entry entry;
	const struct pod *live;
	const char *refused;

	if (!op_visible(op, &entry)) {
		start_fail(op, ERR_NOT_FOUND, "the sandbox was killed while it started", "");
		return;
	}
	if (entry.sandbox->desired != DESIRED_RUNNING) {
		op->created = false; /* somebody paused it: it is not ours to remove any more */
		start_fail(op, ERR_CONFLICT, "the sandbox was paused while it started", "");
		return;
	}
	refused = entry.sandbox->replica_failure;
	if (refused != NULL && entry.pod_n == 0) {
		start_fail(op, strstr(refused, "exceeded quota") ? ERR_LIMIT : ERR_INTERNAL,
		    "Kubernetes refused the pod", refused);
		return;
	}
	for (size_t i = 0; i < entry.pod_n; i++)
		if (!entry.pods[i]->terminating && check_hopeless(op, entry.pods[i]))
			return;
	live = sandbox_live_pod(entry.pods, entry.pod_n);
	if (live == NULL)
		return;
	if (sandbox_ready_names(entry.sandbox, live)) { /* somebody else did it */
		sandbox_init_cancel(op->init);
		on_initialised(NULL, op);
	} else {
		start_init(op, entry.sandbox, live);
	}
}

static void
on_change(struct strv id UNUSED, const struct sandbox_entry *entry UNUSED, void *arg)
{
	check(arg);
}

static void
on_overdue(void *arg)
{
	struct service_op *op = arg;
	struct sandbox_entry entry;
	const char *why = "its pod has not appeared";

	if (sandbox_view_by_id(op->svc->conf.view, strv_of(op->id), &entry) && entry.pod_n > 0)
		why = entry.pods[0]->waiting_reason[0] != '\0' ? entry.pods[0]->waiting_reason
		    : entry.pods[0]->container_running         ? "it runs but does not answer"
		                                               : "its pod is not running yet";
	start_fail(op, ERR_TIMEOUT, "the sandbox did not start in time", why);
}

void
op_await_start(struct service_op *op)
{
	struct service *s = op->svc;
	int64_t left = op->asked + SERVICE_START_TIMEOUT - loop_now(s->conf.loop);

	if (s->flights >= SERVICE_FLIGHTS_MAX) {
		start_fail(
		    op, ERR_LIMIT, "too many sandboxes are being started by this server", "");
		return;
	}
	s->flights++;
	op->in_flight = true;
	timer_init(&op->deadline, s->conf.loop, on_overdue, op);
	timer_init(&op->unschedulable, s->conf.loop, on_unschedulable, op);
	timer_start(&op->deadline, left > 0 ? left : 1);
	sandbox_view_subscribe(s->conf.view, &op->sub, strv_of(op->id), on_change, op);
	check(op);
}
