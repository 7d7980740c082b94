/*
 * Operations on a sandbox that exists: get, kill, set timeout, connect (extend or resume), pause.
 * Each is a decision on what the view shows, followed by at most one conditional write.
 */
#include "apiserver/service.h"
#include "apiserver/service_op.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "domain/sandbox_patch.h"

/* --- waiting for another state --- */

static void
on_change(struct strv id UNUSED, const struct sandbox_entry *entry UNUSED, void *arg)
{
	struct service_op *op = arg;
	struct sandbox_entry now;

	if (!op_visible(op, &now)) {
		op_fail(op, ERR_NOT_FOUND, "Sandbox \"%s\" was killed", op->id);
	} else if (now.state != op->left) {
		sandbox_view_unsubscribe(&op->sub);
		timer_stop(&op->deadline);
		op->kind->act(op, &now);
	}
}

/* Decides again once the state is another one. */
static void
wait_for_change(struct service_op *op, enum sandbox_state left, void (*on_overdue)(void *arg))
{
	op->left = left;
	timer_init(&op->deadline, op->svc->conf.loop, on_overdue, op);
	timer_start(&op->deadline, SERVICE_PAUSE_WAIT);
	sandbox_view_subscribe(op->svc->conf.view, &op->sub, strv_of(op->id), on_change, op);
}

/* --- get --- */

static void
act_get(struct service_op *op, const struct sandbox_entry *entry)
{
	op_end(op, entry, NULL);
}

static const struct op_kind kind_get = { .name = "get", .act = act_get };

struct service_op *
service_get(struct service *s, const struct tenant *t, struct strv id, service_fn fn, void *arg)
{
	return op_new(s, &kind_get, t, id, fn, arg);
}

/* --- kill --- */

static void
on_deleted(int status UNUSED, const json_t *obj UNUSED, const struct err *e, void *arg)
{
	struct service_op *op = arg;

	op->call = NULL;
	if (e != NULL && e->code != ERR_NOT_FOUND && e->code != ERR_CONFLICT) {
		op_kube_failed(op, e);
		return;
	}
	if (e == NULL)
		op_event(op->svc,
		    &(struct sandbox){ .name = op->killed_name, .uid = op->killed_uid }, false,
		    "Killed", "killed on request");
	/* Routing forgets first: from here on the gateway answers "not found" and cuts what still
	 * runs. A conflict is the UID precondition: that object is gone and its name was used
	 * again. */
	op_forget(op);
	if (e != NULL) {
		op_fail(op, ERR_NOT_FOUND,
		    "Sandbox \"%s\" doesn't exist or you don't have access to it", op->id);
		return;
	}
	op_settle(op);
}

static void
act_kill(struct service_op *op, const struct sandbox_entry *entry)
{
	op->killed_name = xstrdup(entry->sandbox->name);
	op->killed_uid = xstrdup(entry->sandbox->uid);
	op->call = kube_delete(op->svc->conf.kube, &KUBE_REPLICASETS, op->svc->conf.ns,
	    entry->sandbox->name,
	    &(struct kube_delete_opts){ .uid = entry->sandbox->uid, .grace = -1 }, on_deleted, op);
}

static const struct op_kind kind_kill = { .name = "kill", .act = act_kill };

struct service_op *
service_kill(struct service *s, const struct tenant *t, struct strv id, service_fn fn, void *arg)
{
	return op_new(s, &kind_kill, t, id, fn, arg);
}

/* --- time --- */

int64_t
op_end_after(const struct service *s, int64_t started, int64_t timeout)
{
	int64_t now = clock_wall(), end, last;

	if (timeout < 0)
		return TIME_NEVER;
	end = now + SECONDS(timeout);
	last = started + SECONDS(s->conf.max_lifetime);
	return s->conf.max_lifetime > 0 && end > last ? last : end;
}

static void
act_timeout(struct service_op *op, const struct sandbox_entry *entry)
{
	const struct sandbox *s = entry->sandbox;
	int64_t end = op_end_after(op->svc, s->started, op->timeout);

	if (entry->state == SANDBOX_PAUSING)
		op_fail(op, ERR_CONFLICT, "Sandbox \"%s\" is being paused", op->id);
	else if (entry->state == SANDBOX_PAUSED)
		op_fail(op, ERR_NOT_FOUND, "Sandbox \"%s\" is paused", op->id);
	else if (op->timeout > 0 && end <= clock_wall())
		op_fail(op, ERR_INVALID, "Max instance length exceeded");
	else
		op_write(op, s, sandbox_patch_end(end));
}

static const struct op_kind kind_timeout = { .name = "timeout", .act = act_timeout };

