/*
 * The whole of common/kube against a real API server. Skips itself unless KUBE_TEST_CONFIG names a
 * kubeconfig with the right to make namespaces. Everything happens in a namespace of its own.
 */
#include "t.h"

#include <curl/curl.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/rand.h"
#include "kube/kube_cache.h"
#include "kube/kube_client.h"
#include "kube/kube_event.h"
#include "kube/kube_lease.h"
#include "kube/kube_obj.h"

static const struct kube_res NAMESPACES = { "", "v1", "namespaces", "Namespace" };

static struct loop *loop;
static struct kube *kube;
static char ns[32];

static int
setup(void **state UNUSED)
{
	struct kube_config *config;
	struct err e;

	loop = loop_new();
	assert_ok(e, kube_config_load(getenv("KUBE_TEST_CONFIG"), &config, &e));
	assert_ok(e, kube_new(loop, config, &kube, &e));
	memcpy(ns, "kube-live-", 10);
	rand_base36(ns + 10, 8);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	kube_free(kube);
	loop_free(loop);
	kube = NULL;
	loop = NULL;
	return 0;
}

/* --- one call, waited for --- */

struct result {
	bool done;
	int status;
	json_t *obj;
	struct err e;
};

static void
on_result(int status, const json_t *obj, const struct err *e, void *arg)
{
	struct result *r = arg;

	r->done = true;
	r->status = status;
	r->obj = json_deep_copy(obj);
	if (e != NULL)
		r->e = *e;
}

static void
wait_done(const bool *done)
{
	int64_t until = clock_mono() + SECONDS(60);

	while (!*done && clock_mono() < until)
		loop_once(loop, true);
	assert_true(*done);
}

static void
wait_result(struct result *r)
{
	assert_false(r->done); /* never inside the function that starts the call */
	wait_done(&r->done);
}

static void
drop_result(struct result *r)
{
	json_decref(r->obj);
	memset(r, 0, sizeof(*r));
}

static json_t *
config_map(const char *name, const char *value)
{
	json_t *o = json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:{s:s}}", "apiVersion", "v1", "kind",
	    "ConfigMap", "metadata", "name", name, "labels", "test", "yes", "data", "v", value);

	assert_non_null(o);
	return o;
}

static void
make_map(const char *name, const char *value, struct result *r)
{
	CLEANUP(json_unrefp) json_t *o = config_map(name, value);

	memset(r, 0, sizeof(*r));
	kube_create(kube, &KUBE_CONFIGMAPS, ns, o, false, on_result, r);
	wait_result(r);
	assert_string_equal(r->e.msg, "");
	assert_int_equal(r->status, 201);
}

TEST(namespace_is_made)
{
	struct result r = { 0 };
	CLEANUP(json_unrefp) json_t *o = NULL;

	o = json_pack(
	    "{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace", "metadata", "name", ns);
	kube_create(kube, &NAMESPACES, NULL, o, false, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.status, 201);
	drop_result(&r);
}

TEST(verbs_and_errors)
{
	struct result r = { 0 };
	CLEANUP(json_unrefp) json_t *o = config_map("verbs", "1");
	CLEANUP(json_unrefp) json_t *patch = json_pack("{s:{s:s}}", "data", "v", "2");
	CLEANUP(json_unrefp)
	json_t *stale =
	    json_pack("{s:{s:s}, s:{s:s}}", "metadata", "resourceVersion", "1", "data", "v", "3");
	struct kube_delete_opts wrong = { .uid = "00000000-0000-0000-0000-000000000000",
		.grace = -1 };

	kube_create(kube, &KUBE_CONFIGMAPS, ns, o, true, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.status, 201);
	drop_result(&r);
	kube_get(kube, &KUBE_CONFIGMAPS, ns, "verbs", on_result, &r);
	wait_result(&r);
	assert_int_equal(r.e.code, ERR_NOT_FOUND); /* the dry run stored nothing */
	drop_result(&r);
	make_map("verbs", "1", &r);
	drop_result(&r);
	kube_create(kube, &KUBE_CONFIGMAPS, ns, o, false, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.e.code, ERR_EXISTS);
	drop_result(&r);
	kube_patch(
	    kube, &KUBE_CONFIGMAPS, ns, "verbs", NULL, KUBE_PATCH_MERGE, patch, on_result, &r);
	wait_result(&r);
	assert_string_equal(json_get_str(r.obj, "data.v"), "2");
	drop_result(&r);
	kube_patch(
	    kube, &KUBE_CONFIGMAPS, ns, "verbs", NULL, KUBE_PATCH_MERGE, stale, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.e.code, ERR_CONFLICT);
	assert_int_equal(r.status, 409);
	drop_result(&r);
	kube_delete(kube, &KUBE_CONFIGMAPS, ns, "verbs", &wrong, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.e.code, ERR_CONFLICT);
	drop_result(&r);
	kube_delete(kube, &KUBE_CONFIGMAPS, ns, "verbs", NULL, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.status, 200);
	drop_result(&r);
	kube_raw(kube, "GET", "/version", NULL, on_result, &r);
	wait_result(&r);
	assert_non_null(json_get_str(r.obj, "gitVersion"));
	drop_result(&r);
}

