/*
 * See queue.h. Items sit in a binary heap by due time while they wait; one that is worked on is out
 * of the heap and keeps what was added meanwhile in `again`.
 */
#include "controller/queue.h"

#include "base/alloc.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/map.h"

#define NOT_IN_HEAP SIZE_MAX
#define NOT_DUE INT64_MAX

struct item {
	char *key;
	int64_t due;   /* while in the heap */
	int64_t again; /* while worked on: NOT_DUE, or when to look again */
	size_t pos;    /* in the heap */
	unsigned failures;
	bool working;
};

struct queue {
	struct loop *loop;
	void (*work)(struct strv key, void *arg);
	void *arg;
	struct map *items;
	struct item **heap;
	size_t n, cap, working;
	bool running;
	struct timer tick;
	struct defer pump;
};

/* --- heap --- */

static void
put_at(struct queue *q, size_t i, struct item *it)
{
	q->heap[i] = it;
	it->pos = i;
}

static void
sift_up(struct queue *q, size_t i)
{
	struct item *it = q->heap[i];

	while (i > 0 && q->heap[(i - 1) / 2]->due > it->due) {
		put_at(q, i, q->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put_at(q, i, it);
}

static void
sift_down(struct queue *q, size_t i)
{
	struct item *it = q->heap[i];

	for (;;) {
		size_t kid = 2 * i + 1;

		if (kid + 1 < q->n && q->heap[kid + 1]->due < q->heap[kid]->due)
			kid++;
		if (kid >= q->n || q->heap[kid]->due >= it->due)
			break;
		put_at(q, i, q->heap[kid]);
		i = kid;
	}
	put_at(q, i, it);
}

static void
heap_add(struct queue *q, struct item *it, int64_t due)
{
	if (q->n == q->cap) {
		q->cap = q->cap > 0 ? q->cap * 2 : 64;
		q->heap = xrealloc(q->heap, q->cap * sizeof(struct item *));
	}
	it->due = due;
	put_at(q, q->n++, it);
	sift_up(q, it->pos);
}

static void
heap_remove(struct queue *q, struct item *it)
{
	size_t i = it->pos;
	struct item *last = q->heap[--q->n];

	it->pos = NOT_IN_HEAP;
	if (last == it)
		return;
	put_at(q, i, last);
	sift_up(q, i);
	sift_down(q, last->pos);
}

/* --- queue --- */

static void
item_free(void *p)
{
	struct item *it = p;

	xfree(it->key);
	xfree(it);
}

static void
wake(struct queue *q)
{
	if (q->running)
		loop_defer(q->loop, &q->pump);
}

static void
pump(void *arg)
{
	struct queue *q = arg;
	int64_t now = clock_wall(), wait;

	while (q->running && q->n > 0 && q->working < QUEUE_PARALLEL && q->heap[0]->due <= now) {
		struct item *it = q->heap[0];

		heap_remove(q, it);
		it->working = true;
		it->again = NOT_DUE;
		q->working++;
		q->work(strv_of(it->key), q->arg);
	}
	if (!q->running || q->n == 0 || q->working >= QUEUE_PARALLEL)
		return; /* queue_add and queue_done wake it */
	wait = q->heap[0]->due - now;
	timer_start(&q->tick, wait < 0 ? 0 : wait < QUEUE_TICK ? wait : QUEUE_TICK);
}

struct queue *
queue_new(struct loop *l, void (*work)(struct strv key, void *arg), void *arg)
{
	struct queue *q = xcalloc(1, sizeof(*q));

	q->loop = l;
	q->work = work;
	q->arg = arg;
	q->items = map_new();
	timer_init(&q->tick, l, pump, q);
	defer_init(&q->pump, pump, q);
	return q;
}

void
queue_free(struct queue *q)
{
	if (q == NULL)
		return;
	timer_stop(&q->tick);
	loop_undefer(q->loop, &q->pump);
	map_free(q->items, item_free);
	xfree(q->heap);
	xfree(q);
}

static struct item *
item_get(struct queue *q, struct strv key)
{
	struct item *it = map_get(q->items, key);

	if (it != NULL)
		return it;
	it = xcalloc(1, sizeof(*it));
	it->key = strv_dup(key);
	it->pos = NOT_IN_HEAP;
	it->again = NOT_DUE;
	map_set(q->items, key, it);
	return it;
}

void
queue_add(struct queue *q, struct strv key, int64_t at)
{
	struct item *it;

	if (!q->running)
		return;
	it = item_get(q, key);
	if (it->working) {
		if (at < it->again)
			it->again = at;
	} else if (it->pos == NOT_IN_HEAP) {
		heap_add(q, it, at);
	} else if (at < it->due) {
		it->due = at;
		sift_up(q, it->pos);
	}
	wake(q);
}

static int64_t
backoff(unsigned failures)
{
	int64_t pause = QUEUE_BACKOFF_FIRST;

	while (--failures > 0 && pause < QUEUE_BACKOFF_LAST)
		pause *= 2;
	return pause < QUEUE_BACKOFF_LAST ? pause : QUEUE_BACKOFF_LAST;
}

void
queue_done(struct queue *q, struct strv key, bool failed)
{
	struct item *it = map_get(q->items, key);
	int64_t due;

	if (it == NULL || !it->working)
		return; /* the queue was stopped meanwhile */
	it->working = false;
	q->working--;
	due = it->again;
	it->failures = failed ? it->failures + 1 : 0;
	if (failed)
		due = clock_wall() + backoff(it->failures);
	if (due == NOT_DUE) {
		map_del(q->items, key);
		item_free(it);
	} else {
		heap_add(q, it, due);
	}
	wake(q);
}

void
queue_run(struct queue *q, bool on)
{
	q->running = on;
	if (on)
		return;
	timer_stop(&q->tick);
	loop_undefer(q->loop, &q->pump);
	map_free(q->items, item_free);
	q->items = map_new();
	q->n = q->working = 0;
}

size_t
queue_depth(const struct queue *q)
{
	return map_count(q->items);
}

size_t
queue_working(const struct queue *q)
{
	return q->working;
}
