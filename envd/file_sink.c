/* See file_sink.h. No temporary file: watch tests count the events of the file itself. */
#include "envd/file_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/file_meta.h"
#include "envd/fs_ops.h"
#include "envd/path.h"

#define FILE_MODE 0666 /* & ~umask */

struct file_sink {
	int fd;
	bool regular;
	size_t n;
	char buf[FILE_SINK_BUF];
};

static int
fail(const char *what, const char *path, struct err *e)
{
	if (fs_write_code(errno) == ERR_LIMIT)
		return err_set(e, ERR_LIMIT, "not enough disk space available");
	return err_errno(e, ERR_IO, "error %s file '" PATH_SHOWN "'", what, path);
}

static int
check_target(const char *path, const struct user *u, bool *exists, struct err *e)
{
	struct stat st;

	*exists = stat(path, &st) == 0;
	if (!*exists)
		return errno == ENOENT || errno == ELOOP ? 0 : fail("checking", path, e);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "path is a directory: " PATH_SHOWN, path);
	/* devices keep their owner */
	if (S_ISREG(st.st_mode) && chown(path, u->uid, u->gid) == -1)
		return fail("changing file ownership of", path, e);
	return 0;
}

int
file_sink_open(const char *path, const struct user *u, struct file_sink **ret, struct err *e)
{
	char *dir CLEANUP(xfreep) = path_dir(path);
	struct file_sink *s;
	struct stat st;
	bool exists;
	int fd;

	if (fs_make_dirs(dir, u, e) == -1 || check_target(path, u, &exists, e) == -1)
		return -1;
	/* O_NONBLOCK: a FIFO without a reader is an error, not a stop */
	fd =
	    open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, FILE_MODE);
	if (fd == -1)
		return fail("opening", path, e);
	if ((!exists && fchown(fd, u->uid, u->gid) == -1) || fstat(fd, &st) == -1) {
		fail("changing file ownership of", path, e);
		close(fd);
		return -1;
	}
	s = xmalloc(sizeof(*s));
	s->fd = fd;
	s->n = 0;
	s->regular = S_ISREG(st.st_mode);
	*ret = s;
	return 0;
}

static int
flush(struct file_sink *s, struct err *e)
{
	size_t off = 0;

	while (off < s->n) {
		ssize_t n = write(s->fd, s->buf + off, s->n - off);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return fail("writing", "", e);
		off += (size_t)n;
	}
	s->n = 0;
	return 0;
}

int
file_sink_write(struct file_sink *s, const char *p, size_t n, struct err *e)
{
	while (n > 0) {
		size_t part = FILE_SINK_BUF - s->n;

		/* a full buffer goes out when more comes, so that a small file is one write */
		if (part == 0) {
			if (flush(s, e) == -1)
				return -1;
			part = FILE_SINK_BUF;
		}
		if (part > n)
			part = n;
		memcpy(s->buf + s->n, p, part);
		s->n += part;
		p += part;
		n -= part;
	}
	return 0;
}

int
file_sink_close(struct file_sink *s, const json_t *meta, struct err *e)
{
	int r = flush(s, e);

	if (r == 0 && s->regular)
		file_meta_write(s->fd, meta);
	/* some file systems say only now that there was no room */
	if (close(s->fd) == -1 && r == 0 && errno != EINTR)
		r = fail("closing", "", e);
	xfree(s);
	return r;
}

void
file_sink_abandon(struct file_sink *s)
{
	if (s == NULL)
		return;
	(void)!flush(s, NULL);
	close(s->fd);
	xfree(s);
}
