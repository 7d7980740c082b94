/* See watch_rpc.h. */
#include "envd/watch_rpc.h"

#include <sys/vfs.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"
#include "base/rand.h"
#include "envd/fs_rpc.h"
#include "envd/msg.h"
#include "envd/path.h"
#include "envd/watch.h"

#define ID_RANDOM 20 /* characters behind the `w` */

/* File systems whose changes by others inotify does not see (statfs f_type). */
static const long network_types[] = { 0x6969 /* NFS */, 0xFF534D42 /* CIFS */,
	0xFE534D42 /* SMB2 */, 0x517B /* SMB */, 0x65735546 /* FUSE */ };

json_t *
watch_rpc_keepalive(void)
{
	return msg_wrap("keepalive", json_object());
}

static int
check_mount(const char *path, struct err *e)
{
	struct statfs fs;

	if (statfs(path, &fs) == -1)
		return 0; /* watcher_new says it better */
	for (size_t i = 0; i < ARRAY_LEN(network_types); i++) {
		if ((uint32_t)fs.f_type == (uint32_t)network_types[i])
			return err_set(e, ERR_INVALID,
			    "cannot watch path on network filesystem: " PATH_SHOWN, path);
	}
	return 0;
}

/* Makes the watcher that a request asks for. */
static int
new_watcher(struct rpc *c, const json_t *in, void (*notify)(void *arg), void *arg,
    struct watcher **ret, struct err *e)
{
	struct watch_conf conf = { .notify = notify, .arg = arg };
	char *path CLEANUP(xfreep) = NULL;
	bool network;

	if (msg_bool(in, "recursive", false, &conf.recursive, e) == -1 ||
	    msg_bool(in, "includeEntry", false, &conf.entry, e) == -1 ||
	    msg_bool(in, "allowNetworkMounts", false, &network, e) == -1 ||
	    fs_rpc_path(c, in, "path", &path, NULL, e) == -1)
		return -1;
	if (!network && check_mount(path, e) == -1)
		return -1;
	conf.path = path;
	return watcher_new(c->app, &conf, ret, e);
}

/* --- WatchDir --- */

struct stream {
	struct rpc *rpc;
	struct watcher *watcher;
	bool started, full;
};

static struct rpc *
stream_free(struct stream *s)
{
	struct rpc *c = s->rpc;

	watcher_free(s->watcher);
	xfree(s);
	c->ops = NULL;
	return c;
}

static void
stream_flush(void *arg)
{
	struct stream *s = arg;
	const struct err *error = watcher_error(s->watcher);
	struct err e;
	json_t *event;

	if (!s->started && watcher_ready(s->watcher) && error == NULL) {
		s->started = true;
		s->full = rpc_send(s->rpc, msg_wrap("start", json_object())) > 0;
	}
	while (s->started && !s->full && (event = watcher_take(s->watcher)) != NULL)
		s->full = rpc_send(s->rpc, msg_wrap("filesystem", event)) > 0;
	if (error && !s->full) {
		e = *error;
		rpc_fail_err(stream_free(s), &e);
	}
}

static void
on_drain(struct rpc *c)
{
	struct stream *s = c->arg;

	s->full = false;
	stream_flush(s);
}

static void
on_gone(struct rpc *c)
{
	stream_free(c->arg);
}

static const struct rpc_ops stream_ops = { .on_drain = on_drain, .on_gone = on_gone };

void
watch_rpc_dir(struct rpc *c, const json_t *in)
{
	struct stream *s = xcalloc(1, sizeof(*s));
	struct err e = { 0 };

	s->rpc = c;
	if (new_watcher(c, in, stream_flush, s, &s->watcher, &e) == -1) {
		xfree(s);
		rpc_fail_err(c, &e);
		return;
	}
	c->arg = s;
	c->ops = &stream_ops;
}

/* --- watchers that are asked --- */

struct asked {
	struct watcher *watcher;
	struct rpc *creator; /* waits until all directories are watched */
	char id[ID_RANDOM + 2];
};

static void
asked_free(void *arg)
{
	struct asked *k = arg;

	watcher_free(k->watcher);
	xfree(k);
}

/* Answers CreateWatcher once it is ready. */
static void
on_news(void *arg)
{
	struct asked *k = arg;
	const struct err *error = watcher_error(k->watcher);
	struct rpc *c = k->creator;
	struct err e;
	json_t *m;

	if (c == NULL || (error == NULL && !watcher_ready(k->watcher)))
		return;
	c->ops = NULL;
	k->creator = NULL;
	if (error) {
		e = *error;
		map_del(c->app->asked, strv_of(k->id));
		asked_free(k);
		rpc_fail_err(c, &e);
		return;
	}
	m = json_object();
	json_set_str(m, "watcherId", k->id);
	rpc_reply(c, m);
}

static void
on_creator_gone(struct rpc *c)
{
	struct asked *k = c->arg;

	map_del(c->app->asked, strv_of(k->id));
	asked_free(k);
}

static const struct rpc_ops create_ops = { .on_gone = on_creator_gone };

void
watch_rpc_create(struct rpc *c, const json_t *in)
{
	struct asked *k = xcalloc(1, sizeof(*k));
	struct err e = { 0 };

	k->creator = c;
	k->id[0] = 'w';
	rand_base36(k->id + 1, ID_RANDOM);
	if (new_watcher(c, in, on_news, k, &k->watcher, &e) == -1) {
		xfree(k);
		rpc_fail_err(c, &e);
		return;
	}
	if (c->app->asked == NULL)
		c->app->asked = map_new();
	map_set(c->app->asked, strv_of(k->id), k);
	c->arg = k;
	c->ops = &create_ops;
	if (watcher_ready(k->watcher))
		on_news(k);
}

/* NULL with e if there is none. */
static struct asked *
find(struct rpc *c, const json_t *in, struct err *e)
{
	const char *id;
	struct asked *k = NULL;

	if (msg_text(in, "watcherId", &id, e) == -1)
		return NULL;
	if (id && c->app->asked)
		k = map_get(c->app->asked, strv_of(id));
	if (k == NULL)
		err_set(e, ERR_NOT_FOUND, "watcher with id %.64s not found", id ? id : "");
	return k;
}

void
watch_rpc_events(struct rpc *c, const json_t *in)
{
	json_t *list, *event, *out;
	struct err e = { 0 };
	struct asked *k = find(c, in, &e);

	if (k == NULL) {
		rpc_fail_err(c, &e);
		return;
	}
	watcher_drain(k->watcher);
	if (watcher_error(k->watcher)) {
		e = *watcher_error(k->watcher);
		rpc_fail_err(c, &e);
		return;
	}
	out = json_object();
	list = json_array();
	while ((event = watcher_take(k->watcher)) != NULL)
		json_array_append_new(list, event);
	if (json_array_size(list) > 0)
		json_set(out, "events", json_incref(list));
	json_decref(list);
	rpc_reply(c, out);
}

void
watch_rpc_remove(struct rpc *c, const json_t *in)
{
	struct err e = { 0 };
	struct asked *k = find(c, in, &e);

	if (k == NULL) {
		rpc_fail_err(c, &e);
		return;
	}
	if (k->creator) {
		k->creator->ops = NULL;
		rpc_fail(k->creator, CONNECT_CANCELED, "the watcher was removed");
	}
	map_del(c->app->asked, strv_of(k->id));
	asked_free(k);
	rpc_reply(c, json_object());
}

void
watch_rpc_free(struct app *a)
{
	map_free(a->asked, asked_free);
	a->asked = NULL;
}
