/*
 * The first process of a pod: it holds the pod's namespaces open, and reaps what is orphaned to it
 * where the pod's containers share one process namespace. It must not know anything else.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int
main(void)
{
	sigset_t set;
	int sig;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;) {
		if (sigwait(&set, &sig) != 0)
			continue;
		if (sig == SIGTERM || sig == SIGINT)
			return 0;
		if (sig == SIGCHLD) {
			while (waitpid(-1, NULL, WNOHANG) > 0)
				continue;
		}
	}
}
