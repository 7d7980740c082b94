/*
 * The service itself and the common steps of its operations. The operations are in service_life.c
 * (get, kill, timeout, connect, pause) and service_create.c; waiting for a start is in
 * service_start.c.
 */
#include "apiserver/service.h"

#include "apiserver/service_op.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "domain/sandbox_patch.h"

struct service *
service_new(const struct service_conf *conf)
{
	struct service *s = xcalloc(1, sizeof(*s));

	s->conf = *conf;
	TAILQ_INIT(&s->ops);
	service_start_metrics(conf->metrics);
	return s;
}

void
service_free(struct service *s)
{
	struct service_op *op, *next;

	if (s == NULL)
		return;
	TAILQ_FOREACH_SAFE (op, &s->ops, link, next)
		op_free(op);
	xfree(s);
}

bool
service_ready(const struct service *s, const char **why)
{
	if (!settings_ready(s->conf.settings))
		*why = "settings are not loaded";
	else if (!sandbox_view_synced(s->conf.view))
		*why = "the cache is not in sync";
	else if (!sandbox_view_fresh(s->conf.view, VIEW_SILENCE))
		*why = "the Kubernetes API is away";
	else
		return true;
	return false;
}

bool
service_visible(
    const struct service *s UNUSED, const struct tenant *t, const struct sandbox_entry *entry)
{
	if (entry->sandbox == NULL || entry->sandbox->pool)
		return false;
	if (entry->state == SANDBOX_DELETING || entry->state == SANDBOX_FAILED)
		return false;
	return t->role == ROLE_SYSTEM || strcmp(t->name, entry->sandbox->tenant) == 0;
}

static void
on_begin(void *arg)
{
	struct service_op *op = arg;

	if (op->early.code != ERR_NONE)
		op_end(op, NULL, &op->early);
	else
		op_find(op);
}

struct service_op *
op_new(struct service *s, const struct op_kind *kind, const struct tenant *t, struct strv id,
    service_fn fn, void *arg)
{
	struct service_op *op = xcalloc(1, sizeof(*op));

	op->svc = s;
	op->kind = kind;
	op->fn = fn;
	op->arg = arg;
	op->role = t->role;
	op->asked = loop_now(s->conf.loop);
	memcpy(op->tenant, t->name, sizeof(op->tenant));
	if (sandbox_id_valid(id))
		memcpy(op->id, id.p, id.n);
	else
		err_set(&op->early, ERR_INVALID, "Invalid sandbox ID");
	TAILQ_INSERT_TAIL(&s->ops, op, link);
	defer_init(&op->begin, on_begin, op);
	loop_defer(s->conf.loop, &op->begin);
	return op;
}

void
op_free(struct service_op *op)
{
	loop_undefer(op->svc->conf.loop, &op->begin);
	kube_cancel(op->call);
	op_start_release(op);
	TAILQ_REMOVE(&op->svc->ops, op, link);
	xfree(op->killed_name);
	xfree(op->killed_uid);
	xfree(op);
}

void
op_end(struct service_op *op, const struct sandbox_entry *entry, const struct err *e)
{
	if (e != NULL && e->code == ERR_INTERNAL)
		log_error("operation failed", log_s("action", op->kind->name),
		    log_s("sandbox", op->id), log_err(e));
	if (op->fn == NULL && op->created) {
		op_abandon(op); /* the last write of a create ended after its caller had left */
		return;
	}
	if (op->fn != NULL)
		op->fn(e == NULL ? entry : NULL, e, op->arg);
	op_free(op);
}

static void
on_settled(void *arg)
{
	op_end(arg, NULL, NULL);
}

void
op_settle(struct service_op *op)
{
	timer_init(&op->deadline, op->svc->conf.loop, on_settled, op);
	timer_start(&op->deadline, SERVICE_SETTLE);
}

void
op_fail(struct service_op *op, enum err_code code, const char *fmt, ...)
{
	struct err e;
	va_list ap;

	va_start(ap, fmt);
	err_vset(&e, code, fmt, ap);
	va_end(ap);
	op_end(op, NULL, &e);
}

void
op_kube_failed(struct service_op *op, const struct err *e)
{
	struct err copy = *e;

	/* A conflict or a name in use is between Kubernetes and us; as a 409 it would say something
	 * else. So with our own rights, and with an object that the operator's blueprint spoilt. */
	if (e->code == ERR_TIMEOUT || e->code == ERR_CONFLICT || e->code == ERR_EXISTS)
		copy.code = ERR_UNAVAILABLE;
	else if (e->code == ERR_FORBIDDEN || e->code == ERR_INVALID)
		copy.code = ERR_INTERNAL;
	op_end(op, NULL, &copy);
}

bool
service_op_resumed(const struct service_op *op)
{
	return op->resumed;
}

/* --- find --- */

