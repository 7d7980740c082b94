/* See fs_job.h. */
#include "envd/fs_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/spawn.h"

#define REPORT_FD 3

struct fs_job {
	struct app *app;
	struct event ev;
	int fd;
	void (*done)(void *arg, const struct err *e); /* NULL: nobody waits */
	void *arg;
};

/* Our sockets must close when we close them, not when the helper ends. */
NORETURN static void
helper(int report, int (*fn)(const char *a, const char *b, struct err *e), const char *a,
    const char *b)
{
	struct err e = { 0 };
	sigset_t none;

	if (report != REPORT_FD && dup2(report, REPORT_FD) == -1)
		_exit(1);
	spawn_close_from(REPORT_FD + 1);
	sigemptyset(&none);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fn(a, b, &e) == 0)
		e.code = ERR_NONE;
	(void)!write(REPORT_FD, &e, sizeof(e));
	_exit(0);
}

static void
on_report(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct fs_job *j = arg;
	struct err e;
	ssize_t n = read(j->fd, &e, sizeof(e));

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	event_del(&j->ev);
	close(j->fd);
	j->app->jobs--;
	if (n != (ssize_t)sizeof(e) || e.code >= ERR_CODE_COUNT)
		err_set(&e, ERR_INTERNAL, "the helper process was killed");
	e.msg[sizeof(e.msg) - 1] = '\0';
	if (j->done)
		j->done(j->arg, e.code == ERR_NONE ? NULL : &e);
	xfree(j);
}

int
fs_job_start(struct app *app, int (*fn)(const char *a, const char *b, struct err *e), const char *a,
    const char *b, void (*done)(void *arg, const struct err *e), void *arg, struct fs_job **ret,
    struct err *e)
{
	struct fs_job *j;
	sigset_t all, before;
	int p[2];
	pid_t pid;

	if (app->jobs >= FS_JOBS_MAX)
		return err_set(e, ERR_UNAVAILABLE, "too many file operations at once");
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1)
		return err_errno(e, ERR_UNAVAILABLE, "pipe");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		helper(p[1], fn, a, b);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(p[1]);
	if (pid == -1) {
		err_errno(e, ERR_UNAVAILABLE, "fork");
		close(p[0]);
		return -1;
	}
	j = xcalloc(1, sizeof(*j));
	*j = (struct fs_job){ .app = app, .fd = p[0], .done = done, .arg = arg };
	event_assign(&j->ev, loop_base(app->loop), p[0], EV_READ | EV_PERSIST, on_report, j);
	event_add(&j->ev, NULL);
	app->jobs++;
	*ret = j;
	return 0;
}

void
fs_job_forget(struct fs_job *j)
{
	j->done = NULL;
}
