/* The service's operations on existing sandboxes: decisions, races between writers, tenants. The
 * start of a sandbox is in apiserver_service_start_test.c. */
#include "service_t.h"

static const struct tenant bob = { .name = "bob" };
static const struct tenant admin = { .name = "admin", .role = ROLE_SYSTEM };

static void
make(const char *id)
{
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = id });
}

static void
make_paused(const char *id)
{
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = id, .desired = "stopped" });
}

static int64_t
end_of(const char *id)
{
	const char *text = rig_annotation(&rig, id, ANNOTATION_END);
	int64_t at;

	assert_non_null(text);
	assert_int_equal(time_parse(strv_of(text), &at), 0);
	return at;
}

/* Seconds from now to its end, rounded. */
static int
left(const char *id)
{
	return (int)((end_of(id) - clock_wall() + NS_PER_S / 2) / NS_PER_S);
}

static unsigned
patches(void)
{
	return cluster_calls(rig.cluster, "PATCH", "replicasets");
}

/* --- get, and what a miss costs --- */

TEST(get_by_id)
{
	struct result r;

	make("g1");
	DOES(r, 0, service_get(S, &alice, STRV("g1"), done, &r));
	assert_string_equal(r.id, "g1");
	assert_int_equal(r.state, SANDBOX_RUNNING);
	DOES(r, ERR_NOT_FOUND, service_get(S, &alice, STRV("g1x"), done, &r));
	assert_string_equal(r.msg, "Sandbox \"g1x\" doesn't exist or you don't have access to it");
	DOES(r, ERR_INVALID, service_get(S, &alice, STRV("G1"), done, &r));
}

TEST(another_replicas_create_is_found_by_one_look)
{
	struct result r;
	unsigned lists = cluster_calls(rig.cluster, "GET", "replicasets");

	/* In the cluster, but its event has not come yet. */
	cluster_put(rig.cluster, "replicasets",
	    json_pack("{s:{s:s, s:{s:s, s:s, s:s}}}", "metadata", "name", "sbx-fresh", "labels",
	        LABEL_OWNER, OWNER_VALUE, LABEL_ID, "fresh", LABEL_TENANT, "alice"));
	START(r, service_get(S, &alice, STRV("fresh"), done, &r));
	ENDS(r, 0);
	assert_string_equal(r.id, "fresh");
	assert_true(cluster_calls(rig.cluster, "GET", "replicasets") <= lists + 1);
}

TEST(misses_are_remembered_and_bounded)
{
	struct result r[100];
	unsigned before;
	char id[16];

	rig_advance(&rig, SECONDS(2));
	before = cluster_calls(rig.cluster, "GET", "replicasets");
	for (int i = 0; i < 5; i++)
		DOES(r[0], ERR_NOT_FOUND, service_get(S, &alice, STRV("nobody"), done, &r[0]));
	assert_int_equal(cluster_calls(rig.cluster, "GET", "replicasets"), before + 1);
	rig_advance(&rig, SECONDS(2));
	DOES(r[0], ERR_NOT_FOUND, service_get(S, &alice, STRV("nobody"), done, &r[0]));
	assert_int_equal(cluster_calls(rig.cluster, "GET", "replicasets"), before + 2);
	/* Guessed ids do not reach the API server without a bound. */
	rig_advance(&rig, SECONDS(2));
	before = cluster_calls(rig.cluster, "GET", "replicasets");
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "guess%d", i);
		START(r[i], service_get(S, &alice, strv_of(id), done, &r[i]));
	}
	for (int i = 0; i < 100; i++)
		ENDS(r[i], ERR_NOT_FOUND);
	assert_true(cluster_calls(rig.cluster, "GET", "replicasets") - before <= 50);
	rig_advance(&rig, SECONDS(2));
}

/* --- tenants --- */

