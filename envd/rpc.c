/* See rpc.h. Knows the Connect protocol, and no method. */
#include "envd/rpc.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "envd/auth.h"

#define FRAME_MAX ((size_t)256 * 1024 * 1024) /* of what we send; far above what handlers make */
#define KEEPALIVE_MAX 86400

static void on_body(struct call *call, const char *p, size_t n);
static void on_end(struct call *call);
static void on_drain(struct call *call);
static void on_gone(struct call *call);

static const struct call_ops collect_ops = {
	.on_drain = on_drain,
	.on_gone = on_gone,
	.gone_at_fin = true,
};
static const struct call_ops stream_ops = {
	.on_body = on_body,
	.on_end = on_end,
	.on_drain = on_drain,
	.on_gone = on_gone,
	.gone_at_fin = true,
};

static bool
is_stream(const struct rpc *c)
{
	return c->method->kind != RPC_UNARY;
}

static void
rpc_free(struct rpc *c)
{
	c->dead = true;
	if (c->in_handler) /* connect_body frees it */
		return;
	connect_reader_done(&c->in);
	user_free(c->user);
	xfree(c);
}

/* No event reaches c any more. */
static struct call *
detach(struct rpc *c)
{
	TAILQ_REMOVE(&c->app->rpcs, c, link);
	timer_stop(&c->idle);
	timer_stop(&c->deadline);
	return c->call;
}

static void
on_gone(struct call *call)
{
	struct rpc *c = call->arg;

	detach(c);
	if (c->ops && c->ops->on_gone)
		c->ops->on_gone(c);
	rpc_free(c);
}

static void
on_drain(struct call *call)
{
	struct rpc *c = call->arg;

	if (c->ops && c->ops->on_drain)
		c->ops->on_drain(c);
}

/* --- answers --- */

static void
ensure_head(struct rpc *c)
{
	const struct http_field f = { STRV("Content-Type"), strv_of(c->codec->stream_type) };

	if (c->head_sent)
		return;
	c->head_sent = true;
	call_start(c->call, 200, &f, 1, -1);
}

/* Puts the envelope's header into the five bytes that were left free at the front. */
static struct strv
seal(struct strbuf *b, unsigned flags)
{
	BUG_ON(b->failed);
	connect_put_header((unsigned char *)b->p, flags, b->n - CONNECT_HEADER);
	return strbuf_view(b);
}

static void
frame_init(struct strbuf *b)
{
	strbuf_init(b, FRAME_MAX);
	strbuf_add(b, "\0\0\0\0", CONNECT_HEADER);
}

static json_t *
error_json(enum connect_code code, const char *text)
{
	json_t *o = json_object();

	json_set_str(o, "code", connect_code_name(code));
	json_set_str(o, "message", text);
	return o;
}

/* The last envelope; error may be NULL (stolen). It is JSON whatever the codec. */
static void
end_stream(struct rpc *c, json_t *error)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };
	json_t *m = json_object();
	struct call *call;
	struct strv frame;
	char *text;

	json_set(m, "error", error);
	text = json_text(m);
	json_decref(m);
	frame_init(&b);
	strbuf_adds(&b, text);
	xfree(text);
	ensure_head(c);
	frame = seal(&b, CONNECT_FLAG_END);
	call = detach(c);
	rpc_free(c);
	call_write(call, frame.p, frame.n);
	call_end(call);
}

static size_t
send_frame(struct rpc *c, struct strbuf *b)
{
	struct strv frame = seal(b, 0);

	ensure_head(c);
	c->last_sent = loop_now(c->app->loop);
	return call_write(c->call, frame.p, frame.n);
}

size_t
rpc_send(struct rpc *c, json_t *m)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };

	frame_init(&b);
	c->codec->encode(m, c->method->out, &b);
	json_decref(m);
	return send_frame(c, &b);
}

size_t
rpc_send_bytes(struct rpc *c, const char *const *path, const void *p, size_t n)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };

	frame_init(&b);
	c->codec->bytes(path, c->method->out, p, n, &b);
	return send_frame(c, &b);
}

void
rpc_finish(struct rpc *c)
{
	end_stream(c, NULL);
}

void
rpc_reply_encoded(struct rpc *c, struct strbuf *encoded)
{
	const struct http_field f = { STRV("Content-Type"), strv_of(c->codec->unary_type) };
	struct call *call = detach(c);
	size_t n = encoded->n;
	char *body;

	BUG_ON(strbuf_take(encoded, &body, NULL) == -1);
	rpc_free(c);
	call_reply_own(call, 200, &f, 1, body, n);
}

void
rpc_reply(struct rpc *c, json_t *m)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };

	if (is_stream(c)) {
		rpc_send(c, m);
		rpc_finish(c);
		return;
	}
	strbuf_init(&b, FRAME_MAX);
	c->codec->encode(m, c->method->out, &b);
	json_decref(m);
	rpc_reply_encoded(c, &b);
}

