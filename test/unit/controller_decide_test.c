/* The leader's rules, one by one. */
#include "controller/decide.h"
#include "t.h"

#define NOW SECONDS(1000000)

static struct sandbox
running(void)
{
	return (struct sandbox){ .id = "iabc",
		.name = "sbx-iabc",
		.desired = DESIRED_RUNNING,
		.created = NOW - SECONDS(100),
		.started = NOW - SECONDS(100),
		.end_at = NOW + SECONDS(100),
		.ready = "" };
}

static struct pod
live_pod(void)
{
	return (struct pod){ .name = "p",
		.uid = "u1",
		.ip = "10.0.0.1",
		.node = "n",
		.phase = POD_RUNNING,
		.container_running = true,
		.waiting_reason = "",
		.waiting_message = "",
		.unschedulable = "",
		.exit_reason = "",
		.created = NOW - SECONDS(30),
		.running_since = NOW - SECONDS(1) };
}

static struct action
decide_on(const struct sandbox *s, const struct pod *p)
{
	const struct pod *pods[] = { p };
	struct sandbox_entry seen = { .sandbox = s, .pods = pods, .pod_n = p != NULL };

	seen.state = s != NULL ? sandbox_state(s, pods, seen.pod_n) : SANDBOX_DELETING;
	return decide(&seen, NOW);
}

TEST(ready_sandbox_waits_for_its_end)
{
	struct sandbox s = running();
	struct pod p = live_pod();
	struct action a;

	s.ready = "u1/0";
	a = decide_on(&s, &p);
	assert_int_equal(a.type, ACTION_NONE);
	assert_true(a.look_again == s.end_at);
}

TEST(end_of_time_kills_or_pauses)
{
	struct sandbox s = running();
	struct pod p = live_pod();

	s.ready = "u1/0";
	s.end_at = NOW;
	assert_int_equal(decide_on(&s, &p).type, ACTION_END_KILL);
	s.on_end = ON_END_PAUSE;
	assert_int_equal(decide_on(&s, &p).type, ACTION_END_PAUSE);
	s.end_at = NOW + 1;
	assert_int_equal(decide_on(&s, &p).type, ACTION_NONE);
	s.end_at = TIME_NEVER;
	assert_int_equal(decide_on(&s, &p).type, ACTION_NONE);
}

TEST(no_end_falls_due_while_the_start_is_waited_for)
{
	struct sandbox s = running();
	struct pod p = live_pod();
	struct action a;

	s.started = NOW - SECONDS(20);
	s.end_at = NOW - SECONDS(5);
	p.container_running = false;
	p.phase = POD_PENDING;
	a = decide_on(&s, &p);
	assert_int_equal(a.type, ACTION_NONE);
	assert_true(a.look_again == s.started + DECIDE_START_GRACE);
	s.started = NOW - DECIDE_START_GRACE;
	assert_int_equal(decide_on(&s, &p).type, ACTION_END_KILL);
	s.started = NOW - SECONDS(20);
	p = live_pod();
	s.ready = "u1/0"; /* usable: the end counts */
	assert_int_equal(decide_on(&s, &p).type, ACTION_END_KILL);
}

TEST(time_stands_still_while_paused)
{
	struct sandbox s = running();

	s.desired = DESIRED_STOPPED;
	s.end_at = NOW - SECONDS(50);
	assert_int_equal(decide_on(&s, NULL).type, ACTION_NONE);
	assert_true(decide_on(&s, NULL).look_again == DECIDE_NEVER);
}

TEST(creator_has_its_grace_to_initialise)
{
	struct sandbox s = running();
	struct pod p = live_pod();
	struct action a = decide_on(&s, &p);

	assert_int_equal(a.type, ACTION_NONE);
	assert_true(a.look_again == p.running_since + DECIDE_INIT_GRACE);
	p.running_since = NOW - DECIDE_INIT_GRACE;
	a = decide_on(&s, &p);
	assert_int_equal(a.type, ACTION_INIT);
	assert_ptr_equal(a.pod, &p);
}

TEST(restarted_container_is_initialised_at_once)
{
	struct sandbox s = running();
	struct pod p = live_pod();

	s.ready = "u1/0";
	p.restarts = 1;
	assert_int_equal(decide_on(&s, &p).type, ACTION_INIT);
}

TEST(half_made_goes_after_a_while)
{
	struct sandbox s = running();
	struct pod p = live_pod();

	p.container_running = false;
	p.phase = POD_PENDING;
	s.end_at = TIME_NEVER;
	assert_int_equal(decide_on(&s, &p).type, ACTION_NONE);
	s.started = NOW - DECIDE_HALF_MADE;
	assert_int_equal(decide_on(&s, &p).type, ACTION_DROP);
	s.ready = "u0/0"; /* it was usable once: a stuck resume is not half-made */
	assert_int_equal(decide_on(&s, &p).type, ACTION_NONE);
}

TEST(orphans_go_after_their_grace)
{
	struct pod p = live_pod();

	p.created = NOW - SECONDS(1);
	assert_int_equal(decide_on(NULL, &p).type, ACTION_NONE);
	assert_true(decide_on(NULL, &p).look_again == p.created + DECIDE_ORPHAN_GRACE);
	p.created = NOW - DECIDE_ORPHAN_GRACE;
	assert_int_equal(decide_on(NULL, &p).type, ACTION_DELETE_POD);
	p.terminating = true;
	assert_int_equal(decide_on(NULL, &p).type, ACTION_NONE);
}

TEST(deletion_is_finished_once)
{
	struct sandbox s = running();

	s.desired = DESIRED_DELETED;
	assert_int_equal(decide_on(&s, NULL).type, ACTION_FINISH_DELETE);
	s.terminating = true;
	assert_int_equal(decide_on(&s, NULL).type, ACTION_NONE);
}

T_MAIN(T(ready_sandbox_waits_for_its_end), T(end_of_time_kills_or_pauses),
    T(no_end_falls_due_while_the_start_is_waited_for), T(time_stands_still_while_paused),
    T(creator_has_its_grace_to_initialise), T(restarted_container_is_initialised_at_once),
    T(half_made_goes_after_a_while), T(orphans_go_after_their_grace), T(deletion_is_finished_once))