TEST(others_sandboxes_do_not_exist)
{
	struct result r;
	unsigned before;

	make("t1");
	before = patches();
	DOES(r, ERR_NOT_FOUND, service_get(S, &bob, STRV("t1"), done, &r));
	assert_string_equal(r.msg, "Sandbox \"t1\" doesn't exist or you don't have access to it");
	DOES(r, ERR_NOT_FOUND, service_kill(S, &bob, STRV("t1"), done, &r));
	DOES(r, ERR_NOT_FOUND, service_set_timeout(S, &bob, STRV("t1"), 1, done, &r));
	DOES(r, ERR_NOT_FOUND, service_connect(S, &bob, STRV("t1"), 1, done, &r));
	DOES(r, ERR_NOT_FOUND, service_pause(S, &bob, STRV("t1"), done, &r));
	assert_int_equal(patches(), before);
	assert_non_null(cluster_get(rig.cluster, "replicasets", "sbx-t1"));
	DOES(r, 0, service_get(S, &admin, STRV("t1"), done, &r));
	DOES(r, 0, service_kill(S, &admin, STRV("t1"), done, &r));
}

/* --- kill --- */

TEST(after_a_kill_nothing_is_left)
{
	struct result r;

	make("k1");
	DOES(r, 0, service_kill(S, &alice, STRV("k1"), done, &r));
	assert_string_equal(r.id, ""); /* no entry */
	assert_null(cluster_get(rig.cluster, "replicasets", "sbx-k1"));
	DOES(r, ERR_NOT_FOUND, service_kill(S, &alice, STRV("k1"), done, &r));
	DOES(r, ERR_NOT_FOUND, service_get(S, &alice, STRV("k1"), done, &r));
	DOES(r, ERR_NOT_FOUND, service_set_timeout(S, &alice, STRV("k1"), 9, done, &r));
	DOES(r, ERR_NOT_FOUND, service_connect(S, &alice, STRV("k1"), 9, done, &r));
	DOES(r, ERR_NOT_FOUND, service_pause(S, &alice, STRV("k1"), done, &r));
	make_paused("k2");
	DOES(r, 0, service_kill(S, &alice, STRV("k2"), done, &r));
	DOES(r, ERR_NOT_FOUND, service_connect(S, &alice, STRV("k2"), 9, done, &r));
}

TEST(two_kills_at_once)
{
	struct result a, b;

	make("k3");
	START(a, service_kill(S, &alice, STRV("k3"), done, &a));
	START(b, service_kill(S, &alice, STRV("k3"), done, &b));
	rig_until(&rig, &a.n, 1);
	rig_until(&rig, &b.n, 1);
	assert_true(a.code == 0 || b.code == 0);
	assert_true(a.code == 0 || a.code == ERR_NOT_FOUND);
	assert_true(b.code == 0 || b.code == ERR_NOT_FOUND);
}

TEST(a_kill_never_hits_a_namesake)
{
	struct result r;

	make("k4");
	cluster_hold(rig.cluster, "DELETE", "replicasets");
	START(r, service_kill(S, &alice, STRV("k4"), done, &r));
	rig_turns(&rig, 50);
	assert_int_equal(cluster_held(rig.cluster), 1);
	cluster_remove(rig.cluster, "replicasets", "sbx-k4");
	make("k4"); /* the same name, another uid */
	cluster_release(rig.cluster);
	ENDS(r, ERR_NOT_FOUND);
	assert_non_null(cluster_get(rig.cluster, "replicasets", "sbx-k4"));
}

TEST(a_kill_cancelled_on_its_way_still_kills)
{
	struct result r;

	make("k5");
	cluster_hold(rig.cluster, "DELETE", "replicasets");
	START(r, service_kill(S, &alice, STRV("k5"), done, &r));
	rig_turns(&rig, 50);
	service_cancel(r.op);
	cluster_release(rig.cluster);
	rig_turns(&rig, 50);
	assert_int_equal(r.n, 0);
	assert_null(cluster_get(rig.cluster, "replicasets", "sbx-k5"));
}

/* --- timeout --- */