bool
op_visible(const struct service_op *op, struct sandbox_entry *ret)
{
	struct tenant t = { .role = op->role };

	memcpy(t.name, op->tenant, sizeof(t.name));
	return sandbox_view_by_id(op->svc->conf.view, strv_of(op->id), ret) &&
	    service_visible(op->svc, &t, ret);
}

/* E2B's text for every face: clients show it. */
static void
not_found(struct service_op *op)
{
	op_fail(op, ERR_NOT_FOUND, "Sandbox \"%s\" doesn't exist or you don't have access to it",
	    op->id);
}

static bool
known_missing(struct service *s, const char *id)
{
	int64_t now = loop_now(s->conf.loop);

	for (unsigned i = 0; i < MISS_RING; i++)
		if (s->miss[i].until > now && strcmp(s->miss[i].id, id) == 0)
			return true;
	if (now - s->looks_second > SECONDS(1)) {
		s->looks_second = now;
		s->looks = 0;
	}
	return ++s->looks > MISS_LOOKS_PER_SECOND;
}

static void
on_looked(int status UNUSED, const json_t *obj, const struct err *e, void *arg)
{
	struct service_op *op = arg;
	struct service *s = op->svc;
	struct sandbox_entry entry;
	const json_t *item = json_array_get(json_get_arr(obj, "items"), 0);

	op->call = NULL;
	if (e != NULL) {
		op_kube_failed(op, e);
		return;
	}
	if (item != NULL) {
		kube_cache_apply(sandbox_view_replicasets(s->conf.view), item);
	} else {
		memcpy(s->miss[s->miss_next].id, op->id, sizeof(op->id));
		s->miss[s->miss_next].until = loop_now(s->conf.loop) + MISS_KEEP;
		s->miss_next = (s->miss_next + 1) % MISS_RING;
	}
	if (op_visible(op, &entry))
		op->kind->act(op, &entry);
	else
		not_found(op);
}

static void
look(struct service_op *op)
{
	struct strbuf path;
	char *base = kube_path(&KUBE_REPLICASETS, op->svc->conf.ns, NULL, NULL);

	strbuf_init(&path, 1024);
	strbuf_addf(&path, "%s?limit=1&labelSelector=" LABEL_ID "%%3D%s", base, op->id);
	op->call = kube_raw(op->svc->conf.kube, "GET", path.p, NULL, on_looked, op);
	strbuf_done(&path);
	xfree(base);
}

void
op_find(struct service_op *op)
{
	struct sandbox_entry entry;

	if (sandbox_view_by_id(op->svc->conf.view, strv_of(op->id), &entry) &&
	    entry.sandbox != NULL) {
		if (op_visible(op, &entry))
			op->kind->act(op, &entry);
		else
			not_found(op);
	} else if (known_missing(op->svc, op->id)) {
		not_found(op);
	} else {
		look(op);
	}
}

void
op_forget(struct service_op *op)
{
	struct sandbox_view *view = op->svc->conf.view;
	struct sandbox_entry entry;

	if (sandbox_view_by_id(view, strv_of(op->id), &entry) && entry.sandbox != NULL)
		kube_cache_forget(sandbox_view_replicasets(view), strv_of(entry.sandbox->name));
}

/* --- write --- */

static void
on_written(int status UNUSED, const json_t *obj, const struct err *e, void *arg)
{
	struct service_op *op = arg;
	struct sandbox_entry entry;

	op->call = NULL;
	if (e != NULL && e->code == ERR_CONFLICT && ++op->tries < SERVICE_WRITE_TRIES) {
		look(op); /* somebody else was first: read, and decide again */
		return;
	}
	if (e != NULL && e->code == ERR_NOT_FOUND) {
		op_forget(op);
		not_found(op);
		return;
	}
	if (e != NULL) {
		op_kube_failed(op, e);
		return;
	}
	kube_cache_apply(sandbox_view_replicasets(op->svc->conf.view), obj);
	if (!op_visible(op, &entry))
		not_found(op);
	else if (op->kind->written != NULL)
		op->kind->written(op, &entry);
	else
		op_end(op, &entry, NULL);
}

void
op_write(struct service_op *op, const struct sandbox *seen, json_t *patch)
{
	sandbox_patch_condition(patch, seen);
	op->call = kube_patch(op->svc->conf.kube, &KUBE_REPLICASETS, op->svc->conf.ns, seen->name,
	    NULL, KUBE_PATCH_MERGE, patch, on_written, op);
	json_decref(patch);
}

void
op_event(struct service *s, const struct sandbox *sb, bool warning, const char *reason,
    const char *message)
{
	kube_event(s->conf.recorder,
	    &(struct kube_ref){
	        .res = &KUBE_REPLICASETS, .ns = s->conf.ns, .name = sb->name, .uid = sb->uid },
	    warning, reason, "%s", message);
}
