/*
 * The join of two caches by sandbox id. Owns one small item per id, the counts by state and tenant
 * (kept as changes come), and the subscribers. Objects belong to the caches: an item points to them
 * and is told of every replacement before the old one is released.
 */
#include "domain/sandbox_view.h"

#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "domain/id_table.h"

/* How many sandboxes a tenant has. */
struct tally {
	size_t n;
};

/* Kept small: there is one for each sandbox. At least one of sandbox and pods is there, which also
 * holds the id. */
struct item {
	const struct sandbox *sandbox; /* NULL: only pods */
	union {
		const struct pod *one;   /* pod_n <= 1 */
		const struct pod **many; /* pod_n > 1 */
	} pods;
	uint32_t pod_n;
	uint16_t twins; /* further ReplicaSets with this id: someone copied one */
	uint8_t state;  /* enum sandbox_state */
};

TAILQ_HEAD(sub_list, view_sub);

/* A walk over a list of subscribers; unsubscribing moves every walk that stands there. */
struct walk {
	struct walk *outer;
	struct view_sub *next;
};

struct sandbox_view {
	struct kube *kube;
	struct kube_cache *replicasets, *pods;
	struct id_table items; /* of struct item */
	struct map *tallies;   /* tenant → struct tally */
	size_t count;          /* items with a ReplicaSet */
	size_t by_state[SANDBOX_STATE_COUNT];
	struct sub_list all;
	struct map *by_id; /* id → struct sub_list, never empty */
	struct walk *walk;
	void (*on_synced)(void *arg);
	void *arg;
};

/* --- items --- */

static const struct pod *const *
item_pods(const struct item *it)
{
	return it->pod_n > 1 ? it->pods.many : &it->pods.one;
}

static void
to_entry(const struct item *it, struct sandbox_entry *ret)
{
	*ret = (struct sandbox_entry){
		.sandbox = it->sandbox,
		.pod_n = it->pod_n,
		.pods = item_pods(it),
		.state = (enum sandbox_state)it->state,
	};
}

static struct strv
item_id(const void *object)
{
	const struct item *it = object;

	return strv_of(it->sandbox ? it->sandbox->id : item_pods(it)[0]->sandbox_id);
}

static void
item_free(void *arg)
{
	struct item *it = arg;

	if (it->pod_n > 1)
		xfree(it->pods.many);
	xfree(it);
}

/* Does the sandbox count for its tenant? Not any more once it is on its way out. */
static bool
has_owner(const struct item *it)
{
	return it->sandbox != NULL && it->state != SANDBOX_DELETING;
}

static void
tally_add(struct sandbox_view *v, const char *tenant)
{
	struct tally *t = map_get(v->tallies, strv_of(tenant));

	if (t == NULL) {
		t = xcalloc(1, sizeof(*t));
		map_set(v->tallies, strv_of(tenant), t);
	}
	t->n++;
}

static void
tally_sub(struct sandbox_view *v, const char *tenant)
{
	struct tally *t = map_get(v->tallies, strv_of(tenant));

	BUG_ON(t == NULL);
	if (--t->n > 0)
		return;
	map_del(v->tallies, strv_of(tenant));
	xfree(t);
}

/* Takes the item out of the counts before it changes: its sandbox is still the old one. */
static void
leave(struct sandbox_view *v, const struct item *it)
{
	if (it->sandbox == NULL)
		return;
	v->count--;
	v->by_state[it->state]--;
	if (has_owner(it))
		tally_sub(v, it->sandbox->tenant);
}

/* And puts it back with its state of now. */
static void
enter(struct sandbox_view *v, struct item *it)
{
	it->state = SANDBOX_DELETING;
	if (it->sandbox == NULL)
		return;
	it->state = (uint8_t)sandbox_state(it->sandbox, item_pods(it), it->pod_n);
	v->count++;
	v->by_state[it->state]++;
	if (has_owner(it))
		tally_add(v, it->sandbox->tenant);
}

/* --- subscribers --- */

static void
tell_list(struct sandbox_view *v, struct sub_list *list, struct strv id)
{
	struct walk w = { .outer = v->walk, .next = list ? TAILQ_FIRST(list) : NULL };

	v->walk = &w;
	while (w.next != NULL) {
		struct view_sub *sub = w.next;
		struct sandbox_entry entry = { .state = SANDBOX_DELETING };

		w.next = TAILQ_NEXT(sub, link);
		/* Looked up for each one: the one before may have changed it. */
		sandbox_view_by_id(v, id, &entry);
		sub->fn(id, &entry, sub->arg);
	}
	v->walk = w.outer;
}

