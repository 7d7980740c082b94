/* See init.h. Mounts, CA bundles, the clock and the event address of E2B's own nodes are not for
 * us: those fields are ignored. */
#include "envd/init.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "envd/msg.h"
#include "envd/startup.h"
#include "envd/state.h"

#define RUN_DIR "/run/e2b"

/* A caller that waits for the ready command. */
struct waiter {
	struct startup_wait wait;
	struct call *call;
};

static void
answer(struct call *c)
{
	const struct http_field f[] = {
		{ STRV("X-Envd-Version"), STRV(ENVD_VERSION) },
		{ STRV("Cache-Control"), STRV("no-store") },
	};

	call_reply(c, 204, f, ARRAY_LEN(f), STRV_NONE);
}

static void
on_ready(struct startup_wait *w, const struct err *e)
{
	struct waiter *x = container_of(w, struct waiter, wait);
	struct call *c = x->call;

	xfree(x);
	c->ops = NULL;
	if (e)
		call_fail(c, e);
	else
		answer(c);
}

static void
on_gone(struct call *c)
{
	struct waiter *x = c->arg;

	startup_forget(c->app->startup, &x->wait);
	xfree(x);
}

static const struct call_ops wait_ops = { .on_gone = on_gone, .gone_at_fin = true };

static void
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd == -1)
		return;
	(void)!write(fd, text, strlen(text));
	close(fd);
}

/* Files that E2B's own daemon leaves for programs that have no environment. Best effort. */
static void
write_names(const struct state *s)
{
	if (mkdir(RUN_DIR, 0755) == -1 && access(RUN_DIR, W_OK) == -1)
		return;
	write_file(RUN_DIR "/.E2B_SANDBOX", "true");
	if (s->sandbox_id)
		write_file(RUN_DIR "/.E2B_SANDBOX_ID", s->sandbox_id);
	if (s->template_id)
		write_file(RUN_DIR "/.E2B_TEMPLATE_ID", s->template_id);
}

/* Every field that we use has its type. */
static int
check_types(const json_t *b, struct err *e)
{
	static const char *const texts[] = { "accessToken", "timestamp", "defaultUser",
		"defaultWorkdir", "sandboxID", "templateID", "startCmd", "readyCmd" };
	static const char *const ints[] = { "generation", "readyTimeoutMs" };
	const json_t *vars = json_object_get(b, "envVars");

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const json_t *v = json_object_get(b, texts[i]);

		if (v && !json_is_string(v) && !json_is_null(v))
			return err_set(e, ERR_INVALID, "%s is not a string", texts[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(ints); i++) {
		const json_t *v = json_object_get(b, ints[i]);

		if (v && !json_is_integer(v) && !json_is_null(v))
			return err_set(e, ERR_INVALID, "%s is not an integer", ints[i]);
	}
	if (vars && !json_is_object(vars) && !json_is_null(vars))
		return err_set(e, ERR_INVALID, "envVars is not an object");
	return msg_all_text(vars, "envVars", e);
}

static void
run_startup(struct call *c, const json_t *body)
{
	struct waiter *x = xcalloc(1, sizeof(*x));
	struct err e = { 0 };

	x->call = c;
	x->wait.fn = on_ready;
	switch (startup_run(c->app->startup, body, &x->wait, &e)) {
	case 0:
		c->arg = x;
		c->ops = &wait_ops;
		return;
	case 1:
		xfree(x);
		answer(c);
		return;
	default:
		xfree(x);
		call_fail(c, &e);
	}
}

static void
on_body(struct call *c, struct strv text)
{
	json_t *body CLEANUP(json_unrefp) = NULL;
	struct app *a = c->app;
	struct err e = { 0 };

	if (text.p == NULL) {
		call_error(c, 413, "body is larger than %zu bytes", INIT_BODY_MAX);
		return;
	}
	if (text.n == 0)
		body = json_object();
	else if (json_parse(text, INIT_BODY_MAX, &body, &e) == -1 || !json_is_object(body)) {
		call_reply(c, 400, NULL, 0, STRV_NONE);
		return;
	}
	if (check_types(body, &e) == -1 || state_apply(a->state, body, &e) == -1) {
		log_warn("init refused", log_err(&e));
		call_fail(c, &e);
		return;
	}
	if (a->pid1)
		write_names(a->state);
	run_startup(c, body);
}

void
init_post(struct call *c, const struct http_head *h UNUSED)
{
	call_collect(c, INIT_BODY_MAX, on_body);
}
