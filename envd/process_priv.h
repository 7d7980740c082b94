/* The process's insides, shared by process.c (life), process_io.c (pipes) and process_table.c. */
#ifndef ENVD_PROCESS_PRIV_H
#define ENVD_PROCESS_PRIV_H

#include <event2/event_struct.h>

#include "base/loop.h"
#include "envd/process.h"
#include "envd/reaper.h"
#include "envd/spawn.h"

struct proc_input {
	TAILQ_ENTRY(proc_input) link;
	unsigned char *data;
	size_t n, off;
	void (*done)(void *arg, const struct err *e); /* NULL: nobody waits */
	void *arg;
};

struct proc_out {
	struct process *proc;
	struct event ev;
	int fd; /* -1: closed */
	enum proc_stream stream;
	size_t chunk;
	size_t tail_left; /* what may still be read once only the pipe's content counts */
};

struct process {
	TAILQ_ENTRY(process) link;
	struct app *app;
	enum proc_state state;
	pid_t pid;
	char *tag;
	void *config;
	void (*free_config)(void *config);
	bool pty, internal;
	bool in_ended; /* which list of the table it is in */
	bool no_wait;  /* do not wait for the outputs' end */
	bool paused;   /* a subscriber is full */
	struct child child;
	/* while STARTING */
	struct event report_ev;
	int report;
	char *cwd;
	bool reaped;
	int wstatus;
	struct proc_out out[2];
	/* input */
	struct event in_ev;
	int in_fd; /* -1: closed or none; the master of a terminal */
	bool in_closing;
	size_t in_pending;
	TAILQ_HEAD(, proc_input) inputs;
	TAILQ_HEAD(, proc_sub) subs;
	struct timer deadline, retain;
	struct defer free;
	struct proc_end end;
};

TAILQ_HEAD(process_list, process);

struct proc_table {
	struct app *app;
	struct process_list live, ended; /* newest first */
	size_t n_live, n_ended;
	int oom_adj;
};

void proc_set_state(struct process *p, enum proc_state to);
void proc_close(struct process *p);
/* Output or exit came to an end: go on to PROC_ENDED if all is there. */
void proc_check_end(struct process *p);

/* process_io.c */
void proc_out_init(struct process *p, int i, int fd, enum proc_stream stream);
void proc_out_start(struct process *p);
void proc_out_close(struct proc_out *o);
void proc_out_pause(struct process *p, bool on);
/* From now on only what the pipes hold counts. */
void proc_out_finish(struct process *p);
void proc_in_init(struct process *p, int fd);
void proc_in_fail(struct process *p, const char *why);

/* process_table.c */
void proc_table_add(struct proc_table *t, struct process *p);
void proc_table_move(struct proc_table *t, struct process *p); /* live -> ended */
void proc_table_remove(struct proc_table *t, struct process *p);

#endif