static void
tell(struct sandbox_view *v, const char *id)
{
	char copy[SANDBOX_ID_MAX + 1]; /* id goes with its object, which a subscriber may replace */
	struct strv key = { copy, strlen(id) };

	BUG_ON(key.n > SANDBOX_ID_MAX);
	memcpy(copy, id, key.n + 1);
	tell_list(v, map_get(v->by_id, key), key);
	tell_list(v, &v->all, key);
}

void
sandbox_view_subscribe(struct sandbox_view *v, struct view_sub *sub, struct strv id,
    void (*fn)(struct strv id, const struct sandbox_entry *entry, void *arg), void *arg)
{
	struct sub_list *list = &v->all;

	BUG_ON(id.n > SANDBOX_ID_MAX);
	*sub = (struct view_sub){ .view = v, .fn = fn, .arg = arg };
	if (id.n > 0) {
		memcpy(sub->id, id.p, id.n);
		list = map_get(v->by_id, id);
		if (list == NULL) {
			list = xmalloc(sizeof(*list));
			TAILQ_INIT(list);
			map_set(v->by_id, id, list);
		}
	}
	TAILQ_INSERT_TAIL(list, sub, link);
}

void
sandbox_view_unsubscribe(struct view_sub *sub)
{
	struct sandbox_view *v = sub->view;
	struct strv id = strv_of(sub->id);
	struct sub_list *list;

	if (v == NULL)
		return;
	sub->view = NULL;
	for (struct walk *w = v->walk; w != NULL; w = w->outer) {
		if (w->next == sub)
			w->next = TAILQ_NEXT(sub, link);
	}
	list = id.n > 0 ? map_get(v->by_id, id) : &v->all;
	TAILQ_REMOVE(list, sub, link);
	if (id.n > 0 && TAILQ_EMPTY(list)) {
		map_del(v->by_id, id);
		xfree(list);
	}
}

/* --- ReplicaSets --- */

struct twin_search {
	const struct sandbox *gone, *best;
};

/* Of two with the same id the older one is the sandbox. */
static bool
before(const struct sandbox *a, const struct sandbox *b)
{
	if (a->created != b->created)
		return a->created < b->created;
	return strcmp(a->name, b->name) < 0;
}

static bool
twin_visit(void *obj, void *arg)
{
	struct twin_search *search = arg;
	const struct sandbox *s = obj;

	if (strcmp(s->id, search->gone->id) != 0 || strcmp(s->name, search->gone->name) == 0)
		return true;
	if (search->best == NULL || before(s, search->best))
		search->best = s;
	return true;
}

/* The next ReplicaSet with the id of one that goes. Looks at all; twins are an accident. */
static const struct sandbox *
find_twin(struct sandbox_view *v, const struct sandbox *gone)
{
	struct twin_search search = { .gone = gone };

	kube_cache_each(v->replicasets, twin_visit, &search);
	return search.best;
}

static void
sandbox_put(struct sandbox_view *v, const struct sandbox *s)
{
	struct item *it = id_table_get(&v->items, strv_of(s->id));

	if (it == NULL) {
		it = xcalloc(1, sizeof(*it));
		it->sandbox = s;
		id_table_add(&v->items, it);
		enter(v, it);
		return;
	}
	leave(v, it);
	if (it->sandbox == NULL || strcmp(it->sandbox->name, s->name) == 0) {
		it->sandbox = s;
	} else {
		it->twins++;
		if (before(s, it->sandbox))
			it->sandbox = s;
	}
	enter(v, it);
}

static void
sandbox_drop(struct sandbox_view *v, const struct sandbox *s)
{
	struct item *it = id_table_get(&v->items, strv_of(s->id));
	const struct sandbox *next;
	bool last;

	if (it == NULL || it->sandbox == NULL)
		return;
	next = it->sandbox;
	if (strcmp(next->name, s->name) == 0)
		next = it->twins > 0 ? find_twin(v, s) : NULL;
	leave(v, it);
	/* Out of the table while it still has its id. */
	last = next == NULL && it->pod_n == 0;
	if (last)
		id_table_del(&v->items, it);
	it->sandbox = next;
	if (it->twins > 0)
		it->twins--;
	enter(v, it);
	if (last)
		item_free(it);
}