TEST(timeouts_shorten_and_extend)
{
	struct result r;

	make("o1");
	DOES(r, 0, service_set_timeout(S, &alice, STRV("o1"), 5, done, &r));
	assert_int_equal(left("o1"), 5);
	DOES(r, 0, service_set_timeout(S, &alice, STRV("o1"), 600, done, &r));
	assert_int_equal(left("o1"), 600);
	DOES(r, 0, service_set_timeout(S, &alice, STRV("o1"), 0, done, &r));
	assert_int_equal(left("o1"), 0);
}

TEST(timeouts_are_capped_by_the_longest_life)
{
	struct result r;
	char started[TIME_TEXT_MAX];

	time_format(clock_wall() - SECONDS(86000), 6, started);
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "o2", .started = started });
	DOES(r, 0, service_set_timeout(S, &alice, STRV("o2"), 4000, done, &r));
	assert_in_range(left("o2"), 398, 401);
	time_format(clock_wall() - SECONDS(86500), 6, started);
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "o3", .started = started });
	DOES(r, ERR_INVALID, service_set_timeout(S, &alice, STRV("o3"), 10, done, &r));
	assert_string_equal(r.msg, "Max instance length exceeded");
}

TEST(timeouts_of_paused_and_pausing_ones)
{
	struct result r;

	make_paused("o4");
	DOES(r, ERR_NOT_FOUND, service_set_timeout(S, &alice, STRV("o4"), 10, done, &r));
	make("o5");
	rig.pods_linger = true;
	DOES(r, 0, service_pause(S, &alice, STRV("o5"), done, &r));
	DOES(r, ERR_CONFLICT, service_set_timeout(S, &alice, STRV("o5"), 10, done, &r));
	rig.pods_linger = false;
	rig_pods_gone(&rig, "o5");
	rig_turns(&rig, 20);
	DOES(r, ERR_NOT_FOUND, service_set_timeout(S, &alice, STRV("o5"), 10, done, &r));
}

/* --- lost races --- */

static json_t *
annotation(const char *name, const char *value)
{
	return json_pack("{s:{s:{s:s}}}", "metadata", "annotations", name, value);
}

TEST(a_lost_write_is_decided_again)
{
	struct result r;
	unsigned before;

	make("c1");
	before = patches();
	cluster_hold(rig.cluster, "PATCH", "replicasets");
	START(r, service_set_timeout(S, &alice, STRV("c1"), 77, done, &r));
	rig_turns(&rig, 50);
	cluster_merge(rig.cluster, "replicasets", "sbx-c1", annotation("other", "writer"));
	cluster_release(rig.cluster);
	ENDS(r, 0);
	assert_int_equal(patches(), before + 2);
	assert_int_equal(left("c1"), 77);
	assert_string_equal(rig_annotation(&rig, "c1", "other"), "writer"); /* not undone */
}

TEST(a_lost_write_may_mean_something_else)
{
	struct result r;

	make("c2");
	cluster_hold(rig.cluster, "PATCH", "replicasets");
	START(r, service_set_timeout(S, &alice, STRV("c2"), 77, done, &r));
	rig_turns(&rig, 50);
	cluster_merge(
	    rig.cluster, "replicasets", "sbx-c2", annotation(ANNOTATION_DESIRED, "stopped"));
	rig_pods_gone(&rig, "c2");
	cluster_release(rig.cluster);
	ENDS(r, ERR_NOT_FOUND); /* it is paused now */
	make("c3");
	cluster_hold(rig.cluster, "PATCH", "replicasets");
	START(r, service_set_timeout(S, &alice, STRV("c3"), 77, done, &r));
	rig_turns(&rig, 50);
	cluster_remove(rig.cluster, "replicasets", "sbx-c3");
	cluster_release(rig.cluster);
	ENDS(r, ERR_NOT_FOUND);
	DOES(r, ERR_NOT_FOUND, service_get(S, &alice, STRV("c3"), done, &r));
}

