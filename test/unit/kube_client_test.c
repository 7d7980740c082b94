#include "t.h"

#include "base/json.h"
#include "kube/kube_client.h"
#include "kube/kube_http.h"

#include "../fake/script.h"

/* --- what the server saw and answers --- */

struct script {
	int status;
	const char *fields, *body;
	int n;
	char method[16], target[256], head[2048], request[4096];
	struct fake_conn *conn;
	bool silent; /* do not answer */
};

static void
handler(const struct fake_req *r, void *arg)
{
	struct script *s = arg;

	s->n++;
	s->conn = r->c;
	snprintf(s->method, sizeof(s->method), "%s", r->method);
	snprintf(s->target, sizeof(s->target), "%s", r->target);
	snprintf(s->head, sizeof(s->head), "%s", r->head);
	snprintf(s->request, sizeof(s->request), STRV_FMT, STRV_ARG(r->body));
	if (!s->silent)
		fake_reply(r->c, s->status, s->fields != NULL ? s->fields : "",
		    s->body != NULL ? s->body : "");
}

struct result {
	int n, status;
	json_t *obj;
	char *body;
	struct err e;
	struct kube_call *cancel; /* in the callback */
};

static void
on_result(int status, const json_t *obj, const struct err *e, void *arg)
{
	struct result *r = arg;

	r->n++;
	r->status = status;
	r->obj = json_deep_copy(obj);
	if (e != NULL)
		r->e = *e;
	kube_cancel(r->cancel);
}

static void
on_plain(int status, struct strv body, const struct err *e, void *arg)
{
	struct result *r = arg;

	r->n++;
	r->status = status;
	r->body = strv_dup(body);
	if (e != NULL)
		r->e = *e;
}

static void
clear(struct result *r)
{
	json_decref(r->obj);
	xfree(r->body);
	memset(r, 0, sizeof(*r));
}

static bool
is_done(void *arg)
{
	return ((struct result *)arg)->n > 0;
}

static bool
was_asked(void *arg)
{
	return ((struct script *)arg)->n > 0;
}

struct world {
	struct loop *loop;
	struct fake *fake;
	struct kube *kube;
	struct script script;
};

static int
setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	w->loop = loop_new();
	w->fake = fake_new(w->loop, handler, &w->script);
	w->kube = fake_client(w->fake);
	w->script.status = 200;
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kube_free(w->kube);
	fake_free(w->fake);
	loop_free(w->loop);
	xfree(w);
	return 0;
}

#define WTEST(name)                                                                                \
	static void name##_(struct world *w);                                                      \
	static void name(void **state)                                                             \
	{                                                                                          \
		name##_(*state);                                                                   \
	}                                                                                          \
	static void name##_(struct world *w)
#define W(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

WTEST(paths)
{
	CLEANUP(xfreep) char *a = kube_path(&KUBE_REPLICASETS, "n", "x", "status");
	CLEANUP(xfreep) char *b = kube_path(&KUBE_PODS, NULL, NULL, NULL);
	CLEANUP(xfreep) char *c = kube_path(&KUBE_PODS, "a/b", "../x?", NULL);

	assert_non_null(w);
	assert_string_equal(a, "/apis/apps/v1/namespaces/n/replicasets/x/status");
	assert_string_equal(b, "/api/v1/pods");
	assert_string_equal(c, "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3F");
}