static void
fail(struct rpc *c, enum connect_code code, const char *text)
{
	const struct http_field f = { STRV("Content-Type"), STRV("application/json") };
	json_t *error = error_json(code, text);
	struct call *call;
	char *body;

	if (is_stream(c)) {
		end_stream(c, error);
		return;
	}
	body = json_text(error);
	json_decref(error);
	call = detach(c);
	rpc_free(c);
	call_reply(call, connect_code_status(code), &f, 1, strv_of(body));
	xfree(body);
}

void
rpc_fail(struct rpc *c, enum connect_code code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail(c, code, text);
}

void
rpc_fail_err(struct rpc *c, const struct err *e)
{
	fail(c, connect_code_of(e->code), e->msg);
}

/* The call fails on our side: the handler gives up what it holds. */
static void
abandon(struct rpc *c, const struct err *e)
{
	if (c->ops && c->ops->on_gone)
		c->ops->on_gone(c);
	c->ops = NULL;
	rpc_fail_err(c, e);
}

/* --- timers --- */

static void
on_idle(void *arg)
{
	struct rpc *c = arg;
	int64_t left = c->last_sent + c->keepalive - loop_now(c->app->loop);

	if (left <= 0) {
		rpc_send(c, c->method->keepalive());
		left = c->keepalive;
	}
	timer_start(&c->idle, left);
}

static void
on_deadline(void *arg)
{
	struct err e;

	err_set(&e, ERR_TIMEOUT, "context deadline exceeded");
	abandon(arg, &e);
}

static void
start_timers(struct rpc *c)
{
	if (c->timeout > 0 && !c->method->own_deadline)
		timer_start(&c->deadline, c->timeout);
	if (c->method->keepalive) {
		c->last_sent = loop_now(c->app->loop);
		timer_start(&c->idle, c->keepalive);
	}
}

/* --- requests --- */

static int
check_coding(const struct rpc *c, const struct http_head *h, struct err *e)
{
	const struct strv *v =
	    http_head_get(h, is_stream(c) ? "Connect-Content-Encoding" : "Content-Encoding");
	const struct strv *version = http_head_get(h, "Connect-Protocol-Version");

	if (v && v->n > 0 && !strv_caseis(*v, "identity"))
		return err_set(e, ERR_UNSUPPORTED,
		    "unknown compression \"%.*s\": supported encodings are identity",
		    (int)(v->n < 32 ? v->n : 32), v->p);
	if (version && !strv_is(*version, "1"))
		return err_set(e, ERR_INVALID, "Connect-Protocol-Version must be \"1\"");
	return 0;
}

static int64_t
keepalive_of(const struct http_head *h)
{
	const struct strv *v = http_head_get(h, "Keepalive-Ping-Interval");
	uint64_t n;

	if (v == NULL || strv_u64(*v, KEEPALIVE_MAX, &n) == -1 || n == 0)
		n = RPC_KEEPALIVE_DEFAULT;
	return SECONDS((int64_t)n);
}

static int
read_head(struct rpc *c, const struct http_head *h, struct err *e)
{
	char *name CLEANUP(xfreep) = auth_basic_name(h);

	c->keepalive = keepalive_of(h);
	if (check_coding(c, h, e) == -1 ||
	    connect_timeout(http_head_get(h, "Connect-Timeout-Ms"), &c->timeout, e) == -1)
		return -1;
	return name ? auth_user(c->app, name, &c->user, e) : 0;
}

static void
dispatch(struct rpc *c, struct strv body)
{
	struct err e = { 0 };
	json_t *in;

	if (c->codec->decode(body, c->method->in, RPC_BODY_MAX, &in, &e) == -1) {
		rpc_fail_err(c, &e);
		return;
	}
	start_timers(c);
	c->method->handle(c, in);
	json_decref(in);
}

/* A server stream's request is exactly one envelope. */
static void
dispatch_envelope(struct rpc *c, struct strv body)
{
	struct strv payload = STRV_NONE;
	struct err e = { 0 };
	unsigned flags = 0;

	switch (connect_reader_next(&c->in, &body, &flags, &payload, &e)) {
	case CONNECT_BAD:
		rpc_fail_err(c, &e);
		return;
	case CONNECT_MORE:
		if (connect_reader_idle(&c->in))
			rpc_fail(c, CONNECT_UNIMPLEMENTED, "unary request has zero messages");
		else
			rpc_fail(c, CONNECT_INVALID_ARGUMENT,
			    "protocol error: incomplete envelope: unexpected EOF");
		return;
	case CONNECT_MESSAGE:
		break;
	}
	if (flags != 0)
		rpc_fail(
		    c, CONNECT_INTERNAL, "protocol error: unexpected envelope flags %u", flags);
	else if (body.n > 0)
		rpc_fail(c, CONNECT_UNIMPLEMENTED, "unary request has multiple messages");
	else
		dispatch(c, payload);
}

