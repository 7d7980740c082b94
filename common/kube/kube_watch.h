/*
 * One watch that keeps itself going: splits the stream into lines, reads events, remembers the last
 * resourceVersion, and connects again from it with back-off. It ends only when its version is too
 * old (410) or the server refuses it for another reason than load: then the owner must list again.
 * Private to common/kube; knows nothing of what is watched.
 */
#ifndef KUBE_WATCH_H
#define KUBE_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/loop.h"
#include "kube/kube_cache.h"
#include "kube/kube_client.h"

#define KUBE_WATCH_LINE_MAX ((size_t)16 * 1024 * 1024)

/* All ns, but timeout_*: seconds. */
struct kube_watch_tuning {
	int64_t backoff_min, backoff_max;  /* first and longest pause after a failure */
	int64_t backoff_quiet;             /* without a failure: begin at the first pause again */
	unsigned timeout_min, timeout_max; /* of timeoutSeconds, which is random between them */
	int64_t slack;                     /* beyond timeoutSeconds: the server is dead */
	int64_t head;                      /* until the head of the answer is there */
	int64_t silence; /* no byte, bookmarks included (which come once a minute) */
};
extern const struct kube_watch_tuning kube_watch_defaults;

/* Growing pauses with jitter. */
struct kube_backoff {
	const struct kube_watch_tuning *t;
	int64_t pause; /* next one, without jitter */
	int64_t last;  /* loop time of the last failure */
};
void kube_backoff_init(struct kube_backoff *b, const struct kube_watch_tuning *t);
/* The pause to make now: at least retry_after seconds. */
int64_t kube_backoff_next(struct kube_backoff *b, int64_t now, int retry_after);

struct kube_watch;

struct kube_watch_ops {
	/* Connected: from now on changes are seen as they happen. */
	void (*on_open)(void *arg);
	/* The connection ended; it comes back by itself. */
	void (*on_down)(void *arg);
	/* An object changed. Borrowed. Must not free the watch. */
	void (*on_event)(enum kube_change what, const json_t *obj, void *arg);
	/* Everything up to this version has been delivered. After each event and bookmark. */
	void (*on_version)(uint64_t version, void *arg);
	/* Over: list again. May free the watch. */
	void (*on_expired)(const struct err *e, void *arg);
};

/* path: of the collection, with a query ("…?…") or without. version: where to begin. tuning is
 * borrowed and must live as long. */
struct kube_watch *kube_watch_new(struct kube *k, const char *path, const char *version,
    const struct kube_watch_tuning *tuning, const struct kube_watch_ops *ops, void *arg);
void kube_watch_free(struct kube_watch *w);

/* For the fuzzer: a piece of a stream. */
void kube_watch_feed(struct kube_watch *w, const char *p, size_t n);

#endif
