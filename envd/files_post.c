/* See files.h: uploads. Multipart or raw, gzipped or not, written as it comes. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "envd/auth.h"
#include "envd/file_meta.h"
#include "envd/file_sink.h"
#include "envd/files.h"
#include "envd/gunzip.h"
#include "envd/media.h"
#include "envd/multipart.h"
#include "envd/path.h"
#include "envd/state.h"

/* After a failure the rest of a body is read up to this, so that a client that does not look before
 * it has sent all still gets the answer. */
#define SWALLOW_MAX ((size_t)64 * 1024 * 1024)

struct upload {
	struct call *call;
	struct user *user;
	char *path;   /* of the query, NULL: the parts' names count */
	json_t *meta; /* NULL: none */
	int64_t length;
	struct gunzip *gunzip;       /* NULL: the body is not gzipped */
	struct multipart *multipart; /* NULL: raw */
	struct file_sink *sink;      /* the file being written */
	char *target;                /* its path */
	json_t *done;                /* answer so far */
	struct err failed;
	size_t swallowed;
};

static void
upload_free(struct upload *u)
{
	file_sink_abandon(u->sink);
	multipart_free(u->multipart);
	gunzip_free(u->gunzip);
	user_free(u->user);
	json_decref(u->meta);
	json_decref(u->done);
	xfree(u->path);
	xfree(u->target);
	xfree(u);
}

/* --- one file --- */

static bool
written_already(const struct upload *u, const char *path)
{
	json_t *v;
	size_t i;

	json_array_foreach (u->done, i, v) {
		if (strcmp(json_member_str(v, "path"), path) == 0)
			return true;
	}
	return false;
}

static int
file_begin(struct upload *u, const char *name, struct err *e)
{
	char *path;

	if (path_resolve(name, u->user, u->call->app->state->workdir, &path, e) == -1)
		return -1;
	xfree(u->target);
	u->target = path;
	if (written_already(u, path))
		return err_set(e, ERR_INVALID,
		    "you cannot upload multiple files to the same path '" PATH_SHOWN "'", path);
	return file_sink_open(path, u->user, &u->sink, e);
}

static int
file_end(struct upload *u, struct err *e)
{
	struct file_sink *s = u->sink;
	json_t *entry;

	u->sink = NULL;
	if (file_sink_close(s, u->meta, e) == -1)
		return -1;
	entry = json_object();
	json_set_str(entry, "path", u->target);
	json_set_str(entry, "name", path_base(u->target));
	json_set_str(entry, "type", "file");
	if (u->meta)
		json_set(entry, "metadata", json_incref(u->meta));
	json_array_append_new(u->done, entry);
	return 0;
}

/* --- parts --- */

static int
on_part(void *arg, struct strv disposition, struct err *e)
{
	struct upload *u = arg;
	char *name CLEANUP(xfreep) = media_param(disposition, "name");
	char *filename CLEANUP(xfreep) = NULL;

	if (name == NULL || strcmp(name, "file") != 0)
		return 0; /* its data has nowhere to go */
	if (u->path)
		return file_begin(u, u->path, e);
	filename = media_param(disposition, "filename");
	return file_begin(u, filename ? filename : "", e);
}

static int
on_data(void *arg, const char *p, size_t n, struct err *e)
{
	struct upload *u = arg;

	return u->sink ? file_sink_write(u->sink, p, n, e) : 0;
}

static int
on_part_end(void *arg, struct err *e)
{
	struct upload *u = arg;

	return u->sink ? file_end(u, e) : 0;
}

static const struct multipart_cb part_cb = {
	.on_part = on_part,
	.on_data = on_data,
	.on_part_end = on_part_end,
};

/* --- the body --- */

static int
take_plain(void *arg, const char *p, size_t n, struct err *e)
{
	struct upload *u = arg;

	if (u->multipart)
		return multipart_feed(u->multipart, p, n, e);
	return file_sink_write(u->sink, p, n, e);
}

static int
finish(struct upload *u, struct err *e)
{
	if (u->gunzip && gunzip_finish(u->gunzip, e) == -1)
		return -1;
	return u->multipart ? multipart_finish(u->multipart, e) : file_end(u, e);
}

static void
upload_fail(struct upload *u, const struct err *why)
{
	struct call *c = u->call;
	struct err e = *why;

	if (e.code == ERR_LIMIT && u->length > 0)
		err_wrap(&e, "attempted to write %lld bytes", (long long)u->length);
	upload_free(u);
	call_fail(c, &e);
}

