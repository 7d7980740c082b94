/*
 * Starting one program: fork, then in the child only what is safe there (descriptors, terminal,
 * ids, directory, exec). What fails before exec is reported through a pipe; a program that cannot
 * be executed ends with 127 or 126 and a line on its stderr, as a shell would do it.
 */
#ifndef ENVD_SPAWN_H
#define ENVD_SPAWN_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/bug.h"
#include "base/err.h"
#include "envd/users.h"

struct spawn {
	char *const *paths; /* candidates for the program, in order; NULL at the end */
	char **argv;        /* argv[-1] is a free slot, for scripts that need an interpreter */
	char *const *envp;
	const struct user *user;
	const char *cwd;
	const struct rlimit *nofile; /* RLIMIT_NOFILE for it */
	int fd[3];                   /* the child's stdin, stdout, stderr; above 2 */
	bool pty;                    /* new session with fd[0] as its terminal */
	int oom_adj;                 /* wanted oom_score_adj, best effort; -1: leave */
};

/* On 0 the child runs and *report is the caller's: readable when it is decided (spawn_result). */
int spawn_run(const struct spawn *s, pid_t *pid, int *report, struct err *e) MUST_USE;
enum spawn_result { SPAWN_PENDING = 0, SPAWN_STARTED, SPAWN_FAILED };
/* Reads the report; on FAILED e says which step it was (ERR_INVALID). The caller closes report. */
enum spawn_result spawn_result(int report, const struct spawn *s, struct err *e);

/* Candidates for cmd under PATH: cmd itself if it has a slash, else one per directory; /bin/bash
 * falls back to /bin/sh. Caller frees with strings_free. */
char **spawn_paths(const char *cmd, const char *path);
void strings_free(char **list); /* accepts NULL */

/* Closes every descriptor from first on. Safe after fork. */
void spawn_close_from(int first);

/* Our own oom_score_adj; and a wish for it, best effort. */
int spawn_oom_get(void);
void spawn_oom_set(int adj);

#endif
