/* See fs_entry.h. */
#include "envd/fs_entry.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "envd/file_meta.h"
#include "envd/msg.h"
#include "envd/path.h"

void
fs_permissions(mode_t mode, char out[FS_PERMISSIONS_MAX])
{
	static const char rwx[] = "rwxrwxrwx";
	size_t n = 0;

	if (S_ISDIR(mode))
		out[n++] = 'd';
	if (S_ISLNK(mode))
		out[n++] = 'L';
	if (S_ISBLK(mode) || S_ISCHR(mode))
		out[n++] = 'D';
	if (S_ISFIFO(mode))
		out[n++] = 'p';
	if (S_ISSOCK(mode))
		out[n++] = 'S';
	if (mode & S_ISUID)
		out[n++] = 'u';
	if (mode & S_ISGID)
		out[n++] = 'g';
	if (S_ISCHR(mode))
		out[n++] = 'c';
	if (mode & S_ISVTX)
		out[n++] = 't';
	if (n == 0)
		out[n++] = '-';
	for (unsigned i = 0; i < 9; i++)
		out[n++] = mode & 1u << (8 - i) ? rwx[i] : '-';
	out[n] = '\0';
}

static const char *
type_name(mode_t mode)
{
	if (S_ISREG(mode))
		return "FILE_TYPE_FILE";
	return S_ISDIR(mode) ? "FILE_TYPE_DIRECTORY" : NULL;
}

static void
put_time(json_t *m, const struct timespec *ts)
{
	char text[TIME_TEXT_MAX];
	int digits = ts->tv_nsec == 0    ? 0
	    : ts->tv_nsec % 1000000 == 0 ? 3
	    : ts->tv_nsec % 1000 == 0    ? 6
	                                 : 9;

	time_format(ts->tv_sec * NS_PER_S + ts->tv_nsec, digits, text);
	json_set_str(m, "modifiedTime", text);
}

/* Type and mode of a link are those of what it leads to; a broken one has none and its own. */
static void
put_link(json_t *m, const char *path, struct stat *st)
{
	char target[PATH_MAX];
	struct stat to;
	ssize_t n;

	if (realpath(path, target) == NULL) {
		n = readlink(path, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
	}
	json_set_str(m, "symlinkTarget", target);
	if (stat(path, &to) == 0) {
		msg_put_text(m, "type", type_name(to.st_mode));
		st->st_mode = to.st_mode;
	}
}

int
fs_entry(struct users *users, const char *path, json_t **ret, struct err *e)
{
	char text[FS_PERMISSIONS_MAX], name[USERS_NAME_MAX];
	struct stat st;
	json_t *m, *meta;

	if (lstat(path, &st) == -1) {
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(e, ERR_NOT_FOUND, "file not found: " PATH_SHOWN, path);
		return err_errno(e, ERR_IO, "error getting file info " PATH_SHOWN, path);
	}
	m = json_object();
	fs_permissions(st.st_mode, text);
	msg_put_text(m, "name", path_base(path));
	if (S_ISLNK(st.st_mode))
		put_link(m, path, &st);
	else
		msg_put_text(m, "type", type_name(st.st_mode));
	msg_put_text(m, "path", path);
	msg_put_i64(m, "size", st.st_size);
	msg_put_int(m, "mode", st.st_mode & 0777);
	msg_put_text(m, "permissions", text);
	users_user_name(users, st.st_uid, name);
	msg_put_text(m, "owner", name);
	users_group_name(users, st.st_gid, name);
	msg_put_text(m, "group", name);
	put_time(m, &st.st_mtim);
	meta = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? file_meta_read(path) : NULL;
	json_set(m, "metadata", meta);
	*ret = m;
	return 0;
}
