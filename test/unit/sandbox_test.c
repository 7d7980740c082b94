#include "t.h"

#include <malloc.h>

#include "base/clock.h"
#include "base/json.h"
#include "domain/sandbox.h"

#define ID "i0123456789abcdefghij"
#define UID "aef134ef-7aa1-945e-9399-7df9a4ad0c3f"

static json_t *
json_of(const char *text)
{
	struct err e;
	json_t *v;

	assert_ok(e, json_parse(strv_of(text), 1 << 20, &v, &e));
	return v;
}

static struct sandbox *
decode(const char *text)
{
	json_t *v = json_of(text);
	struct sandbox *s;
	struct err e;

	assert_ok(e, sandbox_decode(v, &s, &e));
	json_decref(v); /* nothing may point into it */
	return s;
}

static const char *const full =
    "{\"metadata\":{\"name\":\"sbx-" ID "\",\"uid\":\"" UID "\",\"resourceVersion\":\"77\","
    "\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
    "\"labels\":{\"owner\":\"agent-sandbox\",\"sbx-id\":\"" ID "\",\"sbx-user\":\"team\","
    "\"sbx-template\":\"base-x\",\"sbx-pool\":\"false\"},"
    "\"annotations\":{\"sandbox-data\":\"{\\\"metadata\\\":{\\\"a\\\":\\\"1\\\",\\\"b\\\":"
    "\\\"\\\",\\\"n\\\":5},\\\"template\\\":\\\"base:x\\\",\\\"secure\\\":true,"
    "\\\"network\\\":{\\\"allowPublicTraffic\\\":false,\\\"maskRequestHost\\\":\\\"h.io\\\"}}\","
    "\"agent-sandbox.io/desired\":\"stopped\",\"agent-sandbox.io/generation\":\"7\","
    "\"agent-sandbox.io/started-at\":\"2026-01-02T03:04:06.000001Z\","
    "\"agent-sandbox.io/end-at\":\"2026-01-02T04:00:00.5Z\","
    "\"agent-sandbox.io/remaining\":\"30\",\"agent-sandbox.io/on-end\":\"pause\","
    "\"agent-sandbox.io/idle-after\":\"60\",\"agent-sandbox.io/auto-resume\":\"true\","
    "\"agent-sandbox.io/sealed\":\"s\",\"agent-sandbox.io/ready\":\"u/1\","
    "\"agent-sandbox.io/failed\":\"why\",\"agent-sandbox.io/rev\":\"r1\"}},"
    "\"spec\":{\"replicas\":0}}";

TEST(every_field)
{
	struct sandbox *s = decode(full);
	int64_t t;

	assert_string_equal(s->name, "sbx-" ID);
	assert_string_equal(s->id, ID);
	assert_string_equal(s->uid, UID);
	assert_string_equal(s->tenant, "team");
	assert_string_equal(s->template_id, "base:x");
	assert_string_equal(s->resource_version, "77");
	assert_int_equal(s->desired, DESIRED_STOPPED);
	assert_int_equal(s->generation, 7);
	assert_int_equal(time_parse(STRV("2026-01-02T03:04:05Z"), &t), 0);
	assert_true(s->created == t);
	assert_true(s->started == t + NS_PER_S + NS_PER_US);
	assert_int_equal(time_parse(STRV("2026-01-02T04:00:00.5Z"), &t), 0);
	assert_true(s->end_at == t);
	assert_int_equal(s->remaining, 30);
	assert_int_equal(s->on_end, ON_END_PAUSE);
	assert_int_equal(s->idle_after, 60);
	assert_true(s->auto_resume);
	assert_false(s->pool);
	assert_false(s->terminating);
	assert_true(s->secure);
	assert_int_equal(s->replicas, 0);
	assert_string_equal(s->ready, "u/1");
	assert_string_equal(s->failed, "why");
	assert_string_equal(s->sealed, "s");
	assert_string_equal(s->rev, "r1");
	assert_has(s->data, "maskRequestHost");
	assert_int_equal(s->metadata_n, 2);
	assert_string_equal(s->metadata[0].key, "a");
	assert_string_equal(s->metadata[0].value, "1");
	assert_string_equal(s->metadata[1].value, "");
	assert_true(s->private_ingress);
	assert_string_equal(s->mask_host, "h.io");
	sandbox_free(s);
	sandbox_free(NULL);
}