/* A new version of a twin that is not the sandbox changes nothing here. */
static bool
is_shadowed(const struct sandbox_view *v, const struct sandbox *s)
{
	const struct item *it = id_table_get(&v->items, strv_of(s->id));

	return it != NULL && it->sandbox != NULL && strcmp(it->sandbox->name, s->name) != 0;
}

static void
on_replicaset(enum kube_change what, void *old, void *obj, void *arg)
{
	const struct sandbox *was = old, *s = obj;
	struct sandbox_view *v = arg;

	if (what == KUBE_DELETED) {
		sandbox_drop(v, s);
	} else if (what == KUBE_MODIFIED && was != NULL && strcmp(was->id, s->id) != 0) {
		sandbox_drop(v, was);
		sandbox_put(v, s);
		tell(v, was->id);
	} else if (what == KUBE_ADDED || !is_shadowed(v, s)) {
		sandbox_put(v, s);
	}
	tell(v, s->id);
}

/* --- pods --- */

static int
pod_index(const struct item *it, const struct pod *p)
{
	const struct pod *const *pods = item_pods(it);

	for (uint32_t i = 0; i < it->pod_n; i++) {
		if (strcmp(pods[i]->name, p->name) == 0)
			return (int)i;
	}
	return -1;
}

static void
pod_append(struct item *it, const struct pod *p)
{
	const struct pod **list;

	if (it->pod_n == 0) {
		it->pods.one = p;
	} else {
		list = xcalloc(it->pod_n + 1, sizeof(void *)); /* few pods, few changes */
		memcpy(list, item_pods(it), it->pod_n * sizeof(void *));
		list[it->pod_n] = p;
		if (it->pod_n > 1)
			xfree(it->pods.many);
		it->pods.many = list;
	}
	it->pod_n++;
}

static void
pod_remove(struct item *it, uint32_t i)
{
	const struct pod **many = it->pods.many;

	if (it->pod_n == 1) {
		it->pods.one = NULL;
	} else {
		many[i] = many[it->pod_n - 1];
		if (it->pod_n == 2) {
			it->pods.one = many[0];
			xfree(many);
		}
	}
	it->pod_n--;
}

static void
pod_put(struct sandbox_view *v, const struct pod *p)
{
	struct item *it = id_table_get(&v->items, strv_of(p->sandbox_id));
	int i;

	if (it == NULL) {
		it = xcalloc(1, sizeof(*it));
		pod_append(it, p);
		id_table_add(&v->items, it);
		enter(v, it);
		return;
	}
	i = pod_index(it, p);
	leave(v, it);
	if (i < 0)
		pod_append(it, p);
	else if (it->pod_n == 1)
		it->pods.one = p;
	else
		it->pods.many[i] = p;
	enter(v, it);
}

static void
pod_drop(struct sandbox_view *v, const struct pod *p)
{
	struct item *it = id_table_get(&v->items, strv_of(p->sandbox_id));
	int i = it ? pod_index(it, p) : -1;
	bool last;

	if (i < 0)
		return;
	leave(v, it);
	last = it->sandbox == NULL && it->pod_n == 1;
	if (last)
		id_table_del(&v->items, it);
	pod_remove(it, (uint32_t)i);
	enter(v, it);
	if (last)
		item_free(it);
}

static void
on_pod(enum kube_change what, void *old, void *obj, void *arg)
{
	const struct pod *was = old, *p = obj;
	struct sandbox_view *v = arg;

	if (what == KUBE_DELETED) {
		pod_drop(v, p);
	} else {
		bool moved = was != NULL && strcmp(was->sandbox_id, p->sandbox_id) != 0;

		if (moved)
			pod_drop(v, was);
		pod_put(v, p);
		if (moved)
			tell(v, was->sandbox_id);
	}
	tell(v, p->sandbox_id);
}

/* --- caches --- */

static void *
decode_replicaset(const json_t *obj, struct err *e, void *arg UNUSED)
{
	struct sandbox *s;

	return sandbox_decode(obj, &s, e) == 0 ? s : NULL;
}

static void
release_replicaset(void *obj)
{
	sandbox_free(obj);
}

static void *
decode_pod(const json_t *obj, struct err *e, void *arg UNUSED)
{
	struct pod *p;

	return pod_decode(obj, &p, e) == 0 ? p : NULL;
}

static void
release_pod(void *obj)
{
	pod_free(obj);
}