struct service_op *
service_set_timeout(struct service *s, const struct tenant *t, struct strv id, int64_t timeout,
    service_fn fn, void *arg)
{
	struct service_op *op = op_new(s, &kind_timeout, t, id, fn, arg);

	op->timeout = timeout;
	return op;
}

/* --- connect --- */

static void
write_resume(struct service_op *op, const struct sandbox *s)
{
	int64_t now = clock_wall();

	op->resumed = true;
	op_write(op, s, sandbox_patch_resume(s, now, op_end_after(op->svc, now, op->timeout)));
}

static void
on_pause_overdue(void *arg)
{
	struct service_op *op = arg;
	struct err e;

	err_set(&e, ERR_UNAVAILABLE, "Sandbox \"%s\" is still being paused", op->id);
	e.retry_after = 2;
	op_end(op, NULL, &e);
}

static void
act_connect(struct service_op *op, const struct sandbox_entry *entry)
{
	const struct sandbox *s = entry->sandbox;
	int64_t end;

	op->resumed = false; /* a resume that lost its race joins the winner's */
	switch (entry->state) {
	case SANDBOX_PAUSED:
		write_resume(op, s);
		break;
	case SANDBOX_PAUSING:
		wait_for_change(op, entry->state, on_pause_overdue);
		break;
	case SANDBOX_CREATING:
	case SANDBOX_RESUMING:
	case SANDBOX_RESTARTING:
	case SANDBOX_RUNNING:
		end = op_end_after(op->svc, s->started, op->timeout);
		if (end > s->end_at)
			op_write(op, s, sandbox_patch_end(end));
		else if (entry->state == SANDBOX_RUNNING)
			op_end(op, entry, NULL);
		else
			op_await_start(op);
		break;
	case SANDBOX_DELETING:
	case SANDBOX_FAILED:
	case SANDBOX_WARMING:
	case SANDBOX_WARM:
	case SANDBOX_STATE_COUNT:
		op_fail(op, ERR_NOT_FOUND,
		    "Sandbox \"%s\" doesn't exist or you don't have access to it", op->id);
		break;
	}
}

static void
connect_written(struct service_op *op, const struct sandbox_entry *entry)
{
	if (op->resumed)
		op_event(op->svc, entry->sandbox, false, "Resumed", "started again on request");
	if (entry->state == SANDBOX_RUNNING)
		op_end(op, entry, NULL);
	else
		op_await_start(op);
}

static const struct op_kind kind_connect = {
	.name = "connect",
	.act = act_connect,
	.written = connect_written,
};

struct service_op *
service_connect(struct service *s, const struct tenant *t, struct strv id, int64_t timeout,
    service_fn fn, void *arg)
{
	struct service_op *op = op_new(s, &kind_connect, t, id, fn, arg);

	op->timeout = timeout;
	return op;
}

/* --- pause --- */

static void act_pause(struct service_op *op, const struct sandbox_entry *entry);

/* It does not become ready: then it is paused as it is. */
static void
on_start_overdue(void *arg)
{
	struct service_op *op = arg;
	struct sandbox_entry now;

	sandbox_view_unsubscribe(&op->sub);
	op->waited = true;
	if (op_visible(op, &now))
		act_pause(op, &now);
	else
		op_fail(op, ERR_NOT_FOUND, "Sandbox \"%s\" was killed", op->id);
}

static void
act_pause(struct service_op *op, const struct sandbox_entry *entry)
{
	bool paused = entry->state == SANDBOX_PAUSED || entry->state == SANDBOX_PAUSING;
	bool starting = entry->state == SANDBOX_CREATING || entry->state == SANDBOX_RESUMING;

	if (paused && op->tries > 0)
		op_end(op, entry, NULL); /* another pause was first: both did what was asked */
	else if (paused)
		op_fail(op, ERR_CONFLICT, "Error pausing sandbox - sandbox '%s' is already paused",
		    op->id);
	else if (starting && !op->waited) /* whoever starts it gets it first */
		wait_for_change(op, entry->state, on_start_overdue);
	else
		op_write(op, entry->sandbox, sandbox_patch_pause(entry->sandbox, clock_wall()));
}

static void
pause_written(struct service_op *op, const struct sandbox_entry *entry)
{
	op_event(op->svc, entry->sandbox, false, "Paused", "paused on request");
	op_settle(op);
}

static const struct op_kind kind_pause = {
	.name = "pause",
	.act = act_pause,
	.written = pause_written,
};

struct service_op *
service_pause(struct service *s, const struct tenant *t, struct strv id, service_fn fn, void *arg)
{
	return op_new(s, &kind_pause, t, id, fn, arg);
}

void
service_cancel(struct service_op *op)
{
	if (op == NULL)
		return;
	op->fn = NULL;
	op_abandon(op);
}
