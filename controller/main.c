/* The controller's process. */
#include <stdlib.h>

#include "base/log.h"
#include "base/program.h"
#include "controller/app.h"

static void
on_signal(int signo, void *arg)
{
	log_info("signal", log_i("signal", signo));
	app_end(arg);
}

int
main(int argc, char **argv)
{
	struct app app = { 0 };
	struct err e;
	int rc = program_begin(&(struct program){ .name = "controller",
	                           .options = controller_options,
	                           .options_n = controller_options_n,
	                           .on_signal = on_signal,
	                           .arg = &app },
	    argc, argv, &app.conf, &app.loop);

	if (rc != 0)
		return rc > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	if (app_start(&app, &e) == -1) {
		log_error("start", log_err(&e));
		return EXIT_FAILURE;
	}
	loop_run(app.loop);
	app_done(&app);
	return EXIT_SUCCESS;
}
