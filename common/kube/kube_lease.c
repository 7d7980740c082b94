/*
 * Leader election after client-go. Two states: following (try every LEASE_RETRY to take a lease
 * that has not changed for its duration by our own clock) and leading (renew every LEASE_RETRY; the
 * last success must not be older than LEASE_RENEW_DEADLINE). Must not know what is led.
 */
#include "kube/kube_lease.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rand.h"
#include "kube/kube_obj.h"

struct kube_lease {
	struct kube *k;
	struct loop *loop;
	struct kube_lease_conf conf;
	char *ns, *name, *identity;
	struct kube_call *call; /* at most one */
	json_t *seen;           /* the Lease as last seen, NULL: never */
	int64_t seen_at;        /* when its spec was seen to change */
	char *holder;
	bool leading;
	int64_t renewed_at;    /* start of the last write that succeeded */
	int64_t try_at;        /* start of the current attempt */
	struct timer retry;    /* next attempt */
	struct timer deadline; /* leading: since renewed_at; following: of one attempt */
	struct defer released;
	void (*on_released)(void *arg);
	void *released_arg;
	bool releasing;
};

static void attempt(void *arg);
static void attempt_get(struct kube_lease *l);

/* Between one and 2.2 pauses for followers, so that they do not try at the same moment. */
static void
try_later(struct kube_lease *l)
{
	int64_t pause = l->conf.retry;

	if (!l->leading) {
		pause += (int64_t)rand_below(1200) * (pause / 1000);
		timer_stop(&l->deadline);
	}
	timer_start(&l->retry, pause);
}

/* Compares spec only: a label or the version may change without the holder doing anything. */
static void
note_seen(struct kube_lease *l, const json_t *obj)
{
	const json_t *spec = json_get_obj(obj, "spec");
	const char *holder = json_get_str(spec, "holderIdentity");
	const json_t *known = json_get_obj(l->seen, "spec");

	if (l->seen == NULL || !json_equal(spec, known))
		l->seen_at = loop_now(l->loop);
	json_decref(l->seen);
	l->seen = json_deep_copy(obj);
	xfree(l->holder);
	l->holder = xstrdup(holder != NULL ? holder : "");
}

static void
lose(struct kube_lease *l)
{
	if (!l->leading)
		return;
	l->leading = false;
	timer_stop(&l->deadline);
	l->conf.on_lost(l->conf.arg);
}

static void
succeed(struct kube_lease *l, const json_t *obj)
{
	bool gained = !l->leading;

	note_seen(l, obj);
	l->renewed_at = l->try_at;
	l->leading = true;
	timer_start(&l->deadline, l->conf.renew_deadline - (loop_now(l->loop) - l->renewed_at));
	try_later(l);
	if (gained)
		l->conf.on_gained(l->conf.arg);
}

static void
on_deadline(void *arg)
{
	struct kube_lease *l = arg;

	kube_cancel(l->call);
	l->call = NULL;
	lose(l);
	try_later(l);
}

/* --- bodies --- */

static json_t *
lease_spec(struct kube_lease *l, const char *holder, const char *acquired, int64_t transitions)
{
	json_t *spec = json_object();
	char now[TIME_TEXT_MAX];

	time_format(clock_wall(), 6, now);
	json_set_str(spec, "holderIdentity", holder);
	json_set_int(
	    spec, "leaseDurationSeconds", *holder != '\0' ? l->conf.duration / NS_PER_S : 1);
	json_set_str(spec, "acquireTime", acquired != NULL ? acquired : now);
	json_set_str(spec, "renewTime", now);
	json_set_int(spec, "leaseTransitions", transitions);
	return spec;
}

/* What was seen, with us (or nobody) as holder; its resourceVersion makes the write conditional. */
static json_t *
lease_body(struct kube_lease *l, const char *holder)
{
	json_t *body = json_deep_copy(l->seen);
	const json_t *spec = json_get_obj(l->seen, "spec");
	int64_t transitions = json_get_int(spec, "leaseTransitions", 0);
	bool ours = strcmp(l->holder, l->identity) == 0;
	const char *acquired = ours ? json_get_str(spec, "acquireTime") : NULL;

	if (!ours)
		transitions++;
	json_set(body, "spec", lease_spec(l, holder, acquired, transitions));
	return body;
}

static json_t *
lease_new_body(struct kube_lease *l)
{
	json_t *body = json_object(), *meta = json_object();

	json_set_str(body, "apiVersion", "coordination.k8s.io/v1");
	json_set_str(body, "kind", "Lease");
	json_set_str(meta, "name", l->name);
	json_set_str(meta, "namespace", l->ns);
	json_set(body, "metadata", meta);
	json_set(body, "spec", lease_spec(l, l->identity, NULL, 0));
	return body;
}

/* --- attempts --- */

static void
on_written(int status UNUSED, const json_t *obj, const struct err *e, void *arg)
{
	struct kube_lease *l = arg;

	l->call = NULL;
	if (e == NULL && obj != NULL) {
		succeed(l, obj);
	} else if (l->leading && e != NULL &&
	    (e->code == ERR_CONFLICT || e->code == ERR_NOT_FOUND)) {
		attempt_get(l); /* someone wrote or removed it: look who holds it now */
	} else {
		try_later(l);
	}
}