TEST(apply_and_json_patch)
{
	struct result r = { 0 };
	CLEANUP(json_unrefp) json_t *o = config_map("applied", "1");
	CLEANUP(json_unrefp)
	json_t *ops =
	    json_pack("[{s:s, s:s, s:s}]", "op", "replace", "path", "/data/v", "value", "json");

	kube_patch(kube, &KUBE_CONFIGMAPS, ns, "applied", NULL, KUBE_PATCH_APPLY, o, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.status, 201);
	drop_result(&r);
	kube_patch(
	    kube, &KUBE_CONFIGMAPS, ns, "applied", NULL, KUBE_PATCH_JSON, ops, on_result, &r);
	wait_result(&r);
	assert_string_equal(json_get_str(r.obj, "data.v"), "json");
	drop_result(&r);
	kube_delete(kube, &KUBE_CONFIGMAPS, ns, "applied", NULL, on_result, &r);
	wait_result(&r);
	drop_result(&r);
}

/* --- cache --- */

struct changes {
	int n[3];
	bool synced;
	char last[64];
};

static void *
decode(const json_t *obj, struct err *e, void *arg UNUSED)
{
	const char *v = json_get_str(obj, "data.v");

	if (v == NULL || strcmp(v, "bad") == 0) {
		err_set(e, ERR_INVALID, "no value");
		return NULL;
	}
	return xstrdup(v);
}

static void
on_change(enum kube_change what, void *old UNUSED, void *obj, void *arg)
{
	struct changes *c = arg;

	c->n[what]++;
	snprintf(c->last, sizeof(c->last), "%s", (const char *)obj);
}

static void
on_synced(void *arg)
{
	((struct changes *)arg)->synced = true;
}

static void
wait_count(const int *n, int want)
{
	int64_t until = clock_mono() + SECONDS(30);

	while (*n < want && clock_mono() < until)
		loop_once(loop, true);
	assert_int_equal(*n, want);
}

static bool
count_one(void *obj UNUSED, void *arg)
{
	++*(int *)arg;
	return true;
}

static int
objects_in(struct kube_cache *c)
{
	int n = 0;

	kube_cache_each(c, count_one, &n);
	return n;
}

TEST(cache_lists_in_pages_and_watches)
{
	struct changes seen = { 0 };
	struct kube_cache_conf conf = {
		.res = &KUBE_CONFIGMAPS,
		.ns = ns,
		.label_selector = "test=yes",
		.page = 7,
		.decode = decode,
		.release = xfree,
		.on_change = on_change,
		.on_synced = on_synced,
		.arg = &seen,
	};
	CLEANUP(json_unrefp) json_t *patch = json_pack("{s:{s:s}}", "data", "v", "new");
	CLEANUP(json_unrefp)
	json_t *relabel = json_pack("{s:{s:{s:s}}}", "metadata", "labels", "test", "no");
	struct kube_cache *c;
	struct result r = { 0 };
	char name[32];
	int before;

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "m-%d", i);
		make_map(name, name, &r);
		drop_result(&r);
	}
	c = kube_cache_new(kube, &conf);
	assert_false(kube_cache_synced(c));
	wait_done(&seen.synced);
	assert_int_equal(seen.n[KUBE_ADDED], 50);
	assert_int_equal(objects_in(c), 50);
	assert_string_equal(kube_cache_get(c, STRV("m-49")), "m-49");

	make_map("late", "late", &r);
	kube_cache_apply(c, r.obj);
	assert_int_equal(seen.n[KUBE_ADDED], 51);
	drop_result(&r);
	kube_patch(
	    kube, &KUBE_CONFIGMAPS, ns, "late", NULL, KUBE_PATCH_MERGE, patch, on_result, &r);
	wait_result(&r);
	before = seen.n[KUBE_MODIFIED];
	kube_cache_apply(c, r.obj); /* unless the watch was first */
	assert_true(seen.n[KUBE_MODIFIED] - before <= 1);
	assert_string_equal(kube_cache_get(c, STRV("late")), "new");
	drop_result(&r);

	/* Out of the selector is DELETED too. */
	kube_patch(
	    kube, &KUBE_CONFIGMAPS, ns, "m-0", NULL, KUBE_PATCH_MERGE, relabel, on_result, &r);
	wait_result(&r);
	drop_result(&r);
	wait_count(&seen.n[KUBE_DELETED], 1);
	assert_null(kube_cache_get(c, STRV("m-0")));

	/* Deleted by us: gone at once, and the events on their way change nothing. */
	kube_delete(kube, &KUBE_CONFIGMAPS, ns, "m-1", NULL, on_result, &r);
	wait_result(&r);
	drop_result(&r);
	kube_cache_forget(c, STRV("m-1"));
	assert_int_equal(seen.n[KUBE_DELETED], 2);
	make_map("m-1", "again", &r);
	drop_result(&r);
	wait_count(&seen.n[KUBE_ADDED], 52);
	assert_string_equal(kube_cache_get(c, STRV("m-1")), "again");
	assert_int_equal(seen.n[KUBE_DELETED], 2);
	assert_true(kube_cache_connected(c));
	assert_int_equal(objects_in(c), 50);
	kube_cache_free(c);
}

