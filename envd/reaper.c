/* See reaper.h. */
#include "envd/reaper.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/bug.h"

#define REAP_TURN 100 /* exits handled in one turn */

struct reaper {
	struct loop *loop;
	TAILQ_HEAD(, child) children;
	struct defer again;
};

static struct child *
find(struct reaper *r, pid_t pid)
{
	struct child *c;

	TAILQ_FOREACH (c, &r->children, link) {
		if (c->pid == pid)
			return c;
	}
	return NULL;
}

static void
reap(void *arg)
{
	struct reaper *r = arg;

	for (int i = 0; i < REAP_TURN; i++) {
		int wstatus;
		pid_t pid = waitpid(-1, &wstatus, WNOHANG);
		struct child *c;

		if (pid == -1 && errno == EINTR)
			continue;
		if (pid <= 0)
			return;
		c = find(r, pid);
		if (c == NULL)
			continue;
		reaper_unwatch(r, c);
		c->on_exit(c, wstatus);
	}
	loop_defer(r->loop, &r->again);
}

static void
on_sigchld(int signo UNUSED, void *arg)
{
	reap(arg);
}

struct reaper *
reaper_new(struct loop *l)
{
	struct reaper *r = xcalloc(1, sizeof(*r));

	r->loop = l;
	TAILQ_INIT(&r->children);
	defer_init(&r->again, reap, r);
	loop_signal(l, SIGCHLD, on_sigchld, r);
	return r;
}

void
reaper_free(struct reaper *r)
{
	if (r == NULL)
		return;
	loop_undefer(r->loop, &r->again);
	xfree(r);
}

void
reaper_watch(struct reaper *r, struct child *c, pid_t pid)
{
	c->pid = pid;
	TAILQ_INSERT_HEAD(&r->children, c, link);
}

void
reaper_unwatch(struct reaper *r, struct child *c)
{
	if (c->pid == 0)
		return;
	TAILQ_REMOVE(&r->children, c, link);
	c->pid = 0;
}

void
reaper_signal_all(struct reaper *r, bool pid1, int signo)
{
	struct child *c;

	if (pid1) {
		kill(-1, signo);
		return;
	}
	TAILQ_FOREACH (c, &r->children, link)
		kill(c->pid, signo);
}

bool
reaper_empty(void)
{
	siginfo_t si;

	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
}
