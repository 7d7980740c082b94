/*
 * The handler's interface to its request, besides replying: flow, a copy of the head, the whole
 * body at once.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "http/http_conn.h"

struct sock *
http_req_sock(struct http_req *r)
{
	return &exchange_of(r)->c->sock;
}

void
http_req_pause(struct http_req *r, bool on)
{
	struct exchange *x = exchange_of(r);

	if (x->over || x->paused == on)
		return;
	x->paused = on;
	conn_kick(x->c);
}

void
http_req_continue(struct http_req *r)
{
	if (!exchange_of(r)->expect || exchange_of(r)->continued)
		return;
	http_reply_interim(r, STRV("HTTP/1.1 100 Continue\r\n\r\n"));
}

void
http_req_patient(struct http_req *r)
{
	exchange_of(r)->patient = true;
}

void
http_req_close_after(struct http_req *r)
{
	struct exchange *x = exchange_of(r);

	if (!x->keep)
		return;
	x->keep = false;
	x->c->linger = true;
}

bool
http_req_will_close(const struct http_req *r)
{
	return exchange_will_close((const struct exchange *)(const void *)r);
}

/* --- a copy of the head --- */

static struct strv
copy_text(char **to, struct strv v)
{
	struct strv copy = { *to, v.n };

	if (v.n > 0)
		memcpy(*to, v.p, v.n);
	*to += v.n;
	return copy;
}

static size_t
text_size(const struct http_head *h)
{
	size_t n =
	    h->method_text.n + h->target.n + h->path.n + h->query.n + h->host.n + h->reason.n;

	for (unsigned i = 0; i < h->n; i++)
		n += h->field[i].name.n + h->field[i].value.n;
	return n;
}

const struct http_head *
http_req_keep_head(struct http_req *r, const struct http_head *h)
{
	size_t fixed = offsetof(struct http_head, field) + h->n * sizeof(h->field[0]);
	struct http_head *copy;
	char *text;

	if (r->kept)
		return r->kept;
	copy = xmalloc(fixed + text_size(h));
	text = (char *)copy + fixed;
	memcpy(copy, h, fixed);
	copy->method_text = copy_text(&text, h->method_text);
	copy->target = copy_text(&text, h->target);
	copy->path = copy_text(&text, h->path);
	copy->query = copy_text(&text, h->query);
	copy->host = copy_text(&text, h->host);
	copy->reason = copy_text(&text, h->reason);
	for (unsigned i = 0; i < h->n; i++) {
		copy->field[i].name = copy_text(&text, h->field[i].name);
		copy->field[i].value = copy_text(&text, h->field[i].value);
	}
	r->kept = copy;
	return copy;
}

/* --- the whole body --- */

void
collect_free(struct collect *col)
{
	if (col == NULL)
		return;
	strbuf_done(&col->body);
	xfree(col);
}

/* The handler gets its ops back, then the body. */
static void
collect_finish(struct exchange *x, struct strv body)
{
	struct collect *col = x->collect;

	x->collect = NULL;
	x->r.ops = col->user;
	col->fn(&x->r, body, col->arg); /* may end the request */
	collect_free(col);
}

void
collect_over(struct exchange *x)
{
	x->discard = true;
	x->end_given = true;
	collect_finish(x, STRV_NONE);
}

static void
collect_on_body(struct http_req *r, const char *p, size_t n)
{
	struct exchange *x = exchange_of(r);

	strbuf_add(&x->collect->body, p, n);
	if (x->collect->body.failed)
		collect_over(x);
}

static void
collect_on_end(struct http_req *r)
{
	struct exchange *x = exchange_of(r);
	struct strv body = strbuf_view(&x->collect->body);

	collect_finish(x, body.p ? body : STRV(""));
}

static void
collect_on_drain(struct http_req *r)
{
	const struct http_req_ops *user = exchange_of(r)->collect->user;

	if (user && user->on_drain)
		user->on_drain(r);
}

static const struct http_req_ops collect_ops = {
	.on_body = collect_on_body,
	.on_end = collect_on_end,
	.on_drain = collect_on_drain,
};

void
http_req_collect(struct http_req *r, size_t max,
    void (*fn)(struct http_req *r, struct strv body, void *arg), void *arg)
{
	struct exchange *x = exchange_of(r);
	struct collect *col;
	int64_t left = http1_body_left(x->parser);

	BUG_ON(x->collect != NULL);
	if (x->over)
		return;
	col = xcalloc(1, sizeof(*col));
	strbuf_init(&col->body, max);
	col->fn = fn;
	col->arg = arg;
	col->user = r->ops;
	/* Known in advance: no need to read it, nor to ask for it (Expect). */
	col->over = !r->body_done && left > 0 && (uint64_t)left > max;
	x->collect = col;
	r->ops = &collect_ops;
	if (r->body_done)
		x->end_given = false;
	conn_kick(x->c);
}
