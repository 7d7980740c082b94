/* See process.h: the life of a process, from fork to the end of its retention. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "envd/process_priv.h"
#include "envd/pty.h"

static const unsigned next_states[PROC_STATE_COUNT] = {
	[PROC_STARTING] = 1u << PROC_RUNNING | 1u << PROC_DEAD,
	[PROC_RUNNING] = 1u << PROC_DRAINING | 1u << PROC_DEAD,
	[PROC_DRAINING] = 1u << PROC_ENDED | 1u << PROC_DEAD,
	[PROC_ENDED] = 1u << PROC_DEAD,
};

void
proc_set_state(struct process *p, enum proc_state to)
{
	BUG_ON((next_states[p->state] & 1u << to) == 0);
	log_debug("process state", log_i("pid", p->pid), log_i("from", p->state), log_i("to", to));
	p->state = to;
}

static void
process_free(void *arg)
{
	struct process *p = arg;

	if (p->free_config)
		p->free_config(p->config);
	xfree(p->tag);
	xfree(p->cwd);
	xfree(p);
}

/* Removes every event at once; the memory goes at the end of the turn. */
void
proc_close(struct process *p)
{
	proc_set_state(p, PROC_DEAD);
	proc_table_remove(p->app->procs, p);
	reaper_unwatch(p->app->reaper, &p->child);
	timer_stop(&p->deadline);
	timer_stop(&p->retain);
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
		proc_out_close(&p->out[i]);
	proc_in_fail(p, "process is gone");
	if (p->report != -1) {
		event_del(&p->report_ev);
		close(p->report);
		p->report = -1;
	}
	defer_init(&p->free, process_free, p);
	loop_defer(p->app->loop, &p->free);
}

static void
on_retained(void *arg)
{
	proc_close(arg);
}

/* "exit status N", "signal: killed (core dumped)", as Go's ProcessState prints it. */
static void
fill_end(struct proc_end *end, int wstatus)
{
	static const struct {
		int signo;
		const char *text;
	} names[] = {
		{ SIGHUP, "hangup" },
		{ SIGINT, "interrupt" },
		{ SIGQUIT, "quit" },
		{ SIGILL, "illegal instruction" },
		{ SIGTRAP, "trace/breakpoint trap" },
		{ SIGABRT, "aborted" },
		{ SIGBUS, "bus error" },
		{ SIGFPE, "floating point exception" },
		{ SIGKILL, "killed" },
		{ SIGUSR1, "user defined signal 1" },
		{ SIGSEGV, "segmentation fault" },
		{ SIGUSR2, "user defined signal 2" },
		{ SIGPIPE, "broken pipe" },
		{ SIGALRM, "alarm clock" },
		{ SIGTERM, "terminated" },
	};
	const char *core, *text = NULL;
	int signo;

	if (WIFEXITED(wstatus)) {
		end->exited = true;
		end->exit_code = WEXITSTATUS(wstatus);
		snprintf(end->status, sizeof(end->status), "exit status %d", end->exit_code);
		return;
	}
	end->exit_code = -1;
	signo = WTERMSIG(wstatus);
	core = WCOREDUMP(wstatus) ? " (core dumped)" : "";
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i].signo == signo)
			text = names[i].text;
	}
	if (text)
		snprintf(end->status, sizeof(end->status), "signal: %s%s", text, core);
	else
		snprintf(end->status, sizeof(end->status), "signal: signal %d%s", signo, core);
}

static void
process_ended(struct process *p)
{
	struct proc_sub *s;

	proc_set_state(p, PROC_ENDED);
	timer_stop(&p->deadline);
	proc_in_fail(p, "process has ended");
	fill_end(&p->end, p->wstatus);
	while ((s = TAILQ_FIRST(&p->subs)) != NULL) {
		proc_sub_detach(s);
		s->ops->on_end(s, &p->end);
	}
	if (p->internal) {
		proc_close(p);
		return;
	}
	proc_table_move(p->app->procs, p);
	timer_start(&p->retain, PROC_RETAIN);
}

void
proc_check_end(struct process *p)
{
	if (p->state == PROC_DRAINING && p->out[0].fd == -1 && p->out[1].fd == -1)
		process_ended(p);
}

static void
reaped(struct process *p)
{
	proc_set_state(p, PROC_DRAINING);
	if (p->no_wait)
		proc_out_finish(p);
	proc_check_end(p);
}

static void
on_exit(struct child *c, int wstatus)
{
	struct process *p = container_of(c, struct process, child);

	p->reaped = true;
	p->wstatus = wstatus;
	if (p->state == PROC_RUNNING)
		reaped(p);
}

