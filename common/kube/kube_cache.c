/*
 * The informer: a table of decoded objects kept equal to the server's by list and watch, with own
 * writes laid over it. What decides is always the resourceVersion, as a number: an older state
 * never replaces a newer one, whichever way it came. Must not know what the objects are.
 */
#include "kube/kube_cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/rand.h"
#include "kube/kube_list.h"
#include "kube/kube_metrics.h"
#include "kube/kube_obj.h"
#include "kube/kube_strip.h"
#include "kube/kube_watch.h"

#define PATH_MAX_LEN ((size_t)64 * 1024)
#define PAGE_DEFAULT 500
#define UID_LEN 16
#define GRAVES_MAX 65536
#define GRAVE_TIME SECONDS(600)
#define RELIST_GAP SECONDS(10) /* lists for 410 closer together than this are backed off */

/* One object. obj NULL: this version could not be decoded, so the object counts as absent; the
 * entry stays so that it is said once per version. */
struct entry {
	uint64_t version;
	unsigned char uid[UID_LEN];
	uint32_t list; /* number of the last list that had it */
	void *obj;
};

/* A name whose object was forgotten before the watch said so. */
struct grave {
	TAILQ_ENTRY(grave) link;
	unsigned char uid[UID_LEN];
	int64_t since;
	char name[];
};
TAILQ_HEAD(grave_list, grave);

struct kube_cache {
	struct kube *k;
	struct loop *loop;
	struct kube_cache_conf conf;
	const struct kube_watch_tuning *t;
	char *path; /* of the collection, with selectors */
	struct map *entries;
	struct map *graves;
	struct grave_list grave_order; /* oldest first */
	struct kube_list *list;        /* NULL: not listing */
	bool list_spoiled;             /* an item of it could not be read */
	struct kube_watch *watch;      /* NULL: not watching */
	struct strbuf scratch;         /* of kube_strip */
	struct timer relist;
	struct kube_backoff backoff;
	uint32_t list_no;
	int64_t listed_at;
	uint64_t version; /* everything up to it was seen */
	bool synced, connected;
	int64_t alive;
	/* Replaced objects live until the end of the turn, since getters lend them. */
	void **dead;
	size_t n_dead, cap_dead;
	struct defer bury;
};

/* --- releasing --- */

static void
bury(void *arg)
{
	struct kube_cache *c = arg;

	for (size_t i = 0; i < c->n_dead; i++)
		c->conf.release(c->dead[i]);
	c->n_dead = 0;
	if (c->cap_dead > 4096) {
		xfree(c->dead);
		c->dead = NULL;
		c->cap_dead = 0;
	}
}

static void
release_later(struct kube_cache *c, void *obj)
{
	if (obj == NULL)
		return;
	if (c->n_dead == c->cap_dead) {
		c->cap_dead = c->cap_dead > 0 ? c->cap_dead * 2 : 64;
		c->dead = xrealloc(c->dead, c->cap_dead * sizeof(*c->dead));
	}
	c->dead[c->n_dead++] = obj;
	loop_defer(c->loop, &c->bury);
}

/* --- uids and graves --- */

/* 32 hex digits with any dashes as 16 bytes; anything else as a hash. */
static void
uid_bytes(const char *text, unsigned char uid[UID_LEN])
{
	struct strv s = strv_of(text);
	char hex[2 * UID_LEN];
	size_t n = 0;
	uint64_t h;

	for (size_t i = 0; i < s.n && n <= sizeof(hex); i++) {
		if (s.p[i] == '-')
			continue;
		if (n < sizeof(hex))
			hex[n] = s.p[i];
		n++;
	}
	if (n == sizeof(hex) && hex_decode((struct strv){ hex, n }, uid, UID_LEN) == 0)
		return;
	memset(uid, 0, UID_LEN);
	h = map_hash(s.p, s.n);
	memcpy(uid, &h, sizeof(h));
}

static void
grave_del(struct kube_cache *c, struct grave *g)
{
	TAILQ_REMOVE(&c->grave_order, g, link);
	map_del(c->graves, strv_of(g->name));
	xfree(g);
}

static void
grave_add(struct kube_cache *c, struct strv name, const unsigned char uid[UID_LEN])
{
	struct grave *g = map_get(c->graves, name);

	if (g != NULL)
		grave_del(c, g);
	if (map_count(c->graves) >= GRAVES_MAX)
		grave_del(c, TAILQ_FIRST(&c->grave_order));
	g = xcalloc(1, sizeof(*g) + name.n + 1);
	memcpy(g->name, name.p, name.n);
	memcpy(g->uid, uid, UID_LEN);
	g->since = loop_now(c->loop);
	map_set(c->graves, name, g);
	TAILQ_INSERT_TAIL(&c->grave_order, g, link);
}

