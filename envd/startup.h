/*
 * The template's own commands: the start command, once in an envd's life, and the ready command,
 * repeated until it succeeds. Whoever posted /init waits for it here.
 */
#ifndef ENVD_STARTUP_H
#define ENVD_STARTUP_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "envd/app.h"

#define STARTUP_READY_LIMIT SECONDS(120) /* when the body names none */
#define STARTUP_READY_LIMIT_MAX SECONDS(3600)
#define STARTUP_TRY_LIMIT SECONDS(30) /* of one run of the ready command */

enum startup_state {
	STARTUP_IDLE = 0, /* nothing was asked, or the last wait passed its limit */
	STARTUP_WAITING,  /* the ready command has not succeeded yet */
	STARTUP_READY,
};

/* Embedded in its owner. */
struct startup_wait {
	TAILQ_ENTRY(startup_wait) link;
	void (*fn)(struct startup_wait *w, const struct err *e); /* e NULL: ready; ERR_TIMEOUT */
	bool queued;
};

struct startup *startup_new(struct app *a);
void startup_free(struct startup *s);
/* Runs startCmd (unless one ran already) and waits for readyCmd, both of an /init body. 1: ready
 * now, 0: w->fn comes, -1: the start command could not be started. */
int startup_run(
    struct startup *s, const json_t *body, struct startup_wait *w, struct err *e) MUST_USE;
void startup_forget(struct startup *s, struct startup_wait *w);

#endif
