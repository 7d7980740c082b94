/* Small local files. Blocks for as long as the disk does: not for data of unknown size. */
#include "fsutil.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "clock.h"

#define READ_FIRST 4096 /* first guess for files that have no size, as in /proc */

/* Reads to the end of fd or to max + 1 bytes. NULL and errno on failure. */
static char *
read_fd(int fd, size_t cap, size_t max, size_t *n)
{
	char *buf = xmalloc(cap);
	size_t len = 0;

	for (;;) {
		ssize_t r;

		if (len == cap) {
			cap = cap > max / 2 ? max + 1 : cap * 2;
			buf = xrealloc(buf, cap);
		}
		r = read(fd, buf + len, cap - len);
		if (r == -1 && errno == EINTR)
			continue;
		if (r == -1) {
			int saved = errno;

			xfree(buf);
			errno = saved;
			return NULL;
		}
		len += (size_t)r;
		if (r == 0 || len > max)
			break;
	}
	*n = len;
	return buf;
}

int
file_read(const char *path, size_t max, char **ret, size_t *n, struct err *e)
{
	/* O_NONBLOCK: a FIFO in the place of a file must not stop the loop. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), saved;
	size_t cap = READ_FIRST, len = 0;
	struct stat st;
	char *buf;

	BUG_ON(max >= SIZE_MAX / 4);
	if (fd == -1)
		return err_errno(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "open %s", path);
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		cap = (uint64_t)st.st_size >= max ? max + 1 : (size_t)st.st_size + 1;
	else if (cap > max)
		cap = max + 1;
	buf = read_fd(fd, cap, max, &len);
	saved = errno;
	close(fd);
	errno = saved;
	if (buf == NULL)
		return err_errno(e, ERR_IO, "read %s", path);
	if (len > max) {
		xfree(buf);
		return err_set(e, ERR_TOO_LARGE, "%s is larger than %zu bytes", path, max);
	}
	buf = xrealloc(buf, len + 1);
	buf[len] = '\0';
	*ret = buf;
	if (n)
		*n = len;
	return 0;
}

bool
file_changed(const char *path, struct file_stamp *stamp)
{
	struct file_stamp now = { 0 };
	struct stat st;
	bool same;

	if (stat(path, &st) == -1) {
		*stamp = now;
		return true;
	}
	now.dev = st.st_dev;
	now.ino = st.st_ino;
	now.mtime_ns = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	now.size = st.st_size;
	same = now.dev == stamp->dev && now.ino == stamp->ino && now.mtime_ns == stamp->mtime_ns &&
	    now.size == stamp->size;
	*stamp = now;
	return !same;
}
