#include "t.h"

#include "base/clock.h"
#include "base/loop.h"

/* What happened, as a text of letters. */
static struct {
	struct loop *l;
	char order[64];
	int count;
} seen;

static void
note(void *arg)
{
	strncat(seen.order, arg, 4);
	seen.count++;
}

static int
setup(void **state UNUSED)
{
	memset(&seen, 0, sizeof(seen));
	seen.l = loop_new();
	return 0;
}

static int
teardown(void **state UNUSED)
{
	loop_free(seen.l);
	clock_fake_end();
	return 0;
}

static void
stop(void *arg UNUSED)
{
	loop_stop(seen.l);
}

TEST(defer_runs_in_order_at_the_end)
{
	struct defer a, b, c;

	defer_init(&a, note, "a");
	defer_init(&b, note, "b");
	defer_init(&c, note, "c");
	loop_defer(seen.l, &b);
	loop_defer(seen.l, &a);
	loop_defer(seen.l, &b); /* queued already: keeps its place */
	loop_defer(seen.l, &c);
	loop_undefer(seen.l, &a);
	loop_undefer(seen.l, &a);
	assert_string_equal(seen.order, "");
	loop_once(seen.l, true); /* does not wait while something is deferred */
	assert_string_equal(seen.order, "bc");
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "bc");
}

static struct defer again;

static void
queue_again(void *arg)
{
	note(arg);
	loop_defer(seen.l, &again);
}

TEST(defer_from_defer_waits_a_turn)
{
	defer_init(&again, queue_again, "x");
	loop_defer(seen.l, &again);
	for (int i = 1; i <= 3; i++) {
		loop_once(seen.l, true);
		assert_int_equal(seen.count, i);
	}
	loop_undefer(seen.l, &again);
}

TEST(loop_free_bounds_endless_defers)
{
	struct loop *l = seen.l;

	defer_init(&again, queue_again, "");
	loop_defer(l, &again);
	loop_free(l);
	assert_true(seen.count > 1);
	again.queued = false;
	seen.l = loop_new();
}

struct self {
	struct defer d;
};

static void
free_self(void *arg)
{
	note("f");
	xfree(arg);
}

TEST(defer_may_free_its_owner)
{
	struct self *s = xmalloc(sizeof(*s)), *at_end = xmalloc(sizeof(*s));

	defer_init(&s->d, free_self, s);
	loop_defer(seen.l, &s->d);
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "f");
	defer_init(&at_end->d, free_self, at_end); /* by loop_free: the sanitizer looks for it */
	loop_defer(seen.l, &at_end->d);
}

static struct defer victim;

static void
kill_victim(void *arg)
{
	note(arg);
	loop_undefer(seen.l, &victim);
}

TEST(undefer_inside_the_pass)
{
	struct defer killer;

	defer_init(&killer, kill_victim, "k");
	defer_init(&victim, note, "v");
	loop_defer(seen.l, &killer);
	loop_defer(seen.l, &victim);
	loop_once(seen.l, false);
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "k");
}

TEST(timers_fire_in_order_and_not_early)
{
	struct timer a, b, end;
	int64_t start = clock_mono();

	timer_init(&a, seen.l, note, "a");
	timer_init(&b, seen.l, note, "b");
	timer_init(&end, seen.l, stop, NULL);
	assert_false(timer_pending(&a));
	timer_start(&a, MILLIS(20));
	timer_start(&b, MILLIS(10));
	timer_start(&end, MILLIS(30));
	assert_true(timer_pending(&a));
	loop_run(seen.l);
	assert_true(clock_mono() - start >= MILLIS(30));
	assert_string_equal(seen.order, "ba");
	assert_false(timer_pending(&a)); /* one shot */
}

TEST(timer_restart_and_stop)
{
	struct timer a, b, end, zeroed = { 0 };

	timer_stop(&zeroed);
	assert_false(timer_pending(&zeroed));
	timer_init(&a, seen.l, note, "a");
	timer_init(&b, seen.l, note, "b");
	timer_init(&end, seen.l, stop, NULL);
	timer_stop(&a); /* never started */
	timer_start(&a, SECONDS(1000));
	timer_start(&a, MILLIS(1)); /* moves */
	timer_start(&b, MILLIS(1));
	timer_stop(&b);
	timer_stop(&b);
	timer_start(&end, MILLIS(10));
	loop_run(seen.l);
	assert_string_equal(seen.order, "a");
}

TEST(timer_of_zero_or_less_fires_at_once)
{
	struct timer a, b, c;

	timer_init(&a, seen.l, note, "a");
	timer_init(&b, seen.l, note, "b");
	timer_init(&c, seen.l, stop, NULL);
	timer_start(&a, 0);
	timer_start(&b, -5);
	timer_start(&c, 999999999); /* rounds up to a whole second */
	timer_stop(&c);
	timer_start(&c, 1);
	loop_run(seen.l);
	loop_once(seen.l, false);
	assert_int_equal(strlen(seen.order), 2);
}

static struct timer other;

static void
stop_other(void *arg)
{
	note(arg);
	timer_stop(&other);
}

/* Both are due in the same turn: the second must not run once the first has stopped it. */
TEST(timer_stopped_by_an_earlier_one)
{
	struct timer first;

	timer_init(&first, seen.l, stop_other, "1");
	timer_init(&other, seen.l, note, "2");
	timer_start(&first, MILLIS(1));
	timer_start(&other, MILLIS(2));
	usleep(10000);
	loop_once(seen.l, false);
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "1");
}

