/*
 * Watch streams after client-go's reflector. The end of a stream, clean or not, means: watch again
 * from the last version seen. Only a 410 (as status or as ERROR event) or a refusal that has
 * nothing to do with load ends the watch.
 */
#include "kube/kube_watch.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rand.h"
#include "kube/kube_metrics.h"
#include "kube/kube_obj.h"
#include "kube/kube_status.h"
#include "kube/kube_strip.h"

#define PATH_MAX_LEN ((size_t)64 * 1024)
#define VERSION_MAX 64
#define LINE_KEEP ((size_t)256 * 1024)
#define SHORT_LIFE SECONDS(1) /* a watch that ends earlier without an event has failed */
#define BAD_LINES_MAX 3       /* unreadable in a row: list instead */

const struct kube_watch_tuning kube_watch_defaults = {
	.backoff_min = MILLIS(800),
	.backoff_max = SECONDS(30),
	.backoff_quiet = SECONDS(120),
	.timeout_min = 300,
	.timeout_max = 600,
	.slack = SECONDS(30),
	.head = SECONDS(30),
	.silence = SECONDS(150),
};

/* --- back-off --- */

void
kube_backoff_init(struct kube_backoff *b, const struct kube_watch_tuning *t)
{
	*b = (struct kube_backoff){ .t = t, .pause = t->backoff_min };
}

int64_t
kube_backoff_next(struct kube_backoff *b, int64_t now, int retry_after)
{
	int64_t pause;

	if (b->last != 0 && now - b->last > b->t->backoff_quiet + b->pause)
		b->pause = b->t->backoff_min;
	b->last = now;
	pause = b->pause;
	b->pause = pause * 2 < b->t->backoff_max ? pause * 2 : b->t->backoff_max;
	if (pause < SECONDS(retry_after))
		pause = SECONDS(retry_after);
	/* Up to half more, so that many watchers do not come back at once. */
	return pause + (int64_t)rand_below(1000) * (pause / 2000);
}

/* --- the watch --- */

struct kube_watch {
	struct kube *k;
	struct loop *loop;
	const struct kube_watch_tuning *t;
	struct kube_watch_ops ops;
	void *arg;
	char *path;
	char version[VERSION_MAX];
	struct kube_call *call;
	struct strbuf scratch; /* of kube_strip */
	struct strbuf line;    /* the part of a line that came so far */
	struct timer life;     /* head, then timeoutSeconds + slack */
	struct timer silence;  /* since the last byte */
	struct timer again;    /* until the next connection */
	struct defer expired;
	struct err expired_why;
	struct kube_backoff backoff;
	int64_t started;
	unsigned timeout; /* timeoutSeconds of this connection */
	uint64_t events;  /* of this connection, without bookmarks */
	int bad_lines;    /* since the last good one */
	bool open;
};

static void connect_now(void *arg);

static void
hang_up(struct kube_watch *w)
{
	kube_cancel(w->call);
	w->call = NULL;
	timer_stop(&w->life);
	timer_stop(&w->silence);
	strbuf_reset(&w->line);
	if (w->open) {
		w->open = false;
		w->ops.on_down(w->arg);
	}
}

static void
run_expired(void *arg)
{
	struct kube_watch *w = arg;
	struct err e = w->expired_why;

	w->ops.on_expired(&e, w->arg); /* may free w */
}

static void
expire(struct kube_watch *w, const struct err *e)
{
	metric_add(&kube_watch_ends_total, "expired", 1);
	w->expired_why = *e;
	hang_up(w);
	loop_defer(w->loop, &w->expired);
}

static void
connect_later(struct kube_watch *w, const char *cause, int retry_after)
{
	metric_add(&kube_watch_ends_total, cause, 1);
	hang_up(w);
	timer_start(&w->again, kube_backoff_next(&w->backoff, loop_now(w->loop), retry_after));
}

