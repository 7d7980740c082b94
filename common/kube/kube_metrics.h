/* The counters of common/kube. Private; kube_metrics_add (kube_client.h) registers them. */
#ifndef KUBE_METRICS_H
#define KUBE_METRICS_H

#include "base/metrics.h"

extern struct metric kube_calls_total; /* by outcome: ok or the error's word */
extern struct histogram kube_call_seconds;
extern struct metric kube_refused_total;    /* by kind of call: the line was full */
extern struct metric kube_watch_ends_total; /* by cause */
extern struct metric kube_lists_total;      /* by outcome */
extern struct metric kube_events_total;     /* by outcome */

#endif
