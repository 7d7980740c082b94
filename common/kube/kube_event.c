/*
 * Events with client-go's limits. Two tables, each with an order of last use and at most KEYS_MAX
 * entries: what was said (to count repeats) and how much was said of each object (to bound it).
 * Must not know what the events mean.
 */
#include "kube/kube_event.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "kube/kube_metrics.h"
#include "kube/kube_obj.h"

#define KEYS_MAX 4096
#define SAME_TIME SECONDS(600) /* a repeat within it becomes a count */
#define BURST 25
#define REFILL SECONDS(300) /* one more of an object */
#define CALLS_MAX 64        /* in flight; beyond it events are dropped */
#define MESSAGE_MAX 1024
#define KEY_MAX 4096
#define NAME_MAX_LEN 253

struct said {
	TAILQ_ENTRY(said) link;
	struct kube_recorder *r;
	struct kube_call *call; /* NULL: nothing in flight */
	char *key;
	char *ns, *name;     /* of the Event */
	json_t *body;        /* as created, to create it again if it is gone */
	uint64_t count;      /* wanted */
	uint64_t written;    /* 0: not created yet */
	uint64_t in_flight;  /* count in the current call */
	int64_t first, last; /* loop time */
	int64_t last_wall;
};
TAILQ_HEAD(said_list, said);

struct budget {
	TAILQ_ENTRY(budget) link;
	char *key;
	double tokens;
	int64_t at;
};
TAILQ_HEAD(budget_list, budget);

struct kube_recorder {
	struct kube *k;
	struct loop *loop;
	char *component, *instance;
	struct map *said, *budgets;
	struct said_list said_order;     /* least recent first */
	struct budget_list budget_order; /* least recent first */
	unsigned calls;
	uint64_t serial;
};

static void
said_free(struct said *s)
{
	struct kube_recorder *r = s->r;

	if (s->call != NULL) {
		kube_cancel(s->call);
		r->calls--;
	}
	TAILQ_REMOVE(&r->said_order, s, link);
	map_del(r->said, strv_of(s->key));
	json_decref(s->body);
	xfree(s->key);
	xfree(s->ns);
	xfree(s->name);
	xfree(s);
}

static void
budget_free(struct kube_recorder *r, struct budget *b)
{
	TAILQ_REMOVE(&r->budget_order, b, link);
	map_del(r->budgets, strv_of(b->key));
	xfree(b->key);
	xfree(b);
}

/* May one more write be made about this object? */
static bool
spend(struct kube_recorder *r, const char *key)
{
	int64_t now = loop_now(r->loop);
	struct budget *b = map_get(r->budgets, strv_of(key));

	if (b == NULL) {
		if (map_count(r->budgets) >= KEYS_MAX)
			budget_free(r, TAILQ_FIRST(&r->budget_order));
		b = xcalloc(1, sizeof(*b));
		b->key = xstrdup(key);
		b->tokens = BURST;
		map_set(r->budgets, strv_of(key), b);
	} else {
		TAILQ_REMOVE(&r->budget_order, b, link);
		b->tokens += (double)(now - b->at) / (double)REFILL;
		if (b->tokens > BURST)
			b->tokens = BURST;
	}
	b->at = now;
	TAILQ_INSERT_TAIL(&r->budget_order, b, link);
	if (b->tokens < 1)
		return false;
	b->tokens -= 1;
	return true;
}

/* --- bodies --- */

static json_t *
event_body(struct kube_recorder *r, const struct kube_ref *on, bool warning, const char *reason,
    const char *message)
{
	char version[KUBE_API_VERSION_MAX], now[TIME_TEXT_MAX];
	json_t *body = json_object(), *meta = json_object(), *ref = json_object();
	json_t *source = json_object();

	time_format(clock_wall(), 0, now);
	kube_obj_api_version(on->res, version);
	json_set_str(ref, "apiVersion", version);
	json_set_str(ref, "kind", on->res->kind);
	json_set_str(ref, "namespace", on->ns);
	json_set_str(ref, "name", on->name);
	json_set_str(ref, "uid", on->uid);
	json_set_str(source, "component", r->component);
	json_set_str(meta, "namespace", on->ns);
	json_set_str(body, "apiVersion", "v1");
	json_set_str(body, "kind", "Event");
	json_set(body, "metadata", meta);
	json_set(body, "involvedObject", ref);
	json_set_str(body, "type", warning ? "Warning" : "Normal");
	json_set_str(body, "reason", reason);
	json_set_str(body, "message", message);
	json_set(body, "source", source);
	json_set_str(body, "reportingComponent", r->component);
	json_set_str(body, "reportingInstance", r->instance);
	json_set_str(body, "firstTimestamp", now);
	json_set_str(body, "lastTimestamp", now);
	json_set_int(body, "count", 1);
	return body;
}

/* "<object>.<16 hex>": the wall clock and a serial make it unique, as client-go does. */
static void
name_event(struct said *s, const char *object)
{
	char name[NAME_MAX_LEN + 1];

	snprintf(name, sizeof(name), "%.*s.%016llx", NAME_MAX_LEN - 17, object,
	    (unsigned long long)clock_wall() + s->r->serial++);
	xfree(s->name);
	s->name = xstrdup(name);
}