/* What came was good as far as it went: go on from there at once. */
static void
connect_again(struct kube_watch *w, const char *cause)
{
	metric_add(&kube_watch_ends_total, cause, 1);
	hang_up(w);
	timer_start(&w->again, 0);
}

/* An end that says that this version cannot be watched, however often we ask. */
static bool
is_final(const struct err *e)
{
	return e->code != ERR_UNAVAILABLE && e->code != ERR_TIMEOUT && e->code != ERR_IO;
}

static void
on_end(const struct err *e, void *arg)
{
	struct kube_watch *w = arg;
	bool lived = w->open && (w->events > 0 || loop_now(w->loop) - w->started >= SHORT_LIFE);

	w->call = NULL;
	if (e != NULL && is_final(e))
		expire(w, e);
	else if (lived)
		connect_again(w, e == NULL ? "end" : "cut");
	else
		connect_later(w, e == NULL ? "short" : "failed", e == NULL ? 0 : e->retry_after);
}

static void
on_life(void *arg)
{
	struct kube_watch *w = arg;

	if (w->open)
		connect_again(w, "overdue");
	else
		connect_later(w, "no_head", 0);
}

static void
on_silence(void *arg)
{
	connect_again(arg, "silence");
}

static void
on_open(void *arg)
{
	struct kube_watch *w = arg;

	w->open = true;
	timer_start(&w->life, SECONDS((int64_t)w->timeout) + w->t->slack);
	timer_start(&w->silence, w->t->silence);
	w->ops.on_open(w->arg);
}

/* --- lines --- */

static void
bad_line(struct kube_watch *w, const struct err *e)
{
	if (++w->bad_lines >= BAD_LINES_MAX)
		expire(w, e);
	else
		connect_later(w, "malformed", 0);
}

static void
error_event(struct kube_watch *w, const json_t *status)
{
	struct err e;

	kube_status_err((int)json_get_int(status, "code", 500), status, 0, &e);
	if (is_final(&e))
		expire(w, &e);
	else
		connect_later(w, "error_event", e.retry_after);
}

/* Takes the version over; -1 if the object has none. */
static int
note_version(struct kube_watch *w, const json_t *obj)
{
	const char *version = kube_obj_version(obj);

	if (version == NULL || strlen(version) >= VERSION_MAX)
		return -1;
	snprintf(w->version, sizeof(w->version), "%s", version);
	w->ops.on_version(kube_obj_version_u64(obj), w->arg);
	return 0;
}

static int
read_event(struct kube_watch *w, const json_t *event, struct err *e)
{
	static const char *const names[] = {
		[KUBE_ADDED] = "ADDED",
		[KUBE_MODIFIED] = "MODIFIED",
		[KUBE_DELETED] = "DELETED",
	};
	const char *type = json_get_str(event, "type");
	const json_t *obj = json_get_obj(event, "object");

	if (type == NULL || obj == NULL)
		return err_set(e, ERR_UNAVAILABLE, "a watch event without type or object");
	if (strcmp(type, "ERROR") == 0) {
		error_event(w, obj);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(type, names[i]) == 0) {
			w->events++;
			w->ops.on_event((enum kube_change)i, obj, w->arg);
		}
	}
	/* BOOKMARK, and what later versions may invent, carries a version only. */
	if (note_version(w, obj) == -1)
		return err_set(e, ERR_UNAVAILABLE, "a watch event without resourceVersion");
	w->bad_lines = 0;
	return 0;
}

static void
take_line(struct kube_watch *w, struct strv text)
{
	CLEANUP(json_unrefp) json_t *event = NULL;
	struct err e = { .code = ERR_NONE };

	if (strv_trim(text).n == 0)
		return;
	text = kube_strip(text, &w->scratch);
	if (json_parse(text, KUBE_WATCH_LINE_MAX, &event, &e) == -1 ||
	    read_event(w, event, &e) == -1)
		bad_line(w, &e);
}

