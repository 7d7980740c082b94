/* See cluster.h. */
#include "fake/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/rand.h"
#include "http/http_msg.h"
#include "http/http_server.h"

#define NS "ns"
#define BODY_MAX (4 * 1024 * 1024)
#define HISTORY_MAX 4096
#define FAULTS_MAX 16
#define COUNTS_MAX 64
#define WORD_MAX 64

TAILQ_HEAD(call_list, call);

/* One request, until it is answered; a watch until it ends. */
struct call {
	TAILQ_ENTRY(call) link;
	struct cluster *f;
	struct http_req *r;
	const char *method; /* "GET", "watch" … */
	char plural[WORD_MAX], name[256];
	char *label, *field; /* selectors, decoded; NULL: none */
	char *group;         /* "apps/v1" or "v1", for answers */
	uint64_t since;      /* watch */
	json_t *body;
	struct call_list *in; /* where it waits: for its body, held, or watching; NULL: nowhere */
};

struct stored {
	char plural[WORD_MAX];
	json_t *obj;
};

struct past {
	uint64_t version;
	char plural[WORD_MAX];
	const char *type;
	json_t *obj;
};

struct cluster {
	struct loop *loop;
	struct http_server *server;
	int port;
	uint64_t version, oldest; /* oldest: watches from before it are too old */
	struct stored *stored;
	size_t n, cap;
	struct past past[HISTORY_MAX];
	size_t past_n;
	struct call_list waiting, held, watches;
	const char *hold_method, *hold_plural; /* NULL: nothing is held */
	struct cluster_fault fault[FAULTS_MAX];
	size_t fault_n;
	struct {
		char method[8], plural[WORD_MAX];
		unsigned n;
	} count[COUNTS_MAX];
	size_t count_n;
	void (*on_change)(const char *plural, const json_t *obj, bool deleted, void *arg);
	void *arg;
	struct past told[64]; /* what on_change has not heard yet */
	size_t told_n;
	struct defer tell;
};

/* --- store --- */

static struct stored *
find(const struct cluster *f, const char *plural, const char *name)
{
	for (size_t i = 0; i < f->n; i++) {
		struct stored *s = &f->stored[i];

		if (strcmp(s->plural, plural) == 0 &&
		    strcmp(json_get_str(s->obj, "metadata.name"), name) == 0)
			return s;
	}
	return NULL;
}

const json_t *
cluster_get(const struct cluster *f, const char *plural, const char *name)
{
	const struct stored *s = find(f, plural, name);

	return s != NULL ? s->obj : NULL;
}

size_t
cluster_count(const struct cluster *f, const char *plural)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += strcmp(f->stored[i].plural, plural) == 0;
	return n;
}

const json_t *
cluster_first(const struct cluster *f, const char *plural)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->stored[i].plural, plural) == 0)
			return f->stored[i].obj;
	return NULL;
}

static bool
label_matches(const json_t *obj, struct strv selector)
{
	const json_t *labels = json_get_obj(obj, "metadata.labels");

	while (selector.n > 0) {
		struct strv one = strv_cut(selector, ',', &selector), value;
		CLEANUP(xfreep) char *key = strv_dup(strv_cut(one, '=', &value));
		const char *have = json_member_str(labels, key);

		if (have == NULL || !strv_is(value, have))
			return false;
	}
	return true;
}

static bool
selected(const struct call *c, const char *plural, const json_t *obj)
{
	struct strv name = STRV_NONE;

	if (strcmp(c->plural, plural) != 0)
		return false;
	if (c->field != NULL)
		strv_cut(strv_of(c->field), '=', &name);
	return (c->field == NULL || strv_is(name, json_get_str(obj, "metadata.name"))) &&
	    label_matches(obj, strv_of(c->label));
}

static void
send_event(struct call *watch, const char *type, const json_t *obj)
{
	json_t *event = json_pack("{s:s, s:O}", "type", type, "object", obj);
	char *text = json_text(event);

	http_reply_write(watch->r, text, strlen(text));
	http_reply_write(watch->r, "\n", 1);
	xfree(text);
	json_decref(event);
}

