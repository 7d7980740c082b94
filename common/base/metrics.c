/*
 * Metrics and their text form, with those of the process itself (from /proc/self). Knows no
 * metric of any other module: they register themselves.
 */
#include "metrics.h"

#include <dirent.h>
#include <math.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "clock.h"
#include "fsutil.h"

#define METRICS_HOOKS 8
#define PROC_FILE_MAX 4096

static const struct {
	const char *text;
	double seconds;
} bounds[HISTOGRAM_BUCKETS] = { { "0.001", 0.001 }, { "0.0025", 0.0025 }, { "0.005", 0.005 },
	{ "0.01", 0.01 }, { "0.025", 0.025 }, { "0.05", 0.05 }, { "0.1", 0.1 }, { "0.25", 0.25 },
	{ "0.5", 0.5 }, { "1", 1 }, { "2.5", 2.5 }, { "5", 5 }, { "15", 15 }, { "60", 60 } };

struct metrics {
	struct metric *first, **last;
	struct histogram *first_histogram, **last_histogram;
	size_t n_hooks;
	struct {
		void (*fn)(void *arg);
		void *arg;
	} hooks[METRICS_HOOKS];
	double start_time; /* of the process, seconds since 1970; 0: unknown */
};

/* Field number `field` (1-based, from 3 on) of /proc/self/stat; field 2 is the program's name,
 * which may hold blanks and brackets. 0 when it cannot be read. */
static uint64_t
proc_stat(int field)
{
	CLEANUP(xfreep) char *text = NULL;
	struct strv rest, word;
	const char *end;
	uint64_t v = 0;

	if (file_read("/proc/self/stat", PROC_FILE_MAX, &text, NULL, NULL) == -1)
		return 0;
	end = strrchr(text, ')');
	if (end == NULL || end[1] == '\0')
		return 0;
	rest = strv_of(end + 2);
	for (int i = 3; i <= field; i++)
		word = strv_cut(rest, ' ', &rest);
	if (strv_u64(word, UINT64_MAX, &v) == -1)
		return 0;
	return v;
}

static double
process_start_time(void)
{
	long ticks = sysconf(_SC_CLK_TCK);
	uint64_t since_boot = proc_stat(22);
	struct timespec up;
	double age;

	if (ticks <= 0 || since_boot == 0 || clock_gettime(CLOCK_BOOTTIME, &up) == -1)
		return 0;
	age = (double)up.tv_sec + (double)up.tv_nsec / 1e9 - (double)since_boot / (double)ticks;
	return (double)clock_wall() / 1e9 - age;
}

struct metrics *
metrics_new(void)
{
	struct metrics *m = xcalloc(1, sizeof(*m));

	m->last = &m->first;
	m->last_histogram = &m->first_histogram;
	m->start_time = process_start_time();
	return m;
}

/* The metrics are static objects of other modules: they are only taken off the list. */
void
metrics_free(struct metrics *m)
{
	if (m == NULL)
		return;
	while (m->first) {
		struct metric *c = m->first;

		m->first = c->next;
		c->next = NULL;
	}
	while (m->first_histogram) {
		struct histogram *h = m->first_histogram;

		m->first_histogram = h->next;
		h->next = NULL;
	}
	xfree(m);
}

void
metrics_add(struct metrics *m, struct metric *c)
{
	for (struct metric *p = m->first; p; p = p->next) {
		if (p == c)
			return;
		BUG_ON(strcmp(p->name, c->name) == 0);
	}
	c->next = NULL;
	*m->last = c;
	m->last = &c->next;
}

void
metrics_add_histogram(struct metrics *m, struct histogram *h)
{
	for (struct histogram *p = m->first_histogram; p; p = p->next) {
		if (p == h)
			return;
		BUG_ON(strcmp(p->name, h->name) == 0);
	}
	h->next = NULL;
	*m->last_histogram = h;
	m->last_histogram = &h->next;
}

void
metrics_on_render(struct metrics *m, void (*fn)(void *arg), void *arg)
{
	BUG_ON(m->n_hooks == METRICS_HOOKS);
	m->hooks[m->n_hooks].fn = fn;
	m->hooks[m->n_hooks++].arg = arg;
}

static double *
cell(struct metric *c, const char *label_value)
{
	BUG_ON((c->label == NULL) != (label_value == NULL));
	if (label_value == NULL) {
		c->n = 1;
		return &c->cell[0].v;
	}
	for (size_t i = 0; i < c->n; i++) {
		if (c->cell[i].value == label_value || strcmp(c->cell[i].value, label_value) == 0)
			return &c->cell[i].v;
	}
	BUG_ON(c->n == METRIC_LABELS_MAX);
	c->cell[c->n].value = label_value;
	return &c->cell[c->n++].v;
}

