/* See files.h: downloads. Always sent as they are; every client can take identity. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "envd/auth.h"
#include "envd/files.h"
#include "envd/mime.h"
#include "envd/path.h"
#include "envd/range.h"
#include "envd/state.h"

#define CHUNK 65536
#define SNIFF 512

struct download {
	struct call *call;
	int fd;
	int64_t at, end;   /* end -1: until the file ends (no size is known) */
	struct defer more; /* the next piece */
};

static void
download_free(struct download *d)
{
	loop_undefer(d->call->app->loop, &d->more);
	close(d->fd);
	xfree(d);
}

static void
send_more(void *arg)
{
	struct download *d = arg;
	struct call *c = d->call;
	char *buf = loop_read_buf(c->app->loop);
	size_t want = CHUNK;
	ssize_t n;

	if (d->end != -1 && d->end - d->at < CHUNK)
		want = (size_t)(d->end - d->at);
	n = want > 0 ? pread(d->fd, buf, want, d->at) : 0;
	if (n == 0 && (d->end == -1 || d->at == d->end)) {
		download_free(d);
		call_end(c);
		return;
	}
	if (n <= 0) { /* it became shorter, or the disk fails: must not look complete */
		download_free(d);
		call_abort(c, "file cannot be read on");
		return;
	}
	d->at += n;
	if (call_write(c, buf, (size_t)n) == 0)
		loop_defer(c->app->loop, &d->more);
}

static void
on_drain(struct call *c)
{
	send_more(c->arg);
}

static void
on_gone(struct call *c)
{
	download_free(c->arg);
}

static const struct call_ops download_ops = { .on_drain = on_drain, .on_gone = on_gone };

/* filename="…" for plain names, filename*=utf-8''… for others (RFC 6266, 8187). */
static void
put_disposition(struct strbuf *b, const char *path)
{
	struct strv name = strv_of(path_base(path));
	bool plain = true, token = name.n > 0;

	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if (c < 0x20 || c > 0x7e)
			plain = false;
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		        c == '.' || c == '-' || c == '_'))
			token = false;
	}
	strbuf_adds(b, "inline; filename");
	if (token) {
		strbuf_addc(b, '=');
		strbuf_addv(b, name);
		return;
	}
	if (!plain) {
		strbuf_adds(b, "*=utf-8''");
		strbuf_add_url(b, name);
		return;
	}
	strbuf_adds(b, "=\"");
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] == '"' || name.p[i] == '\\')
			strbuf_addc(b, '\\');
		strbuf_addc(b, name.p[i]);
	}
	strbuf_addc(b, '"');
}

static const char *
content_type(const char *path, int fd)
{
	const char *type = mime_by_name(path_base(path));
	char start[SNIFF];
	ssize_t n;

	if (type)
		return type;
	n = pread(fd, start, sizeof(start), 0);
	return mime_by_content((struct strv){ start, n > 0 ? (size_t)n : 0 });
}

static int
open_file(const char *path, int *fd, struct stat *st, struct err *e)
{
	int f;

	if (stat(path, st) == -1) {
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(
			    e, ERR_NOT_FOUND, "path '" PATH_SHOWN "' does not exist", path);
		return err_errno(e, ERR_IO, "error checking if path exists '" PATH_SHOWN "'", path);
	}
	if (S_ISDIR(st->st_mode))
		return err_set(e, ERR_INVALID, "path '" PATH_SHOWN "' is a directory", path);
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_INVALID, "path '" PATH_SHOWN "' is not a regular file", path);
	f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f == -1 || fstat(f, st) == -1) {
		err_errno(e, ERR_IO, "error opening file '" PATH_SHOWN "'", path);
		if (f != -1)
			close(f);
		return -1;
	}
	*fd = f;
	return 0;
}

