/*
 * The gateway on the HTTP server, alone in a process, for wire tests and benchmarks. The seam is
 * the view: this file gives the few sandbox_view functions that the gateway calls (so the linker
 * leaves the real ones out) and fills them by commands on stdin, one a line, each answered by a
 * line on stdout:
 *
 *	set ID [state=S] [ip=A] [uid=U] [name=N] [mask=M] [data=JSON] [private=1] [secure=1]
 *[auto=1] del ID tokens ID                envd token and traffic token wake ID ok | wake ID CODE
 *[message]     ends the wake in flight waking ID                0 or 1 hold 0 | 1 whether a look
 *for an unknown sandbox waits for "looked" looking ID | looked ID   is it looked for (0 or 1) | the
 *look ends synced 0 | 1             whether the view is complete activity ID              how often
 *activity was reported metrics                  the exposition, ended by a line "." quit (as does
 *the end of stdin) ends cleanly
 *
 * Usage: gateway_host [ADDRESS [DOMAIN]]; the first line on stdout is "port N".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/gateway.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"

#define LINE_MAX_BYTES 65536

struct box {
	struct sandbox sb;
	struct pod pod;
	const struct pod *pods[1];
	enum sandbox_state state;
	char *id, *name, *uid, *ip, *mask, *data;
	bool waking;
	void (*wake_fn)(const struct err *e, void *arg);
	void *wake_arg;
	unsigned activity;
};

TAILQ_HEAD(sub_list, view_sub);

struct sandbox_view {
	struct map *boxes;
	struct sub_list subs;
};

struct host {
	struct loop *loop;
	struct sandbox_view view;
	struct http_server *server;
	struct gateway *gateway;
	struct metrics *metrics;
	struct install_key key;
	bool unsynced;
	struct {
		bool held, pending; /* held: a look ends by command only */
		struct timer end;
		char id[SANDBOX_ID_MAX + 1];
		void (*fn)(void *arg);
		void *arg;
	} look;
	struct event input;
	char line[LINE_MAX_BYTES];
	size_t have;
};

static struct host host;

/* --- the view --- */

static void
fill(const struct box *b, struct sandbox_entry *ret)
{
	*ret = (struct sandbox_entry){
		.sandbox = &b->sb,
		.pods = b->pods,
		.pod_n = b->pod.ip[0] ? 1 : 0,
		.state = b->state,
	};
}

bool
sandbox_view_by_id(const struct sandbox_view *v, struct strv id, struct sandbox_entry *ret)
{
	const struct box *b = map_get(v->boxes, id);

	if (b == NULL)
		return false;
	fill(b, ret);
	return true;
}

bool
sandbox_view_synced(const struct sandbox_view *v UNUSED)
{
	return !host.unsynced;
}

struct by_name {
	struct strv name;
	struct box *found;
};

static bool
name_is(struct strv key UNUSED, void *value, void *arg)
{
	struct by_name *want = arg;
	struct box *b = value;

	if (!strv_is(want->name, b->name))
		return true;
	want->found = b;
	return false;
}

bool
sandbox_view_by_name(const struct sandbox_view *v, struct strv name, struct sandbox_entry *ret)
{
	struct by_name want = { .name = name };

	map_each(v->boxes, name_is, &want);
	if (want.found == NULL)
		return false;
	fill(want.found, ret);
	return true;
}

void
sandbox_view_subscribe(struct sandbox_view *v, struct view_sub *sub, struct strv id,
    void (*fn)(struct strv id, const struct sandbox_entry *entry, void *arg), void *arg)
{
	BUG_ON(id.n > 0);
	sub->view = v;
	sub->fn = fn;
	sub->arg = arg;
	TAILQ_INSERT_TAIL(&v->subs, sub, link);
}

void
sandbox_view_unsubscribe(struct view_sub *sub)
{
	if (sub->view)
		TAILQ_REMOVE(&sub->view->subs, sub, link);
	sub->view = NULL;
}

static void
notify(struct strv id, const struct sandbox_entry *entry)
{
	struct view_sub *sub, *next;

	TAILQ_FOREACH_SAFE (sub, &host.view.subs, link, next)
		sub->fn(id, entry, sub->arg);
}

/* --- the gateway's seams --- */

static void *
wake(struct strv id, void (*fn)(const struct err *e, void *arg), void *fn_arg, void *arg UNUSED)
{
	struct box *b = map_get(host.view.boxes, id);

	BUG_ON(b == NULL || b->waking);
	b->waking = true;
	b->wake_fn = fn;
	b->wake_arg = fn_arg;
	return b;
}

static void
wake_cancel(void *handle, void *arg UNUSED)
{
	struct box *b = handle;

	b->waking = false;
}

static void
look_end(void *arg UNUSED)
{
	if (!host.look.pending)
		return;
	host.look.pending = false;
	host.look.fn(host.look.arg);
}

