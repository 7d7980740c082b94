/*
 * What /init told this envd: token, variables, default user and directory, the sandbox's names.
 * Lives in memory only: a restarted envd is new again, and says so.
 */
#ifndef ENVD_STATE_H
#define ENVD_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

struct state {
	bool require_init; /* closed until initialised */
	bool initialised;
	char *token;  /* NULL: everything is open */
	json_t *vars; /* the callers' default variables, text to text */
	char *sandbox_id, *template_id, *events_address; /* NULL: not told */
	char *user;                                      /* never NULL */
	char *workdir;                                   /* never NULL; "": the user's home */
	int64_t generation;                              /* last accepted; -1: none yet */
	int64_t timestamp;                               /* last accepted, wall ns; 0: none yet */
};

struct state *state_new(bool require_init);
void state_free(struct state *s);
/* Default variables of every command: the callers' with ours over them. New reference. */
json_t *state_env(const struct state *s);
/* Is `given` the token? True when there is none. Constant time. */
bool state_token_ok(const struct state *s, struct strv given);
/* Takes a checked /init body (see init.c for what it may hold) into the state. The token rules are
 * checked first (ERR_INVALID, ERR_UNAUTHORIZED), then the generation (ERR_CONFLICT); a body that
 * is older than the last one changes nothing and is no error. */
int state_apply(struct state *s, const json_t *body, struct err *e) MUST_USE;

#endif