static void
on_started(struct process *p)
{
	struct proc_sub *s;

	proc_set_state(p, PROC_RUNNING);
	TAILQ_FOREACH (s, &p->subs, link)
		s->ops->on_start(s);
	proc_out_start(p);
	if (p->reaped)
		reaped(p);
}

static void
on_report(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct process *p = arg;
	struct spawn spec = { .cwd = p->cwd };
	struct err e = { 0 };
	enum spawn_result r = spawn_result(p->report, &spec, &e);
	struct proc_sub *s;

	if (r == SPAWN_PENDING)
		return;
	event_del(&p->report_ev);
	close(p->report);
	p->report = -1;
	if (r == SPAWN_STARTED) {
		on_started(p);
		return;
	}
	while ((s = TAILQ_FIRST(&p->subs)) != NULL) {
		proc_sub_detach(s);
		s->ops->on_failed(s, &e);
	}
	proc_close(p);
}

static void
on_deadline(void *arg)
{
	struct process *p = arg;
	struct proc_sub *s, *tmp;

	if (!p->reaped)
		kill(p->pid, SIGKILL);
	p->no_wait = true;
	TAILQ_FOREACH_SAFE (s, &p->subs, link, tmp) {
		if (s->ops->on_deadline)
			s->ops->on_deadline(s);
	}
	if (p->state == PROC_DRAINING)
		proc_out_finish(p);
}

/* --- starting --- */

/* The child's ends and ours: [0] stdin, [1] stdout, [2] stderr. */
struct ends {
	int child[3], ours[3];
};

static void
close_fd(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static void
close_ends(struct ends *x)
{
	/* a terminal is one descriptor three times */
	for (int i = 0; i < 3; i++) {
		if (i == 0 || x->child[i] != x->child[0])
			close_fd(&x->child[i]);
		if (i == 0 || x->ours[i] != x->ours[0])
			close_fd(&x->ours[i]);
	}
}

static int
open_pipe(struct ends *x, int i, const struct user *u, struct err *e)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) == -1)
		return err_errno(e, ERR_UNAVAILABLE, "pipe");
	x->child[i] = p[i == 0 ? 0 : 1];
	x->ours[i] = p[i == 0 ? 1 : 0];
	/* so that the user can open /dev/stdout */
	(void)!fchown(x->child[i], u->uid, u->gid);
	if (fcntl(x->ours[i], F_SETFL, O_NONBLOCK) == -1)
		return err_errno(e, ERR_INTERNAL, "fcntl");
	return 0;
}

