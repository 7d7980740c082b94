/* E2B's lists: filters and their encodings, order, pages. */
#include "t.h"

#include "base/json.h"
#include "fake/rig_api.h"

static struct rig rig;

static int
setup(void **state UNUSED)
{
	rig_start(&rig);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	rig_stop(&rig);
	return 0;
}

static struct reply
get(const char *path)
{
	return rig_call(&rig, RIG_KEY_A, "GET", path, NULL);
}

static char *
ids_of(const struct reply *p, char *out, size_t n)
{
	size_t i, len = 0;
	const json_t *item;

	out[0] = '\0';
	json_array_foreach (p->json, i, item)
		len += (size_t)snprintf(
		    out + len, n - len, "%s%s", i > 0 ? " " : "", json_get_str(item, "sandboxID"));
	return out;
}

/* GET path answers these ids in this order. */
static void
expect(const char *path, const char *want)
{
	struct reply p = get(path);
	char got[4096];

	if (p.status != 200 || strcmp(ids_of(&p, got, sizeof(got)), want) != 0)
		fail_msg("%s: %d \"%s\", not \"%s\"\n%s", path, p.status, got, want, p.body);
	reply_done(&p);
}

static void
expect_400(const char *path, const char *says)
{
	struct reply p = get(path);
	const char *message = json_get_str(p.json, "message");

	if (p.status != 400 || message == NULL || strstr(message, says) == NULL)
		fail_msg("%s: %d %s", path, p.status, p.body);
	reply_done(&p);
}

static int
clear(void **state UNUSED)
{
	static const char *const plurals[] = { "replicasets", "pods" };
	const json_t *o;

	for (size_t i = 0; i < ARRAY_LEN(plurals); i++)
		while ((o = cluster_first(rig.cluster, plurals[i])) != NULL) {
			CLEANUP(xfreep)
			char *name = xstrdup(json_get_str(o, "metadata.name"));

			cluster_remove(rig.cluster, plurals[i], name);
		}
	rig.kubelet = true;
	rig_turns(&rig, 20);
	return 0;
}

static void
kill_one(const char *id)
{
	char name[64];

	snprintf(name, sizeof(name), "sbx-%s", id);
	cluster_remove(rig.cluster, "replicasets", name);
	rig_pods_gone(&rig, id);
	rig_turns(&rig, 10);
}

/* --- who sees what --- */

TEST(nothing_is_an_empty_array)
{
	struct reply p = get("/v2/sandboxes");

	assert_int_equal(p.status, 200);
	assert_string_equal(p.body, "[]");
	assert_null(reply_field(&p, "X-Next-Token"));
	assert_string_equal(reply_field(&p, "X-Total-Running"), "0");
	reply_done(&p);
}

TEST(tenants_see_their_own)
{
	struct reply p;
	char ids[256];

	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "mine", .started = "2027-01-01T00:00:00Z" });
	rig_sandbox(&rig,
	    &(struct rig_sandbox){
	        .id = "his", .tenant = "bob", .started = "2027-01-01T00:00:01Z" });
	expect("/v2/sandboxes", "mine");
	expect("/sandboxes", "mine");
	p = rig_call(&rig, RIG_KEY_B, "GET", "/v2/sandboxes", NULL);
	assert_string_equal(ids_of(&p, ids, sizeof(ids)), "his");
	assert_string_equal(reply_field(&p, "X-Total-Running"), "1");
	reply_done(&p);
	p = rig_call(&rig, RIG_SYSTEM_KEY, "GET", "/v2/sandboxes", NULL);
	assert_string_equal(ids_of(&p, ids, sizeof(ids)), "his mine");
	reply_done(&p);
}

TEST(what_is_ending_or_not_given_out_is_hidden)
{
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "deleted", .desired = "deleted" });
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "failed" });
	cluster_merge(rig.cluster, "replicasets", "sbx-failed",
	    json_pack("{s:{s:{s:s}}}", "metadata", "annotations", ANNOTATION_FAILED, "broken"));
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "going" });
	cluster_merge(rig.cluster, "replicasets", "sbx-going",
	    json_pack("{s:{s:s}}", "metadata", "deletionTimestamp", "2027-01-01T00:00:00Z"));
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "pool", .desired = "warm" });
	cluster_merge(rig.cluster, "replicasets", "sbx-pool",
	    json_pack("{s:{s:{s:s}}}", "metadata", "labels", LABEL_POOL, "true"));
	rig_turns(&rig, 20);
	expect("/v2/sandboxes", "");
}

/* --- metadata --- */