TEST(defaults)
{
	struct sandbox *s = decode("{\"metadata\":{\"name\":\"n\",\"labels\":{\"sbx-id\":\"x\"},"
	                           "\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"}}");

	assert_string_equal(s->id, "x");
	assert_string_equal(s->name, "n");
	assert_string_equal(s->tenant, "");
	assert_string_equal(s->template_id, "");
	assert_int_equal(s->desired, DESIRED_RUNNING);
	assert_int_equal(s->generation, 1);
	assert_true(s->started == s->created);
	assert_true(s->end_at == TIME_NEVER);
	assert_true(s->remaining == TIME_NEVER);
	assert_int_equal(s->on_end, ON_END_KILL);
	assert_int_equal(s->idle_after, 0);
	assert_false(s->auto_resume);
	assert_true(s->terminating);
	assert_int_equal(s->replicas, 1);
	assert_string_equal(s->ready, "");
	assert_null(s->failed);
	assert_null(s->sealed);
	assert_string_equal(s->data, "");
	assert_int_equal(s->metadata_n, 0);
	assert_false(s->private_ingress);
	sandbox_free(s);
	s = decode("{\"metadata\":{\"labels\":{\"sbx-id\":\"x\",\"sbx-pool\":\"true\"},"
	           "\"annotations\":{\"agent-sandbox.io/end-at\":\"never\","
	           "\"agent-sandbox.io/remaining\":\"never\",\"agent-sandbox.io/generation\":\"x\","
	           "\"agent-sandbox.io/idle-after\":\"-5\",\"sandbox-data\":\"[broken\","
	           "\"agent-sandbox.io/desired\":\"dreaming\"}}}");
	assert_int_equal(s->desired, DESIRED_WARM);
	assert_true(s->end_at == TIME_NEVER);
	assert_int_equal(s->generation, 1);
	assert_int_equal(s->idle_after, 0);
	assert_string_equal(s->data, "[broken");
	sandbox_free(s);
}

TEST(no_id_is_an_error)
{
	static const char *const bad[] = { "{}", "[]", "{\"metadata\":{\"name\":\"n\"}}",
		"{\"metadata\":{\"labels\":{\"sbx-id\":\"A\"}}}",
		"{\"metadata\":{\"labels\":{\"sbx-id\":\"\"}}}",
		"{\"metadata\":{\"labels\":{\"sbx-id\":5}}}" };
	struct sandbox *s;
	struct pod *p;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *v = json_of(bad[i]);

		assert_fails(e, ERR_INVALID, sandbox_decode(v, &s, &e));
		assert_fails(e, ERR_INVALID, pod_decode(v, &p, &e));
		json_decref(v);
	}
}