TEST(a_race_lost_for_ever_is_no_409)
{
	struct result r;
	unsigned before;

	make("c4");
	before = patches();
	cluster_fail(rig.cluster,
	    &(struct cluster_fault){ .method = "PATCH",
	        .plural = "replicasets",
	        .status = 409,
	        .reason = "Conflict",
	        .times = 100 });
	DOES(r, ERR_UNAVAILABLE, service_pause(S, &alice, STRV("c4"), done, &r));
	assert_int_equal(patches(), before + SERVICE_WRITE_TRIES);
	cluster_no_faults(rig.cluster);
}

/* --- pause --- */

TEST(pause_and_again)
{
	struct result r;

	make("p1");
	DOES(r, 0, service_pause(S, &alice, STRV("p1"), done, &r));
	assert_string_equal(rig_annotation(&rig, "p1", ANNOTATION_DESIRED), "stopped");
	assert_string_equal(rig_annotation(&rig, "p1", ANNOTATION_GENERATION), "2");
	assert_null(rig_annotation(&rig, "p1", ANNOTATION_END));
	assert_string_equal(rig_annotation(&rig, "p1", ANNOTATION_REMAINING), "3599");
	assert_int_equal(
	    json_get_int(cluster_get(rig.cluster, "replicasets", "sbx-p1"), "spec.replicas", -1),
	    0);
	DOES(r, ERR_CONFLICT, service_pause(S, &alice, STRV("p1"), done, &r));
	assert_string_equal(r.msg, "Error pausing sandbox - sandbox 'p1' is already paused");
	DOES(r, 0, service_get(S, &alice, STRV("p1"), done, &r));
	assert_int_equal(r.state, SANDBOX_PAUSED);
}

TEST(pauses_at_once_all_succeed)
{
	struct result r[5];

	make("p2");
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		START(r[i], service_pause(S, &alice, STRV("p2"), done, &r[i]));
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		ENDS(r[i], 0);
	assert_string_equal(rig_annotation(&rig, "p2", ANNOTATION_GENERATION), "2");
}

/* --- connect --- */

TEST(connect_extends_and_never_shortens)
{
	struct result r;
	unsigned before;
	int64_t end;

	make("e1");
	end = end_of("e1");
	before = patches();
	DOES(r, 0, service_connect(S, &alice, STRV("e1"), 10, done, &r));
	assert_false(r.resumed);
	assert_true(end_of("e1") == end);
	assert_int_equal(patches(), before); /* nothing to write */
	DOES(r, 0, service_connect(S, &alice, STRV("e1"), 7200, done, &r));
	assert_int_equal(left("e1"), 7200);
	assert_int_equal(patches(), before + 1);
	DOES(r, 0, service_connect(S, &alice, STRV("e1"), -1, done, &r));
	assert_string_equal(rig_annotation(&rig, "e1", ANNOTATION_END), "never");
	DOES(r, 0, service_connect(S, &alice, STRV("e1"), 60, done, &r));
	assert_string_equal(rig_annotation(&rig, "e1", ANNOTATION_END), "never");
}

TEST(connect_resumes_a_paused_one)
{
	struct result r;
	unsigned inits = rig.inits;

	make_paused("e2");
	DOES(r, 0, service_connect(S, &alice, STRV("e2"), 500, done, &r));
	assert_true(r.resumed);
	assert_string_equal(rig_annotation(&rig, "e2", ANNOTATION_DESIRED), "running");
	assert_string_equal(rig_annotation(&rig, "e2", ANNOTATION_GENERATION), "2");
	assert_null(rig_annotation(&rig, "e2", ANNOTATION_REMAINING));
	assert_null(rig_annotation(&rig, "e2", ANNOTATION_PAUSED));
	assert_in_range(left("e2"), 499, 500);
	assert_int_equal(rig.inits, inits + 1);
	assert_int_equal(json_get_int(rig.init, "generation", 0), 2);
	rig_turns(&rig, 50);
	DOES(r, 0, service_get(S, &alice, STRV("e2"), done, &r));
	assert_int_equal(r.state, SANDBOX_RUNNING);
}

