#include "t.h"

#include "base/clock.h"
#include "base/metrics.h"

static char *
render(struct metrics *m)
{
	struct strbuf b;
	char *text;

	strbuf_init(&b, 1 << 20);
	metrics_render(m, &b);
	assert_int_equal(strbuf_take(&b, &text, NULL), 0);
	return text;
}

TEST(counters_and_gauges)
{
	struct metric plain = COUNTER("agentsandbox_a_total", "A \\ and\nmore.", NULL);
	struct metric labelled = COUNTER("agentsandbox_b_total", "B.", "code");
	struct metric gauge = GAUGE("agentsandbox_c", "C.", NULL);
	struct metrics *m = metrics_new();
	CLEANUP(xfreep) char *before = NULL, *after = NULL;

	metrics_add(m, &plain);
	metrics_add(m, &labelled);
	metrics_add(m, &gauge);
	metrics_add(m, &plain); /* again: no matter */
	before = render(m);
	assert_has(before,
	    "# HELP agentsandbox_a_total A \\\\ and\\nmore.\n# TYPE agentsandbox_a_total counter\n"
	    "agentsandbox_a_total 0\n"
	    "# HELP agentsandbox_b_total B.\n# TYPE agentsandbox_b_total counter\n"
	    "# HELP agentsandbox_c C.\n# TYPE agentsandbox_c gauge\nagentsandbox_c 0\n");
	metric_add(&plain, NULL, 1);
	metric_add(&plain, NULL, 2);
	metric_add(&labelled, "2xx", 1);
	metric_add(&labelled, "a\"b\\c\n", 0.5);
	metric_add(&labelled, "2xx", 1);
	metric_set(&gauge, NULL, -2.5);
	metric_set(&gauge, NULL, 1e15);
	metric_add(&gauge, NULL, -1);
	after = render(m);
	assert_has(after, "\nagentsandbox_a_total 3\n");
	assert_has(after,
	    "agentsandbox_b_total{code=\"2xx\"} 2\n"
	    "agentsandbox_b_total{code=\"a\\\"b\\\\c\\n\"} 0.5\n");
	assert_has(after, "\nagentsandbox_c 999999999999999\n");
	metrics_free(m);
	assert_null(plain.next);
	m = metrics_new(); /* the objects can be used again */
	metrics_add(m, &gauge);
	metrics_free(m);
	metrics_free(NULL);
}

TEST(odd_numbers)
{
	struct metric g = GAUGE("g", "G.", "k");
	struct metrics *m = metrics_new();
	CLEANUP(xfreep) char *text = NULL;

	metrics_add(m, &g);
	metric_set(&g, "nan", (double)__builtin_nan(""));
	metric_set(&g, "inf", (double)__builtin_inf());
	metric_set(&g, "neg", -(double)__builtin_inf());
	metric_set(&g, "zero", -0.0);
	metric_set(&g, "big", 1e20);
	text = render(m);
	assert_has(text, "g{k=\"nan\"} NaN\n");
	assert_has(text, "g{k=\"inf\"} +Inf\n");
	assert_has(text, "g{k=\"neg\"} -Inf\n");
	assert_has(text, "g{k=\"zero\"} 0\n");
	assert_has(text, "g{k=\"big\"} 1e+20\n");
	metrics_free(m);
}

TEST(histograms)
{
	struct histogram h = HISTOGRAM("agentsandbox_t_seconds", "T.");
	struct metrics *m = metrics_new();
	CLEANUP(xfreep) char *text = NULL;

	metrics_add_histogram(m, &h);
	metrics_add_histogram(m, &h);
	histogram_observe(&h, 0.001); /* bounds are inclusive */
	histogram_observe(&h, 0.0011);
	histogram_observe(&h, 60);
	histogram_observe(&h, 61);
	histogram_observe(&h, -1); /* a clock that went back counts as 0 */
	histogram_observe(&h, (double)__builtin_nan(""));
	text = render(m);
	assert_has(text,
	    "# TYPE agentsandbox_t_seconds histogram\n"
	    "agentsandbox_t_seconds_bucket{le=\"0.001\"} 3\n"
	    "agentsandbox_t_seconds_bucket{le=\"0.0025\"} 4\n");
	assert_has(text, "_bucket{le=\"15\"} 4\n");
	assert_has(text,
	    "_bucket{le=\"60\"} 5\n"
	    "agentsandbox_t_seconds_bucket{le=\"+Inf\"} 6\n"
	    "agentsandbox_t_seconds_sum 121.002");
	assert_has(text, "agentsandbox_t_seconds_count 6\n");
	metrics_free(m);
}

static double
value(const char *text, const char *name)
{
	CLEANUP(xfreep) char *line = xcalloc(1, strlen(name) + 3);
	const char *at;

	snprintf(line, strlen(name) + 3, "\n%s ", name);
	at = strstr(text, line);
	if (at == NULL)
		fail_msg("no %s", name);
	return strtod(at + strlen(line), NULL);
}

TEST(process_metrics)
{
	struct metrics *m = metrics_new();
	CLEANUP(xfreep) char *a = render(m), *b = NULL;
	double now = (double)clock_wall() / 1e9;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	b = render(m);
	close(fd);
	assert_true(value(a, "process_resident_memory_bytes") > 100000);
	assert_true(value(a, "process_cpu_seconds_total") >= 0);
	assert_true(value(a, "process_open_fds") >= 3);
	assert_true(value(b, "process_open_fds") == value(a, "process_open_fds") + 1);
	assert_true(value(a, "process_max_fds") >= 16);
	assert_true(value(a, "process_start_time_seconds") <= now + 1);
	assert_true(value(a, "process_start_time_seconds") > now - 600);
	metrics_free(m);
}

static void
on_render(void *arg)
{
	metric_set(arg, NULL, 42);
}

TEST(render_hooks)
{
	struct metric g = GAUGE("lazy", "L.", NULL);
	struct metrics *m = metrics_new();
	CLEANUP(xfreep) char *text = NULL;

	metrics_add(m, &g);
	metrics_on_render(m, on_render, &g);
	text = render(m);
	assert_has(text, "\nlazy 42\n");
	metrics_free(m);
}

static void
misuse(void *arg)
{
	struct metric c = COUNTER("x_total", "X.", NULL), twin = COUNTER("x_total", "X.", NULL);
	struct metric l = COUNTER("y_total", "Y.", "k");
	static char values[METRIC_LABELS_MAX + 1][8];
	struct metrics *m = metrics_new();

	switch (*(int *)arg) {
	case 0: /* a counter goes up only */
		metric_add(&c, NULL, -1);
		break;
	case 1:
		metric_add(&c, "label", 1);
		break;
	case 2:
		metric_add(&l, NULL, 1);
		break;
	case 3:
		metrics_add(m, &c);
		metrics_add(m, &twin);
		break;
	case 4:
		for (int i = 0; i <= METRIC_LABELS_MAX; i++) {
			snprintf(values[i], sizeof(values[i]), "%d", i);
			metric_add(&l, values[i], 1);
		}
		break;
	default:
		for (int i = 0; i < 9; i++)
			metrics_on_render(m, on_render, NULL);
		break;
	}
}

TEST(misuse_is_a_bug)
{
	for (int i = 0; i < 6; i++)
		assert_true(t_aborts(misuse, &i));
}

T_MAIN(T(counters_and_gauges), T(odd_numbers), T(histograms), T(process_metrics), T(render_hooks),
    T(misuse_is_a_bug))
