/*
 * Verbs and paths of the Kubernetes API on top of kube_http, and plain HTTP calls. Adds
 * credentials, reads JSON, maps errors. Must not know what the objects mean.
 */
#include "kube/kube_client.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "kube/kube_http.h"
#include "kube/kube_metrics.h"
#include "kube/kube_status.h"

#define URL_MAX ((size_t)64 * 1024)
#define HEADER_MAX ((size_t)128 * 1024) /* a token's line */
#define HEADERS_MAX 64
#define FIELD_MANAGER "agent-sandbox"

const struct kube_res KUBE_PODS = { "", "v1", "pods", "Pod" };
const struct kube_res KUBE_REPLICASETS = { "apps", "v1", "replicasets", "ReplicaSet" };
const struct kube_res KUBE_CONFIGMAPS = { "", "v1", "configmaps", "ConfigMap" };
const struct kube_res KUBE_SECRETS = { "", "v1", "secrets", "Secret" };
const struct kube_res KUBE_LEASES = { "coordination.k8s.io", "v1", "leases", "Lease" };
const struct kube_res KUBE_EVENTS = { "", "v1", "events", "Event" };

struct metric kube_calls_total =
    COUNTER("agentsandbox_kube_calls_total", "Calls to the Kubernetes API by outcome", "outcome");
struct histogram kube_call_seconds = HISTOGRAM(
    "agentsandbox_kube_call_seconds", "Time of calls to the Kubernetes API, waiting included");
struct metric kube_refused_total = COUNTER(
    "agentsandbox_kube_refused_total", "Calls refused because too many waited, by kind", "kind");
struct metric kube_watch_ends_total = COUNTER(
    "agentsandbox_kube_watch_ends_total", "Watch connections that ended, by cause", "cause");
struct metric kube_lists_total =
    COUNTER("agentsandbox_kube_lists_total", "Full lists of watched objects by outcome", "outcome");
struct metric kube_events_total =
    COUNTER("agentsandbox_kube_events_total", "Kubernetes Events by outcome", "outcome");

TAILQ_HEAD(call_list, kube_call);

struct kube {
	struct loop *loop;
	struct kube_config *config;
	struct kube_http *http;
	struct call_list calls;
};

enum call_kind { CALL_API = 0, CALL_STREAM, CALL_PLAIN };

struct kube_call {
	TAILQ_ENTRY(kube_call) link;
	struct kube *k;
	struct kube_op *op; /* NULL while the callback runs */
	enum call_kind kind;
	union {
		kube_fn api;
		struct kube_stream_ops stream;
		http_call_fn plain;
	} fn;
	void *arg;
	/* of API calls and streams: to say it again after a 401 */
	char method[16];
	char *url;
	const char *content_type; /* a literal */
	int64_t start;
	bool repeated;
};

int
kube_new(struct loop *l, struct kube_config *config, struct kube **ret, struct err *e)
{
	struct kube_http *http;
	struct kube *k;

	if (kube_http_new(l, config, &http, e) == -1) {
		kube_config_free(config);
		return -1;
	}
	k = xcalloc(1, sizeof(*k));
	k->loop = l;
	k->config = config;
	k->http = http;
	TAILQ_INIT(&k->calls);
	*ret = k;
	return 0;
}

static void
call_free(struct kube_call *c)
{
	TAILQ_REMOVE(&c->k->calls, c, link);
	xfree(c->url);
	xfree(c);
}

void
kube_free(struct kube *k)
{
	struct kube_call *c;

	if (k == NULL)
		return;
	while ((c = TAILQ_FIRST(&k->calls)) != NULL) {
		BUG_ON(c->op == NULL); /* inside a callback */
		kube_cancel(c);
	}
	kube_http_free(k->http);
	kube_config_free(k->config);
	xfree(k);
}

const struct kube_config *
kube_conf(const struct kube *k)
{
	return k->config;
}

struct loop *
kube_loop(struct kube *k)
{
	return k->loop;
}

void
kube_metrics_add(struct metrics *m)
{
	metrics_add(m, &kube_calls_total);
	metrics_add_histogram(m, &kube_call_seconds);
	metrics_add(m, &kube_refused_total);
	metrics_add(m, &kube_watch_ends_total);
	metrics_add(m, &kube_lists_total);
	metrics_add(m, &kube_events_total);
}

void
kube_cancel(struct kube_call *c)
{
	if (c == NULL || c->op == NULL) /* its callback is running: too late, and harmless */
		return;
	kube_op_cancel(c->op);
	call_free(c);
}

/* --- paths --- */

