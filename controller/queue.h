/*
 * Work queue of keys (sandbox ids) with due times, after client-go's: a key is never worked on
 * twice at once, a key added while it is worked on is worked on again, failures back off per key.
 * Due times are wall-clock, looked at every QUEUE_TICK at the latest, so a step of the clock shifts
 * nothing for long. Knows nothing of sandboxes.
 */
#ifndef CONTROLLER_QUEUE_H
#define CONTROLLER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/str.h"

#define QUEUE_TICK MILLIS(500)
#define QUEUE_PARALLEL 32 /* keys worked on at once */
#define QUEUE_BACKOFF_FIRST MILLIS(50)
#define QUEUE_BACKOFF_LAST SECONDS(30)

struct queue;

/* work(key) begins; it must lead to queue_done(key), also synchronously. The key text is valid
 * during the call. */
struct queue *queue_new(struct loop *l, void (*work)(struct strv key, void *arg), void *arg);
void queue_free(struct queue *q);
/* Due at wall time `at` (ns; 0 = now). An earlier time that is already set stays. */
void queue_add(struct queue *q, struct strv key, int64_t at);
/* The work on key ended; failed: it is due again after its back-off. */
void queue_done(struct queue *q, struct strv key, bool failed);
/* Stop handing out keys (leadership lost) or go on. Stopping forgets everything that is queued. */
void queue_run(struct queue *q, bool on);
size_t queue_depth(const struct queue *q);   /* keys known */
size_t queue_working(const struct queue *q); /* keys handed out */

#endif