static const char tricky[] = "{\"a b\":\"c&d=e/\xc3\xa9\",\"plain\":\"x\",\"pct\":\"100%\","
                             "\"plus\":\"1+1\",\"empty\":\"\"}";

TEST(metadata_filter_in_every_encoding)
{
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "a", .metadata = tricky });
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "b", .metadata = "{\"plain\":\"y\"}" });
	/* JavaScript's SDK, as it was seen on the wire */
	expect("/v2/sandboxes?metadata="
	       "a%252520b%3Dc%252526d%25253De%25252F%2525C3%2525A9",
	    "a");
	/* Python's: quote(), then urlencode(), then the HTTP library */
	expect("/v2/sandboxes?metadata="
	       "a%252520b%3Dc%252526d%25253De%252F%2525C3%2525A9",
	    "a");
	/* by hand */
	expect("/v2/sandboxes?metadata=plain%3Dx", "a");
	expect("/v2/sandboxes?metadata=plain=x", "a");
	expect("/v2/sandboxes?metadata=a+b%3Dc%252526d%25253De%25252F%2525C3%2525A9", "a");
	expect("/v2/sandboxes?metadata=pct%3D100%252525", "a");
	expect("/v2/sandboxes?metadata=plus%3D1%25252B1", "a");
	expect("/v2/sandboxes?metadata=empty%3D", "a");
	/* all pairs must match, exactly */
	expect("/v2/sandboxes?metadata=plain%3Dx%26pct%3D100%252525", "a");
	expect("/v2/sandboxes?metadata=plain%3Dx%26pct%3D99", "");
	expect("/v2/sandboxes?metadata=plain%3DX", "");
	expect("/v2/sandboxes?metadata=nope%3Dx", "");
	expect("/sandboxes?metadata=plain%3Dx", "a");
	/* absent, as some clients write it */
	expect("/sandboxes?metadata=", "b a");
}

TEST(metadata_filters_that_do_not_parse)
{
	char path[4096] = "/v2/sandboxes?metadata=";
	size_t n = strlen(path);

	expect_400("/v2/sandboxes?metadata=abc", "Error parsing metadata");
	expect_400("/v2/sandboxes?metadata=a%3Db%3Dc", "Error parsing metadata");
	expect_400("/v2/sandboxes?metadata=%26", "Error parsing metadata");
	expect_400("/v2/sandboxes?metadata=a%3D%2525zz", "Error parsing metadata");
	expect_400("/v2/sandboxes?metadata=%25zz%3Dx", "Error parsing metadata");
	expect_400("/v2/sandboxes?metadata=a%3Db%252500", "Error parsing metadata");
	expect_400("/v2/sandboxes?metadata=%zz", "metadata");
	expect_400("/sandboxes?metadata=abc", "Error parsing metadata");
	for (int i = 0; i < 33; i++)
		n += (size_t)snprintf(
		    path + n, sizeof(path) - n, "%sk%d%%3Dv", i > 0 ? "%26" : "", i);
	expect_400(path, "more than 32");
}

/* --- state, order, time, template --- */

#define T0 "2027-01-01T00:00:00.000001Z"
#define T1 "2027-01-01T00:00:01.5Z"
#define T2 "2027-01-01T00:00:02Z"

static void
make_four(void)
{
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "old", .started = T0 });
	rig_sandbox(
	    &rig, &(struct rig_sandbox){ .id = "paused", .started = T1, .desired = "stopped" });
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "young", .started = T2 });
	rig_sandbox(
	    &rig, &(struct rig_sandbox){ .id = "twin", .started = T2, .template = "plain" });
}

TEST(states)
{
	make_four();
	expect("/v2/sandboxes", "twin young paused old");
	expect("/v2/sandboxes?state=running", "twin young old");
	expect("/v2/sandboxes?state=paused", "paused");
	expect("/v2/sandboxes?state=running,paused", "twin young paused old");
	expect("/v2/sandboxes?state=paused%2Crunning", "twin young paused old");
	expect("/v2/sandboxes?state=", "twin young paused old");
	expect("/sandboxes", "twin young old");
	expect_400("/v2/sandboxes?state=foo", "Invalid state: 'foo'");
	expect_400("/v2/sandboxes?state=running,,paused", "Invalid state");
	expect_400("/v2/sandboxes?state=Running", "Invalid state");
}