WTEST(what_goes_over_the_wire)
{
	struct result r = { 0 };
	CLEANUP(json_unrefp) json_t *o = json_pack("{s:i}", "a", 1);
	struct kube_delete_opts del = { .uid = "u", .resource_version = "5", .grace = 0 };
	const struct script *s = &w->script;

	w->script.body = "{\"ok\":true}";
	kube_patch(w->kube, &KUBE_PODS, "n", "p", "status", KUBE_PATCH_MERGE, o, on_result, &r);
	assert_int_equal(r.n, 0);
	fake_until(w->loop, is_done, &r);
	assert_true(json_get_bool(r.obj, "ok", false));
	assert_string_equal(s->method, "PATCH");
	assert_string_equal(s->target, "/api/v1/namespaces/n/pods/p/status");
	assert_has(s->head, "\r\nAuthorization: Bearer secret-token\r\n");
	assert_has(s->head, "\r\nContent-Type: application/merge-patch+json\r\n");
	assert_has(s->head, "\r\nAccept: application/json\r\n");
	assert_has_not(s->head, "Expect");
	assert_string_equal(s->request, "{\"a\":1}");
	clear(&r);

	kube_patch(w->kube, &KUBE_PODS, "n", "p", NULL, KUBE_PATCH_APPLY, o, on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_has(s->target, "/pods/p?fieldManager=agent-sandbox&force=true");
	assert_has(s->head, "application/apply-patch+yaml");
	clear(&r);

	kube_create(w->kube, &KUBE_PODS, "n", o, true, on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_string_equal(s->method, "POST");
	assert_string_equal(s->target, "/api/v1/namespaces/n/pods?dryRun=All");
	clear(&r);

	kube_delete(w->kube, &KUBE_PODS, "n", "p", &del, on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_string_equal(s->method, "DELETE");
	assert_has(s->request, "\"gracePeriodSeconds\":0");
	assert_has(s->request, "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"5\"}");
	assert_has(s->request, "\"propagationPolicy\":\"Background\"");
	clear(&r);

	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_string_equal(s->method, "GET");
	assert_has_not(s->head, "Content-Type");
	assert_has_not(s->head, "Content-Length");
	assert_string_equal(s->request, "");
	clear(&r);

	kube_update(w->kube, &KUBE_PODS, "n", "p", o, on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_string_equal(s->method, "PUT");
	clear(&r);
	assert_int_equal(w->fake->conns, 1); /* one connection for all of them */
}

WTEST(errors_are_mapped)
{
	static const struct {
		int status;
		const char *fields, *body;
		enum err_code code;
		int retry_after;
	} cases[] = {
		{ 404, "", "{\"reason\":\"NotFound\",\"message\":\"no such pod\"}", ERR_NOT_FOUND,
		    0 },
		{ 409, "", "{\"reason\":\"Conflict\",\"message\":\"m\"}", ERR_CONFLICT, 0 },
		{ 409, "", "{\"reason\":\"AlreadyExists\",\"message\":\"m\"}", ERR_EXISTS, 0 },
		{ 403, "", "{\"reason\":\"Forbidden\",\"message\":\"m\"}", ERR_FORBIDDEN, 0 },
		{ 403, "", "{\"reason\":\"Forbidden\",\"message\":\"exceeded quota: q\"}",
		    ERR_LIMIT, 0 },
		{ 410, "", "{\"reason\":\"Expired\"}", ERR_GONE, 0 },
		{ 422, "", "{\"reason\":\"Invalid\",\"message\":\"m\"}", ERR_INVALID, 0 },
		{ 400, "", "not json", ERR_INVALID, 0 },
		{ 401, "", "{}", ERR_UNAVAILABLE, 0 },
		{ 413, "", "", ERR_TOO_LARGE, 0 },
		{ 418, "", "", ERR_INTERNAL, 0 },
		{ 429, "Retry-After: 7\r\n", "slow down", ERR_UNAVAILABLE, 7 },
		{ 429, "", "{\"details\":{\"retryAfterSeconds\":3}}", ERR_UNAVAILABLE, 3 },
		{ 500, "", "[]", ERR_UNAVAILABLE, 0 },
		{ 503, "Retry-After: 999999\r\n", "{}", ERR_UNAVAILABLE, 3600 },
		{ 504, "", "{}", ERR_TIMEOUT, 0 },
		{ 302, "Location: /x\r\n", "", ERR_INTERNAL, 0 },
	};
	struct result r = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		w->script.status = cases[i].status;
		w->script.fields = cases[i].fields;
		w->script.body = cases[i].body;
		kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
		fake_until(w->loop, is_done, &r);
		assert_int_equal(r.status, cases[i].status);
		assert_string_equal(err_name(r.e.code), err_name(cases[i].code));
		assert_int_equal(r.e.retry_after, cases[i].retry_after);
		assert_null(r.obj);
		clear(&r);
	}
	w->script.status = 404;
	w->script.body = "{\"message\":\"no such pod\"}";
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_has(r.e.msg, "no such pod");
	clear(&r);
}

WTEST(a_good_status_with_a_bad_body)
{
	struct result r = { 0 };

	w->script.body = "{\"a\":";
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_UNAVAILABLE);
	clear(&r);
	w->script.body = "";
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_NONE);
	assert_null(r.obj);
	clear(&r);
}

WTEST(a_body_that_is_cut_is_an_error)
{
	struct result r = { 0 };

	w->script.silent = true;
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, was_asked, &w->script);
	fake_send(w->script.conn, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", 41);
	fake_settle(w->loop);
	fake_close(w->script.conn);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.e.code, ERR_UNAVAILABLE);
	clear(&r);
}