TEST(connects_at_once_make_one_pod)
{
	struct result r[5];
	unsigned pods;
	int resumed = 0;

	make_paused("e3");
	pods = rig.pods;
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		START(r[i], service_connect(S, &alice, STRV("e3"), 100 + (int64_t)i, done, &r[i]));
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		ENDS(r[i], 0);
		resumed += r[i].resumed;
	}
	assert_int_equal(rig.pods, pods + 1);
	assert_int_equal(resumed, 1);
	assert_string_equal(rig_annotation(&rig, "e3", ANNOTATION_GENERATION), "2");
	assert_in_range(left("e3"), 103, 104); /* the latest end of all */
}

TEST(connect_while_pausing_waits_for_it)
{
	struct result p, r;

	make("e4");
	rig.pods_linger = true;
	DOES(p, 0, service_pause(S, &alice, STRV("e4"), done, &p));
	rig_turns(&rig, 20);
	START(r, service_connect(S, &alice, STRV("e4"), 100, done, &r));
	rig_advance(&rig, SECONDS(20));
	assert_int_equal(r.n, 0);
	assert_string_equal(rig_annotation(&rig, "e4", ANNOTATION_DESIRED), "stopped");
	rig.pods_linger = false;
	rig_pods_gone(&rig, "e4");
	ENDS(r, 0);
	assert_true(r.resumed);
	assert_string_equal(rig_annotation(&rig, "e4", ANNOTATION_GENERATION), "3");
}

TEST(connect_does_not_wait_for_a_pause_for_ever)
{
	struct result p, r;

	make("e5");
	rig.pods_linger = true;
	DOES(p, 0, service_pause(S, &alice, STRV("e5"), done, &p));
	rig_turns(&rig, 20);
	START(r, service_connect(S, &alice, STRV("e5"), 100, done, &r));
	rig_advance(&rig, SERVICE_PAUSE_WAIT + SECONDS(1));
	assert_int_equal(r.n, 1);
	assert_int_equal(r.code, ERR_UNAVAILABLE);
	assert_int_equal(r.retry_after, 2);
	rig.pods_linger = false;
	rig_pods_gone(&rig, "e5");
}

TEST(a_kill_beats_a_connect_that_waits)
{
	struct result p, r, k;

	make("e6");
	rig.pods_linger = true;
	DOES(p, 0, service_pause(S, &alice, STRV("e6"), done, &p));
	rig_turns(&rig, 20);
	START(r, service_connect(S, &alice, STRV("e6"), 100, done, &r));
	rig_turns(&rig, 20);
	DOES(k, 0, service_kill(S, &alice, STRV("e6"), done, &k));
	ENDS(r, ERR_NOT_FOUND);
	rig.pods_linger = false;
	rig_pods_gone(&rig, "e6");
	rig_turns(&rig, 20);
	assert_null(cluster_get(rig.cluster, "replicasets", "sbx-e6"));
}

TEST(a_pause_that_comes_in_between_makes_connect_decide_again)
{
	struct result r;

	make("e7");
	cluster_hold(rig.cluster, "PATCH", "replicasets");
	START(r, service_connect(S, &alice, STRV("e7"), 7200, done, &r));
	rig_turns(&rig, 50);
	cluster_merge(rig.cluster, "replicasets", "sbx-e7",
	    json_pack("{s:{s:{s:s, s:s}}, s:{s:i}}", "metadata", "annotations", ANNOTATION_DESIRED,
	        "stopped", ANNOTATION_GENERATION, "2", "spec", "replicas", 0));
	rig_pods_gone(&rig, "e7");
	cluster_release(rig.cluster);
	ENDS(r, 0);
	assert_true(r.resumed);
	assert_string_equal(rig_annotation(&rig, "e7", ANNOTATION_GENERATION), "3");
}

TEST(a_resume_that_nobody_waits_for_goes_on)
{
	struct result r;

	make_paused("e8");
	cluster_hold(rig.cluster, "PATCH", "replicasets");
	START(r, service_connect(S, &alice, STRV("e8"), 100, done, &r));
	rig_turns(&rig, 50);
	service_cancel(r.op);
	cluster_release(rig.cluster);
	rig_turns(&rig, 100);
	assert_int_equal(r.n, 0);
	assert_string_equal(rig_annotation(&rig, "e8", ANNOTATION_DESIRED), "running");
	assert_non_null(cluster_get(rig.cluster, "replicasets", "sbx-e8"));
}

