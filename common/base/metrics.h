/*
 * Metrics in Prometheus text format (0.0.4). Names are `agentsandbox_<noun>_<unit>[_total]`; label
 * values come from closed sets only, never ids. Updating a metric is a plain addition: the loop is
 * single-threaded.
 *
 * Metrics are static objects that register themselves in a struct metrics when first added:
 *
 *	static struct metric requests = COUNTER("agentsandbox_http_requests_total", "…", "code");
 *	metrics_add(m, &requests);
 *	metric_add(&requests, "2xx", 1);
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "str.h"

#define METRIC_LABELS_MAX 32 /* different label values of one metric; more is a bug */
#define HISTOGRAM_BUCKETS 14

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
/* Appends the whole exposition to b, process metrics (RSS, CPU, fds, start time) included. */
void metrics_render(struct metrics *m, struct strbuf *b);

/* A counter or gauge with at most one label. Label text is borrowed for ever: literals only. */
struct metric {
	const char *name, *help, *label; /* label NULL: none */
	enum { METRIC_COUNTER = 0, METRIC_GAUGE } type;
	size_t n;
	struct {
		const char *value;
		double v;
	} cell[METRIC_LABELS_MAX];
	struct metric *next;
};
#define COUNTER(nm, hl, lb)                                                                        \
	{                                                                                          \
		.name = (nm), .help = (hl), .label = (lb), .type = METRIC_COUNTER                  \
	}
#define GAUGE(nm, hl, lb)                                                                          \
	{                                                                                          \
		.name = (nm), .help = (hl), .label = (lb), .type = METRIC_GAUGE                    \
	}
void metrics_add(struct metrics *m, struct metric *c);
void metric_add(struct metric *c, const char *label_value, double v); /* label_value NULL: none */
void metric_set(struct metric *c, const char *label_value, double v);

/* Seconds, with fixed bounds from 1 ms to 60 s. */
struct histogram {
	const char *name, *help;
	uint64_t bucket[HISTOGRAM_BUCKETS + 1], count;
	double sum;
	struct histogram *next;
};
#define HISTOGRAM(nm, hl)                                                                          \
	{                                                                                          \
		.name = (nm), .help = (hl)                                                         \
	}
void metrics_add_histogram(struct metrics *m, struct histogram *h);
void histogram_observe(struct histogram *h, double seconds);

/* Called at each render, to set gauges that are cheaper to compute then. */
void metrics_on_render(struct metrics *m, void (*fn)(void *arg), void *arg); /* at most 8 */

#endif