/* One at a time is enough for tests. */
static void *
look(struct strv id, void (*fn)(void *arg), void *fn_arg, void *arg UNUSED)
{
	BUG_ON(host.look.pending);
	host.look.pending = true;
	host.look.fn = fn;
	host.look.arg = fn_arg;
	memcpy(host.look.id, id.p, id.n);
	host.look.id[id.n] = '\0';
	if (!host.look.held)
		timer_start(&host.look.end, 0);
	return &host.look;
}

static void
look_cancel(void *handle UNUSED, void *arg UNUSED)
{
	host.look.pending = false;
	timer_stop(&host.look.end);
}

static void
activity(struct strv id, void *arg UNUSED)
{
	struct box *b = map_get(host.view.boxes, id);

	if (b)
		b->activity++;
}

static void
on_request(struct http_req *r, const struct http_head *h, void *arg UNUSED)
{
	if (gateway_wants(host.gateway, h))
		gateway_handle(host.gateway, r, h);
	else
		http_reply(r, 404, NULL, 0, STRV("not sandbox traffic"));
}

/* --- commands --- */

static void
say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static void
set_text(char **at, struct strv v)
{
	xfree(*at);
	*at = strv_dup(v);
}

static int
state_parse(struct strv v, enum sandbox_state *ret)
{
	for (int i = 0; i < SANDBOX_STATE_COUNT; i++) {
		if (strv_is(v, sandbox_state_name((enum sandbox_state)i))) {
			*ret = (enum sandbox_state)i;
			return 0;
		}
	}
	return -1;
}

static struct box *
box_make(struct strv id)
{
	struct box *b = xcalloc(1, sizeof(*b));

	b->id = strv_dup(id);
	b->name = strv_dup(id);
	b->uid = strv_dup(STRV("uid-1"));
	b->ip = strv_dup(STRV("127.0.0.1"));
	b->mask = strv_dup(STRV(""));
	b->data = strv_dup(STRV("{}"));
	b->state = SANDBOX_RUNNING;
	b->pods[0] = &b->pod;
	map_set(host.view.boxes, id, b);
	return b;
}

static void
box_free(void *p)
{
	struct box *b = p;

	xfree(b->id);
	xfree(b->name);
	xfree(b->uid);
	xfree(b->ip);
	xfree(b->mask);
	xfree(b->data);
	xfree(b);
}

static bool
set_option(struct box *b, struct strv key, struct strv value)
{
	struct {
		const char *key;
		char **text;
	} texts[] = { { "ip", &b->ip }, { "uid", &b->uid }, { "name", &b->name },
		{ "mask", &b->mask }, { "data", &b->data } };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (strv_is(key, texts[i].key)) {
			set_text(texts[i].text, value);
			return true;
		}
	}
	if (strv_is(key, "state"))
		return state_parse(value, &b->state) == 0;
	if (strv_is(key, "private"))
		b->sb.private_ingress = strv_is(value, "1");
	else if (strv_is(key, "secure"))
		b->sb.secure = strv_is(value, "1");
	else if (strv_is(key, "auto"))
		b->sb.auto_resume = strv_is(value, "1");
	else
		return false;
	return true;
}

static void
cmd_set(struct strv id, struct strv rest)
{
	struct box *b = map_get(host.view.boxes, id);
	struct sandbox_entry entry;

	if (b == NULL)
		b = box_make(id);
	while (rest.n > 0) {
		struct strv value, pair = strv_cut(rest, ' ', &rest);
		struct strv key = strv_cut(pair, '=', &value);

		if (pair.n > 0 && !set_option(b, key, value)) {
			say("bad option");
			return;
		}
	}
	b->sb.id = b->id;
	b->sb.name = b->name;
	b->sb.mask_host = b->mask;
	b->sb.data = b->data;
	b->pod = (struct pod){ .name = "pod",
		.uid = b->uid,
		.sandbox_id = b->id,
		.ip = b->ip,
		.phase = POD_RUNNING,
		.ready = true,
		.container_running = true };
	fill(b, &entry);
	notify(id, &entry);
	say("ok");
}

static void
cmd_del(struct strv id)
{
	struct sandbox_entry gone = { .state = SANDBOX_DELETING };
	struct box *b = map_del(host.view.boxes, id);

	if (b) {
		notify(id, &gone);
		box_free(b);
	}
	say("ok");
}

static void
cmd_wake(struct strv id, struct strv rest)
{
	struct box *b = map_get(host.view.boxes, id);
	struct strv message, word = strv_cut(rest, ' ', &message);
	struct err e;

	if (b == NULL || !b->waking) {
		say("not waking");
		return;
	}
	b->waking = false;
	if (strv_is(word, "ok")) {
		b->wake_fn(NULL, b->wake_arg);
		say("ok");
		return;
	}
	for (int i = ERR_INVALID; i < ERR_CODE_COUNT; i++) {
		if (strv_is(word, err_name((enum err_code)i))) {
			err_set(&e, (enum err_code)i, STRV_FMT, STRV_ARG(message));
			e.retry_after = 0;
			b->wake_fn(&e, b->wake_arg);
			say("ok");
			return;
		}
	}
	say("bad code");
}