static void
happened(struct cluster *f, const char *type, const char *plural, const json_t *obj)
{
	struct call *w, *next;
	struct past *p;

	BUG_ON(f->past_n == HISTORY_MAX);
	p = &f->past[f->past_n++];
	p->version = f->version;
	p->type = type;
	(void)snprintf(p->plural, sizeof(p->plural), "%s", plural);
	p->obj = json_deep_copy(obj);
	TAILQ_FOREACH_SAFE (w, &f->watches, link, next)
		if (selected(w, plural, obj))
			send_event(w, type, p->obj);
}

static json_t *
meta_of(json_t *obj)
{
	json_t *meta = json_object_get(obj, "metadata");

	BUG_ON(!json_is_object(meta));
	return meta;
}

static void
new_version(struct cluster *f, json_t *obj)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)++f->version);
	json_set_str(meta_of(obj), "resourceVersion", text);
}

const json_t *
cluster_put(struct cluster *f, const char *plural, json_t *obj)
{
	json_t *meta = meta_of(obj);
	struct stored *s = find(f, plural, json_get_str(obj, "metadata.name"));
	char uuid[UUID_TEXT], now[TIME_TEXT_MAX];
	const char *type = s != NULL ? "MODIFIED" : "ADDED";

	if (json_object_get(meta, "uid") == NULL) {
		rand_uuid(uuid);
		json_set_str(meta, "uid", s != NULL ? json_get_str(s->obj, "metadata.uid") : uuid);
	}
	if (json_object_get(meta, "creationTimestamp") == NULL) {
		time_format(clock_wall(), 0, now);
		json_set_str(meta, "creationTimestamp", now);
	}
	json_set_str(meta, "namespace", NS);
	new_version(f, obj);
	if (s == NULL) {
		if (f->n == f->cap) {
			f->cap = f->cap > 0 ? f->cap * 2 : 64;
			f->stored = xrealloc(f->stored, f->cap * sizeof(*f->stored));
		}
		s = &f->stored[f->n++];
		(void)snprintf(s->plural, sizeof(s->plural), "%s", plural);
		s->obj = NULL;
	}
	json_decref(s->obj);
	s->obj = obj;
	happened(f, type, plural, obj);
	return obj;
}

/* RFC 7386 */
static void
merge(json_t *into, const json_t *patch)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)patch, key, value) {
		json_t *have = json_object_get(into, key);

		if (json_is_null(value)) {
			json_object_del(into, key);
		} else if (!json_is_object(value)) {
			json_object_set_new(into, key, json_deep_copy(value));
		} else {
			if (!json_is_object(have)) {
				have = json_object();
				json_object_set_new(into, key, have);
			}
			merge(have, value);
		}
	}
}

const json_t *
cluster_merge(struct cluster *f, const char *plural, const char *name, json_t *patch)
{
	struct stored *s = find(f, plural, name);
	json_t *copy;

	BUG_ON(s == NULL);
	copy = json_deep_copy(s->obj);
	merge(copy, patch);
	json_decref(patch);
	return cluster_put(f, plural, copy);
}

void
cluster_remove(struct cluster *f, const char *plural, const char *name)
{
	struct stored *s = find(f, plural, name);
	json_t *obj;

	if (s == NULL)
		return;
	obj = s->obj;
	memmove(s, s + 1, (size_t)(f->stored + f->n - (s + 1)) * sizeof(*s));
	f->n--;
	new_version(f, obj);
	happened(f, "DELETED", plural, obj);
	json_decref(obj);
}

/* --- what clients write is told at the end of the turn --- */

static void
tell(void *arg)
{
	struct cluster *f = arg;

	for (size_t i = 0; i < f->told_n; i++) {
		struct past p = f->told[i];

		if (f->on_change != NULL)
			f->on_change(p.plural, p.obj, p.type != NULL, f->arg);
		json_decref(p.obj);
	}
	f->told_n = 0;
}