TEST(equal_data_is_shared)
{
	struct sandbox *a = decode(full), *b = decode(full), *c;

	assert_ptr_equal(a->data, b->data);
	assert_ptr_equal(a->metadata, b->metadata);
	sandbox_free(a);
	assert_has(b->data, "maskRequestHost");
	c = decode(full);
	assert_ptr_equal(b->data, c->data);
	sandbox_free(b);
	sandbox_free(c);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED
#endif

/* Of 512 bytes for each sandbox above its own texts, this is the part of the object; the rest is
 * for the cache and the view. */
TEST(memory)
{
	enum { N = 20000 };
	static struct sandbox *all[N];
	size_t own = 0, before, used;
	json_t *v, *meta;
	struct err e;

#ifdef SANITIZED
	skip();
#endif
	if (t_valgrind())
		skip();
	v = json_of(full);
	meta = json_object_get(v, "metadata");
	before = mallinfo2().uordblks;
	for (int i = 0; i < N; i++) {
		char id[SANDBOX_ID_LEN + 1], name[SANDBOX_ID_LEN + 5];

		sandbox_id_new(id);
		snprintf(name, sizeof(name), "sbx-%s", id);
		json_set_str(json_object_get(meta, "labels"), "sbx-id", id);
		json_set_str(meta, "name", name);
		assert_ok(e, sandbox_decode(v, &all[i], &e));
		own += strlen(name) + strlen(UID) + strlen("team") + strlen("77") + 4;
	}
	used = mallinfo2().uordblks - before;
	printf("%zu bytes each, %zu above their own texts\n", used / N, (used - own) / N);
	assert_true((used - own) / N <= 250);
	for (int i = 0; i < N; i++)
		sandbox_free(all[i]);
	json_decref(v);
}

static struct pod *
pod(const char *text)
{
	json_t *v = json_of(text);
	struct pod *p;
	struct err e;

	assert_ok(e, pod_decode(v, &p, &e));
	json_decref(v);
	return p;
}

#define POD_META                                                                                   \
	"\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"resourceVersion\":\"9\","                    \
	"\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"labels\":{\"sbx-id\":\"x\"}}"

TEST(running_pod)
{
	struct pod *p =
	    pod("{" POD_META ",\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\","
	        "\"podIP\":\"10.0.0.5\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"
	        "{\"type\":\"PodScheduled\",\"status\":\"True\",\"message\":\"no\"}],"
	        "\"initContainerStatuses\":[{\"name\":\"envd-install\",\"state\":{\"terminated\":"
	        "{\"exitCode\":0,\"reason\":\"Completed\"}}}],"
	        "\"containerStatuses\":[{\"name\":\"side\",\"restartCount\":9,\"state\":{}},"
	        "{\"name\":\"sandbox\",\"restartCount\":2,\"state\":{\"running\":{\"startedAt\":"
	        "\"x\"}},"
	        "\"lastState\":{\"terminated\":{\"reason\":\"OOMKilled\",\"exitCode\":137}}}]}}");

	assert_string_equal(p->name, "p");
	assert_string_equal(p->uid, "u");
	assert_string_equal(p->sandbox_id, "x");
	assert_string_equal(p->resource_version, "9");
	assert_string_equal(p->ip, "10.0.0.5");
	assert_string_equal(p->node, "n1");
	assert_int_equal(p->phase, POD_RUNNING);
	assert_true(p->ready);
	assert_true(p->container_running);
	assert_false(p->terminating);
	assert_int_equal(p->restarts, 2);
	assert_string_equal(p->waiting_reason, "");
	assert_string_equal(p->unschedulable, "");
	assert_string_equal(p->exit_reason, "OOMKilled");
	assert_int_equal(p->exit_code, 137);
	assert_true(p->created > 0);
	pod_free(p);
	pod_free(NULL);
}

TEST(pods_in_trouble)
{
	struct pod *p = pod("{" POD_META "}");

	assert_int_equal(p->phase, POD_PENDING);
	assert_string_equal(p->ip, "");
	assert_false(p->container_running);
	pod_free(p);
	p = pod("{" POD_META ",\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":"
	        "\"PodScheduled\",\"status\":\"False\",\"message\":\"0/3 nodes\"}]}}");
	assert_string_equal(p->unschedulable, "0/3 nodes");
	pod_free(p);
	p = pod("{" POD_META ",\"status\":{\"containerStatuses\":[{\"name\":\"sandbox\",\"state\":"
	        "{\"waiting\":{\"reason\":\"PodInitializing\"}}}],\"initContainerStatuses\":[{"
	        "\"name\":\"i\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":"
	        "\"no such image\"}}}]}}");
	assert_string_equal(p->waiting_reason, "ErrImagePull");
	assert_string_equal(p->waiting_message, "no such image");
	pod_free(p);
	p = pod("{" POD_META ",\"status\":{\"containerStatuses\":[{\"name\":\"sandbox\",\"state\":"
	        "{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}}");
	assert_string_equal(p->waiting_reason, "");
	pod_free(p);
	p = pod("{" POD_META ",\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}");
	assert_int_equal(p->phase, POD_FAILED);
	assert_string_equal(p->exit_reason, "Evicted");
	pod_free(p);
	p = pod("{" POD_META ",\"status\":{\"phase\":\"Odd\",\"containerStatuses\":[{\"name\":"
	        "\"sandbox\",\"state\":{\"terminated\":{\"exitCode\":3,\"reason\":\"Error\"}}}]}}");
	assert_int_equal(p->phase, POD_UNKNOWN);
	assert_int_equal(p->exit_code, 3);
	pod_free(p);
}

/* --- state --- */

static const struct pod live = { .name = "p",
	.uid = "u",
	.sandbox_id = "x",
	.ip = "10.0.0.1",
	.node = "",
	.phase = POD_RUNNING,
	.ready = true,
	.container_running = true,
	.restarts = 1,
	.created = 5 };

static enum sandbox_state
state_of(enum sandbox_desired desired, const char *ready, const struct pod *p)
{
	struct sandbox s = { .desired = desired, .ready = ready };
	const struct pod *pods[] = { p };

	return sandbox_state(&s, pods, p ? 1 : 0);
}

#define assert_state(want, got)                                                                    \
	assert_string_equal(sandbox_state_name(want), sandbox_state_name(got))

TEST(states)
{
	struct sandbox s = { .desired = DESIRED_RUNNING, .ready = "u/1" };
	const struct pod *pods[] = { &live };
	struct pod p = live;

	assert_state(SANDBOX_RUNNING, state_of(DESIRED_RUNNING, "u/1", &live));
	assert_state(SANDBOX_CREATING, state_of(DESIRED_RUNNING, "", &live));
	assert_state(SANDBOX_CREATING, state_of(DESIRED_RUNNING, "", NULL));
	assert_state(SANDBOX_CREATING, state_of(DESIRED_RUNNING, "malformed", &live));
	assert_state(SANDBOX_RESUMING, state_of(DESIRED_RUNNING, "other/1", &live));
	assert_state(SANDBOX_RESUMING, state_of(DESIRED_RUNNING, "u/1", NULL));
	assert_state(SANDBOX_RESTARTING, state_of(DESIRED_RUNNING, "u/0", &live));
	assert_state(SANDBOX_PAUSED, state_of(DESIRED_FROZEN, "u/1", &live));
	assert_state(SANDBOX_PAUSING, state_of(DESIRED_STOPPED, "u/1", &live));
	assert_state(SANDBOX_PAUSED, state_of(DESIRED_STOPPED, "u/1", NULL));
	assert_state(SANDBOX_DELETING, state_of(DESIRED_DELETED, "u/1", &live));
	assert_state(SANDBOX_WARM, state_of(DESIRED_WARM, "", &live));
	assert_state(SANDBOX_WARMING, state_of(DESIRED_WARM, "", NULL));
	p.ready = false;
	assert_state(SANDBOX_WARMING, state_of(DESIRED_WARM, "", &p));
	/* The Ready condition is not asked for: envd is. */
	assert_state(SANDBOX_RUNNING, state_of(DESIRED_RUNNING, "u/1", &p));
	p = live;
	p.container_running = false;
	assert_state(SANDBOX_RESTARTING, state_of(DESIRED_RUNNING, "u/1", &p));
	p.terminating = true;
	assert_state(SANDBOX_RESUMING, state_of(DESIRED_RUNNING, "u/1", &p));
	assert_state(SANDBOX_PAUSING, state_of(DESIRED_STOPPED, "u/1", &p));
	p = live;
	p.ip = "";
	assert_state(SANDBOX_RESTARTING, state_of(DESIRED_RUNNING, "u/1", &p));
	s.failed = "no image";
	assert_state(SANDBOX_FAILED, sandbox_state(&s, pods, 1));
	s.terminating = true;
	assert_state(SANDBOX_DELETING, sandbox_state(&s, pods, 1));
}

TEST(the_newest_live_pod_serves)
{
	struct pod old = live, gone = live, fresh = live;
	const struct pod *pods[] = { &gone, &old, &fresh };

	old.created = 1;
	old.uid = "old";
	gone.created = 9;
	gone.terminating = true;
	assert_ptr_equal(sandbox_live_pod(pods, 3), &fresh);
	fresh.container_running = false;
	assert_ptr_equal(sandbox_live_pod(pods, 3), &old);
	old.ip = "";
	assert_null(sandbox_live_pod(pods, 3));
	assert_null(sandbox_live_pod(NULL, 0));
}

TEST(moves)
{
	for (int i = 0; i < SANDBOX_STATE_COUNT; i++) {
		enum sandbox_state s = (enum sandbox_state)i;

		assert_true(sandbox_state_name(s)[0] != '\0');
		assert_true(sandbox_move_allowed(s, s));
		assert_true(sandbox_move_allowed(s, SANDBOX_DELETING));
		assert_int_equal(sandbox_move_allowed(SANDBOX_DELETING, s), s == SANDBOX_DELETING);
		/* Nothing that has had an owner becomes warm. */
		if (s != SANDBOX_WARM && s != SANDBOX_WARMING) {
			assert_false(sandbox_move_allowed(s, SANDBOX_WARM));
			assert_false(sandbox_move_allowed(s, SANDBOX_WARMING));
		}
	}
	assert_true(sandbox_move_allowed(SANDBOX_WARM, SANDBOX_CREATING));
	assert_true(sandbox_move_allowed(SANDBOX_CREATING, SANDBOX_RUNNING));
	assert_true(sandbox_move_allowed(SANDBOX_RUNNING, SANDBOX_PAUSING));
	assert_true(sandbox_move_allowed(SANDBOX_PAUSING, SANDBOX_PAUSED));
	assert_true(sandbox_move_allowed(SANDBOX_PAUSED, SANDBOX_RESUMING));
	assert_false(sandbox_move_allowed(SANDBOX_RUNNING, SANDBOX_CREATING));
	assert_false(sandbox_move_allowed(SANDBOX_FAILED, SANDBOX_RUNNING));
}

TEST(ids)
{
	char a[SANDBOX_ID_LEN + 1], b[SANDBOX_ID_LEN + 1], longest[SANDBOX_ID_MAX + 1];

	sandbox_id_new(a);
	sandbox_id_new(b);
	assert_int_equal(strlen(a), SANDBOX_ID_LEN);
	assert_int_equal(a[0], 'i');
	assert_true(sandbox_id_valid(strv_of(a)));
	assert_string_not_equal(a, b);
	memset(longest, 'z', sizeof(longest));
	assert_true(sandbox_id_valid((struct strv){ longest, SANDBOX_ID_MAX }));
	assert_false(sandbox_id_valid((struct strv){ longest, SANDBOX_ID_MAX + 1 }));
	assert_false(sandbox_id_valid(STRV("")));
	assert_false(sandbox_id_valid(STRV("a-b")));
	assert_false(sandbox_id_valid(STRV("A")));
	assert_false(sandbox_id_valid((struct strv){ "a\0", 2 }));
}

T_MAIN(T(every_field), T(defaults), T(no_id_is_an_error), T(equal_data_is_shared), T(memory),
    T(running_pod), T(pods_in_trouble), T(states), T(the_newest_live_pod_serves), T(moves), T(ids))
