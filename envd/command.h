/*
 * From what a caller asks for to what is started: environment by the documented order, directory
 * by user and default, argument lists. The same for commands of the API and for the template's own
 * start and ready commands.
 */
#ifndef ENVD_COMMAND_H
#define ENVD_COMMAND_H

#include <jansson.h>

#include "base/err.h"
#include "envd/app.h"
#include "envd/process.h"
#include "envd/users.h"

/* Holds what struct proc_spec borrows; command_done frees it. */
struct command {
	struct proc_spec spec;
	struct user *user;
	char *cwd;
	char **args, **env;
};

/* Fills c->spec from a ProcessConfig (cmd, args, envs, cwd), with a copy of it as its config. Takes
 * user over in any case. ERR_INVALID for wrong types and a directory that is not there. */
int command_init(struct app *a, const json_t *config, struct user *user, struct command *c,
    struct err *e) MUST_USE;
/* /bin/bash -l -c text as the default user; text is borrowed. */
int command_shell(struct app *a, const char *text, struct command *c, struct err *e) MUST_USE;
void command_done(struct command *c);

#endif
