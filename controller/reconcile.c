/* See reconcile.h. */
#include "controller/reconcile.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "controller/decide.h"
#include "controller/queue.h"
#include "domain/sandbox_init.h"
#include "domain/sandbox_patch.h"

/* One action in flight. */
struct job {
	TAILQ_ENTRY(job) link;
	struct reconciler *r;
	char id[SANDBOX_ID_MAX + 1];
	char *name, *uid;     /* of the ReplicaSet; NULL for an orphan's pod */
	struct action action; /* without its pod, which may be gone by now */
	struct kube_call *call;
	struct sandbox_init *init;
};

struct reconciler {
	struct reconciler_conf conf;
	struct queue *queue;
	TAILQ_HEAD(job_list, job) jobs;
	struct view_sub sub;
	struct timer sweep;
	bool leading;
};

static struct metric actions =
    COUNTER("agentsandbox_controller_actions_total", "Actions that succeeded, by kind.", "action");
static struct metric failures = COUNTER(
    "agentsandbox_controller_action_failures_total", "Actions that failed, by kind.", "action");
static struct metric depth =
    GAUGE("agentsandbox_controller_queue_keys", "Keys in the work queue.", NULL);
static struct metric leader =
    GAUGE("agentsandbox_controller_leader", "1 while this replica leads.", NULL);

static void
job_free(struct job *j)
{
	kube_cancel(j->call);
	sandbox_init_cancel(j->init);
	TAILQ_REMOVE(&j->r->jobs, j, link);
	xfree(j->name);
	xfree(j->uid);
	xfree(j);
}

/* Said once it is true: a lost race or a failure is no event in the sandbox's life. */
static void
tell(const struct job *j)
{
	const struct reconciler_conf *c = &j->r->conf;

	if (j->name != NULL && j->action.reason != NULL)
		kube_event(c->recorder,
		    &(struct kube_ref){
		        .res = &KUBE_REPLICASETS, .ns = c->ns, .name = j->name, .uid = j->uid },
		    j->action.type == ACTION_DROP, j->action.reason, "%s", j->action.message);
	log_info(
	    "action done", log_s("action", action_name(j->action.type)), log_s("sandbox", j->id));
}

static void
job_end(struct job *j, const struct err *e)
{
	struct reconciler *r = j->r;
	char id[SANDBOX_ID_MAX + 1];
	/* A lost race is not a failure: the winner's change is on its way to us and queues the key
	 * again. */
	bool failed = e != NULL && e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND;
	int64_t again = j->action.look_again;

	memcpy(id, j->id, sizeof(id));
	if (e == NULL) {
		metric_add(&actions, action_name(j->action.type), 1);
		tell(j);
	} else if (failed) {
		metric_add(&failures, action_name(j->action.type), 1);
		log_warn("action failed", log_s("action", action_name(j->action.type)),
		    log_s("sandbox", id), log_err(e));
	}
	job_free(j);
	queue_done(r->queue, strv_of(id), failed);
	/* The back-off must not outlast what is due before it is over. */
	if (failed && again != DECIDE_NEVER)
		queue_add(r->queue, strv_of(id), again);
}

/* --- acting --- */

static void
on_deleted(int status UNUSED, const json_t *obj UNUSED, const struct err *e, void *arg)
{
	struct job *j = arg;

	j->call = NULL;
	if ((e == NULL || e->code == ERR_NOT_FOUND) && j->name != NULL)
		kube_cache_forget(sandbox_view_replicasets(j->r->conf.view), strv_of(j->name));
	job_end(j, e);
}

static void
on_patched(int status UNUSED, const json_t *obj, const struct err *e, void *arg)
{
	struct job *j = arg;

	j->call = NULL;
	if (e == NULL)
		kube_cache_apply(sandbox_view_replicasets(j->r->conf.view), obj);
	job_end(j, e);
}

static void
on_initialised(const struct err *e, void *arg)
{
	struct job *j = arg;

	j->init = NULL;
	job_end(j, e);
}

/* The resourceVersion is a precondition: an extension or a resume that came first wins. */
static void
delete_sandbox(struct job *j, const struct sandbox *s)
{
	const struct reconciler_conf *c = &j->r->conf;

	j->call = kube_delete(c->kube, &KUBE_REPLICASETS, c->ns, s->name,
	    &(struct kube_delete_opts){
	        .uid = s->uid, .resource_version = s->resource_version, .grace = -1 },
	    on_deleted, j);
}

static void
pause_sandbox(struct job *j, const struct sandbox *s)
{
	const struct reconciler_conf *c = &j->r->conf;
	json_t *patch = sandbox_patch_pause(s, clock_wall());

	sandbox_patch_condition(patch, s);
	j->call = kube_patch(c->kube, &KUBE_REPLICASETS, c->ns, s->name, NULL, KUBE_PATCH_MERGE,
	    patch, on_patched, j);
	json_decref(patch);
}