WTEST(nobody_listens)
{
	struct result r = { 0 };

	fake_stop_listening(w->fake);
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.e.code, ERR_UNAVAILABLE);
	clear(&r);
}

WTEST(the_deadline_counts)
{
	struct result r = { 0 };

	w->script.silent = true;
	clock_fake_start(SECONDS(1000), SECONDS(1000));
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, was_asked, &w->script);
	clock_fake_advance(KUBE_CALL_TIMEOUT - 1);
	fake_settle(w->loop);
	assert_int_equal(r.n, 0);
	clock_fake_advance(2);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_TIMEOUT);
	clear(&r);
	clock_fake_end();
}

WTEST(cancelled_calls_say_nothing)
{
	struct result r = { 0 }, after = { 0 };
	struct kube_call *c;

	/* before it was sent */
	c = kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	kube_cancel(c);
	fake_settle(w->loop);
	assert_int_equal(w->script.n, 0);
	/* while the server thinks */
	w->script.silent = true;
	c = kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, was_asked, &w->script);
	kube_cancel(c);
	fake_settle(w->loop);
	assert_int_equal(w->script.conn->fd, -1); /* the connection went with it */
	/* inside the callback of another, whose answer came in the same turn */
	w->script.silent = false;
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	r.cancel = kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &after);
	fake_settle(w->loop);
	assert_int_equal(r.n, 1);
	assert_int_equal(after.n, 0);
	/* inside its own */
	memset(&r, 0, sizeof(r));
	r.cancel = kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, is_done, &r);
	kube_cancel(NULL);
}

WTEST(freed_with_calls_in_flight)
{
	struct result r = { 0 };

	w->script.silent = true;
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, was_asked, &w->script);
	kube_get(w->kube, &KUBE_PODS, "n", "q", on_result, &r);
	kube_free(w->kube);
	w->kube = NULL;
	fake_settle(w->loop);
	assert_int_equal(r.n, 0);
}

static void
count_results(int status UNUSED, const json_t *obj UNUSED, const struct err *e, void *arg)
{
	assert_null(e);
	++*(int *)arg;
}

static bool
all_done(void *arg)
{
	return *(int *)arg == 1000;
}

WTEST(a_thousand_calls_wait_in_line)
{
	int n = 0;

	for (int i = 0; i < 1000; i++)
		kube_get(w->kube, &KUBE_PODS, "n", "p", count_results, &n);
	fake_until(w->loop, all_done, &n);
	assert_true(w->fake->conns <= KUBE_CALLS_MAX);
	assert_int_equal(w->script.n, 1000);
}

struct refusals {
	int ok, refused;
};

static void
count_refusals(int status UNUSED, const json_t *obj UNUSED, const struct err *e, void *arg)
{
	struct refusals *r = arg;

	if (e == NULL)
		r->ok++;
	else if (e->code == ERR_UNAVAILABLE && e->retry_after == 1)
		r->refused++;
}

