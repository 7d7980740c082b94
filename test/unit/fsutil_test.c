#include "t.h"

#include <sys/stat.h>
#include <utime.h>

#include "base/fsutil.h"

static char dir[64], path[96];

static int
setup(void **state UNUSED)
{
	snprintf(dir, sizeof(dir), "/tmp/fsutil_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	unlink(path);
	return rmdir(dir);
}

static void
put(const char *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	close(fd);
}

TEST(reads_whole_files)
{
	struct err e;
	char *text;
	size_t n;

	put("", 0);
	assert_ok(e, file_read(path, 0, &text, &n, &e));
	assert_int_equal(n, 0);
	assert_string_equal(text, "");
	xfree(text);
	put("a\0b\n", 4);
	assert_ok(e, file_read(path, 100, &text, &n, &e));
	assert_int_equal(n, 4);
	assert_memory_equal(text, "a\0b\n\0", 5);
	xfree(text);
	assert_ok(e, file_read(path, 4, &text, NULL, &e));
	xfree(text);
}

TEST(limit)
{
	static char big[100000];
	char *text = NULL;
	struct err e;
	size_t n = 7;

	memset(big, 'x', sizeof(big));
	put(big, sizeof(big));
	assert_fails(e, ERR_TOO_LARGE, file_read(path, sizeof(big) - 1, &text, &n, &e));
	assert_has(e.msg, path);
	assert_null(text);
	assert_int_equal(n, 7);
	assert_ok(e, file_read(path, sizeof(big), &text, &n, &e));
	assert_int_equal(n, sizeof(big));
	assert_int_equal(strlen(text), sizeof(big));
	xfree(text);
	assert_ok(e, file_read(path, 1 << 30, &text, &n, &e));
	xfree(text);
}

TEST(files_without_a_size)
{
	char *text = NULL;
	struct err e;
	size_t n;

	assert_ok(e, file_read("/proc/self/maps", 1 << 24, &text, &n, &e));
	assert_true(n > 4096); /* more than the first guess */
	assert_int_equal(strlen(text), n);
	xfree(text);
	assert_fails(e, ERR_TOO_LARGE, file_read("/proc/self/maps", 100, &text, &n, &e));
	assert_fails(e, ERR_TOO_LARGE, file_read("/dev/zero", 10000, &text, &n, &e));
}

TEST(no_file)
{
	char *text = NULL;
	struct err e;

	assert_fails(e, ERR_NOT_FOUND, file_read(path, 10, &text, NULL, &e));
	assert_has(e.msg, path);
	assert_has(e.msg, "No such file");
	assert_fails(e, ERR_IO, file_read(dir, 10, &text, NULL, &e));
	assert_null(text);
}

TEST(fifo_does_not_block)
{
	char *text;
	struct err e;
	size_t n;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_ok(e, file_read(path, 10, &text, &n, &e));
	assert_int_equal(n, 0);
	xfree(text);
}

TEST(notices_changes)
{
	struct file_stamp stamp = { 0 };
	char other[128];
	struct utimbuf old = { .actime = 1000, .modtime = 1000 };

	assert_true(file_changed(path, &stamp)); /* not there */
	put("a", 1);
	assert_true(file_changed(path, &stamp));
	assert_false(file_changed(path, &stamp));
	put("ab", 2); /* another size, even within the clock's grain */
	assert_true(file_changed(path, &stamp));
	assert_int_equal(utime(path, &old), 0);
	assert_true(file_changed(path, &stamp));
	assert_false(file_changed(path, &stamp));
	/* Another file under the same name, with the same size and time: how secrets rotate. */
	snprintf(other, sizeof(other), "%s/g", dir);
	assert_int_equal(rename(path, other), 0);
	assert_true(file_changed(path, &stamp)); /* gone */
	assert_true(file_changed(other, &(struct file_stamp){ 0 }));
	file_changed(other, &stamp);
	put("cd", 2);
	assert_int_equal(utime(path, &old), 0);
	assert_true(file_changed(path, &stamp));
	unlink(other);
}

#define L(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
T_MAIN(L(reads_whole_files), L(limit), L(files_without_a_size), L(no_file), L(fifo_does_not_block),
    L(notices_changes))