TEST(a_pausing_one_is_there_once_and_paused)
{
	struct reply p;

	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "x" });
	rig.kubelet = false; /* its pod stays */
	cluster_merge(rig.cluster, "replicasets", "sbx-x",
	    json_pack("{s:{s:{s:s}}}", "metadata", "annotations", ANNOTATION_DESIRED, "stopped"));
	rig_turns(&rig, 20);
	p = get("/v2/sandboxes");
	assert_int_equal(json_array_size(p.json), 1);
	assert_string_equal(json_get_str(json_array_get(p.json, 0), "state"), "paused");
	assert_string_equal(reply_field(&p, "X-Total-Running"), "0");
	reply_done(&p);
}

TEST(orders)
{
	make_four();
	/* Newest first, the same moment by id; asc is the exact reverse. */
	expect("/v2/sandboxes?order=desc", "twin young paused old");
	expect("/v2/sandboxes?order=asc", "old paused young twin");
	expect_400("/v2/sandboxes?order=up", "order");
}

TEST(started_after)
{
	make_four();
	expect("/v2/sandboxes?startedAfter=2027-01-01T00:00:01.500000Z", "twin young paused");
	expect("/v2/sandboxes?startedAfter=2027-01-01T01:00:01.5%2B01:00", "twin young paused");
	expect("/v2/sandboxes?startedAfter=2027-01-01T00:00:01.500001Z", "twin young");
	expect("/v2/sandboxes?startedAfter=2027-01-01T00:00:03Z", "");
	/* finer than what we say counts as the same microsecond */
	expect(
	    "/v2/sandboxes?startedAfter=2027-01-01T00:00:00.000001999Z", "twin young paused old");
	expect_400("/v2/sandboxes?startedAfter=yesterday", "startedAfter");
}

TEST(templates)
{
	make_four();
	expect("/v2/sandboxes?template=plain", "twin");
	expect("/v2/sandboxes?template=PLAIN", "twin");
	expect("/v2/sandboxes?template=unknown", "");
	expect_400("/v2/sandboxes?template=plain%3Atag", "Invalid template: 'plain:tag'");
	expect_400("/v2/sandboxes?template=pl%20ain", "Invalid template");
}

TEST(running_ones_are_counted_before_paging)
{
	struct reply p;

	make_four();
	p = get("/v2/sandboxes?limit=1");
	assert_string_equal(reply_field(&p, "X-Total-Running"), "3");
	reply_done(&p);
	p = get("/v2/sandboxes?state=running&template=plain");
	assert_string_equal(reply_field(&p, "X-Total-Running"), "1");
	reply_done(&p);
	p = get("/v2/sandboxes?state=paused");
	assert_null(reply_field(&p, "X-Total-Running"));
	reply_done(&p);
	p = get("/sandboxes");
	assert_null(reply_field(&p, "X-Total-Running"));
	assert_null(reply_field(&p, "X-Next-Token"));
	reply_done(&p);
}

/* --- pages --- */

TEST(limits)
{
	expect_400("/v2/sandboxes?limit=0", "limit");
	expect_400("/v2/sandboxes?limit=101", "limit");
	expect_400("/v2/sandboxes?limit=-1", "limit");
	expect_400("/v2/sandboxes?limit=x", "limit");
	expect_400("/v2/sandboxes?limit=1.0", "limit");
	expect("/v2/sandboxes?limit=100", "");
	expect("/v2/sandboxes?limit=", "");
}

/* One page; *token is the next one's, or "". query ends in a way that &… may follow. */
static char *
page(const char *query, char *token, size_t token_n, char *ids, size_t ids_n)
{
	char path[512];
	struct reply p;

	snprintf(path, sizeof(path), "/v2/sandboxes?%s%s%s", query,
	    token[0] != '\0' ? "&nextToken=" : "", token);
	p = get(path);
	if (p.status != 200)
		fail_msg("%s: %d %s", path, p.status, p.body);
	ids_of(&p, ids, ids_n);
	snprintf(token, token_n, "%s",
	    reply_field(&p, "X-Next-Token") != NULL ? reply_field(&p, "X-Next-Token") : "");
	/* It goes into a query as it is. */
	assert_int_equal(
	    strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_="),
	    strlen(token));
	reply_done(&p);
	return ids;
}