static bool
is_buried(struct kube_cache *c, struct strv name, const unsigned char uid[UID_LEN])
{
	const struct grave *g = map_get(c->graves, name);

	return g != NULL && memcmp(g->uid, uid, UID_LEN) == 0;
}

/* The DELETED event of a forgotten object came. */
static void
grave_close(struct kube_cache *c, struct strv name, const unsigned char uid[UID_LEN])
{
	if (is_buried(c, name, uid))
		grave_del(c, map_get(c->graves, name));
}

static void
graves_expire(struct kube_cache *c)
{
	int64_t now = loop_now(c->loop);
	struct grave *g;

	while ((g = TAILQ_FIRST(&c->grave_order)) != NULL && now - g->since > GRAVE_TIME)
		grave_del(c, g);
}

/* --- the table --- */

/* What is read of an object before it is decoded. */
struct head {
	struct strv name;
	uint64_t version;
	unsigned char uid[UID_LEN];
};

static int
head_of(const json_t *obj, struct head *h)
{
	const char *uid = kube_obj_uid(obj);

	h->name = strv_of(kube_obj_name(obj));
	h->version = kube_obj_version_u64(obj);
	if (h->name.n == 0 || h->version == 0)
		return -1;
	uid_bytes(uid != NULL ? uid : "", h->uid);
	return 0;
}

/* Takes an entry out; the owner hears of it if there was an object. on_change may put in or take
 * out any entry, so none is known any more when this or entry_set_obj returns. */
static void
entry_remove(struct kube_cache *c, struct strv name, struct entry *en)
{
	void *obj = en->obj;

	map_del(c->entries, name);
	xfree(en);
	if (obj == NULL)
		return;
	c->conf.on_change(KUBE_DELETED, NULL, obj, c->conf.arg);
	release_later(c, obj);
}

/* Puts a decoded object (or NULL) in its entry and tells the owner what that means. */
static void
entry_set_obj(struct kube_cache *c, struct entry *en, void *obj)
{
	void *old = en->obj;

	en->obj = obj;
	if (obj != NULL)
		c->conf.on_change(old != NULL ? KUBE_MODIFIED : KUBE_ADDED, old, obj, c->conf.arg);
	else if (old != NULL)
		c->conf.on_change(KUBE_DELETED, NULL, old, c->conf.arg);
	release_later(c, old);
}

/* A state of an object from list, watch or own write. Older ones change nothing. Returns its entry,
 * NULL if it has none (any more: the owner may forget it inside on_change). */
static struct entry *
put(struct kube_cache *c, const json_t *json, const struct head *h)
{
	struct entry *en;
	struct err e = { .code = ERR_NONE };
	void *obj;

	if (is_buried(c, h->name, h->uid))
		return NULL;
	while ((en = map_get(c->entries, h->name)) != NULL) {
		if (h->version <= en->version)
			return en;
		if (memcmp(en->uid, h->uid, UID_LEN) == 0)
			break;
		entry_remove(c, h->name, en); /* deleted and made again meanwhile */
	}
	obj = c->conf.decode(json, &e, c->conf.arg);
	if (obj == NULL)
		log_warn("object left out: it cannot be read", log_s("kind", c->conf.res->kind),
		    log_v("name", h->name), log_err(&e));
	if (en == NULL) {
		en = xcalloc(1, sizeof(*en));
		memcpy(en->uid, h->uid, UID_LEN);
		map_set(c->entries, h->name, en);
	}
	en->version = h->version;
	entry_set_obj(c, en, obj);
	return map_get(c->entries, h->name);
}

/* A DELETED event. It carries the version of the deletion; if ours is newer, the event is one of an
 * earlier incarnation, or says that a since undone change took it out of the selector. */
static void
drop(struct kube_cache *c, const struct head *h)
{
	struct entry *en = map_get(c->entries, h->name);

	grave_close(c, h->name, h->uid);
	if (en != NULL && h->version >= en->version)
		entry_remove(c, h->name, en);
}

void
kube_cache_apply(struct kube_cache *c, const json_t *obj)
{
	struct head h;

	if (head_of(obj, &h) == -1)
		return;
	/* The watch is past this version and the object is not there: it is gone again. */
	if (h.version <= c->version && map_get(c->entries, h.name) == NULL)
		return;
	put(c, obj, &h);
}

void
kube_cache_forget(struct kube_cache *c, struct strv name)
{
	struct entry *en = map_get(c->entries, name);

	if (en == NULL)
		return;
	grave_add(c, name, en->uid);
	entry_remove(c, name, en);
}