/* --- Kubernetes away --- */

TEST(api_away_is_unavailable)
{
	struct result r[3];

	make("a1");
	cluster_down(rig.cluster);
	rig_turns(&rig, 10);
	START(r[0], service_set_timeout(S, &alice, STRV("a1"), 10, done, &r[0]));
	START(r[1], service_kill(S, &alice, STRV("a1"), done, &r[1]));
	START(r[2], service_get(S, &alice, STRV("notseen"), done, &r[2]));
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		ENDS(r[i], ERR_UNAVAILABLE);
	cluster_up(rig.cluster);
	rig_advance(&rig, SECONDS(60));
	DOES(r[0], 0, service_get(S, &alice, STRV("a1"), done, &r[0]));
	DOES(r[0], 0, service_kill(S, &alice, STRV("a1"), done, &r[0]));
}

TEST(api_that_is_busy_says_when)
{
	struct result r;

	make("a2");
	cluster_fail(rig.cluster,
	    &(struct cluster_fault){ .method = "PATCH",
	        .plural = "replicasets",
	        .status = 429,
	        .retry_after = 9,
	        .times = 1 });
	DOES(r, ERR_UNAVAILABLE, service_set_timeout(S, &alice, STRV("a2"), 10, done, &r));
	assert_int_equal(r.retry_after, 9);
}

TEST(our_own_missing_rights_are_not_the_callers)
{
	struct result r;

	make("a3");
	cluster_fail(rig.cluster,
	    &(struct cluster_fault){
	        .method = "PATCH", .plural = "replicasets", .status = 403, .times = 1 });
	DOES(r, ERR_INTERNAL, service_set_timeout(S, &alice, STRV("a3"), 10, done, &r));
}

/* With operations in flight everything still comes down cleanly. */
TEST(the_end_in_the_middle_of_it)
{
	static struct result r[4]; /* outlives the test */

	make("z1");
	make_paused("z2");
	rig.kubelet = false;
	START(r[0], service_connect(S, &alice, STRV("z2"), 100, done, &r[0]));
	rig_turns(&rig, 50);
	cluster_hold(rig.cluster, "PATCH", "replicasets");
	START(r[1], service_set_timeout(S, &alice, STRV("z1"), 10, done, &r[1]));
	rig_turns(&rig, 50);
	START(r[2], service_get(S, &alice, STRV("z1"), done, &r[2]));
	START(r[3], service_kill(S, &alice, STRV("z2"), done, &r[3]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(get_by_id),
		T(another_replicas_create_is_found_by_one_look),
		T(misses_are_remembered_and_bounded),
		T(others_sandboxes_do_not_exist),
		T(after_a_kill_nothing_is_left),
		T(two_kills_at_once),
		T(a_kill_never_hits_a_namesake),
		T(a_kill_cancelled_on_its_way_still_kills),
		T(timeouts_shorten_and_extend),
		T(timeouts_are_capped_by_the_longest_life),
		T(timeouts_of_paused_and_pausing_ones),
		T(a_lost_write_is_decided_again),
		T(a_lost_write_may_mean_something_else),
		T(a_race_lost_for_ever_is_no_409),
		T(pause_and_again),
		T(pauses_at_once_all_succeed),
		T(connect_extends_and_never_shortens),
		T(connect_resumes_a_paused_one),
		T(connects_at_once_make_one_pod),
		T(connect_while_pausing_waits_for_it),
		T(connect_does_not_wait_for_a_pause_for_ever),
		T(a_kill_beats_a_connect_that_waits),
		T(a_pause_that_comes_in_between_makes_connect_decide_again),
		T(a_resume_that_nobody_waits_for_goes_on),
		T(api_away_is_unavailable),
		T(api_that_is_busy_says_when),
		T(our_own_missing_rights_are_not_the_callers),
		T(the_end_in_the_middle_of_it),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
