/*
 * One process started through us: its child, its pipes or terminal, who listens, what is still to
 * be written to it, and how it ended. Knows nothing of RPC or JSON.
 *
 * Output goes to the subscribers of the moment and is thrown away when there is none. A subscriber
 * that is full stops the reading, so back-pressure reaches the process. The end comes when the
 * process was reaped and its outputs are at their end; after a deadly signal of ours only what is
 * in the pipes already is waited for.
 */
#ifndef ENVD_PROCESS_H
#define ENVD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/list.h"
#include "envd/app.h"
#include "envd/users.h"

#define PROC_PIPE_CHUNK ((size_t)32 * 1024)       /* one message of a pipe */
#define PROC_PTY_CHUNK ((size_t)16 * 1024)        /* one message of a terminal */
#define PROC_INPUT_MAX ((size_t)64 * 1024 * 1024) /* bytes waiting to be written to one process */
#define PROC_RETAIN SECONDS(30)                   /* how long an end can be asked for */
#define PROC_ENDED_MAX 4096                       /* ends that are kept */
#define PROC_MAX 4096                             /* processes at once */

enum proc_state {
	PROC_STARTING = 0, /* forked, not known whether it could be started */
	PROC_RUNNING,
	PROC_DRAINING, /* reaped, an output is still open */
	PROC_ENDED,    /* kept for late questions */
	PROC_DEAD,     /* about to be freed */
	PROC_STATE_COUNT
};

enum proc_stream { PROC_STDOUT = 0, PROC_STDERR, PROC_PTY };

struct process;
struct proc_sub;

struct proc_end {
	int exit_code; /* -1: killed by a signal */
	bool exited;
	char status[48]; /* "exit status 1", "signal: killed" */
};

/* Callbacks of a subscriber. on_end and on_failed come at most once, and detach it before. */
struct proc_sub_ops {
	void (*on_start)(struct proc_sub *s);
	/* Returns true when the subscriber is full: no more comes until proc_sub_ready. */
	bool (*on_data)(struct proc_sub *s, enum proc_stream stream, const char *p, size_t n);
	void (*on_end)(struct proc_sub *s, const struct proc_end *end);
	void (*on_failed)(struct proc_sub *s, const struct err *e); /* it could not be started */
	/* The time given to proc_start is over and the process was killed. May be NULL. */
	void (*on_deadline)(struct proc_sub *s);
};

/* Embedded in its owner. */
struct proc_sub {
	TAILQ_ENTRY(proc_sub) link;
	struct process *proc; /* NULL: not attached */
	const struct proc_sub_ops *ops;
	bool full;
};

struct proc_spec {
	const char *cmd;
	char *const *args; /* NULL at the end; without cmd */
	char *const *env;  /* "NAME=value"; NULL at the end */
	const char *path;  /* value of PATH in env */
	const struct user *user;
	const char *cwd;
	const char *tag; /* NULL: none */
	bool pty;
	uint32_t cols, rows;
	bool stdin_open; /* else /dev/null */
	bool internal;   /* not listed, its end is not kept */
	int64_t timeout; /* ns until SIGKILL; 0: none */
	void *config;    /* for the owner's listing; taken over on success */
	void (*free_config)(void *config);
};

/* Forks. On 0 the process belongs to the table; the outcome comes by sub's on_start or on_failed.
 * sub may be NULL. */
int proc_start(struct app *a, const struct proc_spec *spec, struct proc_sub *sub,
    struct process **ret, struct err *e) MUST_USE;

enum proc_state proc_state(const struct process *p);
pid_t proc_pid(const struct process *p);
const char *proc_tag(const struct process *p); /* NULL: none */
const void *proc_config(const struct process *p);
const struct proc_end *proc_end(const struct process *p); /* NULL before PROC_ENDED */
bool proc_is_pty(const struct process *p);

/* Only while RUNNING or DRAINING. */
void proc_sub_attach(struct process *p, struct proc_sub *s);
void proc_sub_detach(struct proc_sub *s); /* also of one that is not attached */
void proc_sub_ready(struct proc_sub *s);  /* not full any more */

/* SIGTERM or SIGKILL to the process itself, not to its children. */
int proc_signal(struct process *p, int signo, struct err *e) MUST_USE;
int proc_resize(struct process *p, uint32_t cols, uint32_t rows, struct err *e) MUST_USE;

/* A write in progress. */
struct proc_input;
/* Takes over data (xfree'd later) when it returns 0 or 1. 1: written already. 0: *ret is there
 * until done(arg, e) was called, e NULL for success. pty: the caller means a terminal. */
int proc_write(struct process *p, bool pty, unsigned char *data, size_t n,
    void (*done)(void *arg, const struct err *e), void *arg, struct proc_input **ret,
    struct err *e) MUST_USE;
/* done will not be called; the data is still written. */
void proc_input_forget(struct proc_input *in);
/* End of input once what is pending has been written. ERR_INTERNAL for a terminal. */
int proc_close_stdin(struct process *p, struct err *e) MUST_USE;

/* --- the table (process_table.c) --- */
struct proc_table;
struct proc_table *proc_table_new(struct app *a);
void proc_table_free(struct proc_table *t);
/* By pid (newest first), or by tag if tag is not NULL. NULL if there is none, or it is STARTING. */
struct process *proc_table_find(struct proc_table *t, uint32_t pid, const char *tag);
/* Those that run, oldest first; a process may not end in fn. */
void proc_table_each(
    struct proc_table *t, void (*fn)(const struct process *p, void *arg), void *arg);
int proc_table_oom_adj(const struct proc_table *t); /* for new processes */

#endif