static void
cmd_tokens(struct strv id)
{
	char envd[TOKEN_LEN + 1], traffic[TOKEN_LEN + 1];

	token_envd(&host.key, id, envd);
	token_traffic(&host.key, id, traffic);
	printf("%s %s\n", envd, traffic);
	fflush(stdout);
}

static void
cmd_metrics(void)
{
	struct strbuf b;

	strbuf_init(&b, 1048576);
	metrics_render(host.metrics, &b);
	printf(STRV_FMT ".\n", STRV_ARG(strbuf_view(&b)));
	fflush(stdout);
	strbuf_done(&b);
}

static void
command(struct strv line)
{
	struct strv rest, word = strv_cut(line, ' ', &rest);
	struct strv id = strv_cut(rest, ' ', &rest);
	const struct box *b = map_get(host.view.boxes, id);

	if (strv_is(word, "set")) {
		cmd_set(id, rest);
	} else if (strv_is(word, "del")) {
		cmd_del(id);
	} else if (strv_is(word, "wake")) {
		cmd_wake(id, rest);
	} else if (strv_is(word, "tokens")) {
		cmd_tokens(id);
	} else if (strv_is(word, "synced")) {
		host.unsynced = strv_is(id, "0");
		say("ok");
	} else if (strv_is(word, "hold")) {
		host.look.held = strv_is(id, "1");
		say("ok");
	} else if (strv_is(word, "looking")) {
		say(host.look.pending && strv_is(id, host.look.id) ? "1" : "0");
	} else if (strv_is(word, "looked")) {
		look_end(NULL);
		say("ok");
	} else if (strv_is(word, "waking")) {
		say(b && b->waking ? "1" : "0");
	} else if (strv_is(word, "activity")) {
		printf("%u\n", b ? b->activity : 0);
		fflush(stdout);
	} else if (strv_is(word, "metrics")) {
		cmd_metrics();
	} else if (strv_is(word, "quit")) {
		loop_stop(host.loop);
	} else {
		say("bad command");
	}
}

static void
on_input(evutil_socket_t fd, short what UNUSED, void *arg UNUSED)
{
	ssize_t n = read(fd, host.line + host.have, sizeof(host.line) - host.have);
	char *end;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		loop_stop(host.loop);
		return;
	}
	host.have += (size_t)n;
	while ((end = memchr(host.line, '\n', host.have))) {
		size_t used = (size_t)(end - host.line) + 1;

		command((struct strv){ host.line, used - 1 });
		host.have -= used;
		memmove(host.line, end + 1, host.have);
	}
}

static int
start(const char *addr, const char *domain, struct err *e)
{
	struct http_server_conf server = { .on_request = on_request, .body_timeout = SECONDS(1) };
	struct gateway_conf gateway = { .loop = host.loop,
		.view = &host.view,
		.key = &host.key,
		.metrics = host.metrics,
		.domain = domain,
		.wake = wake,
		.wake_cancel = wake_cancel,
		.look = look,
		.look_cancel = look_cancel,
		.activity = activity };
	int port;

	if (install_key_set(&host.key, STRV("0123456789abcdef0123456789abcdef"), e) == -1)
		return -1;
	host.gateway = gateway_new(&gateway);
	if (http_server_new(host.loop, &server, &host.server, e) == -1 ||
	    http_server_listen(host.server, addr, NULL, &port, e) == -1)
		return -1;
	printf("port %d\n", port);
	fflush(stdout);
	return 0;
}

int
main(int argc, char **argv)
{
	enum log_level level = LOG_INFO;
	const char *text = getenv("LOG_LEVEL");
	struct err e;

	if (text && log_level_parse(strv_of(text), &level) == -1)
		return 2;
	log_set_level(level);
	host.loop = loop_new();
	timer_init(&host.look.end, host.loop, look_end, NULL);
	host.metrics = metrics_new();
	host.view.boxes = map_new();
	TAILQ_INIT(&host.view.subs);
	if (start(argc > 1 ? argv[1] : "127.0.0.1:0", argc > 2 ? argv[2] : "", &e) == -1) {
		log_error("cannot start", log_err(&e));
		return 1;
	}
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	event_assign(
	    &host.input, loop_base(host.loop), STDIN_FILENO, EV_READ | EV_PERSIST, on_input, NULL);
	event_add(&host.input, NULL);
	loop_run(host.loop);
	event_del(&host.input);
	http_server_free(host.server);
	gateway_free(host.gateway);
	map_free(host.view.boxes, box_free);
	install_key_done(&host.key);
	loop_free(host.loop);
	metrics_free(host.metrics);
	return 0;
}