/* --- writing --- */

static void on_written(int status, const json_t *obj, const struct err *e, void *arg);

static void
create(struct said *s)
{
	json_t *meta = json_object_get(s->body, "metadata");
	const char *object = json_get_str(s->body, "involvedObject.name");

	name_event(s, object);
	json_set_str(meta, "name", s->name);
	json_set_int(s->body, "count", (int64_t)s->count);
	s->call = kube_create(s->r->k, &KUBE_EVENTS, s->ns, s->body, false, on_written, s);
}

static void
count_up(struct said *s)
{
	CLEANUP(json_unrefp) json_t *patch = json_object();
	char last[TIME_TEXT_MAX];

	time_format(s->last_wall, 0, last);
	json_set_int(patch, "count", (int64_t)s->count);
	json_set_str(patch, "lastTimestamp", last);
	s->call = kube_patch(
	    s->r->k, &KUBE_EVENTS, s->ns, s->name, NULL, KUBE_PATCH_MERGE, patch, on_written, s);
}

static void
write_now(struct said *s)
{
	s->in_flight = s->count;
	s->r->calls++;
	if (s->written == 0)
		create(s);
	else
		count_up(s);
}

static void
on_written(int status UNUSED, const json_t *obj UNUSED, const struct err *e, void *arg)
{
	struct said *s = arg;

	s->call = NULL;
	s->r->calls--;
	metric_add(&kube_events_total, e == NULL ? "ok" : "failed", 1);
	if (e != NULL && e->code == ERR_NOT_FOUND && s->written > 0) {
		s->written = 0; /* events live an hour: say it anew */
		write_now(s);
	} else if (e != NULL) {
		said_free(s); /* a repeat begins anew */
	} else {
		s->written = s->in_flight;
		if (s->count > s->written)
			write_now(s);
	}
}

static struct said *
said_new(struct kube_recorder *r, const char *key, const char *ns)
{
	struct said *s = xcalloc(1, sizeof(*s));

	if (map_count(r->said) >= KEYS_MAX)
		said_free(TAILQ_FIRST(&r->said_order));
	s->r = r;
	s->key = xstrdup(key);
	s->ns = xstrdup(ns);
	s->first = loop_now(r->loop);
	map_set(r->said, strv_of(key), s);
	TAILQ_INSERT_TAIL(&r->said_order, s, link);
	return s;
}

static void
record(struct kube_recorder *r, const struct kube_ref *on, bool warning, const char *reason,
    const char *message, const char *key)
{
	struct said *s = map_get(r->said, strv_of(key));

	if (s != NULL && loop_now(r->loop) - s->last > SAME_TIME) {
		said_free(s);
		s = NULL;
	}
	if (s == NULL) {
		s = said_new(r, key, on->ns);
		s->body = event_body(r, on, warning, reason, message);
	} else {
		TAILQ_REMOVE(&r->said_order, s, link);
		TAILQ_INSERT_TAIL(&r->said_order, s, link);
	}
	s->count++;
	s->last = loop_now(r->loop);
	s->last_wall = clock_wall();
	if (s->call == NULL) /* else the end of the call writes the new count */
		write_now(s);
}

void
kube_event(struct kube_recorder *r, const struct kube_ref *on, bool warning, const char *reason,
    const char *fmt, ...)
{
	char message[MESSAGE_MAX + 1], key[KEY_MAX], object[KEY_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	snprintf(object, sizeof(object), "%s/%s/%s/%s", on->res->plural, on->ns, on->name,
	    on->uid != NULL ? on->uid : "");
	snprintf(key, sizeof(key), "%.2000s\n%d\n%.200s\n%s", object, warning, reason, message);
	if (r->calls >= CALLS_MAX || !spend(r, object)) {
		metric_add(&kube_events_total, "dropped", 1);
		return;
	}
	record(r, on, warning, reason, message, key);
}

struct kube_recorder *
kube_recorder_new(struct kube *k, const char *component, const char *instance)
{
	struct kube_recorder *r = xcalloc(1, sizeof(*r));

	r->k = k;
	r->loop = kube_loop(k);
	r->component = xstrdup(component);
	r->instance = xstrdup(instance);
	r->said = map_new();
	r->budgets = map_new();
	TAILQ_INIT(&r->said_order);
	TAILQ_INIT(&r->budget_order);
	return r;
}

void
kube_recorder_free(struct kube_recorder *r)
{
	struct budget *b;
	struct said *s;

	if (r == NULL)
		return;
	while ((s = TAILQ_FIRST(&r->said_order)) != NULL)
		said_free(s);
	while ((b = TAILQ_FIRST(&r->budget_order)) != NULL)
		budget_free(r, b);
	map_free(r->said, NULL);
	map_free(r->budgets, NULL);
	xfree(r->component);
	xfree(r->instance);
	xfree(r);
}
