/* Create, and waiting for a start: what ends it, what is left behind when it does not go well. */
#include "service_t.h"

#include <unistd.h>

static const struct create_request plain = { .tenant = &alice, .timeout = 300, .secure = true };

static size_t
sandboxes(void)
{
	return cluster_count(rig.cluster, "replicasets");
}

/* Every test leaves nothing. */
static int
clean(void **state UNUSED)
{
	const json_t *o;

	cluster_no_faults(rig.cluster);
	cluster_release(rig.cluster);
	rig.kubelet = true;
	rig.envd_status = 204;
	rig.envd_hold = false;
	rig_turns(&rig, 100);
	while ((o = cluster_first(rig.cluster, "replicasets")) != NULL) {
		CLEANUP(xfreep) char *name = xstrdup(json_get_str(o, "metadata.name"));

		cluster_remove(rig.cluster, "replicasets", name);
		rig_pods_gone(&rig, name + 4);
	}
	rig_turns(&rig, 50);
	return 0;
}

/* A create whose object is there and which waits for its pod, which the test plays. */
static const char *
create_and_wait(struct result *r)
{
	rig.kubelet = false;
	START(*r, service_create(S, &plain, done, r));
	rig_turns(&rig, 100);
	assert_int_equal(r->n, 0);
	return rig_only_id(&rig);
}

static void
assert_removed(void)
{
	rig_turns(&rig, 50);
	assert_int_equal(sandboxes(), 0);
}

static const char *
last_event(void)
{
	static char text[512];
	const json_t *o;

	rig_turns(&rig, 50);
	text[0] = '\0';
	while ((o = cluster_first(rig.cluster, "events")) != NULL) {
		CLEANUP(xfreep) char *name = xstrdup(json_get_str(o, "metadata.name"));

		snprintf(text, sizeof(text), "%s: %s", json_get_str(o, "reason"),
		    json_get_str(o, "message"));
		cluster_remove(rig.cluster, "events", name);
	}
	return text;
}

/* --- well --- */

TEST(create_ends_when_envd_has_its_settings)
{
	struct result r;
	unsigned inits = rig.inits;

	rig.envd_hold = true;
	START(r, service_create(S, &plain, done, &r));
	rig_until(&rig, &rig.inits, inits + 1);
	rig_turns(&rig, 50);
	assert_int_equal(r.n, 0); /* running, but not usable yet */
	rig.envd_hold = false;
	rig_pods_gone(&rig, rig_only_id(&rig)); /* a new pod is asked anew */
	rig_pod(&rig, rig_only_id(&rig), "again", rig_status_running(&rig, 0));
	ENDS(r, 0);
	assert_string_equal(r.id, rig_only_id(&rig));
	assert_int_equal(rig.inits, inits + 2);
	rig_turns(&rig, 50);
	assert_non_null(rig_annotation(&rig, r.id, ANNOTATION_READY));
	cluster_remove(rig.cluster, "pods", "again");
}