WTEST(the_line_has_an_end)
{
	struct refusals r = { 0 };
	struct metrics *m = metrics_new();
	struct strbuf text;

	kube_metrics_add(m);
	w->script.silent = true;
	for (int i = 0; i < KUBE_WAITING_MAX + 10; i++)
		kube_get(w->kube, &KUBE_PODS, "n", "p", count_refusals, &r);
	fake_settle(w->loop);
	assert_int_equal(r.refused, 10);
	strbuf_init(&text, 1024 * 1024);
	metrics_render(m, &text);
	assert_non_null(strstr(text.p, "agentsandbox_kube_refused_total{kind=\"call\"} 10\n"));
	strbuf_done(&text);
	metrics_free(m);
}

/* --- 401 --- */

struct tokens {
	char path[64];
	int n;
	char seen[3][64], bodies[3][64];
};

static void
token_handler(const struct fake_req *r, void *arg)
{
	struct tokens *t = arg;
	const char *auth = strstr(r->head, "Bearer ");

	assert_true(t->n < 3 && auth != NULL);
	snprintf(t->seen[t->n], 64, "%.*s", (int)strcspn(auth + 7, "\r"), auth + 7);
	snprintf(t->bodies[t->n], 64, STRV_FMT, STRV_ARG(r->body));
	t->n++;
	fake_reply(r->c, strcmp(t->seen[t->n - 1], "new") == 0 ? 200 : 401, "", "{}");
}

static void
write_token(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

TEST(a_refused_token_is_read_again)
{
	struct tokens t = { .path = "/tmp/kube_client_test.XXXXXX" };
	struct loop *l = loop_new();
	struct fake *f = fake_new(l, token_handler, &t);
	struct kube_config *config = xcalloc(1, sizeof(*config));
	CLEANUP(json_unrefp) json_t *o = json_pack("{s:i}", "a", 1);
	struct result r = { 0 };
	struct kube *k;
	struct err e;

	close(mkstemp(t.path));
	write_token(t.path, "old");
	config->server = xstrdup(f->url);
	config->token_file = xstrdup(t.path);
	assert_ok(e, kube_new(l, config, &k, &e));
	/* The old token is refused twice: once is tried again, then it is an error. */
	kube_create(k, &KUBE_PODS, "n", o, false, on_result, &r);
	fake_until(l, is_done, &r);
	assert_int_equal(t.n, 2);
	assert_int_equal(r.e.code, ERR_UNAVAILABLE);
	assert_string_equal(t.bodies[1], "{\"a\":1}");
	clear(&r);
	/* A rotated file is noticed before the call. */
	write_token(t.path, "new");
	t.n = 0;
	kube_create(k, &KUBE_PODS, "n", o, false, on_result, &r);
	fake_until(l, is_done, &r);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.seen[0], "new");
	assert_int_equal(r.status, 200);
	clear(&r);
	unlink(t.path);
	kube_free(k);
	fake_free(f);
	loop_free(l);
}

/* --- streams --- */

struct stream {
	int opened, ended;
	struct strbuf bytes;
	struct err e;
	struct kube_call *cancel;
};

static void
on_open(void *arg)
{
	((struct stream *)arg)->opened++;
}

static void
on_bytes(const char *p, size_t n, void *arg)
{
	struct stream *s = arg;

	strbuf_add(&s->bytes, p, n);
	kube_cancel(s->cancel);
	s->cancel = NULL;
}

static void
on_end(const struct err *e, void *arg)
{
	struct stream *s = arg;

	s->ended++;
	if (e != NULL)
		s->e = *e;
}

static bool
has_ended(void *arg)
{
	return ((struct stream *)arg)->ended > 0;
}

static bool
has_bytes(void *arg)
{
	return ((struct stream *)arg)->bytes.n > 0;
}

static const struct kube_stream_ops stream_ops = { on_open, on_bytes, on_end };