static int
open_ends(const struct proc_spec *spec, struct ends *x, struct err *e)
{
	for (int i = 0; i < 3; i++)
		x->child[i] = x->ours[i] = -1;
	if (spec->pty) {
		if (pty_open(spec->user, spec->cols, spec->rows, &x->ours[0], &x->child[0], e) ==
		    -1)
			return -1;
		x->ours[1] = x->ours[0];
		x->child[1] = x->child[2] = x->child[0];
		return 0;
	}
	if (spec->stdin_open) {
		if (open_pipe(x, 0, spec->user, e) == -1)
			return -1;
	} else {
		x->child[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (x->child[0] == -1)
			return err_errno(e, ERR_INTERNAL, "open /dev/null");
	}
	if (open_pipe(x, 1, spec->user, e) == -1 || open_pipe(x, 2, spec->user, e) == -1)
		return -1;
	return 0;
}

static int
spawn_it(struct app *a, const struct proc_spec *spec, const struct ends *x, pid_t *pid, int *report,
    struct err *e)
{
	char **paths = spawn_paths(spec->cmd, spec->path), **argv;
	size_t n = 0;
	struct spawn s;
	int r;

	while (spec->args[n])
		n++;
	argv = xcalloc(n + 3, sizeof(*argv));
	argv[1] = xstrdup(spec->cmd);
	memcpy(argv + 2, spec->args, n * sizeof(*argv));
	s = (struct spawn){
		.paths = paths,
		.argv = argv + 1,
		.envp = spec->env,
		.user = spec->user,
		.cwd = spec->cwd,
		.fd = { x->child[0], x->child[1], x->child[2] },
		.pty = spec->pty,
		.nofile = &a->nofile,
		.oom_adj = proc_table_oom_adj(a->procs),
	};
	r = spawn_run(&s, pid, report, e);
	xfree(argv[1]);
	xfree(argv);
	strings_free(paths);
	return r;
}

static struct process *
process_new(struct app *a, const struct proc_spec *spec, const struct ends *x, pid_t pid)
{
	struct process *p = xcalloc(1, sizeof(*p));

	p->app = a;
	p->pid = pid;
	p->tag = xstrdup(spec->tag);
	p->cwd = xstrdup(spec->cwd);
	p->config = spec->config;
	p->free_config = spec->free_config;
	p->pty = spec->pty;
	p->internal = spec->internal;
	p->child.on_exit = on_exit;
	TAILQ_INIT(&p->inputs);
	TAILQ_INIT(&p->subs);
	proc_out_init(p, 0, x->ours[1], spec->pty ? PROC_PTY : PROC_STDOUT);
	proc_out_init(p, 1, spec->pty ? -1 : x->ours[2], PROC_STDERR);
	proc_in_init(p, x->ours[0]);
	timer_init(&p->deadline, a->loop, on_deadline, p);
	timer_init(&p->retain, a->loop, on_retained, p);
	if (spec->timeout > 0)
		timer_start(&p->deadline, spec->timeout);
	return p;
}

int
proc_start(struct app *a, const struct proc_spec *spec, struct proc_sub *sub, struct process **ret,
    struct err *e)
{
	struct process *p;
	struct ends x;
	int report;
	pid_t pid;

	if (a->stopping || a->procs->n_live >= PROC_MAX)
		return err_set(
		    e, ERR_UNAVAILABLE, a->stopping ? "the sandbox ends" : "too many processes");
	if (open_ends(spec, &x, e) == -1 || spawn_it(a, spec, &x, &pid, &report, e) == -1) {
		close_ends(&x);
		return -1;
	}
	p = process_new(a, spec, &x, pid);
	for (int i = 0; i < 3; i++)
		x.ours[i] = -1;
	close_ends(&x);
	p->report = report;
	event_assign(&p->report_ev, loop_base(a->loop), report, EV_READ | EV_PERSIST, on_report, p);
	event_add(&p->report_ev, NULL);
	reaper_watch(a->reaper, &p->child, pid);
	proc_table_add(a->procs, p);
	if (sub) {
		sub->proc = p;
		sub->full = false;
		TAILQ_INSERT_TAIL(&p->subs, sub, link);
	}
	*ret = p;
	return 0;
}

/* --- the rest --- */

enum proc_state
proc_state(const struct process *p)
{
	return p->state;
}

pid_t
proc_pid(const struct process *p)
{
	return p->pid;
}

const char *
proc_tag(const struct process *p)
{
	return p->tag;
}

const void *
proc_config(const struct process *p)
{
	return p->config;
}

bool
proc_is_pty(const struct process *p)
{
	return p->pty;
}

const struct proc_end *
proc_end(const struct process *p)
{
	return p->state == PROC_ENDED ? &p->end : NULL;
}

static bool
any_full(const struct process *p)
{
	const struct proc_sub *s;

	TAILQ_FOREACH (s, &p->subs, link) {
		if (s->full)
			return true;
	}
	return false;
}

void
proc_sub_attach(struct process *p, struct proc_sub *s)
{
	BUG_ON(p->state != PROC_RUNNING && p->state != PROC_DRAINING);
	s->proc = p;
	s->full = false;
	TAILQ_INSERT_TAIL(&p->subs, s, link);
}

void
proc_sub_detach(struct proc_sub *s)
{
	struct process *p = s->proc;

	if (p == NULL)
		return;
	TAILQ_REMOVE(&p->subs, s, link);
	s->proc = NULL;
	if (s->full && !any_full(p))
		proc_out_pause(p, false);
}

void
proc_sub_ready(struct proc_sub *s)
{
	if (s->proc == NULL || !s->full)
		return;
	s->full = false;
	if (!any_full(s->proc))
		proc_out_pause(s->proc, false);
}

int
proc_signal(struct process *p, int signo, struct err *e)
{
	if (p->state == PROC_RUNNING && !p->reaped && kill(p->pid, signo) == -1)
		return err_errno(e, ERR_INTERNAL, "error sending signal");
	p->no_wait = true;
	if (p->state == PROC_DRAINING)
		proc_out_finish(p);
	return 0;
}

int
proc_resize(struct process *p, uint32_t cols, uint32_t rows, struct err *e)
{
	if (!p->pty)
		return err_set(e, ERR_INTERNAL, "tty not assigned to process");
	if (p->out[0].fd == -1)
		return err_set(e, ERR_INTERNAL, "terminal is closed");
	return pty_resize(p->out[0].fd, cols, rows, e);
}