static void
tell_later(struct cluster *f, const char *plural, const json_t *obj, bool deleted)
{
	struct past *p = &f->told[f->told_n];

	BUG_ON(f->told_n++ == ARRAY_LEN(f->told));
	(void)snprintf(p->plural, sizeof(p->plural), "%s", plural);
	p->obj = json_deep_copy(obj);
	p->type = deleted ? "DELETED" : NULL;
	loop_defer(f->loop, &f->tell);
}

void
cluster_on_change(struct cluster *f,
    void (*fn)(const char *plural, const json_t *obj, bool deleted, void *arg), void *arg)
{
	f->on_change = fn;
	f->arg = arg;
}

/* --- answers --- */

static void
call_move(struct call *c, struct call_list *to)
{
	if (c->in != NULL)
		TAILQ_REMOVE(c->in, c, link);
	if (to != NULL)
		TAILQ_INSERT_TAIL(to, c, link);
	c->in = to;
}

static void
call_free(struct call *c)
{
	call_move(c, NULL);
	json_decref(c->body);
	xfree(c->label);
	xfree(c->field);
	xfree(c->group);
	xfree(c);
}

static void
answer(struct call *c, int status, const json_t *body, int retry_after)
{
	struct http_field fields[2] = { { STRV("Content-Type"), STRV("application/json") } };
	char *text = json_text(body), number[16];
	size_t n = 1;

	if (retry_after > 0) {
		(void)snprintf(number, sizeof(number), "%d", retry_after);
		fields[n++] = (struct http_field){ STRV("Retry-After"), strv_of(number) };
	}
	http_reply(c->r, status, fields, n, strv_of(text));
	xfree(text);
	call_free(c);
}

static void
answer_status(struct call *c, int status, const char *reason, const char *message, int retry_after)
{
	json_t *body = json_pack("{s:s, s:s, s:s, s:s, s:i}", "kind", "Status", "status", "Failure",
	    "reason", reason != NULL ? reason : "", "message", message != NULL ? message : "",
	    "code", status);

	answer(c, status, body, retry_after);
	json_decref(body);
}

static void
do_list(struct call *c)
{
	struct cluster *f = c->f;
	json_t *body, *items = json_array();
	char version[24];

	for (size_t i = 0; i < f->n; i++)
		if (selected(c, f->stored[i].plural, f->stored[i].obj))
			json_array_append(items, f->stored[i].obj);
	(void)snprintf(version, sizeof(version), "%llu", (unsigned long long)f->version);
	body = json_pack("{s:s, s:s, s:{s:s}, s:o}", "kind", "List", "apiVersion", c->group,
	    "metadata", "resourceVersion", version, "items", items);
	answer(c, 200, body, 0);
	json_decref(body);
}

static void
do_get(struct call *c)
{
	const struct stored *s = find(c->f, c->plural, c->name);

	if (c->name[0] == '\0')
		do_list(c);
	else if (s == NULL)
		answer_status(c, 404, "NotFound", "not found", 0);
	else
		answer(c, 200, s->obj, 0);
}

static void
do_watch(struct call *c)
{
	const struct http_field type = { STRV("Content-Type"), STRV("application/json") };
	struct cluster *f = c->f;

	if (c->since < f->oldest) {
		answer_status(c, 410, "Expired", "too old resource version", 0);
		return;
	}
	http_reply_start(c->r, 200, &type, 1, -1);
	call_move(c, &f->watches);
	for (size_t i = 0; i < f->past_n; i++)
		if (f->past[i].version > c->since && selected(c, f->past[i].plural, f->past[i].obj))
			send_event(c, f->past[i].type, f->past[i].obj);
}

static void
do_post(struct call *c)
{
	const char *name = json_get_str(c->body, "metadata.name");
	const json_t *made;

	if (name == NULL) {
		answer_status(c, 422, "Invalid", "no name", 0);
	} else if (find(c->f, c->plural, name) != NULL) {
		answer_status(c, 409, "AlreadyExists", "already exists", 0);
	} else {
		made = cluster_put(c->f, c->plural, json_deep_copy(c->body));
		tell_later(c->f, c->plural, made, false);
		answer(c, 201, made, 0);
	}
}