WTEST(streams)
{
	struct stream s = { 0 };

	strbuf_init(&s.bytes, 1024 * 1024);
	w->script.silent = true;
	kube_stream(w->kube, "/w?watch=1", &stream_ops, &s);
	fake_until(w->loop, was_asked, &w->script);
	fake_stream(w->script.conn);
	fake_settle(w->loop);
	assert_int_equal(s.opened, 1);
	fake_piece(w->script.conn, "one");
	fake_settle(w->loop);
	assert_strv(strbuf_view(&s.bytes), "one");
	fake_piece(w->script.conn, "two");
	fake_end(w->script.conn);
	fake_until(w->loop, has_ended, &s);
	assert_strv(strbuf_view(&s.bytes), "onetwo");
	assert_int_equal(s.e.code, ERR_NONE);
	assert_true(s.opened == 1 && s.ended == 1);
	strbuf_done(&s.bytes);
}

WTEST(a_cut_stream_is_an_error)
{
	struct stream s = { 0 };

	strbuf_init(&s.bytes, 1024);
	w->script.silent = true;
	kube_stream(w->kube, "/w", &stream_ops, &s);
	fake_until(w->loop, was_asked, &w->script);
	fake_stream(w->script.conn);
	fake_piece(w->script.conn, "x");
	fake_until(w->loop, has_bytes, &s);
	fake_close(w->script.conn);
	fake_until(w->loop, has_ended, &s);
	assert_int_equal(s.e.code, ERR_UNAVAILABLE);
	strbuf_done(&s.bytes);
}

WTEST(a_refused_stream_delivers_nothing)
{
	struct stream s = { 0 };
	CLEANUP(xfreep) char *big = xcalloc(1, 200001);

	strbuf_init(&s.bytes, 1024);
	w->script.status = 410;
	w->script.body = "{\"message\":\"too old\",\"reason\":\"Expired\"}";
	kube_stream(w->kube, "/w", &stream_ops, &s);
	fake_until(w->loop, has_ended, &s);
	assert_int_equal(s.e.code, ERR_GONE);
	assert_has(s.e.msg, "too old");
	assert_true(s.opened == 0 && s.bytes.n == 0);
	/* Its body may be longer than what we keep of it. */
	memset(big, ' ', 200000);
	w->script.status = 404;
	w->script.body = big;
	s.ended = 0;
	kube_stream(w->kube, "/w", &stream_ops, &s);
	fake_until(w->loop, has_ended, &s);
	assert_int_equal(s.e.code, ERR_NOT_FOUND);
	strbuf_done(&s.bytes);
}

WTEST(a_stream_is_cancelled_in_its_callback)
{
	struct stream s = { 0 };

	strbuf_init(&s.bytes, 1024);
	w->script.silent = true;
	s.cancel = kube_stream(w->kube, "/w", &stream_ops, &s);
	fake_until(w->loop, was_asked, &w->script);
	fake_stream(w->script.conn);
	fake_piece(w->script.conn, "x");
	fake_piece(w->script.conn, "y");
	fake_settle(w->loop);
	assert_strv(strbuf_view(&s.bytes), "x");
	assert_int_equal(s.ended, 0);
	assert_int_equal(w->script.conn->fd, -1);
	strbuf_done(&s.bytes);
}

WTEST(streams_do_not_starve_calls)
{
	struct stream s = { 0 };
	struct result r = { 0 };

	strbuf_init(&s.bytes, 1024);
	w->script.silent = true;
	for (int i = 0; i < KUBE_CALLS_MAX + 10; i++)
		kube_stream(w->kube, "/w", &stream_ops, &s);
	for (int i = 0; i < 50 && w->script.n < KUBE_CALLS_MAX + 10; i++)
		fake_settle(w->loop);
	assert_int_equal(w->script.n, KUBE_CALLS_MAX + 10);
	w->script.silent = false;
	kube_get(w->kube, &KUBE_PODS, "n", "p", on_result, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.status, 200);
	strbuf_done(&s.bytes);
}