/* --- lease and events --- */

struct lead {
	bool gained, lost, released;
};
static void
on_gained(void *arg)
{
	((struct lead *)arg)->gained = true;
}
static void
on_lost(void *arg)
{
	((struct lead *)arg)->lost = true;
}
static void
on_released(void *arg)
{
	((struct lead *)arg)->released = true;
}

TEST(lease_goes_from_one_to_the_next)
{
	struct lead a = { 0 }, b = { 0 };
	struct kube_lease_conf conf = {
		.ns = ns,
		.name = "lead",
		.identity = "a",
		.on_gained = on_gained,
		.on_lost = on_lost,
		.arg = &a,
		.retry = MILLIS(200),
	};
	struct kube_lease *la, *lb;
	int64_t t;

	la = kube_lease_new(kube, &conf);
	wait_done(&a.gained);
	assert_true(kube_lease_held(la));
	conf.identity = "b";
	conf.arg = &b;
	lb = kube_lease_new(kube, &conf);
	for (t = clock_mono(); clock_mono() - t < SECONDS(1);)
		loop_once(loop, true);
	assert_false(b.gained);
	assert_string_equal(kube_lease_holder(lb), "a");
	kube_lease_release(la, on_released, &a);
	assert_false(kube_lease_held(la));
	wait_done(&a.released);
	wait_done(&b.gained);
	assert_false(a.lost || b.lost);
	kube_lease_free(la);
	kube_lease_free(lb);
}

TEST(event_is_recorded_and_counted)
{
	struct kube_recorder *rec;
	struct result r = { 0 };
	struct kube_ref on = { &KUBE_CONFIGMAPS, ns, "m-2", "some-uid" };
	char path[128];
	const json_t *items;
	int64_t t;

	rec = kube_recorder_new(kube, "live-test", "one");
	kube_event(rec, &on, false, "Tested", "said %d", 1);
	for (t = clock_mono(); clock_mono() - t < MILLIS(200);)
		loop_once(loop, false);
	kube_event(rec, &on, false, "Tested", "said %d", 1);
	for (t = clock_mono(); clock_mono() - t < MILLIS(200);)
		loop_once(loop, false);
	snprintf(
	    path, sizeof(path), "/api/v1/namespaces/%s/events?fieldSelector=reason%%3DTested", ns);
	kube_raw(kube, "GET", path, NULL, on_result, &r);
	wait_result(&r);
	items = json_get_arr(r.obj, "items");
	assert_int_equal(json_array_size(items), 1);
	assert_int_equal(json_get_int(json_array_get(items, 0), "count", 0), 2);
	assert_string_equal(json_get_str(json_array_get(items, 0), "message"), "said 1");
	drop_result(&r);
	kube_recorder_free(rec);
}

/* --- what a conditional PATCH costs, beside one by a bare curl handle --- */

static size_t
keep_body(char *p, size_t size, size_t n, void *arg)
{
	strbuf_add(arg, p, size * n);
	return size * n;
}

