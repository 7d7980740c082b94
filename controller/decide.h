/*
 * What the leader does about one sandbox: a pure function from what is seen to one action. The only
 * place where such rules stand; they are level-triggered, so a missed event or a new leader changes
 * nothing.
 */
#ifndef CONTROLLER_DECIDE_H
#define CONTROLLER_DECIDE_H

#include <stdint.h>

#include "base/clock.h"
#include "domain/sandbox_view.h"

#define DECIDE_INIT_GRACE                                                                          \
	SECONDS(5) /* a running pod without settings is its creator's for so long */
#define DECIDE_START_GRACE                                                                         \
	SECONDS(60) /* a start that somebody waits for is not ended under their hands */
#define DECIDE_HALF_MADE                                                                           \
	SECONDS(600) /* never usable for so long after create: nobody was told of it */
#define DECIDE_ORPHAN_GRACE                                                                        \
	SECONDS(30) /* a pod without its ReplicaSet; Kubernetes' own collector goes first */
#define DECIDE_NEVER INT64_MAX

enum action_type {
	ACTION_NONE = 0,
	ACTION_END_KILL,  /* its time is over: delete */
	ACTION_END_PAUSE, /* its time is over: stop, keep the object */
	ACTION_INIT,      /* give envd its settings (a creator died, or the container restarted) */
	ACTION_DROP,      /* half-made: delete */
	ACTION_FINISH_DELETE, /* desired=deleted: delete */
	ACTION_DELETE_POD,    /* an orphan */
	ACTION_COUNT
};

struct action {
	enum action_type type;
	const char *reason; /* of the Event, CamelCase; constant */
	const char *message;
	int64_t
	    look_again; /* wall ns when the answer may be another without any event; DECIDE_NEVER */
	const struct pod *pod; /* ACTION_INIT, ACTION_DELETE_POD */
};

/* now: wall ns. */
struct action decide(const struct sandbox_entry *seen, int64_t now);
const char *action_name(enum action_type t); /* lower-case, for logs and metric labels */

#endif