static void
on_collected(struct call *call, struct strv body)
{
	struct rpc *c = call->arg;

	if (body.p == NULL)
		rpc_fail(c, CONNECT_RESOURCE_EXHAUSTED, "message is larger than %zu bytes",
		    RPC_BODY_MAX);
	else if (c->bad.code != ERR_NONE)
		rpc_fail_err(c, &c->bad);
	else if (is_stream(c))
		dispatch_envelope(c, body);
	else
		dispatch(c, body);
}

/* One message of a client stream; 0, or -1 with e. */
static int
client_message(struct rpc *c, unsigned flags, struct strv payload, struct err *e)
{
	json_t *in;

	if (flags & CONNECT_FLAG_END)
		return 0;
	if (flags != 0)
		return err_set(
		    e, ERR_INTERNAL, "protocol error: unexpected envelope flags %u", flags);
	if (c->codec->decode(payload, c->method->in, RPC_BODY_MAX, &in, e) == -1)
		return -1;
	c->ops->on_message(c, in);
	json_decref(in);
	return 0;
}

static void
on_body(struct call *call, const char *p, size_t n)
{
	struct rpc *c = call->arg;
	struct strv in = { p, n }, payload;
	enum connect_event ev = CONNECT_MESSAGE;
	struct err e;
	unsigned flags;
	int r = 0;

	if (c->bad.code != ERR_NONE)
		return;
	c->in_handler = true; /* a handler that answers must not free c under us */
	while (!c->dead && r == 0 && ev == CONNECT_MESSAGE) {
		ev = connect_reader_next(&c->in, &in, &flags, &payload, &e);
		if (ev == CONNECT_MESSAGE)
			r = client_message(c, flags, payload, &e);
	}
	if (!c->dead && (r == -1 || ev == CONNECT_BAD))
		abandon(c, &e);
	c->in_handler = false;
	if (c->dead)
		rpc_free(c);
}

static void
on_end(struct call *call)
{
	struct rpc *c = call->arg;
	struct err e;

	if (c->bad.code != ERR_NONE) {
		abandon(c, &c->bad);
	} else if (!connect_reader_idle(&c->in)) {
		err_set(&e, ERR_INVALID, "protocol error: incomplete envelope: unexpected EOF");
		abandon(c, &e);
	} else {
		c->ops->on_end(c);
	}
}

void
rpc_pause(struct rpc *c, bool on)
{
	http_req_pause(c->call->r, on);
}

static void
refuse(struct call *call, int status, const char *name, const char *value)
{
	const struct http_field f = { strv_of(name), strv_of(value) };

	call_reply(call, status, &f, 1, STRV_NONE);
}

void
rpc_begin(struct call *call, const struct rpc_method *m, const struct http_head *h)
{
	const struct strv *type = http_head_get(h, "Content-Type");
	const struct codec *codec;
	bool stream = false;
	struct rpc *c;

	if (h->method != HTTP_POST) {
		refuse(call, 405, "Allow", "POST");
		return;
	}
	codec = codec_find(type ? *type : STRV_NONE, &stream);
	if (codec == NULL || stream != (m->kind != RPC_UNARY)) {
		refuse(call, 415, "Accept-Post",
		    m->kind == RPC_UNARY ? "application/json" : "application/connect+json");
		return;
	}
	c = xcalloc(1, sizeof(*c));
	c->app = call->app;
	c->call = call;
	c->method = m;
	c->codec = codec;
	c->in.max = RPC_BODY_MAX;
	timer_init(&c->idle, call->app->loop, on_idle, c);
	timer_init(&c->deadline, call->app->loop, on_deadline, c);
	TAILQ_INSERT_TAIL(&c->app->rpcs, c, link);
	call->arg = c;
	call->ops = m->kind == RPC_CLIENT_STREAM ? &stream_ops : &collect_ops;
	if (read_head(c, h, &c->bad) == -1 && c->bad.code == ERR_NONE)
		c->bad.code = ERR_INTERNAL;
	if (m->kind == RPC_CLIENT_STREAM) {
		start_timers(c);
		m->handle(c, NULL);
	} else {
		call_collect(call, RPC_BODY_MAX + CONNECT_HEADER, on_collected);
	}
}

int
rpc_user(struct rpc *c, struct user **ret, struct err *e)
{
	if (c->user == NULL)
		return auth_user(c->app, NULL, ret, e);
	*ret = user_dup(c->user);
	return 0;
}

void
rpc_abort_all(struct app *a)
{
	struct rpc *c;

	while ((c = TAILQ_FIRST(&a->rpcs)) != NULL) {
		struct call *call = detach(c);

		if (c->ops && c->ops->on_gone)
			c->ops->on_gone(c);
		rpc_free(c);
		call_abort(call, "the sandbox ends");
	}
}