TEST(pages_one_by_one)
{
	char token[512] = "", ids[256];

	make_four();
	assert_string_equal(page("limit=1", token, sizeof(token), ids, sizeof(ids)), "twin");
	assert_string_equal(page("limit=1", token, sizeof(token), ids, sizeof(ids)), "young");
	assert_string_equal(page("limit=1", token, sizeof(token), ids, sizeof(ids)), "paused");
	assert_string_not_equal(token, "");
	assert_string_equal(page("limit=1", token, sizeof(token), ids, sizeof(ids)), "old");
	assert_string_equal(token, ""); /* no empty page behind the last one */
	assert_string_equal(
	    page("limit=4", token, sizeof(token), ids, sizeof(ids)), "twin young paused old");
	assert_string_equal(token, "");
	assert_string_equal(
	    page("order=asc&limit=3", token, sizeof(token), ids, sizeof(ids)), "old paused young");
	assert_string_equal(
	    page("order=asc&limit=3", token, sizeof(token), ids, sizeof(ids)), "twin");
	assert_string_equal(token, "");
}

TEST(pages_when_rows_vanish_and_come)
{
	char token[512] = "", ids[256];

	make_four();
	assert_string_equal(page("limit=2", token, sizeof(token), ids, sizeof(ids)), "twin young");
	/* The cursor's own row goes, and one in front of it; a newer one comes. */
	kill_one("young");
	kill_one("twin");
	rig_sandbox(
	    &rig, &(struct rig_sandbox){ .id = "newest", .started = "2027-01-01T00:00:09Z" });
	assert_string_equal(page("limit=2", token, sizeof(token), ids, sizeof(ids)), "paused old");
	assert_string_equal(token, "");
}

TEST(equal_moments_across_pages)
{
	char token[512] = "", ids[256], all[1024] = "";
	size_t n = 0;
	char id[8];

	for (int i = 0; i < 7; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		rig_sandbox(&rig, &(struct rig_sandbox){ .id = id, .started = T2 });
	}
	do {
		page("limit=2", token, sizeof(token), ids, sizeof(ids));
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s ", ids);
	} while (token[0] != '\0');
	assert_string_equal(all, "s0 s1 s2 s3 s4 s5 s6 ");
}

TEST(tokens_that_are_none)
{
	char token[512] = "", ids[256], path[1024];

	make_four();
	page("limit=1&order=desc", token, sizeof(token), ids, sizeof(ids));
	snprintf(path, sizeof(path), "/v2/sandboxes?order=asc&nextToken=%s", token);
	expect_400(path, "Invalid next token");
	token[0] = '\0';
	page("limit=1&order=asc", token, sizeof(token), ids, sizeof(ids));
	snprintf(path, sizeof(path), "/v2/sandboxes?nextToken=%s", token);
	expect_400(path, "Invalid next token");
	expect_400("/v2/sandboxes?nextToken=garbage", "Invalid next token");
	expect_400("/v2/sandboxes?nextToken=%2525", "Invalid next token");
	expect_400("/v2/sandboxes?nextToken=bm90YXRpbWVfX2lhYmM%3D", "Invalid next token");
	memset(path, 'A', 900);
	memcpy(path, "/v2/sandboxes?nextToken=", 24);
	path[900] = '\0';
	expect_400(path, "Invalid next token");
	expect("/v2/sandboxes?nextToken=", "twin young paused old");
}

TEST(every_row_has_the_metadata_it_was_made_with)
{
	struct reply p;

	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "a", .metadata = tricky });
	p = get("/v2/sandboxes");
	assert_string_equal(json_string_value(json_object_get(
	                        json_object_get(json_array_get(p.json, 0), "metadata"), "a b")),
	    "c&d=e/\xc3\xa9");
	reply_done(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_is_an_empty_array, clear),
		cmocka_unit_test_teardown(tenants_see_their_own, clear),
		cmocka_unit_test_teardown(what_is_ending_or_not_given_out_is_hidden, clear),
		cmocka_unit_test_teardown(metadata_filter_in_every_encoding, clear),
		cmocka_unit_test_teardown(metadata_filters_that_do_not_parse, clear),
		cmocka_unit_test_teardown(states, clear),
		cmocka_unit_test_teardown(a_pausing_one_is_there_once_and_paused, clear),
		cmocka_unit_test_teardown(orders, clear),
		cmocka_unit_test_teardown(started_after, clear),
		cmocka_unit_test_teardown(templates, clear),
		cmocka_unit_test_teardown(running_ones_are_counted_before_paging, clear),
		cmocka_unit_test_teardown(limits, clear),
		cmocka_unit_test_teardown(pages_one_by_one, clear),
		cmocka_unit_test_teardown(pages_when_rows_vanish_and_come, clear),
		cmocka_unit_test_teardown(equal_moments_across_pages, clear),
		cmocka_unit_test_teardown(tokens_that_are_none, clear),
		cmocka_unit_test_teardown(every_row_has_the_metadata_it_was_made_with, clear),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