TEST(envd_that_listens_late_is_asked_again)
{
	struct result r;
	const char *id = create_and_wait(&r);
	char ip[16];

	/* Nothing listens there. */
	memcpy(ip, rig.envd_ip, sizeof(ip));
	snprintf(rig.envd_ip, sizeof(rig.envd_ip), "127.254.254.254");
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	rig_turns(&rig, 500);
	assert_int_equal(r.n, 0);
	memcpy(rig.envd_ip, ip, sizeof(ip));
	rig_pod(&rig, id, "p", rig_status_running(&rig, 1)); /* restarted, elsewhere */
	ENDS(r, 0);
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(a_restart_in_the_middle_is_initialised_anew)
{
	struct result r;
	const char *id = create_and_wait(&r);
	unsigned inits = rig.inits;
	char ready[128];

	rig.envd_hold = true;
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	rig_until(&rig, &rig.inits, inits + 1);
	rig.envd_hold = false;
	rig_pod(&rig, id, "p", rig_status_running(&rig, 1));
	ENDS(r, 0);
	assert_int_equal(rig.inits, inits + 2);
	rig_turns(&rig, 50);
	snprintf(ready, sizeof(ready), "%s/1",
	    json_get_str(cluster_get(rig.cluster, "pods", "p"), "metadata.uid"));
	assert_string_equal(rig_annotation(&rig, id, ANNOTATION_READY), ready);
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(somebody_else_may_initialise_it)
{
	struct result r;
	const char *id = create_and_wait(&r);
	char rs[64], ready[128];

	rig.envd_hold = true;
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	rig_turns(&rig, 50);
	snprintf(rs, sizeof(rs), "sbx-%s", id);
	snprintf(ready, sizeof(ready), "%s/0",
	    json_get_str(cluster_get(rig.cluster, "pods", "p"), "metadata.uid"));
	cluster_merge(rig.cluster, "replicasets", rs,
	    json_pack("{s:{s:{s:s}}}", "metadata", "annotations", ANNOTATION_READY, ready));
	ENDS(r, 0);
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(a_slow_start_costs_none_of_the_time_that_was_asked_for)
{
	struct result r;
	const char *id = create_and_wait(&r);
	int64_t end, started;

	rig_turns(&rig, 10000); /* milliseconds */
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	ENDS(r, 0);
	assert_int_equal(time_parse(strv_of(rig_annotation(&rig, id, ANNOTATION_END)), &end), 0);
	assert_int_equal(
	    time_parse(strv_of(rig_annotation(&rig, id, ANNOTATION_STARTED)), &started), 0);
	assert_true(end - started == SECONDS(plain.timeout));
	assert_true(clock_wall() - started < SECONDS(1));
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(events_tell_of_it)
{
	struct result r, k;

	last_event();
	DOES(r, 0, service_create(S, &plain, done, &r));
	assert_has(last_event(), "Created: ");
	DOES(k, 0, service_kill(S, &alice, strv_of(r.id), done, &k));
	assert_has(last_event(), "Killed: ");
}

/* --- refused before anything is made --- */

TEST(bad_requests_make_nothing)
{
	struct create_request req = plain;
	unsigned posts = cluster_calls(rig.cluster, "POST", "replicasets");
	struct result r;

	req.template_id = "nope";
	DOES(r, ERR_NOT_FOUND, service_create(S, &req, done, &r));
	req.template_id = "ba se";
	DOES(r, ERR_INVALID, service_create(S, &req, done, &r));
	assert_int_equal(cluster_calls(rig.cluster, "POST", "replicasets"), posts);
}

/* It passes the check when it is stored, and breaks with a template that the check does not know.
 */
TEST(a_broken_blueprint_is_not_the_callers_fault)
{
	struct result r;
	struct strbuf broken;
	CLEANUP(xfreep)
	char *good = xstrdup(json_get_str(
	    cluster_get(rig.cluster, "configmaps", "config"), "data." CONFIG_BLUEPRINT));

	strbuf_init(&broken, 64 * 1024);
	strbuf_addf(&broken,
	    "{{if eq .Sandbox.Template \"base\"}}\nkind: Pod\n{{else}}\n%s\n{{end}}", good);
	cluster_merge(rig.cluster, "configmaps", "config",
	    json_pack("{s:{s:s}}", "data", CONFIG_BLUEPRINT, broken.p));
	strbuf_done(&broken);
	rig_turns(&rig, 50);
	DOES(r, ERR_INTERNAL, service_create(S, &plain, done, &r));
	assert_has(r.msg, "blueprint");
	cluster_merge(rig.cluster, "configmaps", "config",
	    json_pack("{s:{s:s}}", "data", CONFIG_BLUEPRINT, good));
	rig_turns(&rig, 50);
	DOES(r, 0, service_create(S, &plain, done, &r));
}

/* --- Kubernetes refuses, or does not answer --- */

static void
post_fails(int status, const char *message, bool after)
{
	cluster_fail(rig.cluster,
	    &(struct cluster_fault){ .method = "POST",
	        .plural = "replicasets",
	        .status = status,
	        .message = message,
	        .reason = status == 409 ? "AlreadyExists" : NULL,
	        .after = after,
	        .times = 1 });
}

TEST(quota_on_the_object_itself)
{
	struct result r;

	post_fails(403, "replicasets is forbidden: exceeded quota: many", false);
	DOES(r, ERR_LIMIT, service_create(S, &plain, done, &r));
	assert_has(r.msg, "exceeded quota");
}

TEST(kubernetes_away)
{
	struct result r;

	cluster_down(rig.cluster);
	rig_turns(&rig, 5);
	DOES(r, ERR_UNAVAILABLE, service_create(S, &plain, done, &r));
	cluster_up(rig.cluster);
	rig_advance(&rig, SECONDS(60));
	DOES(r, 0, service_create(S, &plain, done, &r));
}

TEST(a_lost_answer_leaves_nothing)
{
	struct result r;

	rig.kubelet = false;
	post_fails(0, NULL, true); /* made, then the connection broke */
	DOES(r, ERR_UNAVAILABLE, service_create(S, &plain, done, &r));
	assert_removed();
	post_fails(409, "already exists", true); /* the same, said twice by the transport */
	DOES(r, ERR_UNAVAILABLE, service_create(S, &plain, done, &r));
	assert_removed();
	post_fails(504, "timeout", true);
	DOES(r, ERR_UNAVAILABLE, service_create(S, &plain, done, &r));
	assert_removed();
}

/* --- cancelled --- */

TEST(cancelled_before_kubernetes_answered)
{
	struct result r;

	cluster_hold(rig.cluster, "POST", "replicasets");
	START(r, service_create(S, &plain, done, &r));
	rig_turns(&rig, 50);
	assert_int_equal(cluster_held(rig.cluster), 1);
	service_cancel(r.op);
	rig_turns(&rig, 50);
	cluster_release(rig.cluster);
	assert_removed();
	assert_int_equal(r.n, 0);
	assert_int_equal(cluster_calls(rig.cluster, "DELETE", "replicasets") > 0, 1);
}

TEST(cancelled_in_the_turn_that_began_it)
{
	struct result r;

	START(r, service_create(S, &plain, done, &r));
	service_cancel(r.op);
	assert_removed();
	assert_int_equal(r.n, 0);
}

TEST(cancelled_while_it_waits_for_the_pod)
{
	struct result r;

	create_and_wait(&r);
	service_cancel(r.op);
	assert_removed();
	assert_int_equal(r.n, 0);
}

TEST(cancelled_while_envd_takes_its_settings)
{
	struct result r;
	unsigned inits = rig.inits;

	rig.envd_hold = true;
	START(r, service_create(S, &plain, done, &r));
	rig_until(&rig, &rig.inits, inits + 1);
	service_cancel(r.op);
	assert_removed();
	assert_int_equal(r.n, 0);
}

TEST(a_client_that_hangs_up_leaves_nothing)
{
	int fd;

	rig.envd_hold = true;
	fd = rig_send(&rig, RIG_KEY_A, "POST", "/sandboxes", "", "{\"templateID\":\"base\"}");
	rig_turns(&rig, 100);
	assert_int_equal(sandboxes(), 1);
	close(fd);
	assert_removed();
}

TEST(a_client_that_waits_gets_its_sandbox)
{
	struct reply p;
	int fd;

	rig.kubelet = false;
	fd = rig_send(&rig, RIG_KEY_A, "POST", "/sandboxes", "", "{\"templateID\":\"base\"}");
	rig_advance(&rig, SECONDS(40));
	assert_int_equal(sandboxes(), 1);
	rig_pod(&rig, rig_only_id(&rig), "p", rig_status_running(&rig, 0));
	p = rig_receive(&rig, fd, false);
	assert_int_equal(p.status, 201);
	reply_done(&p);
	cluster_remove(rig.cluster, "pods", "p");
}

/* --- what will not heal --- */

TEST(image_errors_are_given_three_chances)
{
	struct result r;
	const char *id = create_and_wait(&r);

	last_event();
	rig_pod(&rig, id, "p", rig_status_waiting("ErrImagePull", "no such image"));
	rig_turns(&rig, 20);
	rig_pod(&rig, id, "p", rig_status_waiting("ErrImagePull", "no such image")); /* the same */
	rig_turns(&rig, 20);
	rig_pod(&rig, id, "p", rig_status_waiting("ImagePullBackOff", "back-off"));
	rig_turns(&rig, 20);
	assert_int_equal(r.n, 0);
	rig_pod(&rig, id, "p", rig_status_waiting("ErrImagePull", "no such image"));
	ENDS(r, ERR_INVALID);
	assert_string_equal(r.msg, "ErrImagePull: no such image");
	assert_removed();
	assert_has(last_event(), "StartFailed: ErrImagePull");
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(an_image_that_comes_at_the_second_try)
{
	struct result r;
	const char *id = create_and_wait(&r);

	rig_pod(&rig, id, "p", rig_status_waiting("ErrImagePull", "hiccup"));
	rig_turns(&rig, 20);
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	ENDS(r, 0);
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(what_is_hopeless_ends_at_once)
{
	static const struct {
		const char *reason;
		enum err_code code;
	} cases[] = {
		{ "InvalidImageName", ERR_INVALID },
		{ "ErrImageNeverPull", ERR_INVALID },
		{ "CreateContainerConfigError", ERR_INTERNAL },
		{ "CrashLoopBackOff", ERR_INTERNAL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct result r;
		const char *id = create_and_wait(&r);

		rig_pod(&rig, id, "p", rig_status_waiting(cases[i].reason, "because"));
		ENDS(r, cases[i].code);
		assert_has(r.msg, cases[i].reason);
		assert_has(r.msg, "because");
		assert_removed();
		cluster_remove(rig.cluster, "pods", "p");
		rig_turns(&rig, 20);
	}
}

TEST(a_pod_that_dies_while_starting)
{
	struct result r;
	const char *id = create_and_wait(&r);
	unsigned inits = rig.inits;

	rig.envd_hold = true;
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	rig_until(&rig, &rig.inits, inits + 1);
	rig_pod(&rig, id, "p", rig_status_waiting("CrashLoopBackOff", "back-off 10s"));
	ENDS(r, ERR_INTERNAL);
	assert_removed();
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(no_room_for_a_while)
{
	struct result r;
	const char *id = create_and_wait(&r);

	rig_pod(&rig, id, "p", rig_status_unschedulable("0/1 nodes: insufficient memory"));
	rig_advance(&rig, SERVICE_UNSCHEDULABLE - SECONDS(2));
	assert_int_equal(r.n, 0);
	rig_advance(&rig, SECONDS(3));
	assert_int_equal(r.n, 1);
	assert_int_equal(r.code, ERR_UNAVAILABLE);
	assert_has(r.msg, "insufficient memory");
	assert_removed();
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(room_that_comes_in_time)
{
	struct result r;
	const char *id = create_and_wait(&r);

	rig_pod(&rig, id, "p", rig_status_unschedulable("0/1 nodes"));
	rig_advance(&rig, SERVICE_UNSCHEDULABLE - SECONDS(2));
	rig_pod(&rig, id, "p", rig_status_waiting("ContainerCreating", ""));
	rig_advance(&rig, SECONDS(10));
	assert_int_equal(r.n, 0);
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	ENDS(r, 0);
	cluster_remove(rig.cluster, "pods", "p");
}

static void
refuse_pods(const char *id, const char *message)
{
	char rs[64];

	snprintf(rs, sizeof(rs), "sbx-%s", id);
	cluster_merge(rig.cluster, "replicasets", rs,
	    json_pack("{s:{s:[{s:s, s:s, s:s}]}}", "status", "conditions", "type", "ReplicaFailure",
	        "status", "True", "message", message));
}

TEST(quota_on_the_pod)
{
	struct result r;

	refuse_pods(create_and_wait(&r), "pods is forbidden: exceeded quota: many");
	ENDS(r, ERR_LIMIT);
	assert_has(r.msg, "exceeded quota");
	assert_removed();
	/* Another refusal is no limit of the caller's. */
	refuse_pods(create_and_wait(&r), "admission webhook said no");
	ENDS(r, ERR_INTERNAL);
	assert_has(r.msg, "webhook");
	assert_removed();
}

TEST(envd_that_refuses)
{
	static const struct {
		int status;
		enum err_code code;
	} cases[] = { { 500, ERR_INTERNAL }, { 401, ERR_UNAUTHORIZED }, { 409, ERR_CONFLICT },
		{ 504, ERR_TIMEOUT } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct result r;

		rig.envd_status = cases[i].status;
		DOES(r, cases[i].code, service_create(S, &plain, done, &r));
		assert_removed();
	}
}

TEST(a_start_has_an_end)
{
	struct result r;

	create_and_wait(&r);
	rig_advance(&rig, SERVICE_START_TIMEOUT - SECONDS(2));
	assert_int_equal(r.n, 0);
	rig_advance(&rig, SECONDS(3));
	assert_int_equal(r.n, 1);
	assert_int_equal(r.code, ERR_TIMEOUT);
	assert_has(r.msg, "its pod has not appeared");
	assert_removed();
}

TEST(a_start_has_an_end_also_while_envd_is_asked)
{
	struct result r;
	const char *id = create_and_wait(&r);
	char ip[16];

	memcpy(ip, rig.envd_ip, sizeof(ip));
	snprintf(rig.envd_ip, sizeof(rig.envd_ip), "127.254.254.254"); /* nothing listens there */
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	memcpy(rig.envd_ip, ip, sizeof(ip));
	rig_advance(&rig, SERVICE_START_TIMEOUT + SECONDS(5)); /* every timer is late */
	ENDS(r, ERR_TIMEOUT);
	assert_removed();
	cluster_remove(rig.cluster, "pods", "p");
}

/* --- somebody else meanwhile --- */

TEST(killed_while_it_starts)
{
	struct result r, k;
	const char *id = create_and_wait(&r);

	DOES(k, 0, service_kill(S, &alice, strv_of(id), done, &k));
	ENDS(r, ERR_NOT_FOUND);
	assert_removed();
}

TEST(a_pause_waits_for_the_start)
{
	struct result r, p;
	const char *id = create_and_wait(&r);

	START(p, service_pause(S, &alice, strv_of(id), done, &p));
	rig_turns(&rig, 50);
	assert_int_equal(p.n, 0);
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	ENDS(r, 0);
	ENDS(p, 0);
	assert_string_equal(rig_annotation(&rig, id, ANNOTATION_DESIRED), "stopped");
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(a_pause_does_not_wait_for_ever)
{
	struct result r, p;

	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "stuck", .desired = "stopped" });
	rig.kubelet = false;
	START(r, service_connect(S, &alice, STRV("stuck"), 100, done, &r));
	rig_turns(&rig, 50);
	START(p, service_pause(S, &alice, STRV("stuck"), done, &p));
	rig_advance(&rig, SERVICE_PAUSE_WAIT + SECONDS(1));
	ENDS(p, 0);
	ENDS(r, ERR_CONFLICT);
	assert_string_equal(rig_annotation(&rig, "stuck", ANNOTATION_DESIRED), "stopped");
}

TEST(killed_while_a_pause_waits)
{
	struct result r, p, k;
	const char *id = create_and_wait(&r);

	START(p, service_pause(S, &alice, strv_of(id), done, &p));
	rig_turns(&rig, 20);
	DOES(k, 0, service_kill(S, &alice, strv_of(id), done, &k));
	ENDS(p, ERR_NOT_FOUND);
	ENDS(r, ERR_NOT_FOUND);
}

TEST(connect_joins_a_start)
{
	struct result r, c;
	const char *id = create_and_wait(&r);

	START(c, service_connect(S, &alice, strv_of(id), 1, done, &c));
	rig_turns(&rig, 50);
	assert_int_equal(c.n, 0);
	rig_pod(&rig, id, "p", rig_status_running(&rig, 0));
	ENDS(r, 0);
	ENDS(c, 0);
	assert_false(c.resumed);
	cluster_remove(rig.cluster, "pods", "p");
}

TEST(a_resume_that_fails_keeps_the_sandbox)
{
	struct result r;

	rig_sandbox(&rig, &(struct rig_sandbox){ .id = "keep", .desired = "stopped" });
	rig.kubelet = false;
	START(r, service_connect(S, &alice, STRV("keep"), 100, done, &r));
	rig_turns(&rig, 50);
	rig_pod(&rig, "keep", "p", rig_status_waiting("CrashLoopBackOff", "back-off"));
	ENDS(r, ERR_INTERNAL);
	rig_turns(&rig, 50);
	assert_non_null(cluster_get(rig.cluster, "replicasets", "sbx-keep"));
	cluster_remove(rig.cluster, "pods", "p");
}

#define C(name) cmocka_unit_test_teardown(name, clean)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		C(create_ends_when_envd_has_its_settings),
		C(envd_that_listens_late_is_asked_again),
		C(a_restart_in_the_middle_is_initialised_anew),
		C(somebody_else_may_initialise_it),
		C(a_slow_start_costs_none_of_the_time_that_was_asked_for),
		C(events_tell_of_it),
		C(bad_requests_make_nothing),
		C(a_broken_blueprint_is_not_the_callers_fault),
		C(quota_on_the_object_itself),
		C(kubernetes_away),
		C(a_lost_answer_leaves_nothing),
		C(cancelled_before_kubernetes_answered),
		C(cancelled_in_the_turn_that_began_it),
		C(cancelled_while_it_waits_for_the_pod),
		C(cancelled_while_envd_takes_its_settings),
		C(a_client_that_hangs_up_leaves_nothing),
		C(a_client_that_waits_gets_its_sandbox),
		C(image_errors_are_given_three_chances),
		C(an_image_that_comes_at_the_second_try),
		C(what_is_hopeless_ends_at_once),
		C(a_pod_that_dies_while_starting),
		C(no_room_for_a_while),
		C(room_that_comes_in_time),
		C(quota_on_the_pod),
		C(envd_that_refuses),
		C(a_start_has_an_end),
		C(a_start_has_an_end_also_while_envd_is_asked),
		C(killed_while_it_starts),
		C(a_pause_waits_for_the_start),
		C(a_pause_does_not_wait_for_ever),
		C(killed_while_a_pause_waits),
		C(connect_joins_a_start),
		C(a_resume_that_fails_keeps_the_sandbox),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