/* Memory of a rare long line is not kept. */
static void
line_reset(struct kube_watch *w)
{
	if (w->line.cap > LINE_KEEP) {
		strbuf_done(&w->line);
		strbuf_init(&w->line, KUBE_WATCH_LINE_MAX);
	} else {
		strbuf_reset(&w->line);
	}
}

/* Whole lines are read where they are; only what is cut by the end of a piece is copied. */
static void
take_bytes(struct kube_watch *w, struct strv in)
{
	struct err e;

	while (in.n > 0 && w->open) {
		const char *nl = memchr(in.p, '\n', in.n);
		struct strv line = { in.p, nl != NULL ? (size_t)(nl - in.p) : in.n };

		if (nl == NULL || w->line.n > 0) {
			strbuf_addv(&w->line, line);
			line = strbuf_view(&w->line);
		}
		if (w->line.failed) {
			err_set(&e, ERR_TOO_LARGE, "a watch event is too long");
			bad_line(w, &e);
			return;
		}
		if (nl == NULL)
			return;
		in.n -= (size_t)(nl + 1 - in.p);
		in.p = nl + 1;
		take_line(w, line);
		line_reset(w);
	}
}

static void
on_bytes(const char *p, size_t n, void *arg)
{
	struct kube_watch *w = arg;

	timer_start(&w->silence, w->t->silence);
	take_bytes(w, (struct strv){ p, n });
}

void
kube_watch_feed(struct kube_watch *w, const char *p, size_t n)
{
	if (!w->open)
		on_open(w);
	on_bytes(p, n, w);
}

/* --- begin and end --- */

static void
connect_now(void *arg)
{
	static const struct kube_stream_ops ops = {
		.on_open = on_open,
		.on_bytes = on_bytes,
		.on_end = on_end,
	};
	struct kube_watch *w = arg;
	CLEANUP(strbuf_done) struct strbuf b;

	w->timeout = w->t->timeout_min + rand_below(w->t->timeout_max - w->t->timeout_min + 1);
	w->started = loop_now(w->loop);
	w->events = 0;
	strbuf_init(&b, PATH_MAX_LEN);
	strbuf_adds(&b, w->path);
	strbuf_addc(&b, strchr(w->path, '?') != NULL ? '&' : '?');
	strbuf_addf(
	    &b, "watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", w->timeout);
	strbuf_add_url(&b, strv_of(w->version));
	BUG_ON(b.failed);
	timer_start(&w->life, w->t->head);
	w->call = kube_stream(w->k, b.p, &ops, w);
}

struct kube_watch *
kube_watch_new(struct kube *k, const char *path, const char *version,
    const struct kube_watch_tuning *tuning, const struct kube_watch_ops *ops, void *arg)
{
	struct kube_watch *w = xcalloc(1, sizeof(*w));

	w->k = k;
	w->loop = kube_loop(k);
	w->t = tuning;
	w->ops = *ops;
	w->arg = arg;
	w->path = xstrdup(path);
	snprintf(w->version, sizeof(w->version), "%s", version);
	strbuf_init(&w->line, KUBE_WATCH_LINE_MAX);
	strbuf_init(&w->scratch, KUBE_WATCH_LINE_MAX);
	timer_init(&w->life, w->loop, on_life, w);
	timer_init(&w->silence, w->loop, on_silence, w);
	timer_init(&w->again, w->loop, connect_now, w);
	defer_init(&w->expired, run_expired, w);
	kube_backoff_init(&w->backoff, tuning);
	connect_now(w);
	return w;
}

void
kube_watch_free(struct kube_watch *w)
{
	if (w == NULL)
		return;
	kube_cancel(w->call);
	timer_stop(&w->life);
	timer_stop(&w->silence);
	timer_stop(&w->again);
	loop_undefer(w->loop, &w->expired);
	strbuf_done(&w->line);
	strbuf_done(&w->scratch);
	xfree(w->path);
	xfree(w);
}
