/* The work queue: due times, one worker a key, nothing lost, back-off. */
#include "base/alloc.h"
#include "base/clock.h"
#include "controller/queue.h"
#include "t.h"

#define MAX 64

static struct {
	char key[MAX][16];
	size_t n;
} seen;

static struct loop *loop;
static struct queue *queue;

static void
work(struct strv key, void *arg UNUSED)
{
	assert_true(seen.n < MAX);
	assert_true(key.n < sizeof(seen.key[0]));
	memcpy(seen.key[seen.n], key.p, key.n);
	seen.key[seen.n++][key.n] = '\0';
}

/* Moves the clock and lets the loop see it. */
static void
pass(int64_t ns)
{
	clock_fake_advance(ns);
	queue_add(queue, STRV("nudge"), INT64_MAX - 1); /* due never; wakes the queue */
	for (int i = 0; i < 3; i++)
		loop_once(loop, false);
}

static int
setup(void **state UNUSED)
{
	clock_fake_start(SECONDS(10), SECONDS(1000));
	memset(&seen, 0, sizeof(seen));
	loop = loop_new();
	queue = queue_new(loop, work, NULL);
	queue_run(queue, true);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	queue_free(queue);
	loop_free(loop);
	clock_fake_end();
	return 0;
}

TEST(goes_by_due_time)
{
	queue_add(queue, STRV("late"), SECONDS(1002));
	queue_add(queue, STRV("early"), SECONDS(1001));
	queue_add(queue, STRV("now"), 0);
	pass(0);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.key[0], "now");
	pass(SECONDS(5));
	assert_int_equal(seen.n, 3);
	assert_string_equal(seen.key[1], "early");
	assert_string_equal(seen.key[2], "late");
}

TEST(earlier_time_wins)
{
	queue_add(queue, STRV("a"), SECONDS(1050));
	queue_add(queue, STRV("a"), SECONDS(1001));
	queue_add(queue, STRV("a"), SECONDS(1090));
	pass(SECONDS(1));
	assert_int_equal(seen.n, 1);
}

TEST(never_twice_at_once_and_nothing_lost)
{
	queue_add(queue, STRV("a"), 0);
	pass(0);
	queue_add(queue, STRV("a"), 0);
	pass(SECONDS(1));
	assert_int_equal(seen.n, 1);
	assert_int_equal(queue_working(queue), 1);
	queue_done(queue, STRV("a"), false);
	pass(0);
	assert_int_equal(seen.n, 2);
	queue_done(queue, STRV("a"), false);
	pass(SECONDS(1));
	assert_int_equal(seen.n, 2);
	assert_int_equal(queue_depth(queue), 1); /* the nudge */
}

TEST(failures_back_off)
{
	queue_add(queue, STRV("a"), 0);
	pass(0);
	queue_done(queue, STRV("a"), true);
	pass(QUEUE_BACKOFF_FIRST - 1);
	assert_int_equal(seen.n, 1);
	pass(1);
	assert_int_equal(seen.n, 2);
	queue_done(queue, STRV("a"), true);
	pass(QUEUE_BACKOFF_FIRST);
	assert_int_equal(seen.n, 2);
	pass(QUEUE_BACKOFF_FIRST);
	assert_int_equal(seen.n, 3);
	for (int i = 0; i < 30; i++) {
		queue_done(queue, STRV("a"), true);
		pass(QUEUE_BACKOFF_LAST);
		assert_int_equal(seen.n, (size_t)i + 4);
	}
}

TEST(bounded_work_at_once)
{
	char key[16];

	for (int i = 0; i < QUEUE_PARALLEL + 5; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		queue_add(queue, strv_of(key), 0);
	}
	pass(0);
	assert_int_equal(seen.n, QUEUE_PARALLEL);
	queue_done(queue, strv_of(seen.key[0]), false);
	pass(0);
	assert_int_equal(seen.n, QUEUE_PARALLEL + 1);
}

TEST(stopped_queue_forgets)
{
	queue_add(queue, STRV("a"), 0);
	pass(0);
	queue_add(queue, STRV("b"), SECONDS(1001));
	queue_run(queue, false);
	queue_done(queue, STRV("a"), true); /* of a job that ends after leadership was lost */
	queue_add(queue, STRV("c"), 0);
	pass(SECONDS(10));
	assert_int_equal(seen.n, 1);
	queue_run(queue, true);
	pass(SECONDS(10));
	assert_int_equal(seen.n, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(goes_by_due_time, setup, teardown),
		cmocka_unit_test_setup_teardown(earlier_time_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    never_twice_at_once_and_nothing_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(failures_back_off, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded_work_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(stopped_queue_forgets, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
