/*
 * What every unit test starts with: cmocka with the headers it wants before it, and a few helpers.
 * A test program is a list of TEST(name) { ... } and T_MAIN(T(name), ...).
 */
#ifndef TEST_T_H
#define TEST_T_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

#define TEST(name) static void name(void **state UNUSED)
#define T(name) cmocka_unit_test(name)
#define T_MAIN(...)                                                                                \
	int main(void)                                                                             \
	{                                                                                          \
		const struct CMUnitTest tests_[] = { __VA_ARGS__ };                                \
		return cmocka_run_group_tests(tests_, NULL, NULL);                                 \
	}

/* Shows both texts when they differ. */
#define assert_strv(v, text)                                                                       \
	do {                                                                                       \
		struct strv got_ = (v);                                                            \
		CLEANUP(xfreep) char *copy_ = strv_dup(got_);                                      \
		assert_string_equal(copy_, text);                                                  \
		assert_int_equal(got_.n, strlen(text));                                            \
	} while (0)

/* The call fails and fills e with the code and some message. */
#define assert_fails(e, want, call)                                                                \
	do {                                                                                       \
		memset(&(e), 0, sizeof(e));                                                        \
		assert_int_equal(call, -1);                                                        \
		assert_string_equal(err_name((e).code), err_name(want));                           \
		assert_true((e).msg[0] != '\0');                                                   \
	} while (0)

/* The call succeeds; otherwise its message is shown. */
#define assert_ok(e, call)                                                                         \
	do {                                                                                       \
		memset(&(e), 0, sizeof(e));                                                        \
		if ((call) != 0)                                                                   \
			fail_msg("%s: %s", #call, (e).msg);                                        \
	} while (0)

#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (strstr(text, part) == NULL)                                                    \
			fail_msg("\"%s\" is not in \"%s\"", part, text);                           \
	} while (0)
#define assert_has_not(text, part)                                                                 \
	do {                                                                                       \
		if (strstr(text, part) != NULL)                                                    \
			fail_msg("\"%s\" is in \"%s\"", part, text);                               \
	} while (0)

/* Does fn(arg) end its process with SIGABRT? It runs in a child with stderr closed. */
static inline bool
t_aborts(void (*fn)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDERR_FILENO);
		/* cmocka's own handler would turn the signal into an exit. */
		signal(SIGABRT, SIG_DFL);
		fn(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* Under valgrind, which has allocations and descriptors of its own: nothing to measure there. */
static inline bool
t_valgrind(void)
{
	return getenv("UNDER_VALGRIND") != NULL;
}

/* What fn(arg) writes to stderr; the caller frees. */
static inline char *
t_stderr(void (*fn)(void *), void *arg)
{
	int keep = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	off_t n;
	char *text;

	assert_true(keep >= 0 && fd >= 0);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	fn(arg);
	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	n = lseek(fd, 0, SEEK_END);
	text = xcalloc((size_t)n + 1, 1);
	assert_int_equal(pread(fd, text, (size_t)n, 0), n);
	close(fd);
	return text;
}

#endif
