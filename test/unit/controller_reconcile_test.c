/* The leader's loop on a fake cluster: what it does, and what it leaves alone. */
#include "t.h"

#include "base/json.h"
#include "controller/reconcile.h"
#include "fake/rig.h"

static struct rig rig;

static struct {
	struct kube *kube;
	struct kube_recorder *recorder;
	struct settings *settings;
	struct sandbox_view *view;
	struct metrics *metrics;
	struct reconciler *reconciler;
} c;

static int
setup(void **state UNUSED)
{
	rig_world_start(&rig);
	c.kube = cluster_client(rig.cluster);
	c.metrics = metrics_new();
	c.recorder = kube_recorder_new(c.kube, "test", "one");
	c.settings = settings_new(&(struct settings_conf){ .kube = c.kube,
	    .ns = RIG_NS,
	    .configmap = RIG_CONFIGMAP,
	    .install_secret = RIG_INSTALL });
	c.view = sandbox_view_new(c.kube, RIG_NS, NULL, NULL);
	c.reconciler = reconciler_new(&(struct reconciler_conf){ .loop = rig.loop,
	    .kube = c.kube,
	    .settings = c.settings,
	    .view = c.view,
	    .recorder = c.recorder,
	    .metrics = c.metrics,
	    .ns = RIG_NS });
	for (int i = 0; i < 1000 && !(sandbox_view_synced(c.view) && settings_ready(c.settings));
	     i++)
		rig_turns(&rig, 1);
	assert_true(sandbox_view_synced(c.view) && settings_ready(c.settings));
	rig_turns(&rig, 50);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	reconciler_free(c.reconciler);
	sandbox_view_free(c.view);
	settings_free(c.settings);
	kube_recorder_free(c.recorder);
	kube_free(c.kube);
	metrics_free(c.metrics);
	rig_world_stop(&rig);
	return 0;
}

static bool
there(const char *id)
{
	char name[64];

	snprintf(name, sizeof(name), "sbx-%s", id);
	return cluster_get(rig.cluster, "replicasets", name) != NULL;
}

/* A sandbox that ends in so many seconds. */
static void
ends_in(const char *id, int64_t seconds, const char *desired)
{
	char end[TIME_TEXT_MAX];

	time_format(clock_wall() + SECONDS(seconds), 6, end);
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = id, .end = end, .desired = desired });
}

static void
annotate(const char *id, const char *name, const char *value)
{
	char rs[64];

	snprintf(rs, sizeof(rs), "sbx-%s", id);
	cluster_merge(rig.cluster, "replicasets", rs,
	    json_pack("{s:{s:{s:s}}}", "metadata", "annotations", name, value));
}

/* Seconds go by, one after the other, as timers need it. */
static void
pass(int seconds)
{
	for (int i = 0; i < seconds * 4; i++) {
		clock_fake_advance(MILLIS(240));
		rig_turns(&rig, 10);
	}
}

static int
events(const char *reason)
{
	int n = 0;
	const json_t *o;

	rig_turns(&rig, 50);
	while ((o = cluster_first(rig.cluster, "events")) != NULL) {
		CLEANUP(xfreep) char *name = xstrdup(json_get_str(o, "metadata.name"));

		n += strcmp(json_get_str(o, "reason"), reason) == 0;
		cluster_remove(rig.cluster, "events", name);
	}
	return n;
}

TEST(ends_at_its_time)
{
	reconciler_start(c.reconciler);
	ends_in("a", 10, NULL);
	pass(8);
	assert_true(there("a"));
	pass(3);
	assert_false(there("a"));
	assert_int_equal(events("Expired"), 1);
}

TEST(pauses_at_its_time)
{
	reconciler_start(c.reconciler);
	ends_in("a", 5, NULL);
	annotate("a", ANNOTATION_ON_END, "pause");
	pass(6);
	assert_true(there("a"));
	assert_string_equal(rig_annotation(&rig, "a", ANNOTATION_DESIRED), "stopped");
	assert_string_equal(rig_annotation(&rig, "a", ANNOTATION_REMAINING), "0");
	assert_int_equal(events("Paused"), 1);
	pass(200); /* nor does it end later */
	assert_true(there("a"));
}

TEST(an_extension_moves_the_end)
{
	char later[TIME_TEXT_MAX];

	reconciler_start(c.reconciler);
	ends_in("a", 5, NULL);
	pass(3);
	time_format(clock_wall() + SECONDS(20), 6, later);
	annotate("a", ANNOTATION_END, later);
	pass(15);
	assert_true(there("a"));
	pass(7);
	assert_false(there("a"));
}

TEST(an_extension_that_was_first_wins)
{
	char later[TIME_TEXT_MAX];

	reconciler_start(c.reconciler);
	ends_in("a", 5, NULL);
	cluster_hold(rig.cluster, "DELETE", "replicasets");
	pass(6);
	assert_int_equal(cluster_held(rig.cluster), 1);
	time_format(clock_wall() + SECONDS(20), 6, later);
	annotate("a", ANNOTATION_END, later);
	cluster_release(rig.cluster);
	pass(3);
	assert_true(there("a"));
	assert_int_equal(events("Expired"), 0); /* it did not */
	pass(20);
	assert_false(there("a"));
}

TEST(only_the_leader_acts)
{
	ends_in("a", 5, NULL);
	pass(10);
	assert_true(there("a"));
	reconciler_start(c.reconciler); /* the overdue ones at once */
	pass(1);
	assert_false(there("a"));
	ends_in("b", 5, NULL);
	reconciler_stop(c.reconciler);
	pass(10);
	assert_true(there("b"));
	reconciler_start(c.reconciler);
	pass(1);
	assert_false(there("b"));
}

