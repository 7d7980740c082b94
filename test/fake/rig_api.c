/* See rig_api.h. */
#include "fake/rig_api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/api.h"
#include "base/alloc.h"
#include "base/json.h"

#define TURNS_MAX 20000
#define REPLY_MAX (4 * 1024 * 1024)

static void
on_problem(const char *what, const struct err *e, void *arg UNUSED)
{
	rig_must(false, what, e);
}

static void
on_request(struct http_req *q, const struct http_head *h, void *arg)
{
	api_handle(arg, q, h);
}

static void
start_app(struct rig *r)
{
	static char *const flags[] = { (char *)(uintptr_t) "apiserver",
		(char *)(uintptr_t) "--sandbox-domain=" RIG_DOMAIN };
	struct app *app = xcalloc(1, sizeof(*app));
	struct err e;

	rig_must(conf_load(apiserver_options, apiserver_options_n, 2, (char **)(uintptr_t)flags,
	             &app->conf, &e) == 0,
	    "options", &e);
	r->app = app;
	app->loop = r->loop;
	app->ns = RIG_NS;
	app->metrics = metrics_new();
	api_metrics(app->metrics);
	app->kube = cluster_client(r->cluster);
	app->recorder = kube_recorder_new(app->kube, "test", "one");
	app->settings = settings_new(&(struct settings_conf){ .kube = app->kube,
	    .ns = RIG_NS,
	    .configmap = RIG_CONFIGMAP,
	    .install_secret = RIG_INSTALL,
	    .keys_secret = RIG_KEYS,
	    .system_token = "",
	    .raw_tokens = "",
	    .on_problem = on_problem });
	app->view = sandbox_view_new(app->kube, RIG_NS, NULL, NULL);
	app->service = service_new(&(struct service_conf){ .loop = r->loop,
	    .kube = app->kube,
	    .settings = app->settings,
	    .view = app->view,
	    .recorder = app->recorder,
	    .metrics = app->metrics,
	    .ns = RIG_NS,
	    .envd_image = "example.org/envd:1",
	    .default_template = "base",
	    .max_lifetime = conf_int(app->conf, "MAX_LIFETIME") });
	rig_must(http_server_new(r->loop,
	             &(struct http_server_conf){
	                 .on_request = on_request, .on_bad_request = api_bad_request, .arg = app },
	             &app->server, &e) == 0 &&
	        http_server_listen(app->server, "127.0.0.1:0", NULL, &r->port, &e) == 0,
	    "API", &e);
}

void
rig_start(struct rig *r)
{
	const char *why;

	rig_world_start(r);
	start_app(r);
	for (unsigned i = 0; !service_ready(r->app->service, &why); i++) {
		rig_must(i < TURNS_MAX, why, NULL);
		rig_turns(r, 1);
	}
	rig_turns(r, 50); /* watches open */
}

void
rig_stop(struct rig *r)
{
	struct app *app = r->app;

	http_server_free(app->server);
	rig_turns(r, 5);
	service_free(app->service);
	sandbox_view_free(app->view);
	settings_free(app->settings);
	kube_recorder_free(app->recorder);
	kube_free(app->kube);
	metrics_free(app->metrics);
	conf_free(app->conf);
	xfree(app);
	rig_world_stop(r);
}

/* --- requests --- */

int
rig_send_raw(struct rig *r, const char *text)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)r->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t n = strlen(text);

	rig_must(
	    fd >= 0 && connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0, "connect", NULL);
	while (n > 0) {
		ssize_t k = send(fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		rig_must(k > 0 || errno == EAGAIN, "send", NULL);
		if (k > 0) {
			text += k;
			n -= (size_t)k;
		} else {
			rig_turns(r, 1);
		}
	}
	return fd;
}

int
rig_send(struct rig *r, const char *key, const char *method, const char *path, const char *fields,
    const char *body)
{
	struct strbuf b;
	int fd;

	strbuf_init(&b, REPLY_MAX);
	strbuf_addf(&b, "%s %s HTTP/1.1\r\nHost: api.test\r\n%s", method, path, fields);
	if (key[0] != '\0')
		strbuf_addf(&b, "X-API-KEY: %s\r\n", key);
	if (body != NULL)
		strbuf_addf(
		    &b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
	strbuf_adds(&b, "\r\n");
	strbuf_adds(&b, body != NULL ? body : "");
	rig_must(!b.failed, "request too long", NULL);
	fd = rig_send_raw(r, b.p);
	strbuf_done(&b);
	return fd;
}

void
reply_done(struct reply *p)
{
	xfree(p->head);
	xfree(p->body);
	json_decref(p->json);
	memset(p, 0, sizeof(*p));
}

const char *
reply_field(const struct reply *p, const char *name)
{
	static char value[512];
	struct strv rest = strv_of(p->head), line, v;

	while (rest.n > 0) {
		line = strv_cut(rest, '\n', &rest);
		if (!strv_caseis(strv_cut(line, ':', &v), name))
			continue;
		v = strv_trim(v);
		if (v.n > 0 && v.p[v.n - 1] == '\r')
			v.n--;
		(void)snprintf(value, sizeof(value), STRV_FMT, STRV_ARG(v));
		return value;
	}
	return NULL;
}

/* The end of the head in what came so far, or NULL. */
static const char *
head_end(const struct strbuf *b)
{
	const char *end = b->n > 0 ? memmem(b->p, b->n, "\r\n\r\n", 4) : NULL;

	return end != NULL ? end + 4 : NULL;
}

static bool
complete(const struct strbuf *b, bool head_only)
{
	const char *end = head_end(b), *length;
	struct reply p = { 0 };
	uint64_t n = 0;

	if (end == NULL || head_only)
		return end != NULL;
	p.head = xmemdup0(b->p, (size_t)(end - b->p));
	length = reply_field(&p, "Content-Length");
	rig_must(length == NULL || strv_u64(strv_of(length), REPLY_MAX, &n) == 0, "length", NULL);
	xfree(p.head);
	return b->n >= (size_t)(end - b->p) + n;
}

struct reply
rig_receive(struct rig *r, int fd, bool head_only)
{
	struct reply p = { 0 };
	struct strbuf b;
	char buf[4096];
	const char *end;
	int64_t status = 0;

	strbuf_init(&b, REPLY_MAX);
	for (unsigned i = 0; !complete(&b, head_only); i++) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

		rig_must(i < TURNS_MAX, "no reply", NULL);
		if (n > 0)
			strbuf_add(&b, buf, (size_t)n);
		else if (n == 0 || errno != EAGAIN)
			break; /* closed or cut: status 0 */
		else
			rig_turns(r, 1);
	}
	close(fd);
	end = head_end(&b);
	if (end != NULL) {
		p.head = xmemdup0(b.p, (size_t)(end - b.p));
		p.body = xmemdup0(end, b.n - (size_t)(end - b.p));
		rig_must(strncmp(p.head, "HTTP/1.1 ", 9) == 0 &&
		        strv_i64((struct strv){ p.head + 9, 3 }, 100, 599, &status) == 0,
		    p.head, NULL);
		p.status = (int)status;
		if (json_parse(strv_of(p.body), REPLY_MAX, &p.json, NULL) == -1)
			p.json = NULL;
	}
	strbuf_done(&b);
	return p;
}

struct reply
rig_call(struct rig *r, const char *key, const char *method, const char *path, const char *body)
{
	int fd = rig_send(r, key, method, path, "", body);

	return rig_receive(r, fd, strcmp(method, "HEAD") == 0);
}