/* --- listing --- */

static void list_start(void *arg);
static void watch_start(struct kube_cache *c, const char *version);

static void
relist_after(struct kube_cache *c, int64_t pause)
{
	kube_list_free(c->list);
	c->list = NULL;
	kube_watch_free(c->watch);
	c->watch = NULL;
	c->connected = false;
	timer_start(&c->relist, pause);
}

static void
on_list_item(struct strv text, void *arg)
{
	struct kube_cache *c = arg;
	CLEANUP(json_unrefp) json_t *obj = NULL;
	struct entry *en;
	struct err e;
	struct head h;

	c->alive = loop_now(c->loop);
	text = kube_strip(text, &c->scratch);
	if (json_parse(text, text.n, &obj, &e) == -1 || head_of(obj, &h) == -1) {
		c->list_spoiled = true;
		return;
	}
	en = put(c, obj, &h);
	/* Only a list marks: what an own write put in meanwhile may be gone by the list's version.
	 */
	if (en != NULL && memcmp(en->uid, h.uid, UID_LEN) == 0)
		en->list = c->list_no;
}

struct sweep {
	struct kube_cache *c;
	uint64_t version; /* of the list */
	char **names;     /* of entries that are gone */
	size_t n, cap;
};

/* Not in the list, and not newer than it: deleted while nobody watched. */
static bool
is_gone(const struct sweep *s, const struct entry *en)
{
	return en->list != s->c->list_no && en->version <= s->version;
}

static bool
sweep_note(struct strv name, void *value, void *arg)
{
	struct sweep *s = arg;

	if (!is_gone(s, value))
		return true;
	if (s->n == s->cap) {
		s->cap = s->cap > 0 ? s->cap * 2 : 16;
		s->names = xrealloc(s->names, s->cap * sizeof(*s->names));
	}
	s->names[s->n++] = xmemdup0(name.p, name.n);
	return true;
}

/* In two steps, since on_change may take any entry out of the table or put one in. */
static void
sweep(struct kube_cache *c, uint64_t version)
{
	struct sweep s = { .c = c, .version = version };

	map_each(c->entries, sweep_note, &s);
	for (size_t i = 0; i < s.n; i++) {
		struct strv name = strv_of(s.names[i]);
		struct entry *en = map_get(c->entries, name);

		if (en != NULL && is_gone(&s, en))
			entry_remove(c, name, en);
		xfree(s.names[i]);
	}
	xfree(s.names);
}

static void
on_list_failed(const struct err *e, void *arg)
{
	struct kube_cache *c = arg;

	metric_add(&kube_lists_total, err_name(e->code), 1);
	log_warn("list failed", log_s("kind", c->conf.res->kind), log_err(e));
	relist_after(c, kube_backoff_next(&c->backoff, loop_now(c->loop), e->retry_after));
}

static void
on_list_done(const char *version, void *arg)
{
	struct kube_cache *c = arg;
	uint64_t seen;
	struct err e;

	/* Without one item, its object would be taken for deleted. */
	if (c->list_spoiled || strv_u64(strv_of(version), UINT64_MAX, &seen) == -1) {
		err_set(&e, ERR_UNAVAILABLE, "the list has a malformed item or no version");
		on_list_failed(&e, c);
		return;
	}
	metric_add(&kube_lists_total, "ok", 1);
	strbuf_done(&c->scratch);
	strbuf_init(&c->scratch, KUBE_WATCH_LINE_MAX);
	c->version = seen;
	sweep(c, seen);
	c->listed_at = loop_now(c->loop);
	c->alive = c->listed_at;
	watch_start(c, version);
	kube_list_free(c->list);
	c->list = NULL;
	if (c->synced)
		return;
	c->synced = true;
	if (c->conf.on_synced != NULL)
		c->conf.on_synced(c->conf.arg);
}

static void
list_start(void *arg)
{
	static const struct kube_list_ops ops = {
		.on_item = on_list_item,
		.on_done = on_list_done,
		.on_failed = on_list_failed,
	};
	struct kube_cache *c = arg;

	c->list_no++;
	c->list_spoiled = false;
	c->list = kube_list_new(c->k, c->path, c->conf.page, c->t, &ops, c);
}

/* --- watching --- */

static void
on_watch_open(void *arg)
{
	struct kube_cache *c = arg;

	c->connected = true;
	c->alive = loop_now(c->loop);
}

static void
on_watch_down(void *arg)
{
	((struct kube_cache *)arg)->connected = false;
}

