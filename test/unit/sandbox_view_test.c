/*
 * The view over caches that this test plays: kube_cache_* here are a few lines that keep objects by
 * name and report changes, so that any order of events can be made.
 */
#include "t.h"

#include <malloc.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"
#include "base/rand.h"
#include "domain/sandbox_view.h"

const struct kube_res KUBE_PODS = { "", "v1", "pods", "Pod" };
const struct kube_res KUBE_REPLICASETS = { "apps", "v1", "replicasets", "ReplicaSet" };

struct kube_cache {
	struct kube_cache_conf conf;
	struct map *objects;
	bool synced, connected;
	int64_t alive;
};

static struct kube_cache *caches[2]; /* ReplicaSets, Pods: as the view makes them */
static size_t caches_n;

struct kube_cache *
kube_cache_new(struct kube *k UNUSED, const struct kube_cache_conf *conf)
{
	struct kube_cache *c = xcalloc(1, sizeof(*c));

	c->conf = *conf;
	c->objects = map_new();
	c->connected = true;
	assert_true(caches_n < 2);
	caches[caches_n++] = c;
	return c;
}

void
kube_cache_free(struct kube_cache *c)
{
	map_free(c->objects, c->conf.release);
	xfree(c);
}

bool
kube_cache_synced(const struct kube_cache *c)
{
	return c->synced;
}

int64_t
kube_cache_alive(const struct kube_cache *c)
{
	return c->alive;
}

bool
kube_cache_connected(const struct kube_cache *c)
{
	return c->connected;
}

void *
kube_cache_get(const struct kube_cache *c, struct strv name)
{
	return map_get(c->objects, name);
}

struct each {
	bool (*fn)(void *obj, void *arg);
	void *arg;
};

static bool
each_object(struct strv key UNUSED, void *value, void *arg)
{
	struct each *each = arg;

	return each->fn(value, each->arg);
}

void
kube_cache_each(struct kube_cache *c, bool (*fn)(void *obj, void *arg), void *arg)
{
	map_each(c->objects, each_object, &(struct each){ fn, arg });
}

void
kube_cache_apply(struct kube_cache *c, const json_t *obj)
{
	const char *name = json_get_str(obj, "metadata.name");
	struct err e;
	void *now = c->conf.decode(obj, &e, c->conf.arg), *old;

	assert_non_null(now);
	old = map_set(c->objects, strv_of(name), now);
	c->conf.on_change(old ? KUBE_MODIFIED : KUBE_ADDED, old, now, c->conf.arg);
	if (old != NULL)
		c->conf.release(old);
}

void
kube_cache_forget(struct kube_cache *c, struct strv name)
{
	void *obj = map_del(c->objects, name);

	if (obj == NULL)
		return;
	c->conf.on_change(KUBE_DELETED, NULL, obj, c->conf.arg);
	c->conf.release(obj);
}

struct loop *
kube_loop(struct kube *k UNUSED)
{
	return NULL;
}

static int64_t now;

int64_t
loop_now(struct loop *l UNUSED)
{
	return now;
}

/* --- objects --- */

static struct sandbox_view *
open_view(void)
{
	caches_n = 0;
	return sandbox_view_new(NULL, "ns", NULL, NULL);
}

static json_t *
replicaset(const char *name, const char *id, const char *tenant, const char *desired)
{
	return json_pack("{s:{s:s, s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s}}}", "metadata", "name",
	    name, "uid", name, "creationTimestamp", "2026-01-02T03:04:05Z", "labels", LABEL_ID, id,
	    LABEL_TENANT, tenant, "annotations", ANNOTATION_DESIRED, desired, ANNOTATION_READY, "");
}

static void
put_rs(const char *name, const char *id, const char *tenant, const char *desired)
{
	json_t *v = replicaset(name, id, tenant, desired);

	kube_cache_apply(caches[0], v);
	json_decref(v);
}