static void
add_path(struct strbuf *b, const struct kube_res *r, const char *ns, const char *name)
{
	if (r->group[0] == '\0')
		strbuf_addf(b, "/api/%s", r->version);
	else
		strbuf_addf(b, "/apis/%s/%s", r->group, r->version);
	if (ns != NULL) {
		strbuf_adds(b, "/namespaces/");
		strbuf_add_url(b, strv_of(ns));
	}
	strbuf_addf(b, "/%s", r->plural);
	if (name != NULL) {
		strbuf_addc(b, '/');
		strbuf_add_url(b, strv_of(name));
	}
}

char *
kube_path(const struct kube_res *r, const char *ns, const char *name, const char *sub)
{
	struct strbuf b;
	char *ret = NULL;

	strbuf_init(&b, URL_MAX);
	add_path(&b, r, ns, name);
	if (sub != NULL)
		strbuf_addf(&b, "/%s", sub);
	/* Names come from Kubernetes or were checked: at most 253 bytes each. */
	BUG_ON(strbuf_take(&b, &ret, NULL) == -1);
	return ret;
}

/* --- sending --- */

static void on_api_end(struct kube_op *op, const struct kube_answer *a, void *arg);
static void on_stream_open(void *arg);
static void on_stream_bytes(const char *p, size_t n, void *arg);
static void on_stream_end(struct kube_op *op, const struct kube_answer *a, void *arg);
static void on_plain_end(struct kube_op *op, const struct kube_answer *a, void *arg);

/* Starts c->op. body is taken over, NULL: none. */
static void
send_api(struct kube_call *c, char *body, size_t body_len)
{
	static const struct kube_op_ops api = { .on_end = on_api_end };
	static const struct kube_op_ops stream = {
		.on_open = on_stream_open,
		.on_bytes = on_stream_bytes,
		.on_end = on_stream_end,
	};
	const char *token = kube_config_token(c->k->config, false);
	struct strbuf auth, type;
	const char *headers[4] = { "Accept: application/json" };
	size_t n = 1;
	struct kube_op_req req = {
		.lane = c->kind == CALL_STREAM ? KUBE_LANE_STREAM : KUBE_LANE_CALL,
		.method = c->method,
		.url = c->url,
		.headers = headers,
		.body = body,
		.body_len = body_len,
		.timeout = c->kind == CALL_STREAM ? 0 : KUBE_CALL_TIMEOUT,
		.connect_timeout = KUBE_CONNECT_TIMEOUT,
		.max_answer = c->kind == CALL_STREAM ? KUBE_ERROR_BODY_MAX : KUBE_BODY_MAX,
	};

	strbuf_init(&auth, HEADER_MAX);
	strbuf_init(&type, HEADER_MAX);
	if (token != NULL) {
		strbuf_addf(&auth, "Authorization: Bearer %s", token);
		headers[n++] = auth.p;
	}
	if (body != NULL) {
		strbuf_addf(&type, "Content-Type: %s", c->content_type);
		headers[n++] = type.p;
	}
	headers[n] = NULL;
	c->op = kube_op_start(c->k->http, &req, c->kind == CALL_STREAM ? &stream : &api, c);
	strbuf_done(&auth);
	strbuf_done(&type);
}

static struct kube_call *
call_new(struct kube *k, enum call_kind kind, void *arg)
{
	struct kube_call *c = xcalloc(1, sizeof(*c));

	c->k = k;
	c->kind = kind;
	c->arg = arg;
	c->start = loop_now(k->loop);
	TAILQ_INSERT_TAIL(&k->calls, c, link);
	return c;
}

struct api_req {
	const char *method, *content_type;
	const json_t *body;
	kube_fn fn;
	void *arg;
};

/* url holds the path; the server is put in front. */
static struct kube_call *
api_call(struct kube *k, const struct api_req *req, struct strbuf *path)
{
	struct kube_call *c = call_new(k, CALL_API, req->arg);
	struct strbuf url;
	char *body = req->body != NULL ? json_text(req->body) : NULL;

	BUG_ON(path->failed || strlen(req->method) >= sizeof(c->method));
	strbuf_init(&url, URL_MAX + 1024);
	strbuf_adds(&url, k->config->server);
	strbuf_addv(&url, strbuf_view(path));
	strbuf_done(path);
	BUG_ON(strbuf_take(&url, &c->url, NULL) == -1);
	snprintf(c->method, sizeof(c->method), "%s", req->method);
	c->content_type = req->content_type != NULL ? req->content_type : "application/json";
	c->fn.api = req->fn;
	send_api(c, body, body != NULL ? strlen(body) : 0);
	return c;
}

struct kube_call *
kube_get(struct kube *k, const struct kube_res *r, const char *ns, const char *name, kube_fn fn,
    void *arg)
{
	const struct api_req req = { .method = "GET", .fn = fn, .arg = arg };
	struct strbuf b;

	strbuf_init(&b, URL_MAX);
	add_path(&b, r, ns, name);
	return api_call(k, &req, &b);
}

