/*
 * How a program of ours begins: options, --help, log level, loop, and the signals that end it.
 * main() of each program is this and its app.
 */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <stddef.h>

#include "base/conf.h"
#include "base/loop.h"

struct program {
	const char *name;
	const struct conf_option *options; /* among them LOG_LEVEL */
	size_t options_n;
	void (*on_signal)(int signo, void *arg); /* SIGTERM or SIGINT */
	void *arg;
};

/* 0: *conf and *loop are the caller's, the program may run. 1: --help was printed. -1: the options
 * are wrong, which has been logged. */
int program_begin(
    const struct program *p, int argc, char **argv, struct conf **conf, struct loop **loop);

#endif