static void
write_seen(struct kube_lease *l)
{
	CLEANUP(json_unrefp) json_t *body = lease_body(l, l->identity);

	l->call = kube_update(l->k, &KUBE_LEASES, l->ns, l->name, body, on_written, l);
}

/* Held by another, by our own clock? */
static bool
is_taken(struct kube_lease *l)
{
	return l->holder[0] != '\0' && strcmp(l->holder, l->identity) != 0 &&
	    loop_now(l->loop) - l->seen_at < l->conf.duration;
}

static void
on_got(int status UNUSED, const json_t *obj, const struct err *e, void *arg)
{
	struct kube_lease *l = arg;

	l->call = NULL;
	if (e != NULL && e->code == ERR_NOT_FOUND) {
		CLEANUP(json_unrefp) json_t *body = lease_new_body(l);

		l->call = kube_create(l->k, &KUBE_LEASES, l->ns, body, false, on_written, l);
		return;
	}
	if (e != NULL || obj == NULL) {
		try_later(l);
		return;
	}
	note_seen(l, obj);
	if (strcmp(l->holder, l->identity) != 0)
		lose(l); /* stolen: nothing to wait for */
	if (is_taken(l)) {
		try_later(l);
		return;
	}
	write_seen(l);
}

static void
attempt_get(struct kube_lease *l)
{
	l->call = kube_get(l->k, &KUBE_LEASES, l->ns, l->name, on_got, l);
}

static void
attempt(void *arg)
{
	struct kube_lease *l = arg;

	if (l->releasing)
		return;
	kube_cancel(l->call);
	l->try_at = loop_now(l->loop);
	if (l->leading) { /* the fast path: nobody else should have written */
		write_seen(l);
		return;
	}
	timer_start(&l->deadline, l->conf.renew_deadline);
	attempt_get(l);
}

/* --- giving up --- */

static void
run_released(void *arg)
{
	struct kube_lease *l = arg;

	l->call = NULL;
	if (l->on_released != NULL)
		l->on_released(l->released_arg);
}

static void
on_given_up(int status UNUSED, const json_t *obj UNUSED, const struct err *e UNUSED, void *arg)
{
	run_released(arg);
}

static void
on_got_to_release(int status UNUSED, const json_t *obj, const struct err *e, void *arg)
{
	struct kube_lease *l = arg;
	CLEANUP(json_unrefp) json_t *body = NULL;

	l->call = NULL;
	if (e == NULL && obj != NULL)
		note_seen(l, obj);
	if (e != NULL || obj == NULL || strcmp(l->holder, l->identity) != 0) {
		run_released(l);
		return;
	}
	body = lease_body(l, "");
	l->call = kube_update(l->k, &KUBE_LEASES, l->ns, l->name, body, on_given_up, l);
}

void
kube_lease_release(struct kube_lease *l, void (*done)(void *arg), void *arg)
{
	bool held = l->leading;

	l->releasing = true;
	l->leading = false;
	l->on_released = done;
	l->released_arg = arg;
	kube_cancel(l->call);
	l->call = NULL;
	timer_stop(&l->retry);
	timer_stop(&l->deadline);
	/* A renewal may have been cut off in flight, so the version is asked for, not assumed. */
	if (held)
		l->call = kube_get(l->k, &KUBE_LEASES, l->ns, l->name, on_got_to_release, l);
	else
		loop_defer(l->loop, &l->released);
}

/* --- whole --- */

struct kube_lease *
kube_lease_new(struct kube *k, const struct kube_lease_conf *conf)
{
	struct kube_lease *l = xcalloc(1, sizeof(*l));

	l->k = k;
	l->loop = kube_loop(k);
	l->conf = *conf;
	if (l->conf.duration == 0)
		l->conf.duration = LEASE_DURATION;
	if (l->conf.renew_deadline == 0)
		l->conf.renew_deadline = LEASE_RENEW_DEADLINE;
	if (l->conf.retry == 0)
		l->conf.retry = LEASE_RETRY;
	l->ns = xstrdup(conf->ns);
	l->name = xstrdup(conf->name);
	l->identity = xstrdup(conf->identity);
	l->holder = xstrdup("");
	timer_init(&l->retry, l->loop, attempt, l);
	timer_init(&l->deadline, l->loop, on_deadline, l);
	defer_init(&l->released, run_released, l);
	timer_start(&l->retry, 0);
	return l;
}

bool
kube_lease_held(const struct kube_lease *l)
{
	/* By the clock too: after a pause of the process the timer may be late. */
	return l->leading && loop_now(l->loop) - l->renewed_at < l->conf.renew_deadline;
}

const char *
kube_lease_holder(const struct kube_lease *l)
{
	return l->holder;
}

void
kube_lease_free(struct kube_lease *l)
{
	if (l == NULL)
		return;
	kube_cancel(l->call);
	timer_stop(&l->retry);
	timer_stop(&l->deadline);
	loop_undefer(l->loop, &l->released);
	json_decref(l->seen);
	xfree(l->holder);
	xfree(l->ns);
	xfree(l->name);
	xfree(l->identity);
	xfree(l);
}
