/*
 * See sandbox_init.h. The write of `ready` is a hint that spares questions: it goes out without a
 * precondition and its answer is not waited for.
 */
#include "domain/sandbox_init.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/str.h"
#include "domain/names.h"

#define INIT_CALL_TIMEOUT                                                                          \
	SECONDS(60) /* a ready command may take its time; the deadline bounds it */
#define INIT_CONNECT_TIMEOUT SECONDS(1)
#define INIT_ANSWER_MAX ((size_t)16 * 1024)

struct sandbox_init {
	struct sandbox_init_conf conf;
	char *name, *url, *body, *ready;
	struct kube_call *call;
	struct timer retry;
	struct defer refused; /* reports an error found at start, outside of it */
	int64_t pause;
	struct err err;
	void (*fn)(const struct err *e, void *arg);
	void *arg;
};

static void
init_free(struct sandbox_init *i)
{
	timer_stop(&i->retry);
	loop_undefer(kube_loop(i->conf.kube), &i->refused);
	kube_cancel(i->call);
	if (i->body != NULL)
		explicit_bzero(i->body, strlen(i->body));
	xfree(i->name);
	xfree(i->url);
	xfree(i->body);
	xfree(i->ready);
	xfree(i);
}

static void
init_end(struct sandbox_init *i, const struct err *e)
{
	void (*fn)(const struct err *, void *) = i->fn;
	void *arg = i->arg;
	struct err copy;

	if (e != NULL)
		copy = *e;
	init_free(i);
	fn(e != NULL ? &copy : NULL, arg);
}

static void
ready_written(
    int status UNUSED, const json_t *obj UNUSED, const struct err *e UNUSED, void *arg UNUSED)
{
}

static void
write_ready(const struct sandbox_init *i)
{
	json_t *patch =
	    json_pack("{s:{s:{s:s}}}", "metadata", "annotations", ANNOTATION_READY, i->ready);

	kube_patch(i->conf.kube, &KUBE_REPLICASETS, i->conf.ns, i->name, NULL, KUBE_PATCH_MERGE,
	    patch, ready_written, NULL);
	json_decref(patch);
}

static void post(void *arg);

static bool
try_again(struct sandbox_init *i)
{
	if (loop_now(kube_loop(i->conf.kube)) + i->pause >= i->conf.deadline)
		return false;
	timer_start(&i->retry, i->pause);
	i->pause = i->pause * 2 < INIT_RETRY_LAST ? i->pause * 2 : INIT_RETRY_LAST;
	return true;
}

static void
on_answer(int status, struct strv body, const struct err *e, void *arg)
{
	struct sandbox_init *i = arg;
	struct err why;

	i->call = NULL;
	if (e != NULL) {
		/* Not listening yet, or the pod's network is still being set up. */
		if (e->code != ERR_TIMEOUT && try_again(i))
			return;
		err_set(&why, ERR_TIMEOUT, "the sandbox did not answer in time: %s", e->msg);
		init_end(i, &why);
		return;
	}
	if (status == 204) {
		write_ready(i);
		init_end(i, NULL);
		return;
	}
	if (status == 409)
		err_set(&why, ERR_CONFLICT, "the sandbox has moved on to a newer generation");
	else if (status == 401)
		err_set(&why, ERR_UNAUTHORIZED, "the sandbox holds another token");
	else if (status == 504)
		err_set(&why, ERR_TIMEOUT, "the sandbox's ready command did not pass in time");
	else
		err_set(&why, ERR_INTERNAL, "the sandbox refused its settings (%d): " STRV_FMT,
		    status, STRV_ARG(body));
	init_end(i, &why);
}

static void
post(void *arg)
{
	struct sandbox_init *i = arg;
	int64_t left = i->conf.deadline - loop_now(kube_loop(i->conf.kube));

	if (left < MILLIS(1))
		left = MILLIS(1); /* a timer came late: it ends by the same way */
	i->call = http_call(i->conf.kube,
	    &(struct http_call_req){ .method = "POST",
	        .url = i->url,
	        .body = strv_of(i->body),
	        .content_type = "application/json",
	        .timeout = left < INIT_CALL_TIMEOUT ? left : INIT_CALL_TIMEOUT,
	        .connect_timeout = INIT_CONNECT_TIMEOUT,
	        .max_answer = INIT_ANSWER_MAX },
	    on_answer, i);
}

static void
on_refused(void *arg)
{
	struct sandbox_init *i = arg;

	init_end(i, &i->err);
}

/* {envVars} out of the sealed annotation, and what `data` says of users and commands. */
static int
build_body(struct sandbox_init *i, const struct sandbox *s, struct err *e)
{
	CLEANUP(json_unrefp) json_t *data = NULL, *secrets = NULL, *body = json_object();
	char token[TOKEN_LEN + 1], now[TIME_TEXT_MAX];
	static const struct {
		const char *from, *to;
	} texts[] = {
		{ "user", "defaultUser" },
		{ "workdir", "defaultWorkdir" },
		{ "startCmd", "startCmd" },
		{ "readyCmd", "readyCmd" },
	};

	if (json_parse(strv_of(s->data), SANDBOX_DATA_MAX, &data, e) == -1)
		return err_wrap(e, "sandbox data");
	if (s->sealed != NULL) {
		if (token_open(i->conf.key, strv_of(s->id), strv_of(s->sealed), &secrets, e) == -1)
			return -1;
		json_set(body, "envVars", json_deep_copy(json_get_obj(secrets, "envVars")));
	}
	if (s->secure) {
		token_envd(i->conf.key, strv_of(s->id), token);
		json_set_str(body, "accessToken", token);
		explicit_bzero(token, sizeof(token));
	}
	time_format(clock_wall(), 9, now);
	json_set_str(body, "timestamp", now);
	json_set_int(body, "generation", s->generation);
	json_set_str(body, "sandboxID", s->id);
	json_set_str(body, "templateID", s->template_id);
	for (size_t n = 0; n < ARRAY_LEN(texts); n++)
		json_set_str(body, texts[n].to, json_get_str(data, texts[n].from));
	i->body = json_text(body);
	return 0;
}

struct sandbox_init *
sandbox_init_start(const struct sandbox_init_conf *conf, const struct sandbox *s,
    const struct pod *p, void (*fn)(const struct err *e, void *arg), void *arg)
{
	struct sandbox_init *i = xcalloc(1, sizeof(*i));
	struct strbuf b;

	i->conf = *conf;
	i->fn = fn;
	i->arg = arg;
	i->pause = INIT_RETRY_FIRST;
	i->name = xstrdup(s->name);
	timer_init(&i->retry, kube_loop(conf->kube), post, i);
	defer_init(&i->refused, on_refused, i);
	if (build_body(i, s, &i->err) == -1) {
		loop_defer(kube_loop(conf->kube), &i->refused);
		return i;
	}
	strbuf_init(&b, 256);
	if (strchr(p->ip, ':') != NULL)
		strbuf_addf(&b, "http://[%s]:%d/init", p->ip, ENVD_PORT);
	else
		strbuf_addf(&b, "http://%s:%d/init", p->ip, ENVD_PORT);
	i->url = xstrdup(b.p);
	strbuf_reset(&b);
	strbuf_addf(&b, "%s/%d", p->uid, p->restarts);
	i->ready = xstrdup(b.p);
	strbuf_done(&b);
	post(i);
	return i;
}

void
sandbox_init_cancel(struct sandbox_init *i)
{
	if (i != NULL)
		init_free(i);
}