/* A precondition of a patch or delete that does not hold. */
static bool
differs(const json_t *obj, const char *path, const json_t *wanted, const char *key)
{
	const char *want = json_get_str(wanted, key), *have = json_get_str(obj, path);

	return want != NULL && (have == NULL || strcmp(want, have) != 0);
}

static bool
precondition_fails(const json_t *obj, const json_t *wanted)
{
	return differs(obj, "metadata.uid", wanted, "uid") ||
	    differs(obj, "metadata.resourceVersion", wanted, "resourceVersion");
}

static void
do_patch(struct call *c)
{
	const struct stored *s = find(c->f, c->plural, c->name);
	const json_t *made;

	if (s == NULL) {
		answer_status(c, 404, "NotFound", "not found", 0);
	} else if (precondition_fails(s->obj, json_get_obj(c->body, "metadata"))) {
		answer_status(c, 409, "Conflict", "the object has been modified", 0);
	} else {
		made = cluster_merge(c->f, c->plural, c->name, json_deep_copy(c->body));
		tell_later(c->f, c->plural, made, false);
		answer(c, 200, made, 0);
	}
}

static void
do_delete(struct call *c)
{
	const struct stored *s = find(c->f, c->plural, c->name);
	json_t *was;

	if (s == NULL) {
		answer_status(c, 404, "NotFound", "not found", 0);
	} else if (precondition_fails(s->obj, json_get_obj(c->body, "preconditions"))) {
		answer_status(c, 409, "Conflict", "a precondition failed", 0);
	} else {
		was = json_incref(s->obj);
		cluster_remove(c->f, c->plural, c->name);
		tell_later(c->f, c->plural, was, true);
		answer(c, 200, was, 0);
		json_decref(was);
	}
}

/* --- faults --- */

void
cluster_fail(struct cluster *f, const struct cluster_fault *fault)
{
	BUG_ON(f->fault_n == FAULTS_MAX);
	f->fault[f->fault_n++] = *fault;
}

void
cluster_no_faults(struct cluster *f)
{
	f->fault_n = 0;
}

static struct cluster_fault *
find_fault(struct cluster *f, const struct call *c)
{
	for (size_t i = 0; i < f->fault_n; i++) {
		struct cluster_fault *x = &f->fault[i];

		if (x->times > 0 && strcmp(x->method, c->method) == 0 &&
		    strcmp(x->plural, c->plural) == 0)
			return x;
	}
	return NULL;
}

/* The write is done, its answer thrown away. */
static void
do_silently(struct call *c)
{
	struct cluster *f = c->f;
	const json_t *now = NULL;

	if (strcmp(c->method, "POST") == 0)
		now = cluster_put(f, c->plural, json_deep_copy(c->body));
	else if (strcmp(c->method, "PATCH") == 0 && find(f, c->plural, c->name) != NULL)
		now = cluster_merge(f, c->plural, c->name, json_deep_copy(c->body));
	else if (strcmp(c->method, "DELETE") == 0)
		cluster_remove(f, c->plural, c->name);
	if (now != NULL)
		tell_later(f, c->plural, now, false);
}

static void
fail_call(struct call *c, struct cluster_fault *x)
{
	x->times--;
	if (x->after)
		do_silently(c);
	if (x->status > 0) {
		answer_status(c, x->status, x->reason, x->message, x->retry_after);
		return;
	}
	http_reply_abort(c->r, "scripted");
	call_free(c);
}

static void
dispatch(struct call *c)
{
	static const struct {
		const char *method;
		void (*fn)(struct call *c);
	} table[] = {
		{ "GET", do_get },
		{ "watch", do_watch },
		{ "POST", do_post },
		{ "PATCH", do_patch },
		{ "DELETE", do_delete },
	};
	struct cluster_fault *x = find_fault(c->f, c);

	if (x != NULL) {
		fail_call(c, x);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (strcmp(table[i].method, c->method) == 0) {
			table[i].fn(c);
			return;
		}
	}
	answer_status(c, 405, "MethodNotAllowed", c->method, 0);
}

