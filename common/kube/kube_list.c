/*
 * Paged lists. Two pages may be on their way at once; the items of both go to the owner in whatever
 * order they come, which is all right for a set. Every page of a list has the same resourceVersion.
 */
#include "kube/kube_list.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kube/kube_cache.h"

#define PATH_MAX_LEN ((size_t)64 * 1024)
#define PAGES_AT_ONCE 2
#define PAGE_TRIES 4
#define PAGE_SILENCE SECONDS(30) /* no byte of a page */

enum page_state { PAGE_FREE = 0, PAGE_RUNNING, PAGE_PAUSED };

struct page {
	struct kube_list *l;
	enum page_state state;
	struct kube_call *call;
	struct kube_list_split *split;
	char *token;       /* "" for the first page */
	bool token_passed; /* the next page's token has been taken from this one */
	struct timer silence;
};

struct kube_list {
	struct kube *k;
	struct loop *loop;
	struct kube_list_ops ops;
	void *arg;
	char *path;
	unsigned limit;
	struct page pages[PAGES_AT_ONCE];
	char *next;    /* token of the page after those that run; NULL: none known */
	char *version; /* of the list; NULL: not known */
	struct timer again;
	struct kube_backoff backoff;
	int tries; /* failures since the last complete page */
};

static void page_start(struct page *p);

static void
page_stop(struct page *p)
{
	kube_cancel(p->call);
	p->call = NULL;
	kube_list_split_free(p->split);
	p->split = NULL;
	timer_stop(&p->silence);
}

static void
page_reset(struct page *p)
{
	page_stop(p);
	xfree(p->token);
	p->token = NULL;
	p->state = PAGE_FREE;
}

static void
start_next(struct kube_list *l)
{
	for (size_t i = 0; i < PAGES_AT_ONCE && l->next != NULL; i++) {
		struct page *p = &l->pages[i];

		if (p->state != PAGE_FREE)
			continue;
		p->token = l->next;
		l->next = NULL;
		p->token_passed = false;
		page_start(p);
	}
}

/* The token of the following page, once. */
static void
pass_token(struct page *p, const char *token)
{
	struct kube_list *l = p->l;

	if (p->token_passed || *token == '\0')
		return;
	p->token_passed = true;
	BUG_ON(l->next != NULL); /* only the newest page has one to pass */
	l->next = xstrdup(token);
	start_next(l);
}

/* The same page again after a pause, from its own token, unless that is too old. */
static void
page_failed(struct page *p, const struct err *e)
{
	struct kube_list *l = p->l;
	int64_t pause;

	page_stop(p);
	if (e->code != ERR_UNAVAILABLE && e->code != ERR_TIMEOUT && e->code != ERR_IO) {
		l->ops.on_failed(e, l->arg);
		return;
	}
	if (++l->tries >= PAGE_TRIES) {
		l->ops.on_failed(e, l->arg);
		return;
	}
	p->state = PAGE_PAUSED;
	pause = kube_backoff_next(&l->backoff, loop_now(l->loop), e->retry_after);
	if (!timer_pending(&l->again))
		timer_start(&l->again, pause);
}

static void
on_again(void *arg)
{
	struct kube_list *l = arg;

	for (size_t i = 0; i < PAGES_AT_ONCE; i++) {
		if (l->pages[i].state == PAGE_PAUSED)
			page_start(&l->pages[i]);
	}
}

static bool
is_idle(const struct kube_list *l)
{
	for (size_t i = 0; i < PAGES_AT_ONCE; i++) {
		if (l->pages[i].state != PAGE_FREE)
			return false;
	}
	return true;
}

static void
on_item(struct strv item, void *arg)
{
	struct kube_list *l = ((struct page *)arg)->l;

	l->ops.on_item(item, l->arg);
}

static void
on_bytes(const char *bytes, size_t n, void *arg)
{
	struct page *p = arg;

	timer_start(&p->silence, PAGE_SILENCE);
	/* A malformed body is reported at its end. */
	if (kube_list_split_feed(p->split, bytes, n, NULL) == 0)
		pass_token(p, kube_list_split_continue(p->split));
}

static void
on_end(const struct err *why, void *arg)
{
	struct page *p = arg;
	struct kube_list *l = p->l;
	const char *version, *token;
	struct err e;

	p->call = NULL;
	if (why != NULL) {
		page_failed(p, why);
		return;
	}
	if (kube_list_split_end(p->split, &version, &token, &e) == -1) {
		page_failed(p, &e);
		return;
	}
	l->tries = 0;
	if (l->version == NULL)
		l->version = xstrdup(version);
	pass_token(p, token);
	page_reset(p);
	start_next(l);
	if (is_idle(l))
		l->ops.on_done(l->version, l->arg);
}

static void
on_silence(void *arg)
{
	struct err e;

	err_set(&e, ERR_TIMEOUT, "no byte of a list page in time");
	page_failed(arg, &e);
}

static void
page_start(struct page *p)
{
	static const struct kube_stream_ops ops = { .on_bytes = on_bytes, .on_end = on_end };
	struct kube_list *l = p->l;
	struct strbuf b;

	strbuf_init(&b, PATH_MAX_LEN);
	strbuf_addf(
	    &b, "%s%climit=%u", l->path, strchr(l->path, '?') != NULL ? '&' : '?', l->limit);
	if (*p->token != '\0') {
		strbuf_adds(&b, "&continue=");
		strbuf_add_url(&b, strv_of(p->token));
	}
	BUG_ON(b.failed); /* kube_list_split bounds the token */
	p->state = PAGE_RUNNING;
	p->split = kube_list_split_new(on_item, p);
	p->call = kube_stream(l->k, b.p, &ops, p);
	timer_start(&p->silence, PAGE_SILENCE);
	strbuf_done(&b);
}

struct kube_list *
kube_list_new(struct kube *k, const char *path, unsigned page,
    const struct kube_watch_tuning *tuning, const struct kube_list_ops *ops, void *arg)
{
	struct kube_list *l = xcalloc(1, sizeof(*l));

	l->k = k;
	l->loop = kube_loop(k);
	l->ops = *ops;
	l->arg = arg;
	l->path = xstrdup(path);
	l->limit = page;
	timer_init(&l->again, l->loop, on_again, l);
	kube_backoff_init(&l->backoff, tuning);
	for (size_t i = 0; i < PAGES_AT_ONCE; i++) {
		l->pages[i].l = l;
		timer_init(&l->pages[i].silence, l->loop, on_silence, &l->pages[i]);
	}
	l->next = xstrdup("");
	start_next(l);
	return l;
}

void
kube_list_free(struct kube_list *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < PAGES_AT_ONCE; i++)
		page_reset(&l->pages[i]);
	timer_stop(&l->again);
	xfree(l->next);
	xfree(l->version);
	xfree(l->path);
	xfree(l);
}