static void
sleep_and_compare(void *arg UNUSED)
{
	int64_t a = loop_now(seen.l);

	usleep(5000);
	assert_int_equal(loop_now(seen.l), a);
	seen.count++;
}

TEST(now_stands_still_within_a_turn)
{
	struct defer d;
	int64_t before = loop_now(seen.l), after;

	defer_init(&d, sleep_and_compare, NULL);
	loop_defer(seen.l, &d);
	loop_once(seen.l, false);
	after = loop_now(seen.l);
	assert_int_equal(seen.count, 1);
	assert_true(after - before >= MILLIS(5));
	clock_fake_start(42, 43);
	assert_int_equal(loop_now(seen.l), 42);
}

static void
start_again(void *arg)
{
	note(arg);
	timer_start(&other, 0);
}

TEST(fake_clock_moves_timers)
{
	struct timer a, b, c;

	clock_fake_start(SECONDS(100), SECONDS(5000));
	timer_init(&a, seen.l, note, "a");
	timer_init(&b, seen.l, note, "b");
	timer_init(&c, seen.l, note, "c");
	timer_init(&other, seen.l, start_again, "o");
	timer_start(&a, SECONDS(60));
	timer_start(&b, SECONDS(30));
	timer_start(&c, SECONDS(60));
	assert_true(timer_pending(&a));
	loop_once(seen.l, true); /* does not hang: nothing real to wait for */
	assert_string_equal(seen.order, "");
	clock_fake_advance(SECONDS(30));
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "b");
	timer_start(&b, SECONDS(60));
	clock_fake_advance(SECONDS(30) - 1);
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "b");
	clock_fake_advance(1);
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "bac");
	timer_start(&b, SECONDS(1));
	timer_start(&a, SECONDS(1));
	timer_stop(&b);
	assert_false(timer_pending(&b));
	clock_fake_advance(SECONDS(10));
	loop_once(seen.l, true);
	assert_string_equal(seen.order, "baca");
	timer_start(&other, 0);
	loop_once(seen.l, false); /* one round per turn, however short the time */
	assert_string_equal(seen.order, "bacao");
	loop_once(seen.l, false);
	assert_string_equal(seen.order, "bacaoo");
	timer_stop(&other);
	timer_start(&a, INT64_MAX); /* no overflow */
	assert_true(timer_pending(&a));
	timer_stop(&a);
}

TEST(timer_from_fake_to_real_time)
{
	struct timer a;

	clock_fake_start(SECONDS(100), 0);
	timer_init(&a, seen.l, stop, NULL);
	timer_start(&a, SECONDS(1000));
	clock_fake_end();
	timer_start(&a, MILLIS(1)); /* moves over */
	loop_run(seen.l);
	assert_false(timer_pending(&a));
}

static void
on_signal(int signo, void *arg)
{
	assert_int_equal(signo, SIGUSR1);
	note(arg);
	loop_stop(seen.l);
}

TEST(signals_come_on_the_loop)
{
	loop_signal(seen.l, SIGUSR1, on_signal, "s");
	raise(SIGUSR1);
	assert_string_equal(seen.order, "");
	loop_run(seen.l);
	assert_string_equal(seen.order, "s");
}

static void
ninth_signal(void *arg UNUSED)
{
	loop_signal(seen.l, SIGRTMIN + 8, on_signal, NULL);
}

TEST(nine_signals_are_a_bug)
{
	for (int i = 0; i < 8; i++)
		loop_signal(seen.l, SIGRTMIN + i, on_signal, NULL);
	assert_true(t_aborts(ninth_signal, NULL));
}

static void
on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
	ssize_t n = read(fd, loop_read_buf(seen.l), LOOP_READ_BUF);

	assert_int_equal(n, 2);
	assert_memory_equal(loop_read_buf(seen.l), "hi", 2);
	note(arg);
}

TEST(file_descriptors_on_the_base)
{
	struct event ev;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	event_assign(&ev, loop_base(seen.l), fds[0], EV_READ, on_readable, "r");
	event_add(&ev, NULL);
	loop_once(seen.l, false);
	assert_int_equal(write(fds[1], "hi", 2), 2);
	loop_once(seen.l, true);
	assert_string_equal(seen.order, "r");
	event_del(&ev);
	close(fds[0]);
	close(fds[1]);
}

TEST(stop_before_run_returns_at_once)
{
	loop_stop(seen.l);
	loop_run(seen.l);
}

TEST(sigpipe_is_ignored)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	assert_int_equal(write(fds[1], "x", 1), -1);
	close(fds[1]);
	loop_free(NULL);
}

#define L(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
T_MAIN(L(defer_runs_in_order_at_the_end), L(defer_from_defer_waits_a_turn),
    L(loop_free_bounds_endless_defers), L(defer_may_free_its_owner), L(undefer_inside_the_pass),
    L(timers_fire_in_order_and_not_early), L(timer_restart_and_stop),
    L(timer_of_zero_or_less_fires_at_once), L(timer_stopped_by_an_earlier_one),
    L(now_stands_still_within_a_turn), L(fake_clock_moves_timers), L(timer_from_fake_to_real_time),
    L(signals_come_on_the_loop), L(nine_signals_are_a_bug), L(file_descriptors_on_the_base),
    L(stop_before_run_returns_at_once), L(sigpipe_is_ignored))