void
cluster_hold(struct cluster *f, const char *method, const char *plural)
{
	f->hold_method = method;
	f->hold_plural = plural;
}

void
cluster_release(struct cluster *f)
{
	struct call *c;

	f->hold_method = NULL;
	while ((c = TAILQ_FIRST(&f->held)) != NULL) {
		call_move(c, NULL);
		dispatch(c);
	}
}

size_t
cluster_held(const struct cluster *f)
{
	const struct call *c;
	size_t n = 0;

	TAILQ_FOREACH (c, &f->held, link)
		n++;
	return n;
}

/* --- requests --- */

static void
count_call(struct cluster *f, const struct call *c)
{
	size_t i = 0;

	while (i < f->count_n &&
	    (strcmp(f->count[i].method, c->method) != 0 ||
	        strcmp(f->count[i].plural, c->plural) != 0))
		i++;
	if (i == f->count_n) {
		BUG_ON(f->count_n++ == COUNTS_MAX);
		(void)snprintf(f->count[i].method, sizeof(f->count[i].method), "%s", c->method);
		(void)snprintf(f->count[i].plural, sizeof(f->count[i].plural), "%s", c->plural);
	}
	f->count[i].n++;
}

unsigned
cluster_calls(const struct cluster *f, const char *method, const char *plural)
{
	for (size_t i = 0; i < f->count_n; i++)
		if (strcmp(f->count[i].method, method) == 0 &&
		    strcmp(f->count[i].plural, plural) == 0)
			return f->count[i].n;
	return 0;
}

static void
on_abort(struct http_req *r, const char *why UNUSED)
{
	call_free(r->arg);
}

static const struct http_req_ops call_ops = { .on_abort = on_abort };

static void
on_body(struct http_req *r, struct strv body, void *arg)
{
	struct call *c = arg;
	struct cluster *f = c->f;
	struct err e;

	call_move(c, NULL);
	r->ops = &call_ops;
	r->arg = c;
	count_call(f, c);
	if (body.n > 0 && json_parse(body, BODY_MAX, &c->body, &e) == -1) {
		answer_status(c, 400, "BadRequest", e.msg, 0);
		return;
	}
	if (f->hold_method != NULL && strcmp(f->hold_method, c->method) == 0 &&
	    strcmp(f->hold_plural, c->plural) == 0) {
		call_move(c, &f->held);
		return;
	}
	dispatch(c);
}

static char *
parameter(struct strv query, const char *name)
{
	struct strv raw;
	struct strbuf b;
	char *ret = NULL;

	if (!query_get(query, name, &raw) || raw.n == 0)
		return NULL;
	strbuf_init(&b, 4096);
	BUG_ON(url_decode(raw, true, &b) == -1 || strbuf_take(&b, &ret, NULL) == -1);
	return ret;
}

static void
copy_word(char *to, size_t size, struct strv v)
{
	BUG_ON(v.n >= size);
	memcpy(to, v.p != NULL ? v.p : "", v.n);
	to[v.n] = '\0';
}

/* /api/v1/namespaces/ns/<plural>[/<name>], /apis/<group>/<version>/namespaces/… */
static void
read_target(struct call *c, const struct http_head *h)
{
	static const char mark[] = "/namespaces/" NS "/";
	const char *at = memmem(h->path.p, h->path.n, mark, sizeof(mark) - 1);
	struct strv rest, group, watch;
	CLEANUP(xfreep) char *since = parameter(h->query, "resourceVersion");

	BUG_ON(at == NULL);
	strv_cut((struct strv){ h->path.p + 1, (size_t)(at - h->path.p) - 1 }, '/', &group);
	c->group = strv_dup(group);
	rest = (struct strv){ at + sizeof(mark) - 1,
		(size_t)(h->path.p + h->path.n - at) - (sizeof(mark) - 1) };
	copy_word(c->plural, sizeof(c->plural), strv_cut(rest, '/', &rest));
	copy_word(c->name, sizeof(c->name), strv_cut(rest, '/', &rest));
	c->label = parameter(h->query, "labelSelector");
	c->field = parameter(h->query, "fieldSelector");
	c->method = query_get(h->query, "watch", &watch) ? "watch" : http_method_name(h->method);
	if (since == NULL || strv_u64(strv_of(since), UINT64_MAX, &c->since) == -1)
		c->since = 0;
}