static CURL *
bare_handle(struct strbuf *body)
{
	const struct kube_config *c = kube_conf(kube);
	CURL *h = curl_easy_init();
	struct curl_blob ca = { c->ca_pem, strlen(c->ca_pem), CURL_BLOB_COPY };
	struct curl_blob cert = { c->cert_pem, strlen(c->cert_pem), CURL_BLOB_COPY };
	struct curl_blob key = { c->key_pem, strlen(c->key_pem), CURL_BLOB_COPY };

	curl_easy_setopt(h, CURLOPT_CAINFO_BLOB, &ca);
	curl_easy_setopt(h, CURLOPT_SSLCERT_BLOB, &cert);
	curl_easy_setopt(h, CURLOPT_SSLKEY_BLOB, &key);
	curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, keep_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, body);
	return h;
}

static json_t *
patch_body(const char *version, int i)
{
	char value[16];

	snprintf(value, sizeof(value), "%d", i);
	return json_pack(
	    "{s:{s:s}, s:{s:s}}", "metadata", "resourceVersion", version, "data", "v", value);
}

/* One PATCH each way; returns its time and the new version in *version. */
static int64_t
bare_patch(CURL *h, struct strbuf *answer, const char *url, char version[32], int i)
{
	CLEANUP(json_unrefp) json_t *p = NULL, *obj = NULL;
	CLEANUP(xfreep) char *text = NULL;
	int64_t start = clock_mono();
	struct curl_slist *headers =
	    curl_slist_append(NULL, "Content-Type: application/merge-patch+json");
	struct err e;

	p = patch_body(version, i);
	text = json_text(p);
	strbuf_reset(answer);
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, "PATCH");
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
	assert_int_equal(curl_easy_perform(h), CURLE_OK);
	start = clock_mono() - start;
	curl_slist_free_all(headers);
	assert_ok(e, json_parse(strbuf_view(answer), answer->n, &obj, &e));
	snprintf(version, 32, "%s", kube_obj_version(obj));
	return start;
}

static int64_t
our_patch(char version[32], int i)
{
	CLEANUP(json_unrefp) json_t *p = patch_body(version, i);
	struct result r = { 0 };
	int64_t start = clock_mono();

	kube_patch(kube, &KUBE_CONFIGMAPS, ns, "fast", NULL, KUBE_PATCH_MERGE, p, on_result, &r);
	wait_result(&r);
	start = clock_mono() - start;
	assert_string_equal(r.e.msg, "");
	snprintf(version, 32, "%s", kube_obj_version(r.obj));
	drop_result(&r);
	return start;
}

static int
by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

TEST(a_patch_costs_what_the_server_takes)
{
	enum { N = 400 };
	static int64_t bare[N], ours[N];
	struct result r = { 0 };
	struct strbuf answer, url;
	char version[32];
	CURL *h;

	make_map("fast", "0", &r);
	snprintf(version, sizeof(version), "%s", kube_obj_version(r.obj));
	drop_result(&r);
	strbuf_init(&answer, 1024 * 1024);
	strbuf_init(&url, 1024);
	strbuf_addf(&url, "%s/api/v1/namespaces/%s/configmaps/fast", kube_conf(kube)->server, ns);
	h = bare_handle(&answer);
	for (int i = 0; i < N; i++) {
		bare[i] = bare_patch(h, &answer, url.p, version, 2 * i);
		ours[i] = our_patch(version, 2 * i + 1);
	}
	curl_easy_cleanup(h);
	strbuf_done(&answer);
	strbuf_done(&url);
	qsort(bare, N, sizeof(*bare), by_time);
	qsort(ours, N, sizeof(*ours), by_time);
	print_message("conditional PATCH, ms: bare p50 %.2f p99 %.2f, ours p50 %.2f p99 %.2f\n",
	    (double)bare[N / 2] / 1e6, (double)bare[N * 99 / 100] / 1e6, (double)ours[N / 2] / 1e6,
	    (double)ours[N * 99 / 100] / 1e6);
	assert_true((double)ours[N / 2] <= 1.5 * (double)bare[N / 2]);
}

TEST(namespace_is_removed)
{
	struct result r = { 0 };

	kube_delete(kube, &NAMESPACES, NULL, ns, NULL, on_result, &r);
	wait_result(&r);
	assert_int_equal(r.status, 200);
	drop_result(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(namespace_is_made),
		T(verbs_and_errors),
		T(apply_and_json_patch),
		T(cache_lists_in_pages_and_watches),
		T(lease_goes_from_one_to_the_next),
		T(event_is_recorded_and_counted),
		T(a_patch_costs_what_the_server_takes),
		T(namespace_is_removed),
	};

	if (getenv("KUBE_TEST_CONFIG") == NULL) {
		print_message("skipped: KUBE_TEST_CONFIG names no kubeconfig\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
