/* See program.h. */
#include "base/program.h"

#include <signal.h>
#include <stdio.h>

#include "base/log.h"

int
program_begin(
    const struct program *p, int argc, char **argv, struct conf **conf, struct loop **loop)
{
	enum log_level level;
	struct err e;

	if (conf_load(p->options, p->options_n, argc, argv, conf, &e) == -1) {
		log_error("options", log_err(&e));
		return -1;
	}
	if (conf_help_asked(*conf)) {
		conf_print_help(p->options, p->options_n, p->name, stdout);
		conf_free(*conf);
		return 1;
	}
	if (log_level_parse(strv_of(conf_text(*conf, "LOG_LEVEL")), &level) == 0)
		log_set_level(level);
	*loop = loop_new();
	loop_signal(*loop, SIGTERM, p->on_signal, p->arg);
	loop_signal(*loop, SIGINT, p->on_signal, p->arg);
	return 0;
}