static void
on_request(struct http_req *r, const struct http_head *h, void *arg)
{
	struct cluster *f = arg;
	struct call *c = xcalloc(1, sizeof(*c));

	c->f = f;
	c->r = r;
	r->ops = &call_ops;
	r->arg = c;
	read_target(c, http_req_keep_head(r, h));
	call_move(c, &f->waiting);
	http_req_collect(r, BODY_MAX, on_body, c);
}

/* --- whole --- */

void
cluster_up(struct cluster *f)
{
	struct err e;
	char addr[32];

	BUG_ON(f->server != NULL);
	(void)snprintf(addr, sizeof(addr), "127.0.0.1:%d", f->port);
	BUG_ON(http_server_new(f->loop,
	           &(struct http_server_conf){ .on_request = on_request, .arg = f }, &f->server,
	           &e) == -1);
	BUG_ON(http_server_listen(f->server, addr, NULL, &f->port, &e) == -1);
}

void
cluster_down(struct cluster *f)
{
	http_server_free(f->server);
	f->server = NULL;
}

struct cluster *
cluster_new(struct loop *l)
{
	struct cluster *f = xcalloc(1, sizeof(*f));

	f->loop = l;
	f->version = 100;
	TAILQ_INIT(&f->waiting);
	TAILQ_INIT(&f->held);
	TAILQ_INIT(&f->watches);
	defer_init(&f->tell, tell, f);
	cluster_up(f);
	return f;
}

void
cluster_free(struct cluster *f)
{
	if (f == NULL)
		return;
	cluster_down(f);
	loop_undefer(f->loop, &f->tell);
	for (size_t i = 0; i < f->told_n; i++)
		json_decref(f->told[i].obj);
	for (size_t i = 0; i < f->n; i++)
		json_decref(f->stored[i].obj);
	for (size_t i = 0; i < f->past_n; i++)
		json_decref(f->past[i].obj);
	xfree(f->stored);
	xfree(f);
}

struct kube *
cluster_client(struct cluster *f)
{
	struct kube_config *config;
	struct kube *k;
	char text[512];
	struct err e;

	(void)snprintf(text, sizeof(text),
	    "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u, namespace: " NS
	    "}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\nusers: [{name: "
	    "u, "
	    "user: {}}]\n",
	    f->port);
	if (kube_config_parse(strv_of(text), ".", &config, &e) == -1 ||
	    kube_new(f->loop, config, &k, &e) == -1) {
		fprintf(stderr, "fake API server: %s\n", e.msg);
		BUG_ON(true);
	}
	return k;
}

static void
end_watches(struct cluster *f)
{
	struct call *c;

	while ((c = TAILQ_FIRST(&f->watches)) != NULL) {
		http_reply_end(c->r);
		call_free(c);
	}
}

void
cluster_expire_watches(struct cluster *f)
{
	end_watches(f);
	f->oldest = f->version + 1;
	f->version++;
}

void
cluster_bookmark(struct cluster *f)
{
	struct call *w;
	char version[24];
	json_t *obj;

	(void)snprintf(version, sizeof(version), "%llu", (unsigned long long)f->version);
	obj = json_pack("{s:{s:s}}", "metadata", "resourceVersion", version);
	TAILQ_FOREACH (w, &f->watches, link)
		send_event(w, "BOOKMARK", obj);
	json_decref(obj);
}