void
metric_add(struct metric *c, const char *label_value, double v)
{
	BUG_ON(c->type == METRIC_COUNTER && !(v >= 0));
	*cell(c, label_value) += v;
}

void
metric_set(struct metric *c, const char *label_value, double v)
{
	*cell(c, label_value) = v;
}

void
histogram_observe(struct histogram *h, double seconds)
{
	size_t i = 0;

	if (!(seconds > 0))
		seconds = 0;
	while (i < HISTOGRAM_BUCKETS && seconds > bounds[i].seconds)
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum += seconds;
}

static void
add_number(struct strbuf *b, double v)
{
	if (isnan(v))
		strbuf_adds(b, "NaN");
	else if (isinf(v))
		strbuf_adds(b, v > 0 ? "+Inf" : "-Inf");
	else if (fabs(v) < 9e15 && v == floor(v))
		strbuf_addf(b, "%.0f", v + 0.0); /* + 0.0: no "-0" */
	else
		strbuf_addf(b, "%.17g", v);
	strbuf_addc(b, '\n');
}

/* Backslash and line feed are escaped everywhere, quotes in label values only. */
static void
add_escaped(struct strbuf *b, const char *s, bool label)
{
	for (; *s != '\0'; s++) {
		if (*s == '\n') {
			strbuf_adds(b, "\\n");
			continue;
		}
		if (*s == '\\' || (label && *s == '"'))
			strbuf_addc(b, '\\');
		strbuf_addc(b, *s);
	}
}

static void
add_head(struct strbuf *b, const char *name, const char *help, const char *type)
{
	strbuf_addf(b, "# HELP %s ", name);
	add_escaped(b, help, false);
	strbuf_addf(b, "\n# TYPE %s %s\n", name, type);
}

static void
render_metric(const struct metric *c, struct strbuf *b)
{
	add_head(b, c->name, c->help, c->type == METRIC_COUNTER ? "counter" : "gauge");
	if (c->label == NULL) {
		strbuf_addf(b, "%s ", c->name);
		add_number(b, c->cell[0].v);
		return;
	}
	for (size_t i = 0; i < c->n; i++) {
		strbuf_addf(b, "%s{%s=\"", c->name, c->label);
		add_escaped(b, c->cell[i].value, true);
		strbuf_adds(b, "\"} ");
		add_number(b, c->cell[i].v);
	}
}

static void
render_histogram(const struct histogram *h, struct strbuf *b)
{
	uint64_t sum = 0;

	add_head(b, h->name, h->help, "histogram");
	for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++) {
		sum += h->bucket[i];
		strbuf_addf(b, "%s_bucket{le=\"%s\"} ", h->name,
		    i < HISTOGRAM_BUCKETS ? bounds[i].text : "+Inf");
		strbuf_add_u64(b, sum);
		strbuf_addc(b, '\n');
	}
	strbuf_addf(b, "%s_sum ", h->name);
	add_number(b, h->sum);
	strbuf_addf(b, "%s_count ", h->name);
	strbuf_add_u64(b, h->count);
	strbuf_addc(b, '\n');
}

static void
render_process_value(
    struct strbuf *b, const char *name, const char *help, const char *type, double v)
{
	add_head(b, name, help, type);
	strbuf_addf(b, "%s ", name);
	add_number(b, v);
}

/* -1 when it cannot be counted. */
static double
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	double n = -3; /* ".", ".." and the one that reads them */

	if (d == NULL)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static double
resident_bytes(void)
{
	uint64_t pages = proc_stat(24);

	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void
render_process(const struct metrics *m, struct strbuf *b)
{
	struct rusage ru;
	struct rlimit rl;
	double fds = open_fds();

	if (getrusage(RUSAGE_SELF, &ru) == 0)
		render_process_value(b, "process_cpu_seconds_total",
		    "User and system CPU time in seconds.", "counter",
		    (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
		        (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
	render_process_value(b, "process_resident_memory_bytes", "Resident memory in bytes.",
	    "gauge", resident_bytes());
	if (fds >= 0)
		render_process_value(b, "process_open_fds", "Open file descriptors.", "gauge", fds);
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0)
		render_process_value(b, "process_max_fds", "Limit of open file descriptors.",
		    "gauge", rl.rlim_cur == RLIM_INFINITY ? (double)INFINITY : (double)rl.rlim_cur);
	if (m->start_time > 0)
		render_process_value(b, "process_start_time_seconds",
		    "Start of the process, seconds since 1970.", "gauge", m->start_time);
}

void
metrics_render(struct metrics *m, struct strbuf *b)
{
	for (size_t i = 0; i < m->n_hooks; i++)
		m->hooks[i].fn(m->hooks[i].arg);
	for (const struct metric *c = m->first; c; c = c->next)
		render_metric(c, b);
	for (const struct histogram *h = m->first_histogram; h; h = h->next)
		render_histogram(h, b);
	render_process(m, b);
}