static void
init_sandbox(struct job *j, const struct sandbox *s, const struct pod *p)
{
	const struct reconciler_conf *c = &j->r->conf;
	int64_t time = RECONCILE_INIT_TIME, left = s->end_at - clock_wall();

	if (s->end_at != TIME_NEVER && left < time)
		time = left; /* then it is ended, initialised or not */
	j->init = sandbox_init_start(&(struct sandbox_init_conf){ .kube = c->kube,
	                                 .ns = c->ns,
	                                 .key = settings_install_key(c->settings),
	                                 .deadline = loop_now(c->loop) + time },
	    s, p, on_initialised, j);
}

static void
delete_pod(struct job *j, const struct pod *p)
{
	const struct reconciler_conf *c = &j->r->conf;

	j->call = kube_delete(c->kube, &KUBE_PODS, c->ns, p->name,
	    &(struct kube_delete_opts){ .uid = p->uid, .grace = -1 }, on_deleted, j);
}

static void
act(struct reconciler *r, struct strv id, const struct sandbox_entry *seen, const struct action *a)
{
	struct job *j = xcalloc(1, sizeof(*j));
	const struct sandbox *s = seen->sandbox;

	BUG_ON(s == NULL && a->type != ACTION_DELETE_POD);
	j->r = r;
	j->action = *a;
	j->action.pod = NULL;
	memcpy(j->id, id.p, id.n);
	TAILQ_INSERT_TAIL(&r->jobs, j, link);
	if (s != NULL) {
		j->name = xstrdup(s->name);
		j->uid = xstrdup(s->uid);
	}
	switch (a->type) {
	case ACTION_END_KILL:
	case ACTION_DROP:
	case ACTION_FINISH_DELETE:
		delete_sandbox(j, s);
		break;
	case ACTION_END_PAUSE:
		pause_sandbox(j, s);
		break;
	case ACTION_INIT:
		init_sandbox(j, s, a->pod);
		break;
	case ACTION_DELETE_POD:
		delete_pod(j, a->pod);
		break;
	case ACTION_NONE:
	case ACTION_COUNT:
		BUG_ON(true);
	}
}

static void
work(struct strv key, void *arg)
{
	struct reconciler *r = arg;
	struct sandbox_entry seen;
	struct action a;

	if (!sandbox_view_by_id(r->conf.view, key, &seen)) {
		queue_done(r->queue, key, false);
		return;
	}
	a = decide(&seen, clock_wall());
	if (a.look_again != DECIDE_NEVER && a.look_again != TIME_NEVER)
		queue_add(r->queue, key, a.look_again);
	if (a.type == ACTION_NONE)
		queue_done(r->queue, key, false);
	else
		act(r, key, &seen, &a);
}

/* --- triggers --- */

static void
on_change(struct strv id, const struct sandbox_entry *entry UNUSED, void *arg)
{
	struct reconciler *r = arg;

	queue_add(r->queue, id, 0);
}

static bool
add_one(const struct sandbox_entry *entry, void *arg)
{
	struct reconciler *r = arg;

	/* Overdue ones first: the queue goes by due time. */
	queue_add(
	    r->queue, strv_of(entry->sandbox->id), entry->sandbox->end_at < clock_wall() ? 0 : 1);
	return true;
}

static void
on_sweep(void *arg)
{
	struct reconciler *r = arg;

	sandbox_view_each(r->conf.view, add_one, r);
	timer_start(&r->sweep, RECONCILE_SWEEP);
}

static void
on_render(void *arg)
{
	struct reconciler *r = arg;

	metric_set(&depth, NULL, (double)queue_depth(r->queue));
	metric_set(&leader, NULL, r->leading);
}

struct reconciler *
reconciler_new(const struct reconciler_conf *conf)
{
	struct reconciler *r = xcalloc(1, sizeof(*r));

	r->conf = *conf;
	TAILQ_INIT(&r->jobs);
	r->queue = queue_new(conf->loop, work, r);
	timer_init(&r->sweep, conf->loop, on_sweep, r);
	metrics_add(conf->metrics, &actions);
	metrics_add(conf->metrics, &failures);
	metrics_add(conf->metrics, &depth);
	metrics_add(conf->metrics, &leader);
	metrics_on_render(conf->metrics, on_render, r);
	return r;
}

void
reconciler_start(struct reconciler *r)
{
	if (r->leading)
		return;
	r->leading = true;
	queue_run(r->queue, true);
	sandbox_view_subscribe(r->conf.view, &r->sub, STRV_NONE, on_change, r);
	on_sweep(r);
}

void
reconciler_stop(struct reconciler *r)
{
	struct job *j, *next;

	if (!r->leading)
		return;
	r->leading = false;
	sandbox_view_unsubscribe(&r->sub);
	timer_stop(&r->sweep);
	queue_run(r->queue, false);
	TAILQ_FOREACH_SAFE (j, &r->jobs, link, next)
		job_free(j);
}

void
reconciler_free(struct reconciler *r)
{
	if (r == NULL)
		return;
	reconciler_stop(r);
	queue_free(r->queue);
	xfree(r);
}