static json_t *
running_pod(const char *name, const char *id, int restarts)
{
	return json_pack("{s:{s:s, s:s, s:s, s:{s:s}}, s:{s:s, s:s, s:[{s:s, s:i, s:{s:{}}}]}}",
	    "metadata", "name", name, "uid", name, "creationTimestamp", "2026-01-02T03:04:05Z",
	    "labels", LABEL_ID, id, "status", "phase", "Running", "podIP", "10.1.1.1",
	    "containerStatuses", "name", "sandbox", "restartCount", restarts, "state", "running");
}

static void
put_pod(const char *name, const char *id)
{
	json_t *v = running_pod(name, id, 0);

	kube_cache_apply(caches[1], v);
	json_decref(v);
}

static enum sandbox_state
state_of(const struct sandbox_view *v, const char *id)
{
	struct sandbox_entry entry;

	assert_true(sandbox_view_by_id(v, strv_of(id), &entry));
	return entry.state;
}

/* --- plain use --- */

TEST(joins_by_id_in_any_order)
{
	struct sandbox_view *v = open_view();
	struct sandbox_entry entry;

	assert_false(sandbox_view_by_id(v, STRV("a"), &entry));
	put_pod("p1", "a");
	assert_true(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_null(entry.sandbox);
	assert_int_equal(entry.pod_n, 1);
	assert_int_equal(entry.state, SANDBOX_DELETING);
	assert_int_equal(sandbox_view_count(v), 0);
	put_rs("sbx-a", "a", "t1", "running");
	assert_int_equal(state_of(v, "a"), SANDBOX_CREATING);
	assert_true(sandbox_view_by_name(v, STRV("sbx-a"), &entry));
	assert_string_equal(entry.sandbox->id, "a");
	assert_false(sandbox_view_by_name(v, STRV("sbx-b"), &entry));
	put_pod("p2", "a");
	put_pod("p3", "a");
	assert_true(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_int_equal(entry.pod_n, 3);
	put_rs("sbx-a", "a", "t1", "stopped");
	assert_int_equal(state_of(v, "a"), SANDBOX_PAUSING);
	kube_cache_forget(caches[1], STRV("p1"));
	kube_cache_forget(caches[1], STRV("p3"));
	assert_int_equal(state_of(v, "a"), SANDBOX_PAUSING);
	kube_cache_forget(caches[1], STRV("p2"));
	assert_int_equal(state_of(v, "a"), SANDBOX_PAUSED);
	kube_cache_forget(caches[0], STRV("sbx-a"));
	assert_false(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_int_equal(sandbox_view_count(v), 0);
	sandbox_view_free(v);
	sandbox_view_free(NULL);
}

TEST(counts_by_state_and_tenant)
{
	struct sandbox_view *v = open_view();

	put_rs("n1", "a", "pool", "warm");
	put_rs("n2", "b", "t1", "running");
	put_rs("n3", "c", "t1", "frozen");
	assert_int_equal(sandbox_view_count(v), 3);
	assert_int_equal(sandbox_view_count_tenant(v, STRV("pool")), 1);
	assert_int_equal(sandbox_view_count_tenant(v, STRV("t1")), 2);
	assert_int_equal(sandbox_view_count_tenant(v, STRV("none")), 0);
	assert_int_equal(sandbox_view_count_state(v, SANDBOX_WARMING), 1);
	put_rs("n1", "a", "t1", "running"); /* claimed */
	assert_int_equal(sandbox_view_count_tenant(v, STRV("pool")), 0);
	assert_int_equal(sandbox_view_count_tenant(v, STRV("t1")), 3);
	assert_int_equal(sandbox_view_count_state(v, SANDBOX_WARMING), 0);
	assert_int_equal(sandbox_view_count_state(v, SANDBOX_CREATING), 2);
	put_rs("n1", "a", "t1", "deleted"); /* on its way out: not the tenant's any more */
	assert_int_equal(sandbox_view_count_tenant(v, STRV("t1")), 2);
	assert_int_equal(sandbox_view_count(v), 3);
	kube_cache_forget(caches[0], STRV("n1"));
	kube_cache_forget(caches[0], STRV("n2"));
	kube_cache_forget(caches[0], STRV("n3"));
	assert_int_equal(sandbox_view_count_tenant(v, STRV("t1")), 0);
	for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
		assert_int_equal(sandbox_view_count_state(v, (enum sandbox_state)i), 0);
	sandbox_view_free(v);
}

/* Somebody copied a ReplicaSet with its labels: the older one is the sandbox. */
TEST(two_replicasets_with_one_id)
{
	struct sandbox_view *v = open_view();
	struct sandbox_entry entry;
	json_t *old;

	put_rs("n2", "a", "t2", "frozen");
	put_rs("n1", "a", "t1", "running");
	put_rs("n3", "a", "t3", "frozen");
	assert_true(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_string_equal(entry.sandbox->name, "n1");
	assert_int_equal(sandbox_view_count(v), 1);
	put_rs("n2", "a", "t2", "running");
	assert_int_equal(sandbox_view_count_tenant(v, STRV("t2")), 0);
	assert_false(sandbox_view_by_name(v, STRV("n2"), &entry));
	kube_cache_forget(caches[0], STRV("n1"));
	assert_true(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_string_equal(entry.sandbox->name, "n2");
	kube_cache_forget(caches[0], STRV("n3"));
	assert_true(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_string_equal(entry.sandbox->name, "n2");
	old = replicaset("n9", "a", "t9", "running");
	json_set_str(json_object_get(old, "metadata"), "creationTimestamp", "2025-01-01T00:00:00Z");
	kube_cache_apply(caches[0], old);
	json_decref(old);
	assert_true(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_string_equal(entry.sandbox->name, "n9");
	kube_cache_forget(caches[0], STRV("n9"));
	kube_cache_forget(caches[0], STRV("n2"));
	assert_false(sandbox_view_by_id(v, STRV("a"), &entry));
	sandbox_view_free(v);
}

TEST(labels_that_change)
{
	struct sandbox_view *v = open_view();
	struct sandbox_entry entry;

	put_rs("n1", "a", "t1", "running");
	put_pod("p1", "a");
	put_rs("n1", "b", "t1", "running");
	put_pod("p1", "b");
	assert_false(sandbox_view_by_id(v, STRV("a"), &entry));
	assert_true(sandbox_view_by_id(v, STRV("b"), &entry));
	assert_string_equal(entry.sandbox->name, "n1");
	assert_int_equal(entry.pod_n, 1);
	sandbox_view_free(v);
}

static int synced;

static void
on_synced(void *arg UNUSED)
{
	synced++;
}

TEST(synced_and_fresh)
{
	struct sandbox_view *v;

	caches_n = 0;
	v = sandbox_view_new(NULL, "ns", on_synced, NULL);
	assert_string_equal(caches[0]->conf.res->plural, "replicasets");
	assert_string_equal(caches[1]->conf.label_selector, "owner=agent-sandbox");
	assert_ptr_equal(sandbox_view_replicasets(v), caches[0]);
	assert_false(sandbox_view_synced(v));
	caches[1]->synced = true;
	caches[1]->conf.on_synced(caches[1]->conf.arg);
	assert_false(sandbox_view_synced(v));
	assert_int_equal(synced, 0);
	caches[0]->synced = true;
	caches[0]->conf.on_synced(caches[0]->conf.arg);
	assert_true(sandbox_view_synced(v));
	assert_int_equal(synced, 1);
	now = SECONDS(100);
	assert_true(sandbox_view_fresh(v, SECONDS(5)));
	caches[1]->connected = false;
	caches[1]->alive = SECONDS(90);
	assert_false(sandbox_view_fresh(v, SECONDS(5)));
	assert_true(sandbox_view_fresh(v, SECONDS(11)));
	sandbox_view_free(v);
}

/* --- subscribers --- */

#define ALL4 "0:a=creating 1:a=creating 2:a=creating 3:a=creating "

static char heard[256];

struct listener {
	struct view_sub sub, *kill;
	const char *name;
	bool apply;
};

static void
on_notice(struct strv id, const struct sandbox_entry *entry, void *arg)
{
	struct listener *l = arg;
	size_t n = strlen(heard);

	snprintf(heard + n, sizeof(heard) - n, "%s:" STRV_FMT "=%s%s ", l->name, STRV_ARG(id),
	    entry->sandbox ? sandbox_state_name(entry->state) : "none", entry->pod_n ? "+" : "");
	if (l->kill != NULL)
		sandbox_view_unsubscribe(l->kill);
	if (l->apply) {
		l->apply = false;
		kube_cache_forget(caches[0], STRV("n1"));
	}
}

static void
expect(const char *want)
{
	assert_string_equal(heard, want);
	heard[0] = '\0';
}

TEST(subscribers_hear_what_they_asked_for)
{
	struct sandbox_view *v = open_view();
	struct listener one = { .name = "one" }, all = { .name = "all" };
	struct view_sub zeroed = { 0 };

	sandbox_view_subscribe(v, &one.sub, STRV("a"), on_notice, &one);
	sandbox_view_subscribe(v, &all.sub, STRV_NONE, on_notice, &all);
	put_rs("n1", "a", "t", "running");
	expect("one:a=creating all:a=creating ");
	put_rs("n2", "b", "t", "frozen");
	expect("all:b=paused ");
	put_pod("p", "a");
	expect("one:a=creating+ all:a=creating+ ");
	sandbox_view_unsubscribe(&all.sub);
	sandbox_view_unsubscribe(&all.sub);
	sandbox_view_unsubscribe(&zeroed);
	kube_cache_forget(caches[0], STRV("n1"));
	expect("one:a=none+ ");
	kube_cache_forget(caches[1], STRV("p"));
	expect("one:a=none ");
	sandbox_view_free(v);
	sandbox_view_unsubscribe(&one.sub); /* the view is gone: nothing to do */
}

/* Four listen; the second ends one of them while all are being told. split: how many listen to the
 * id, the rest to all. */
static void
go_while_told(int victim, int split)
{
	static const char *const want[] = { ALL4, ALL4, "0:a=creating 1:a=creating 3:a=creating ",
		"0:a=creating 1:a=creating 2:a=creating " };
	struct listener l[4] = { { .name = "0" }, { .name = "1" }, { .name = "2" },
		{ .name = "3" } };
	struct sandbox_view *v = open_view();

	for (int i = 0; i < 4; i++)
		sandbox_view_subscribe(
		    v, &l[i].sub, i < split ? STRV("a") : STRV_NONE, on_notice, &l[i]);
	l[1].kill = &l[victim].sub;
	put_rs("n1", "a", "t", "running");
	expect(want[victim]);
	for (int i = 0; i < 4; i++)
		sandbox_view_unsubscribe(&l[i].sub);
	sandbox_view_free(v);
}

TEST(subscribers_may_go_while_being_told)
{
	for (int victim = 0; victim < 4; victim++) {
		go_while_told(victim, 0);
		go_while_told(victim, 2);
		go_while_told(victim, 4);
	}
}

/* A subscriber that writes: those after it hear the newest state, in both rounds. */
TEST(changes_inside_a_notice)
{
	struct sandbox_view *v = open_view();
	struct listener a = { .name = "a", .apply = true }, b = { .name = "b" };

	sandbox_view_subscribe(v, &a.sub, STRV("x"), on_notice, &a);
	sandbox_view_subscribe(v, &b.sub, STRV("x"), on_notice, &b);
	put_rs("n2", "y", "t", "running");
	put_rs("n1", "x", "t", "running");
	expect("a:x=creating a:x=none b:x=none b:x=none ");
	sandbox_view_unsubscribe(&a.sub);
	sandbox_view_unsubscribe(&b.sub);
	sandbox_view_free(v);
}

/* --- property: whatever the order of events, the view is the join of what the caches hold --- */

static uint32_t seed = 1;

static uint32_t
dice(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed % n;
}

static json_t *
random_rs(int i)
{
	static const char *const desired[] = { "running", "warm", "frozen", "stopped", "deleted" };
	char name[16], id[16], tenant[16], ready[32];
	json_t *v, *ann;

	snprintf(name, sizeof(name), "n%d", i);
	/* Sometimes two share an id, and sometimes the label changes. */
	snprintf(id, sizeof(id), "id%d", dice(20) == 0 ? (int)dice(8) : i);
	snprintf(tenant, sizeof(tenant), "t%u", dice(3));
	v = replicaset(name, id, tenant, desired[dice(5)]);
	ann = json_object_get(json_object_get(v, "metadata"), "annotations");
	snprintf(ready, sizeof(ready), "p%u/%u", dice(12), dice(2));
	if (dice(2))
		json_set_str(ann, ANNOTATION_READY, ready);
	if (dice(10) == 0)
		json_set_str(ann, ANNOTATION_FAILED, "it failed");
	if (dice(10) == 0)
		json_set_str(
		    json_object_get(v, "metadata"), "deletionTimestamp", "2026-01-02T03:04:05Z");
	return v;
}

static json_t *
random_pod(int i)
{
	char name[16], id[16];
	json_t *v;

	snprintf(name, sizeof(name), "p%d", i);
	snprintf(id, sizeof(id), "id%d", dice(20) == 0 ? (int)dice(8) : i % 8);
	v = running_pod(name, id, (int)dice(2));
	if (dice(4) == 0)
		json_object_del(json_object_get(v, "status"), "podIP");
	if (dice(4) == 0)
		json_set_str(
		    json_object_get(v, "metadata"), "deletionTimestamp", "2026-01-02T03:04:05Z");
	return v;
}

struct join {
	const char *id;
	const struct sandbox *sandbox;
	const struct pod *pods[16];
	size_t n;
};

static bool
join_rs(void *obj, void *arg)
{
	const struct sandbox *s = obj;
	struct join *j = arg;

	if (strcmp(s->id, j->id) == 0 &&
	    (j->sandbox == NULL || strcmp(s->name, j->sandbox->name) < 0))
		j->sandbox = s;
	return true;
}

static bool
join_pod(void *obj, void *arg)
{
	const struct pod *p = obj;
	struct join *j = arg;

	if (strcmp(p->sandbox_id, j->id) == 0)
		j->pods[j->n++] = p;
	return true;
}

static bool
count_one(const struct sandbox_entry *entry, void *arg)
{
	size_t *n = arg;

	assert_non_null(entry->sandbox);
	++*n;
	return true;
}

static void
check_view(const struct sandbox_view *v)
{
	size_t count = 0, by_state[SANDBOX_STATE_COUNT] = { 0 }, by_tenant[3] = { 0 }, seen = 0;

	for (int i = 0; i < 8; i++) {
		struct sandbox_entry entry;
		struct join j = { 0 };
		char id[16];

		snprintf(id, sizeof(id), "id%d", i);
		j.id = id;
		kube_cache_each(caches[0], join_rs, &j);
		kube_cache_each(caches[1], join_pod, &j);
		assert_int_equal(sandbox_view_by_id(v, strv_of(id), &entry), j.sandbox || j.n > 0);
		if (j.sandbox == NULL && j.n == 0)
			continue;
		assert_ptr_equal(entry.sandbox, j.sandbox);
		assert_int_equal(entry.pod_n, j.n);
		for (size_t a = 0; a < j.n; a++) {
			bool there = false;

			for (size_t b = 0; b < entry.pod_n; b++)
				there = there || entry.pods[b] == j.pods[a];
			assert_true(there);
		}
		if (j.sandbox == NULL)
			continue;
		assert_int_equal(entry.state, sandbox_state(j.sandbox, j.pods, j.n));
		count++;
		by_state[entry.state]++;
		by_tenant[j.sandbox->tenant[1] - '0'] += entry.state != SANDBOX_DELETING;
	}
	assert_int_equal(sandbox_view_count(v), count);
	sandbox_view_each(v, count_one, &seen);
	assert_int_equal(seen, count);
	for (int s = 0; s < SANDBOX_STATE_COUNT; s++)
		assert_int_equal(sandbox_view_count_state(v, (enum sandbox_state)s), by_state[s]);
	for (int t = 0; t < 3; t++) {
		char tenant[16];

		snprintf(tenant, sizeof(tenant), "t%d", t);
		assert_int_equal(sandbox_view_count_tenant(v, strv_of(tenant)), by_tenant[t]);
	}
}

/* Every notice must show what the caches hold at that moment. */
static size_t told;

static void
on_any(struct strv id, const struct sandbox_entry *entry, void *arg UNUSED)
{
	struct join j = { 0 };
	char text[SANDBOX_ID_MAX + 1];

	snprintf(text, sizeof(text), STRV_FMT, STRV_ARG(id));
	j.id = text;
	kube_cache_each(caches[0], join_rs, &j);
	kube_cache_each(caches[1], join_pod, &j);
	assert_ptr_equal(entry->sandbox, j.sandbox);
	assert_int_equal(entry->pod_n, j.n);
	told++;
}

static void
random_event(json_t **old, size_t old_n)
{
	int which = (int)dice(2), i = (int)dice(which ? 12 : 8);
	char name[16];
	json_t *v, **kept;

	snprintf(name, sizeof(name), "%c%d", which ? 'p' : 'n', i);
	if (dice(4) == 0) {
		kube_cache_forget(caches[which], strv_of(name)); /* also what is gone already */
		return;
	}
	/* Replays: an old version of some object comes again, out of order. */
	kept = &old[dice((uint32_t)old_n / 2) * 2 + (uint32_t)which];
	v = *kept != NULL && dice(3) == 0 ? json_incref(*kept)
	    : which                       ? random_pod(i)
	                                  : random_rs(i);
	kube_cache_apply(caches[which], v);
	if (dice(5) == 0)
		kube_cache_apply(caches[which], v); /* duplicate */
	json_decref(*kept);
	*kept = v;
}

TEST(random_orders_of_events)
{
	for (uint32_t round = 1; round <= 60; round++) {
		struct sandbox_view *v = open_view();
		json_t *old[32] = { 0 };
		struct view_sub sub;

		seed = round * 2654435761u;
		told = 0;
		sandbox_view_subscribe(v, &sub, STRV_NONE, on_any, NULL);
		for (int step = 0; step < 300; step++) {
			random_event(old, ARRAY_LEN(old));
			check_view(v);
		}
		assert_true(told >= 150);
		for (size_t i = 0; i < ARRAY_LEN(old); i++)
			json_decref(old[i]);
		sandbox_view_unsubscribe(&sub);
		sandbox_view_free(v);
	}
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED
#endif

/* The view's part of the memory for a sandbox. */
TEST(memory)
{
	enum { N = 20000 };
	static void *all[N];
	struct sandbox_view *v;
	size_t before, used;
	struct err e;

#ifdef SANITIZED
	skip();
#endif
	if (t_valgrind())
		skip();
	v = open_view();
	for (int i = 0; i < N; i++) {
		char id[SANDBOX_ID_LEN + 1];
		json_t *rs;

		sandbox_id_new(id);
		rs = replicaset(id, id, "tenant", "stopped");
		all[i] = caches[0]->conf.decode(rs, &e, v);
		json_decref(rs);
	}
	before = mallinfo2().uordblks;
	for (int i = 0; i < N; i++)
		caches[0]->conf.on_change(KUBE_ADDED, NULL, all[i], v);
	used = mallinfo2().uordblks - before;
	assert_int_equal(sandbox_view_count(v), N);
	printf("%zu bytes each\n", used / N);
	assert_true(used / N <= 56);
	for (int i = 0; i < N; i++) {
		caches[0]->conf.on_change(KUBE_DELETED, NULL, all[i], v);
		caches[0]->conf.release(all[i]);
	}
	assert_int_equal(sandbox_view_count(v), 0);
	sandbox_view_free(v);
}

T_MAIN(T(joins_by_id_in_any_order), T(counts_by_state_and_tenant), T(two_replicasets_with_one_id),
    T(labels_that_change), T(synced_and_fresh), T(subscribers_hear_what_they_asked_for),
    T(subscribers_may_go_while_being_told), T(changes_inside_a_notice), T(random_orders_of_events),
    T(memory))