static void
on_body(struct call *c, const char *p, size_t n)
{
	struct upload *u = c->arg;
	int r;

	if (u->failed.code != ERR_NONE) {
		u->swallowed += n;
		if (u->swallowed > SWALLOW_MAX)
			upload_fail(u, &u->failed);
		return;
	}
	if (u->gunzip)
		r = gunzip_feed(u->gunzip, p, n, &u->failed);
	else
		r = take_plain(u, p, n, &u->failed);
	if (r == -1 && u->sink) {
		file_sink_abandon(u->sink);
		u->sink = NULL;
	}
}

static void
on_end(struct call *c)
{
	struct upload *u = c->arg;
	json_t *done;

	if (u->failed.code == ERR_NONE && finish(u, &u->failed) == 0) {
		done = json_incref(u->done);
		upload_free(u);
		call_json(c, 200, done);
		return;
	}
	upload_fail(u, &u->failed);
}

static void
on_gone(struct call *c)
{
	upload_free(c->arg);
}

static const struct call_ops upload_ops = {
	.on_body = on_body,
	.on_end = on_end,
	.on_gone = on_gone,
};

/* --- the head --- */

static int
choose_coding(struct upload *u, const struct http_head *h, struct err *e)
{
	const struct strv *v = http_head_get(h, "Content-Encoding");
	struct strv coding = v ? strv_trim(*v) : STRV_NONE;

	if (coding.n == 0 || strv_caseis(coding, "identity"))
		return 0;
	if (!strv_caseis(coding, "gzip"))
		return err_set(e, ERR_INVALID,
		    "unsupported Content-Encoding: %.*s, supported: [identity, gzip]",
		    (int)(coding.n < 64 ? coding.n : 64), coding.p);
	u->gunzip = gunzip_new(take_plain, u);
	return 0;
}

static int
choose_type(struct upload *u, const struct http_head *h, struct err *e)
{
	const struct strv *v = http_head_get(h, "Content-Type");
	struct strv type = media_type(v ? *v : STRV_NONE);
	char *boundary CLEANUP(xfreep) = NULL;

	if (strv_caseis(type, "application/octet-stream")) {
		if (u->path == NULL || u->path[0] == '\0')
			return err_set(e, ERR_INVALID,
			    "path is required for application/octet-stream uploads");
		return file_begin(u, u->path, e);
	}
	if (!strv_caseeq((struct strv){ type.p, type.n < 10 ? type.n : 10 }, STRV("multipart/")))
		return err_set(e, ERR_INVALID,
		    "unsupported content type: %.*s, expected multipart/form-data or "
		    "application/octet-stream",
		    (int)(type.n < 64 ? type.n : 64), type.p ? type.p : "");
	boundary = media_param(v ? *v : STRV_NONE, "boundary");
	u->multipart = multipart_new(strv_of(boundary), &part_cb, u);
	if (u->multipart == NULL)
		return err_set(e, ERR_INVALID, "error parsing multipart form: no boundary");
	return 0;
}

static int
begin(struct upload *u, const struct http_head *h, struct err *e)
{
	struct app *a = u->call->app;
	char *username CLEANUP(xfreep) = NULL;

	if (call_query(h, "path", &u->path, e) == -1 ||
	    call_query(h, "username", &username, e) == -1 ||
	    auth_file(a, h, "write", u->path ? u->path : "", username, e) == -1 ||
	    auth_file_user(a, username, &u->user, e) == -1 || file_meta_parse(h, &u->meta, e) == -1)
		return -1;
	if (u->path && u->path[0] == '\0') {
		xfree(u->path);
		u->path = NULL;
	}
	if (choose_coding(u, h, e) == -1)
		return -1;
	return choose_type(u, h, e);
}

void
files_post(struct call *c, const struct http_head *h)
{
	struct upload *u = xcalloc(1, sizeof(*u));

	u->call = c;
	u->length = h->length;
	u->done = json_array();
	c->arg = u;
	c->ops = &upload_ops;
	if (begin(u, h, &u->failed) == 0)
		return;
	if (u->failed.code == ERR_NONE)
		u->failed.code = ERR_INTERNAL;
	/* a client that waits for a 100 gets the answer instead of it */
	if (h->expect_continue || !h->has_body)
		upload_fail(u, &u->failed);
}