struct kube_call *
kube_create(struct kube *k, const struct kube_res *r, const char *ns, const json_t *obj,
    bool dry_run, kube_fn fn, void *arg)
{
	const struct api_req req = { .method = "POST", .body = obj, .fn = fn, .arg = arg };
	struct strbuf b;

	strbuf_init(&b, URL_MAX);
	add_path(&b, r, ns, NULL);
	if (dry_run)
		strbuf_adds(&b, "?dryRun=All");
	return api_call(k, &req, &b);
}

struct kube_call *
kube_update(struct kube *k, const struct kube_res *r, const char *ns, const char *name,
    const json_t *obj, kube_fn fn, void *arg)
{
	const struct api_req req = { .method = "PUT", .body = obj, .fn = fn, .arg = arg };
	struct strbuf b;

	strbuf_init(&b, URL_MAX);
	add_path(&b, r, ns, name);
	return api_call(k, &req, &b);
}

/* One parameter per part of the request: more than the limit, but none belong together. */
struct kube_call *
/* NOLINTNEXTLINE(readability-function-size) */
kube_patch(struct kube *k, const struct kube_res *r, const char *ns, const char *name,
    const char *subresource, enum kube_patch type, const json_t *patch, kube_fn fn, void *arg)
{
	static const char *const types[] = {
		[KUBE_PATCH_MERGE] = "application/merge-patch+json",
		[KUBE_PATCH_JSON] = "application/json-patch+json",
		[KUBE_PATCH_APPLY] = "application/apply-patch+yaml",
	};
	const struct api_req req = {
		.method = "PATCH",
		.content_type = types[type],
		.body = patch,
		.fn = fn,
		.arg = arg,
	};
	struct strbuf b;

	strbuf_init(&b, URL_MAX);
	add_path(&b, r, ns, name);
	if (subresource != NULL)
		strbuf_addf(&b, "/%s", subresource);
	if (type == KUBE_PATCH_APPLY)
		strbuf_adds(&b, "?fieldManager=" FIELD_MANAGER "&force=true");
	return api_call(k, &req, &b);
}

struct kube_call *
kube_delete(struct kube *k, const struct kube_res *r, const char *ns, const char *name,
    const struct kube_delete_opts *opts, kube_fn fn, void *arg)
{
	CLEANUP(json_unrefp) json_t *body = json_object();
	const struct api_req req = { .method = "DELETE", .body = body, .fn = fn, .arg = arg };
	struct strbuf b;

	json_set_str(body, "apiVersion", "v1");
	json_set_str(body, "kind", "DeleteOptions");
	json_set_str(body, "propagationPolicy",
	    opts != NULL && opts->propagation != NULL ? opts->propagation : "Background");
	if (opts != NULL && opts->grace >= 0)
		json_set_int(body, "gracePeriodSeconds", opts->grace);
	if (opts != NULL && (opts->uid != NULL || opts->resource_version != NULL)) {
		json_t *pre = json_object();

		json_set_str(pre, "uid", opts->uid);
		json_set_str(pre, "resourceVersion", opts->resource_version);
		json_set(body, "preconditions", pre);
	}
	strbuf_init(&b, URL_MAX);
	add_path(&b, r, ns, name);
	return api_call(k, &req, &b);
}

struct kube_call *
kube_raw(
    struct kube *k, const char *method, const char *path, const json_t *body, kube_fn fn, void *arg)
{
	const struct api_req req = { .method = method, .body = body, .fn = fn, .arg = arg };
	struct strbuf b;

	strbuf_init(&b, URL_MAX);
	strbuf_adds(&b, path);
	return api_call(k, &req, &b);
}

struct kube_call *
kube_stream(struct kube *k, const char *path, const struct kube_stream_ops *ops, void *arg)
{
	struct kube_call *c = call_new(k, CALL_STREAM, arg);
	struct strbuf url;

	strbuf_init(&url, URL_MAX);
	strbuf_addf(&url, "%s%s", k->config->server, path);
	BUG_ON(strbuf_take(&url, &c->url, NULL) == -1);
	snprintf(c->method, sizeof(c->method), "GET");
	c->fn.stream = *ops;
	send_api(c, NULL, 0);
	return c;
}

/* --- answers --- */

/* After a 401 the token file is read again and the request said once more. */
static bool
say_again(struct kube_call *c, struct kube_op *op, const struct kube_answer *a)
{
	char *body;

	if (a->status != 401 || c->repeated || c->k->config->token_file == NULL)
		return false;
	c->repeated = true;
	kube_config_token(c->k->config, true);
	body = kube_op_take_body(op);
	send_api(c, body, body != NULL ? strlen(body) : 0);
	return true;
}

