/* The controller's process: options, signals, loop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "controller/app.h"

static void
on_signal(int signo, void *arg)
{
	log_info("signal", log_i("signal", signo));
	app_end(arg);
}

static int
fail(const char *what, const struct err *e)
{
	log_error(what, log_err(e));
	return EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	struct app app = { 0 };
	enum log_level level;
	struct err e;

	if (conf_load(controller_options, controller_options_n, argc, argv, &app.conf, &e) == -1)
		return fail("options", &e);
	if (conf_help_asked(app.conf)) {
		conf_print_help(controller_options, controller_options_n, "controller", stdout);
		conf_free(app.conf);
		return EXIT_SUCCESS;
	}
	if (log_level_parse(strv_of(conf_text(app.conf, "LOG_LEVEL")), &level) == 0)
		log_set_level(level);
	app.loop = loop_new();
	loop_signal(app.loop, SIGTERM, on_signal, &app);
	loop_signal(app.loop, SIGINT, on_signal, &app);
	if (app_start(&app, &e) == -1)
		return fail("start", &e);
	loop_run(app.loop);
	app_done(&app);
	return EXIT_SUCCESS;
}