static void
reply_range_error(struct call *c, int64_t size)
{
	char text[64];
	struct http_field f[2] = {
		{ STRV("Content-Range"), STRV_NONE },
		{ STRV("Content-Type"), STRV("text/plain; charset=utf-8") },
	};

	snprintf(text, sizeof(text), "bytes */%lld", (long long)size);
	f[0].value = strv_of(text);
	call_reply(c, 416, f, 2, STRV("invalid range: failed to overlap\n"));
}

static bool
no_size(int fd, const struct stat *st)
{
	char one;

	/* files of /proc say 0 and have content all the same */
	return st->st_size == 0 && pread(fd, &one, 1, 0) > 0;
}

/* Sends the head, and the body with the coming turns. */
static void
start_download(
    struct call *c, const struct http_head *h, const char *path, int fd, const struct stat *st)
{
	struct strbuf disposition CLEANUP(strbuf_done) = { 0 };
	char modified[TIME_TEXT_MAX], range[96];
	bool unsized = no_size(fd, st);
	int64_t first = 0, last = st->st_size - 1;
	int status =
	    unsized ? 200 : range_decide(h, st->st_size, st->st_mtim.tv_sec, &first, &last);
	struct http_field f[CALL_FIELDS_MAX];
	struct download *d;
	size_t n = 0;

	if (status == 416) {
		close(fd);
		reply_range_error(c, st->st_size);
		return;
	}
	strbuf_init(&disposition, 4096);
	time_http_date(st->st_mtim.tv_sec * NS_PER_S, modified);
	f[n++] = (struct http_field){ STRV("Last-Modified"), strv_of(modified) };
	f[n++] = (struct http_field){ STRV("Vary"), STRV("Accept-Encoding") };
	if (status == 304 || status == 412) {
		close(fd);
		call_reply(c, status, f, n, STRV_NONE);
		return;
	}
	put_disposition(&disposition, path);
	f[n++] = (struct http_field){ STRV("Content-Disposition"), strbuf_view(&disposition) };
	f[n++] = (struct http_field){ STRV("Content-Type"), strv_of(content_type(path, fd)) };
	if (!unsized)
		f[n++] = (struct http_field){ STRV("Accept-Ranges"), STRV("bytes") };
	if (status == 206) {
		snprintf(range, sizeof(range), "bytes %lld-%lld/%lld", (long long)first,
		    (long long)last, (long long)st->st_size);
		f[n++] = (struct http_field){ STRV("Content-Range"), strv_of(range) };
	}
	d = xcalloc(1, sizeof(*d));
	*d = (struct download){ .call = c, .fd = fd, .at = first, .end = unsized ? -1 : last + 1 };
	defer_init(&d->more, send_more, d);
	c->arg = d;
	c->ops = &download_ops;
	call_start(c, status, f, n, unsized ? -1 : last + 1 - first);
	loop_defer(c->app->loop, &d->more);
}

void
files_get(struct call *c, const struct http_head *h)
{
	char *path CLEANUP(xfreep) = NULL, *username CLEANUP(xfreep) = NULL;
	char *full CLEANUP(xfreep) = NULL;
	struct user *u = NULL;
	struct err e = { 0 };
	struct stat st = { 0 };
	int fd = -1, r;

	r = call_query(h, "path", &path, &e);
	if (r == 0)
		r = call_query(h, "username", &username, &e);
	if (r == 0)
		r = auth_file(c->app, h, "read", path ? path : "", username, &e);
	if (r == 0)
		r = auth_file_user(c->app, username, &u, &e);
	if (r == 0)
		r = path_resolve(path ? path : "", u, c->app->state->workdir, &full, &e);
	user_free(u);
	if (r == 0)
		r = open_file(full, &fd, &st, &e);
	if (r == -1) {
		call_fail(c, &e);
		return;
	}
	if (!range_identity_ok(h)) {
		close(fd);
		call_error(c, 406, "no acceptable encoding found, supported: [identity]");
		return;
	}
	start_download(c, h, full, fd, &st);
}