TEST(leadership_lost_in_the_middle)
{
	reconciler_start(c.reconciler);
	ends_in("a", 2, NULL);
	cluster_hold(rig.cluster, "DELETE", "replicasets");
	pass(3);
	assert_int_equal(cluster_held(rig.cluster), 1);
	reconciler_stop(c.reconciler);
	rig_turns(&rig, 20);
	cluster_release(rig.cluster); /* the call was cut: nothing is done twice or half */
	reconciler_start(c.reconciler);
	pass(1);
	assert_false(there("a"));
}

TEST(what_failed_is_done_again)
{
	reconciler_start(c.reconciler);
	ends_in("a", 2, NULL);
	cluster_fail(rig.cluster,
	    &(struct cluster_fault){
	        .method = "DELETE", .plural = "replicasets", .status = 500, .times = 5 });
	pass(3);
	assert_true(there("a"));
	assert_int_equal(events("Expired"), 0);
	pass(10);
	assert_false(there("a"));
	assert_int_equal(events("Expired"), 1);
}

TEST(ends_that_fell_due_while_kubernetes_was_away)
{
	reconciler_start(c.reconciler);
	ends_in("a", 5, NULL);
	cluster_down(rig.cluster);
	pass(20);
	cluster_up(rig.cluster);
	pass(60);
	assert_false(there("a"));
}

TEST(what_a_dead_creator_left_is_initialised)
{
	rig.kubelet = false;
	reconciler_start(c.reconciler);
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "a", .secure = true, .starting = true });
	rig_pod(&rig, "a", "p", rig_status_running(&rig, 0));
	pass(3);
	assert_int_equal(rig.inits, 0); /* its creator's time */
	pass(4);
	assert_int_equal(rig.inits, 1);
	assert_string_equal(json_get_str(rig.init, "sandboxID"), "a");
	assert_non_null(json_get_str(rig.init, "accessToken"));
	assert_non_null(rig_annotation(&rig, "a", ANNOTATION_READY));
	assert_int_equal(events("Initialised"), 1);
	pass(120); /* and not again */
	assert_int_equal(rig.inits, 1);
	rig_pod(&rig, "a", "p", rig_status_running(&rig, 1));
	pass(1);
	assert_int_equal(rig.inits, 2); /* a restarted one has nobody else */
}

TEST(one_that_cannot_be_initialised_still_ends)
{
	char end[TIME_TEXT_MAX];

	rig.kubelet = false;
	reconciler_start(c.reconciler);
	rig.envd_status = 500;
	time_format(clock_wall() + SECONDS(100), 6, end);
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "a", .end = end, .starting = true });
	rig_pod(&rig, "a", "p", rig_status_running(&rig, 0));
	pass(99); /* its back-off is at 30 s by now */
	assert_true(rig.inits > 5 && rig.inits < 40);
	assert_true(there("a"));
	pass(2);
	assert_false(there("a"));
}

TEST(one_whose_envd_hangs_still_ends)
{
	char end[TIME_TEXT_MAX];

	rig.kubelet = false;
	reconciler_start(c.reconciler);
	rig.envd_hold = true;
	time_format(clock_wall() + SECONDS(70), 6, end);
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "a", .end = end, .starting = true });
	rig_pod(&rig, "a", "p", rig_status_running(&rig, 0));
	pass(69);
	assert_true(rig.inits >= 1);
	assert_true(there("a"));
	pass(2);
	assert_false(there("a"));
}

TEST(half_made_ones_go)
{
	reconciler_start(c.reconciler);
	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "a", .end = "never", .starting = true });
	pass(595);
	assert_true(there("a"));
	pass(10);
	assert_false(there("a"));
	assert_int_equal(events("StartFailed"), 1);
}

TEST(orphans_go)
{
	rig.kubelet = false; /* nobody else takes them away */
	reconciler_start(c.reconciler);
	rig_pod(&rig, "gone", "p", rig_status_running(&rig, 0));
	pass(25);
	assert_non_null(cluster_get(rig.cluster, "pods", "p"));
	pass(10);
	assert_null(cluster_get(rig.cluster, "pods", "p"));
}

TEST(a_delete_that_was_only_said_is_done)
{
	reconciler_start(c.reconciler);
	ends_in("a", 3600, "deleted");
	pass(1);
	assert_false(there("a"));
	assert_int_equal(events("Killed"), 1);
}

TEST(many_end_at_once)
{
	char id[16];

	reconciler_start(c.reconciler);
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "m%d", i);
		ends_in(id, 30, NULL);
	}
	assert_int_equal(cluster_count(rig.cluster, "replicasets"), 100);
	pass(32);
	assert_int_equal(cluster_count(rig.cluster, "replicasets"), 0);
}

#define C(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		C(ends_at_its_time),
		C(pauses_at_its_time),
		C(an_extension_moves_the_end),
		C(an_extension_that_was_first_wins),
		C(only_the_leader_acts),
		C(leadership_lost_in_the_middle),
		C(what_failed_is_done_again),
		C(ends_that_fell_due_while_kubernetes_was_away),
		C(what_a_dead_creator_left_is_initialised),
		C(one_that_cannot_be_initialised_still_ends),
		C(one_whose_envd_hangs_still_ends),
		C(half_made_ones_go),
		C(orphans_go),
		C(a_delete_that_was_only_said_is_done),
		C(many_end_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
