/*
 * See spawn.h. Between fork and exec only system calls are made: no allocation, no stdio, no locks
 * (ids are set by the raw calls, since the C library's wrappers talk to other threads).
 */
#include "envd/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

#define REPORT_FD 3
#define PATHS_MAX 64
#define FDS_SEARCHED 8192
#define EXIT_NOT_FOUND 127
#define EXIT_NOT_EXECUTABLE 126

enum step { STEP_FDS = 1, STEP_TERMINAL, STEP_IDS, STEP_CWD };

struct report {
	int step, errnum;
};

static const char *const step_text[] = {
	[STEP_FDS] = "prepare descriptors",
	[STEP_TERMINAL] = "set controlling terminal",
	[STEP_IDS] = "change user",
	[STEP_CWD] = "chdir",
};

/* --- in the child --- */

void
spawn_close_from(int first)
{
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
	for (int fd = first; fd < FDS_SEARCHED; fd++) /* a kernel before 5.9 */
		close(fd);
}

static void
reset_signals(void)
{
	struct sigaction sa;
	sigset_t none;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = SIG_DFL;
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &sa, NULL); /* fails for SIGKILL, SIGSTOP and libc's own: fine */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int
place_fds(const struct spawn *s, int report)
{
	for (int i = 0; i < 3; i++) {
		if (dup2(s->fd[i], i) == -1)
			return -1;
	}
	if (report != REPORT_FD && dup2(report, REPORT_FD) == -1)
		return -1;
	if (fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC) == -1)
		return -1;
	spawn_close_from(REPORT_FD + 1); /* close-on-exec would do; this is the second lock */
	return 0;
}

static int
set_ids(const struct user *u)
{
	if (geteuid() != 0 && geteuid() == u->uid)
		return 0; /* a test without privileges */
	if (syscall(SYS_setgroups, u->n_groups, u->groups) == -1 ||
	    syscall(SYS_setgid, u->gid) == -1 || syscall(SYS_setuid, u->uid) == -1)
		return -1;
	return 0;
}

static void
put(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text));
}

/* Tries the candidates; returns only with an exit code. A script without #! is run by sh. */
static int
exec_first(const struct spawn *s)
{
	bool fallback = strchr(s->argv[0], '/') != NULL;
	int why = ENOENT;

	for (char *const *p = s->paths; *p; p++) {
		if (fallback && p != s->paths)
			s->argv[0] = *p; /* busybox looks at its name */
		execve(*p, s->argv, s->envp);
		if (errno == ENOEXEC) {
			s->argv[-1] = (char[]){ "sh" };
			s->argv[0] = *p;
			execve("/bin/sh", s->argv - 1, s->envp);
		}
		if (errno != ENOENT && errno != ENOTDIR)
			why = errno;
		if (why != ENOENT && why != EACCES)
			break;
	}
	put("sh: 1: exec: ");
	put(s->argv[0]);
	if (why == ENOENT) {
		put(": not found\n");
		return EXIT_NOT_FOUND;
	}
	put(why == EACCES ? ": Permission denied\n" : ": cannot be executed\n");
	return EXIT_NOT_EXECUTABLE;
}

NORETURN static void
give_up(enum step step)
{
	struct report r = { step, errno };

	(void)!write(REPORT_FD, &r, sizeof(r));
	_exit(EXIT_NOT_FOUND);
}

NORETURN static void
child_main(const struct spawn *s, int report)
{
	char adj[12];

	if (s->oom_adj >= 0) {
		int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
		int n = 0, v = s->oom_adj;

		do {
			adj[sizeof(adj) - 1 - (size_t)n++] = (char)('0' + v % 10);
			v /= 10;
		} while (v > 0);
		if (fd != -1)
			(void)!write(fd, adj + sizeof(adj) - n, (size_t)n);
	}
	if (place_fds(s, report) == -1)
		give_up(STEP_FDS);
	setrlimit(RLIMIT_NOFILE, s->nofile);
	if (s->pty && (setsid() == -1 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) == -1))
		give_up(STEP_TERMINAL);
	if (set_ids(s->user) == -1)
		give_up(STEP_IDS);
	/* as the user: it may not be allowed to go there */
	if (chdir(s->cwd) == -1)
		give_up(STEP_CWD);
	reset_signals();
	_exit(exec_first(s));
}

/* --- in the parent --- */

int
spawn_run(const struct spawn *s, pid_t *pid, int *report, struct err *e)
{
	sigset_t all, before;
	int p[2];
	pid_t child;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1)
		return err_errno(e, ERR_IO, "pipe");
	/* no handler of ours may run in the child before it has set its own */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child == 0)
		child_main(s, p[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(p[1]);
	if (child == -1) {
		err_errno(e, ERR_UNAVAILABLE, "fork");
		close(p[0]);
		return -1;
	}
	*pid = child;
	*report = p[0];
	return 0;
}

enum spawn_result
spawn_result(int report, const struct spawn *s, struct err *e)
{
	struct report r;
	ssize_t n = read(report, &r, sizeof(r));

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return SPAWN_PENDING;
	if (n != (ssize_t)sizeof(r) || r.step < STEP_FDS || r.step > STEP_CWD)
		return SPAWN_STARTED;
	errno = r.errnum;
	if (r.step == STEP_CWD)
		err_errno(e, ERR_INVALID, "%s %.160s", step_text[r.step], s->cwd);
	else
		err_errno(e, ERR_INVALID, "%s", step_text[r.step]);
	return SPAWN_FAILED;
}

char **
spawn_paths(const char *cmd, const char *path)
{
	char **list = xcalloc(PATHS_MAX + 1, sizeof(*list));
	struct strv rest = strv_of(path);
	size_t n = 0;

	if (strchr(cmd, '/')) {
		list[n++] = xstrdup(cmd);
		if (strcmp(cmd, "/bin/bash") == 0)
			list[n++] = xstrdup("/bin/sh");
		return list;
	}
	while (rest.n > 0 && n < PATHS_MAX && cmd[0] != '\0') {
		struct strv dir = strv_cut(rest, ':', &rest);
		struct strbuf b;
		char *full;

		strbuf_init(&b, PATH_MAX);
		strbuf_addv(&b, dir.n > 0 ? dir : STRV("."));
		strbuf_addf(&b, "/%s", cmd);
		if (strbuf_take(&b, &full, NULL) == 0)
			list[n++] = full;
	}
	return list;
}

void
strings_free(char **list)
{
	if (list == NULL)
		return;
	for (char **p = list; *p; p++)
		xfree(*p);
	xfree(list);
}

int
spawn_oom_get(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	char text[16] = { 0 };
	int64_t v = 0;

	if (fd == -1)
		return 0;
	if (read(fd, text, sizeof(text) - 1) <= 0 ||
	    strv_i64(strv_cut(strv_of(text), '\n', &(struct strv){ 0 }), -1000, 1000, &v) == -1)
		v = 0;
	close(fd);
	return (int)v;
}

void
spawn_oom_set(int adj)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd == -1)
		return;
	dprintf(fd, "%d", adj);
	close(fd);
}
