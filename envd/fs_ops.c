/* See fs_ops.h. */
#include "envd/fs_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/path.h"

#define DIR_MODE 0755

enum err_code
fs_write_code(int errnum)
{
	return errnum == ENOSPC || errnum == EDQUOT ? ERR_LIMIT : ERR_IO;
}

/* One directory of a path. */
static int
make_one(const char *dir, const struct user *u, struct err *e)
{
	struct stat st;

	if (mkdir(dir, DIR_MODE) == 0) {
		if (lchown(dir, u->uid, u->gid) == -1)
			return err_errno(e, ERR_IO, "error chowning " PATH_SHOWN, dir);
		return 0;
	}
	if (errno == ENOSPC || errno == EDQUOT)
		return err_set(e, ERR_LIMIT, "not enough disk space available");
	if (errno != EEXIST)
		return err_errno(e, errno == ENOTDIR ? ERR_INVALID : ERR_IO,
		    "error creating directory " PATH_SHOWN, dir);
	if (stat(dir, &st) == -1 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "path is a file: " PATH_SHOWN, dir);
	return 0;
}

int
fs_make_dirs(const char *dir, const struct user *u, struct err *e)
{
	char *path CLEANUP(xfreep) = xstrdup(dir);
	struct stat st;
	char *at = path;

	if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	while ((at = strchr(at + 1, '/')) != NULL) {
		*at = '\0';
		if (stat(path, &st) == -1 && make_one(path, u, e) == -1)
			return -1;
		*at = '/';
	}
	return make_one(path, u, e);
}

static int
remove_at(int dirfd, const char *name)
{
	struct dirent *d;
	int fd, r = 0;
	DIR *dir;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -1;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return -1;
	}
	while (r == 0 && (d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = remove_at(fd, d->d_name);
	}
	closedir(dir);
	if (r == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) == -1 && errno != ENOENT)
		return -1;
	return r;
}

int
fs_remove_tree(const char *path, struct err *e)
{
	struct rlimit lim;

	/* one descriptor per level */
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
	if (remove_at(AT_FDCWD, path) == -1)
		return err_errno(e, ERR_IO, "error removing file or directory " PATH_SHOWN, path);
	return 0;
}