static void
on_cache_synced(void *arg)
{
	struct sandbox_view *v = arg;
	void (*fn)(void *) = v->on_synced;

	if (fn == NULL || !sandbox_view_synced(v))
		return;
	v->on_synced = NULL;
	fn(v->arg);
}

struct sandbox_view *
sandbox_view_new(struct kube *k, const char *ns, void (*on_synced)(void *arg), void *arg)
{
	struct sandbox_view *v = xcalloc(1, sizeof(*v));
	struct kube_cache_conf conf = {
		.ns = ns,
		.label_selector = SELECTOR_OURS,
		.on_synced = on_cache_synced,
		.arg = v,
	};

	v->kube = k;
	id_table_init(&v->items, item_id);
	v->tallies = map_new();
	v->by_id = map_new();
	v->on_synced = on_synced;
	v->arg = arg;
	TAILQ_INIT(&v->all);
	conf.res = &KUBE_REPLICASETS;
	conf.decode = decode_replicaset;
	conf.release = release_replicaset;
	conf.on_change = on_replicaset;
	v->replicasets = kube_cache_new(k, &conf);
	conf.res = &KUBE_PODS;
	conf.decode = decode_pod;
	conf.release = release_pod;
	conf.on_change = on_pod;
	v->pods = kube_cache_new(k, &conf);
	return v;
}

static void
forget_subs(struct sub_list *list)
{
	struct view_sub *sub;

	while ((sub = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, sub, link);
		sub->view = NULL;
	}
}

static void
free_sub_list(void *arg)
{
	forget_subs(arg);
	xfree(arg);
}

void
sandbox_view_free(struct sandbox_view *v)
{
	if (v == NULL)
		return;
	BUG_ON(v->walk != NULL);
	forget_subs(&v->all);
	map_free(v->by_id, free_sub_list);
	kube_cache_free(v->replicasets);
	kube_cache_free(v->pods);
	id_table_done(&v->items, item_free);
	map_free(v->tallies, xfree);
	xfree(v);
}

bool
sandbox_view_synced(const struct sandbox_view *v)
{
	return v->replicasets != NULL && v->pods != NULL && kube_cache_synced(v->replicasets) &&
	    kube_cache_synced(v->pods);
}

static bool
cache_fresh(const struct sandbox_view *v, const struct kube_cache *c, int64_t within)
{
	return kube_cache_connected(c) ||
	    loop_now(kube_loop(v->kube)) - kube_cache_alive(c) < within;
}

bool
sandbox_view_fresh(const struct sandbox_view *v, int64_t within)
{
	return cache_fresh(v, v->replicasets, within) && cache_fresh(v, v->pods, within);
}

struct kube_cache *
sandbox_view_replicasets(struct sandbox_view *v)
{
	return v->replicasets;
}

/* --- reading --- */

bool
sandbox_view_by_id(const struct sandbox_view *v, struct strv id, struct sandbox_entry *ret)
{
	const struct item *it = id_table_get(&v->items, id);

	if (it == NULL)
		return false;
	to_entry(it, ret);
	return true;
}

bool
sandbox_view_by_name(const struct sandbox_view *v, struct strv name, struct sandbox_entry *ret)
{
	const struct sandbox *s = kube_cache_get(v->replicasets, name);
	const struct item *it = s ? id_table_get(&v->items, strv_of(s->id)) : NULL;

	/* A shadowed twin is not reachable by its name either. */
	if (it == NULL || it->sandbox == NULL || !strv_is(name, it->sandbox->name))
		return false;
	to_entry(it, ret);
	return true;
}

size_t
sandbox_view_count(const struct sandbox_view *v)
{
	return v->count;
}

size_t
sandbox_view_count_state(const struct sandbox_view *v, enum sandbox_state state)
{
	BUG_ON((unsigned)state >= SANDBOX_STATE_COUNT);
	return v->by_state[state];
}

size_t
sandbox_view_count_tenant(const struct sandbox_view *v, struct strv tenant)
{
	const struct tally *t = map_get(v->tallies, tenant);

	return t ? t->n : 0;
}

void
sandbox_view_each(const struct sandbox_view *v,
    bool (*fn)(const struct sandbox_entry *entry, void *arg), void *arg)
{
	for (size_t i = 0; i < v->items.cap; i++) {
		const struct item *it = v->items.slot[i];
		struct sandbox_entry entry;

		if (it == NULL || it->sandbox == NULL)
			continue;
		to_entry(it, &entry);
		if (!fn(&entry, arg))
			return;
	}
}
