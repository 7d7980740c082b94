#include "t.h"

#include <sys/stat.h>

#include "base/json.h"
#include "envd/file_meta.h"
#include "envd/fs_entry.h"
#include "envd/fs_ops.h"

static char dir[64];

static int
setup(void **state UNUSED)
{
	struct err e;

	snprintf(dir, sizeof(dir), "/tmp/entry_test.%d", getpid());
	assert_ok(e, fs_remove_tree(dir, &e));
	return mkdir(dir, 0755);
}

static int
teardown(void **state UNUSED)
{
	struct err e;

	return fs_remove_tree(dir, &e);
}

static const char *
in_dir(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void
perm(mode_t mode, const char *want)
{
	char text[FS_PERMISSIONS_MAX];

	fs_permissions(mode, text);
	assert_string_equal(text, want);
}

TEST(permissions_are_written_as_go_does)
{
	perm(S_IFREG | 0644, "-rw-r--r--");
	perm(S_IFREG | 0, "----------");
	perm(S_IFDIR | 0755, "drwxr-xr-x");
	perm(S_IFLNK | 0777, "Lrwxrwxrwx");
	perm(S_IFDIR | 01777, "dtrwxrwxrwx");
	perm(S_IFREG | 04755, "urwxr-xr-x");
	perm(S_IFREG | 02755, "grwxr-xr-x");
	perm(S_IFCHR | 0666, "Dcrw-rw-rw-");
	perm(S_IFBLK | 0660, "Drw-rw----");
	perm(S_IFIFO | 0600, "prw-------");
	perm(S_IFSOCK | 0700, "Srwx------");
}

static json_t *
entry(const char *name)
{
	struct users *u = users_new("/etc/passwd", "/etc/group");
	json_t *m;
	struct err e;

	assert_ok(e, fs_entry(u, in_dir(name), &m, &e));
	users_free(u);
	return m;
}

static void
make_file(const char *name, const char *text)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void
a_file(void **state UNUSED)
{
	json_t *m;

	make_file("f", "12345");
	m = entry("f");
	assert_string_equal(json_get_str(m, "name"), "f");
	assert_string_equal(json_get_str(m, "path"), in_dir("f"));
	assert_string_equal(json_get_str(m, "type"), "FILE_TYPE_FILE");
	assert_string_equal(json_get_str(m, "size"), "5");
	assert_int_equal(json_get_int(m, "mode", 0), 0644);
	assert_string_equal(json_get_str(m, "permissions"), "-rw-r--r--");
	assert_non_null(json_get_str(m, "modifiedTime"));
	assert_null(json_get(m, "symlinkTarget"));
	assert_null(json_get(m, "metadata"));
	json_decref(m);
}

static void
links(void **state UNUSED)
{
	json_t *m;

	make_file("f", "");
	assert_int_equal(symlink("f", in_dir("l")), 0);
	m = entry("l");
	assert_string_equal(json_get_str(m, "type"), "FILE_TYPE_FILE");
	assert_string_equal(json_get_str(m, "symlinkTarget"), in_dir("f"));
	assert_string_equal(json_get_str(m, "permissions"), "Lrwxrwxrwx");
	assert_int_equal(json_get_int(m, "mode", 0), 0644);
	json_decref(m);
	assert_int_equal(symlink("nowhere", in_dir("b")), 0);
	m = entry("b");
	assert_null(json_get(m, "type"));
	assert_string_equal(json_get_str(m, "symlinkTarget"), "nowhere");
	json_decref(m);
	assert_int_equal(symlink("loop", in_dir("loop")), 0);
	m = entry("loop");
	assert_null(json_get(m, "type"));
	json_decref(m);
}

static void
missing(void **state UNUSED)
{
	struct users *u = users_new("/etc/passwd", "/etc/group");
	json_t *m = NULL;
	struct err e;

	assert_fails(e, ERR_NOT_FOUND, fs_entry(u, in_dir("none"), &m, &e));
	assert_null(m);
	users_free(u);
}

static void
trees_are_copied_and_removed(void **state UNUSED)
{
	char copy[300];
	struct stat a, b;
	struct err e;

	assert_int_equal(mkdir(in_dir("t"), 0711), 0);
	assert_int_equal(mkdir(in_dir("t/d"), 0700), 0);
	make_file("t/d/f", "content");
	assert_int_equal(chmod(in_dir("t/d/f"), 04751), 0);
	assert_int_equal(symlink("d/f", in_dir("t/l")), 0);
	assert_int_equal(mkfifo(in_dir("t/p"), 0600), 0);
	snprintf(copy, sizeof(copy), "%s/c", dir);
	assert_ok(e, fs_copy_tree(in_dir("t"), copy, &e));
	assert_int_equal(stat(in_dir("t/d/f"), &a), 0);
	assert_int_equal(stat(in_dir("c/d/f"), &b), 0);
	assert_int_equal(a.st_mode, b.st_mode);
	assert_int_equal(a.st_size, b.st_size);
	assert_int_equal(a.st_mtim.tv_sec, b.st_mtim.tv_sec);
	assert_int_equal(a.st_mtim.tv_nsec, b.st_mtim.tv_nsec);
	assert_int_equal(stat(in_dir("c"), &b), 0);
	assert_int_equal(b.st_mode & 07777, 0711);
	assert_int_equal(lstat(in_dir("c/l"), &b), 0);
	assert_true(S_ISLNK(b.st_mode));
	assert_int_equal(lstat(in_dir("c/p"), &b), 0);
	assert_true(S_ISFIFO(b.st_mode));
	assert_fails(e, ERR_IO, fs_copy_tree(in_dir("t"), copy, &e)); /* dest exists */
	assert_ok(e, fs_remove_tree(copy, &e));
	assert_int_equal(lstat(copy, &b), -1);
	assert_int_equal(stat(in_dir("t/d/f"), &a), 0);
	assert_ok(e, fs_remove_tree(copy, &e));
}

static void
links_are_not_followed_when_removing(void **state UNUSED)
{
	struct stat st;
	struct err e;

	assert_int_equal(mkdir(in_dir("keep"), 0755), 0);
	make_file("keep/f", "x");
	assert_int_equal(mkdir(in_dir("t"), 0755), 0);
	assert_int_equal(symlink("../keep", in_dir("t/l")), 0);
	assert_ok(e, fs_remove_tree(in_dir("t"), &e));
	assert_int_equal(stat(in_dir("keep/f"), &st), 0);
}

static void
parents(void **state UNUSED)
{
	char home[] = "/";
	struct user u = { .uid = getuid(), .gid = getgid(), .home = home };
	struct stat st;
	struct err e;

	assert_ok(e, fs_make_dirs(in_dir("a/b/c"), &u, &e));
	assert_int_equal(stat(in_dir("a/b/c"), &st), 0);
	assert_ok(e, fs_make_dirs(in_dir("a/b/c"), &u, &e));
	make_file("f", "");
	assert_fails(e, ERR_INVALID, fs_make_dirs(in_dir("f"), &u, &e));
	assert_fails(e, ERR_INVALID, fs_make_dirs(in_dir("f/x/y"), &u, &e));
}

TEST(metadata_headers)
{
	static struct http_head h;
	char key[FILE_META_KEY_MAX + 32];
	static char value[FILE_META_TOTAL_MAX + 1];
	json_t *m;
	struct err e;

	h.n = 1;
	h.field[0] = (struct http_field){ STRV("Content-Type"), STRV("x") };
	assert_ok(e, file_meta_parse(&h, &m, &e));
	assert_null(m);
	h.field[h.n++] = (struct http_field){ STRV("x-metadata-FOO"), STRV("bar") };
	h.field[h.n++] = (struct http_field){ STRV("X-Metadata-foo"), STRV("second") };
	assert_ok(e, file_meta_parse(&h, &m, &e));
	assert_int_equal(json_object_size(m), 1);
	assert_string_equal(json_get_str(m, "foo"), "bar");
	json_decref(m);
	h.n = 1;
	h.field[0] = (struct http_field){ STRV("X-Metadata-a"), STRV("b\x80") };
	assert_fails(e, ERR_INVALID, file_meta_parse(&h, &m, &e));
	h.field[0] = (struct http_field){ STRV("X-Metadata-"), STRV("b") };
	assert_fails(e, ERR_INVALID, file_meta_parse(&h, &m, &e));
	memset(key, 'k', sizeof(key));
	memcpy(key, "X-Metadata-", 11);
	h.field[0] = (struct http_field){ { key, 11 + FILE_META_KEY_MAX }, STRV("b") };
	assert_ok(e, file_meta_parse(&h, &m, &e));
	json_decref(m);
	h.field[0] = (struct http_field){ { key, 12 + FILE_META_KEY_MAX }, STRV("b") };
	assert_fails(e, ERR_INVALID, file_meta_parse(&h, &m, &e));
	memset(value, 'v', sizeof(value));
	h.field[0] = (struct http_field){ STRV("X-Metadata-a"), { value, sizeof(value) } };
	assert_fails(e, ERR_INVALID, file_meta_parse(&h, &m, &e));
}

#define S(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
T_MAIN(T(permissions_are_written_as_go_does), S(a_file), S(links), S(missing),
    S(trees_are_copied_and_removed), S(links_are_not_followed_when_removing), S(parents),
    T(metadata_headers))