static void
on_watch_event(enum kube_change what, const json_t *obj, void *arg)
{
	struct kube_cache *c = arg;
	struct head h;

	if (head_of(obj, &h) == -1)
		return;
	if (what == KUBE_DELETED)
		drop(c, &h);
	else
		put(c, obj, &h);
}

static void
on_watch_version(uint64_t version, void *arg)
{
	struct kube_cache *c = arg;

	if (version > c->version)
		c->version = version;
	c->alive = loop_now(c->loop);
	graves_expire(c);
}

static void
on_watch_expired(const struct err *e, void *arg)
{
	struct kube_cache *c = arg;
	int64_t now = loop_now(c->loop), pause = 0;

	log_debug("watch over, listing again", log_s("kind", c->conf.res->kind), log_err(e));
	if (e->code != ERR_GONE || now - c->listed_at < RELIST_GAP)
		pause = kube_backoff_next(&c->backoff, now, e->retry_after);
	relist_after(c, pause);
}

static void
watch_start(struct kube_cache *c, const char *version)
{
	static const struct kube_watch_ops ops = {
		.on_open = on_watch_open,
		.on_down = on_watch_down,
		.on_event = on_watch_event,
		.on_version = on_watch_version,
		.on_expired = on_watch_expired,
	};

	c->watch = kube_watch_new(c->k, c->path, version, c->t, &ops, c);
}

/* --- whole --- */

static char *
make_path(const struct kube_cache_conf *conf)
{
	char *base = kube_path(conf->res, conf->ns, NULL, NULL);
	char *ret = NULL;
	struct strbuf b;

	strbuf_init(&b, PATH_MAX_LEN);
	strbuf_addf(&b, "%s?", base);
	if (conf->label_selector != NULL) {
		strbuf_adds(&b, "labelSelector=");
		strbuf_add_url(&b, strv_of(conf->label_selector));
	}
	if (conf->field_selector != NULL) {
		strbuf_adds(
		    &b, conf->label_selector != NULL ? "&fieldSelector=" : "fieldSelector=");
		strbuf_add_url(&b, strv_of(conf->field_selector));
	}
	if (b.p[b.n - 1] == '?')
		b.p[--b.n] = '\0';
	BUG_ON(strbuf_take(&b, &ret, NULL) == -1);
	xfree(base);
	return ret;
}

struct kube_cache *
kube_cache_new(struct kube *k, const struct kube_cache_conf *conf)
{
	struct kube_cache *c = xcalloc(1, sizeof(*c));

	c->k = k;
	c->loop = kube_loop(k);
	c->conf = *conf;
	c->conf.ns = c->conf.label_selector = c->conf.field_selector = NULL; /* path has them */
	if (c->conf.page == 0)
		c->conf.page = PAGE_DEFAULT;
	c->t = conf->tuning != NULL ? conf->tuning : &kube_watch_defaults;
	c->path = make_path(conf);
	c->entries = map_new();
	c->graves = map_new();
	TAILQ_INIT(&c->grave_order);
	strbuf_init(&c->scratch, KUBE_WATCH_LINE_MAX);
	timer_init(&c->relist, c->loop, list_start, c);
	defer_init(&c->bury, bury, c);
	kube_backoff_init(&c->backoff, c->t);
	list_start(c);
	return c;
}

static bool
free_entry(struct strv name UNUSED, void *value, void *arg)
{
	struct entry *en = value;
	struct kube_cache *c = arg;

	if (en->obj != NULL)
		c->conf.release(en->obj);
	en->obj = NULL;
	return true;
}

void
kube_cache_free(struct kube_cache *c)
{
	if (c == NULL)
		return;
	kube_list_free(c->list);
	kube_watch_free(c->watch);
	timer_stop(&c->relist);
	loop_undefer(c->loop, &c->bury);
	bury(c);
	map_each(c->entries, free_entry, c);
	map_free(c->entries, xfree);
	map_free(c->graves, xfree);
	strbuf_done(&c->scratch);
	xfree(c->dead);
	xfree(c->path);
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
	const struct entry *en = map_get(c->entries, name);

	return en != NULL ? en->obj : NULL;
}

struct each {
	bool (*fn)(void *obj, void *arg);
	void *arg;
};

static bool
each_one(struct strv name UNUSED, void *value, void *arg)
{
	const struct entry *en = value;
	const struct each *each = arg;

	return en->obj == NULL || each->fn(en->obj, each->arg);
}

void
kube_cache_each(struct kube_cache *c, bool (*fn)(void *obj, void *arg), void *arg)
{
	struct each each = { fn, arg };

	map_each(c->entries, each_one, &each);
}