/* What the transport says becomes what callers act on: whatever broke, the API server is not
 * available now. */
static void
api_err(const struct kube_call *c, const struct kube_answer *a, struct err *e)
{
	if (a->err.code != ERR_NONE) {
		*e = a->err;
		if (e->code == ERR_IO)
			e->code = ERR_UNAVAILABLE;
	} else {
		kube_status_err_text(a->status, a->body, a->retry_after, e);
	}
	err_wrap(e, "%s", c->method);
}

/* Parses a 2xx body; *obj NULL if there is none. */
static int
read_body(const struct kube_answer *a, json_t **obj, struct err *e)
{
	if (strv_trim(a->body).n == 0)
		return 0;
	if (json_parse(a->body, KUBE_BODY_MAX, obj, e) == 0)
		return 0;
	e->code = ERR_UNAVAILABLE; /* not the caller's input */
	return err_wrap(e, "the answer is no JSON");
}

static void
on_api_end(struct kube_op *op, const struct kube_answer *a, void *arg)
{
	struct kube_call *c = arg;
	CLEANUP(json_unrefp) json_t *obj = NULL;
	struct err e = { .code = ERR_NONE };

	if (say_again(c, op, a))
		return;
	c->op = NULL;
	if (a->status < 200 || a->status > 299)
		api_err(c, a, &e);
	else if (read_body(a, &obj, &e) == -1)
		err_wrap(&e, "%s", c->method);
	metric_add(&kube_calls_total, e.code == ERR_NONE ? "ok" : err_name(e.code), 1);
	histogram_observe(
	    &kube_call_seconds, (double)(loop_now(c->k->loop) - c->start) / (double)NS_PER_S);
	c->fn.api(a->status, obj, e.code == ERR_NONE ? NULL : &e, c->arg);
	call_free(c);
}

static void
on_stream_open(void *arg)
{
	struct kube_call *c = arg;

	if (c->fn.stream.on_open != NULL)
		c->fn.stream.on_open(c->arg);
}

static void
on_stream_bytes(const char *p, size_t n, void *arg)
{
	struct kube_call *c = arg;

	c->fn.stream.on_bytes(p, n, c->arg);
}

static void
on_stream_end(struct kube_op *op, const struct kube_answer *a, void *arg)
{
	struct kube_call *c = arg;
	struct err e = { .code = ERR_NONE };

	if (say_again(c, op, a))
		return;
	c->op = NULL;
	if (a->status < 200 || a->status > 299)
		api_err(c, a, &e);
	c->fn.stream.on_end(e.code == ERR_NONE ? NULL : &e, c->arg);
	call_free(c);
}

/* --- plain HTTP --- */

struct kube_call *
http_call(struct kube *k, const struct http_call_req *req, http_call_fn fn, void *arg)
{
	static const struct kube_op_ops ops = { .on_end = on_plain_end };
	struct kube_call *c = call_new(k, CALL_PLAIN, arg);
	const char *headers[HEADERS_MAX + 2];
	struct strbuf type;
	size_t n = 0;
	struct kube_op_req op = {
		.lane = KUBE_LANE_PLAIN,
		.method = req->method,
		.url = req->url,
		.headers = headers,
		.timeout = req->timeout,
		.connect_timeout = req->connect_timeout,
		.max_answer = req->max_answer,
	};

	BUG_ON(req->timeout <= 0);
	strbuf_init(&type, HEADER_MAX);
	for (const char *const *h = req->headers; h != NULL && *h != NULL; h++) {
		BUG_ON(n == HEADERS_MAX);
		headers[n++] = *h;
	}
	if (req->body.n > 0 || strcmp(req->method, "POST") == 0 ||
	    strcmp(req->method, "PUT") == 0) {
		op.body = xmemdup0(req->body.p != NULL ? req->body.p : "", req->body.n);
		op.body_len = req->body.n;
		/* A name without value keeps curl from adding its own. */
		strbuf_addf(&type, "Content-Type:%s%s", req->content_type != NULL ? " " : "",
		    req->content_type != NULL ? req->content_type : "");
		headers[n++] = type.p;
	}
	headers[n] = NULL;
	c->fn.plain = fn;
	c->op = kube_op_start(k->http, &op, &ops, c);
	strbuf_done(&type);
	return c;
}

static void
on_plain_end(struct kube_op *op UNUSED, const struct kube_answer *a, void *arg)
{
	struct kube_call *c = arg;

	c->op = NULL;
	c->fn.plain(a->status, a->body, a->err.code == ERR_NONE ? NULL : &a->err, c->arg);
	call_free(c);
}