/* --- plain HTTP --- */

static struct http_call_req
plain(const struct world *w)
{
	return (struct http_call_req){
		.method = "POST",
		.url = w->fake->url,
		.timeout = SECONDS(10),
		.connect_timeout = SECONDS(1),
		.max_answer = 100,
	};
}

WTEST(plain_calls)
{
	static const char *const headers[] = { "X-Own: 1", NULL };
	struct http_call_req req = plain(w);
	struct result r = { 0 };

	setenv("http_proxy", "http://127.0.0.1:1", 1);
	req.headers = headers;
	req.body = STRV("hello");
	req.content_type = "text/plain";
	w->script.status = 503;
	w->script.body = "busy";
	http_call(w->kube, &req, on_plain, &r);
	assert_int_equal(r.n, 0);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.status, 503);
	assert_int_equal(r.e.code, ERR_NONE);
	assert_string_equal(r.body, "busy");
	assert_string_equal(w->script.request, "hello");
	assert_has(w->script.head, "\r\nX-Own: 1\r\n");
	assert_has(w->script.head, "\r\nContent-Type: text/plain\r\n");
	assert_has_not(w->script.head, "Authorization");
	assert_has_not(w->script.head, "Expect");
	clear(&r);
	/* The next one does not come over the same connection. */
	req.content_type = NULL;
	req.body = STRV_NONE;
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(w->fake->conns, 2);
	assert_has_not(w->script.head, "Content-Type");
	assert_has(w->script.head, "\r\nContent-Length: 0\r\n");
	clear(&r);
	req.method = "GET";
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, is_done, &r);
	assert_string_equal(w->script.method, "GET");
	assert_has_not(w->script.head, "Content-Length");
	clear(&r);
	unsetenv("http_proxy");
}

WTEST(plain_answers_have_a_limit)
{
	struct http_call_req req = plain(w);
	struct result r = { 0 };

	req.max_answer = 3;
	w->script.body = "four";
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.e.code, ERR_TOO_LARGE);
	clear(&r);
}

WTEST(plain_failures_say_whether_a_repeat_is_harmless)
{
	struct http_call_req req = plain(w);
	struct result r = { 0 };

	/* connected, then broken */
	w->script.silent = true;
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, was_asked, &w->script);
	fake_cut(w->script.conn);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_IO);
	clear(&r);
	/* no answer in time */
	w->script.n = 0;
	clock_fake_start(SECONDS(1000), SECONDS(1000));
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, was_asked, &w->script);
	clock_fake_advance(SECONDS(10));
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_TIMEOUT);
	clear(&r);
	clock_fake_end();
	/* refused */
	fake_stop_listening(w->fake);
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_UNAVAILABLE);
	clear(&r);
	/* never connected: nothing routes there */
	req.url = "http://192.0.2.1:9/";
	req.connect_timeout = MILLIS(50);
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_UNAVAILABLE);
	clear(&r);
	/* no URL at all */
	req.url = "gopher://x";
	http_call(w->kube, &req, on_plain, &r);
	fake_until(w->loop, is_done, &r);
	assert_int_equal(r.e.code, ERR_UNAVAILABLE);
	clear(&r);
}

T_MAIN(W(paths), W(what_goes_over_the_wire), W(errors_are_mapped), W(a_good_status_with_a_bad_body),
    W(a_body_that_is_cut_is_an_error), W(nobody_listens), W(the_deadline_counts),
    W(cancelled_calls_say_nothing), W(freed_with_calls_in_flight), W(a_thousand_calls_wait_in_line),
    W(the_line_has_an_end), T(a_refused_token_is_read_again), W(streams),
    W(a_cut_stream_is_an_error), W(a_refused_stream_delivers_nothing),
    W(a_stream_is_cancelled_in_its_callback), W(streams_do_not_starve_calls), W(plain_calls),
    W(plain_answers_have_a_limit), W(plain_failures_say_whether_a_repeat_is_harmless))
