/*
 * envd: the daemon inside a sandbox. Serves E2B's data plane on one port, starts the commands, and
 * is PID 1 where it is the container's program.
 *
 *	envd                  serve on port 49983 of all addresses
 *	envd --port N         … on another port (0: any, printed)
 *	envd --install DEST   copy itself to DEST (mode 0755)
 *	envd --version
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "envd/app.h"
#include "envd/spawn.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define OOM_WISH (-999)

static const char usage[] = "usage: envd [--port N] | --install DEST | --version\n";

/* --- installing --- */

static int
copy_bytes(int from, int to)
{
	char buf[65536];

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));

		if (n == 0)
			return 0;
		if (n == -1 || write(to, buf, (size_t)n) != n)
			return -1;
	}
}

/* Under another name first, so that nobody ever starts half a program. */
static int
install(const char *dest)
{
	size_t size = strlen(dest) + sizeof(".new");
	char *temp = xmalloc(size);
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = -1, r = -1;

	snprintf(temp, size, "%s.new", dest);
	if (from != -1)
		to = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (to != -1 && copy_bytes(from, to) == 0 && fchmod(to, 0755) == 0 && fsync(to) == 0)
		r = 0;
	if (to != -1 && close(to) == -1)
		r = -1;
	if (r == 0)
		r = rename(temp, dest);
	if (r == -1)
		fprintf(stderr, "envd: cannot install to %s: %m\n", dest);
	xfree(temp);
	return r == 0 ? 0 : 1;
}

/* --- serving --- */

struct signals {
	struct app *app;
	int fd;
	struct event ev;
};

/* A TERM from inside the sandbox does not end it: as PID 1 the sender outside of our namespace
 * (the container runtime) is shown as 0. A script's `kill 0` would take the sandbox down else. */
static void
on_signal(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct signals *s = arg;
	struct signalfd_siginfo si;

	if (read(s->fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (s->app->pid1 && si.ssi_pid != 0) {
		log_info("signal from inside ignored", log_i("signal", si.ssi_signo),
		    log_i("pid", si.ssi_pid));
		return;
	}
	app_stop(s->app);
}

static void
watch_signals(struct signals *s, struct app *a)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->app = a;
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	BUG_ON(s->fd == -1);
	event_assign(&s->ev, loop_base(a->loop), s->fd, EV_READ | EV_PERSIST, on_signal, s);
	event_add(&s->ev, NULL);
}

/* Descriptors 0 to 2 exist, so that no pipe of ours gets such a number. */
static void
prepare_process(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
	umask(022);
	signal(SIGHUP, SIG_IGN);
	(void)!chdir("/");
}

static int
serve(const char *port)
{
	const char *path = getenv("PATH"), *require = getenv("ENVD_REQUIRE_INIT");
	struct app_conf conf = {
		.port = port,
		.require_init = require && strcmp(require, "1") == 0,
		.path = path && path[0] != '\0' ? path : PATH_DEFAULT,
	};
	struct signals signals;
	struct app *a;
	struct err e;
	int bound;

	prepare_process();
	if (app_new(&conf, &a, &bound, &e) == -1) {
		log_error("cannot start", log_err(&e));
		return 1;
	}
	spawn_oom_set(OOM_WISH); /* the process table has read the old value */
	watch_signals(&signals, a);
	log_info("listening", log_i("port", bound), log_s("version", AGENT_SANDBOX_VERSION));
	loop_run(a->loop);
	event_del(&signals.ev);
	close(signals.fd);
	app_free(a);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("envd %s (protocol %s)\n", AGENT_SANDBOX_VERSION, ENVD_VERSION);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "--install") == 0)
		return install(argv[2]);
	if (argc == 3 && strcmp(argv[1], "--port") == 0)
		return serve(argv[2]);
	if (argc == 1)
		return serve(ENVD_PORT_TEXT);
	fputs(usage, stderr);
	return 2;
}
