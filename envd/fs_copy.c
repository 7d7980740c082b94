/* See fs_ops.h: copying a tree across file systems, for moves that rename(2) cannot do. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/fs_ops.h"
#include "envd/path.h"

#define COPY_CHUNK ((size_t)16 * 1024 * 1024)
#define XATTR_NAMES_MAX 65536
#define XATTR_VALUE_MAX 65536

static void
copy_xattrs(int from, int to)
{
	char *names = xmalloc(XATTR_NAMES_MAX), *value = xmalloc(XATTR_VALUE_MAX);
	ssize_t n = flistxattr(from, names, XATTR_NAMES_MAX);

	for (char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
		ssize_t len = fgetxattr(from, p, value, XATTR_VALUE_MAX);

		if (len >= 0)
			(void)!fsetxattr(to, p, value, (size_t)len, 0);
	}
	xfree(names);
	xfree(value);
}

/* Owner before mode (chown clears set-id bits), times last. */
static int
copy_attributes(int from, int to, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	copy_xattrs(from, to);
	if (fchown(to, st->st_uid, st->st_gid) == -1 || fchmod(to, st->st_mode & 07777) == -1)
		return -1;
	return futimens(to, times);
}

static int
copy_bytes(int from, int to)
{
	for (;;) {
		ssize_t n = sendfile(to, from, NULL, COPY_CHUNK);

		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
	}
}

static int
copy_file(const char *source, const char *dest, const struct stat *st)
{
	int from = open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), to, r = -1, saved;

	if (from == -1)
		return -1;
	to = open(dest, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to != -1)
		r = copy_bytes(from, to) == -1 ? -1 : copy_attributes(from, to, st);
	saved = errno;
	if (to != -1 && close(to) == -1 && r == 0) {
		saved = errno;
		r = -1;
	}
	close(from);
	errno = saved;
	return r;
}

static int
copy_link(const char *source, const char *dest, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlink(source, target, sizeof(target) - 1);

	if (n == -1)
		return -1;
	target[n] = '\0';
	if (symlink(target, dest) == -1)
		return -1;
	return lchown(dest, st->st_uid, st->st_gid);
}

static int copy_any(const char *source, const char *dest);

static int
copy_children(DIR *dir, const char *source, const char *dest)
{
	struct dirent *d;

	while ((d = readdir(dir)) != NULL) {
		char *from, *to;
		int r;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		from = path_join(source, d->d_name);
		to = path_join(dest, d->d_name);
		r = copy_any(from, to);
		xfree(from);
		xfree(to);
		if (r == -1)
			return -1;
	}
	return 0;
}

static int
copy_dir(const char *source, const char *dest, const struct stat *st)
{
	DIR *dir = opendir(source);
	int to, r, saved;

	if (dir == NULL)
		return -1;
	if (mkdir(dest, 0700) == -1) {
		saved = errno;
		closedir(dir);
		errno = saved;
		return -1;
	}
	r = copy_children(dir, source, dest);
	to = r == 0 ? open(dest, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (r == 0)
		r = to == -1 ? -1 : copy_attributes(dirfd(dir), to, st);
	saved = errno;
	if (to != -1)
		close(to);
	closedir(dir);
	errno = saved;
	return r;
}

static int
copy_any(const char *source, const char *dest)
{
	struct stat st;

	if (lstat(source, &st) == -1)
		return -1;
	if (S_ISDIR(st.st_mode))
		return copy_dir(source, dest, &st);
	if (S_ISLNK(st.st_mode))
		return copy_link(source, dest, &st);
	if (S_ISREG(st.st_mode))
		return copy_file(source, dest, &st);
	if (mknod(dest, st.st_mode, st.st_rdev) == -1)
		return -1;
	return lchown(dest, st.st_uid, st.st_gid);
}

int
fs_copy_tree(const char *source, const char *dest, struct err *e)
{
	if (copy_any(source, dest) == -1)
		return err_errno(e, fs_write_code(errno), "error copying " PATH_SHOWN, source);
	return 0;
}
