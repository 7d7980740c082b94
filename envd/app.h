/*
 * What makes up one running envd: every module's object, owned here, and the way a request takes
 * (CORS, not-initialised gate, token, route). There are no globals beside it.
 */
#ifndef ENVD_APP_H
#define ENVD_APP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/bug.h"
#include "base/envd_wire.h"
#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "http/http_server.h"

struct state;
struct users;
struct reaper;
struct proc_table;
struct startup;
struct watches;
struct usage;
struct rpc;
struct map;

struct app {
	struct loop *loop;
	struct http_server *server;
	struct state *state;      /* what /init said */
	struct users *users;      /* passwd and group */
	struct reaper *reaper;    /* exits of children */
	struct proc_table *procs; /* processes started through us */
	struct startup *startup;  /* start and ready command */
	struct watches *watches;  /* inotify; NULL until first used */
	struct map *asked;        /* watchers of CreateWatcher by id; NULL until first used */
	struct usage *usage;      /* cgroup figures */
	TAILQ_HEAD(, rpc) rpcs;   /* calls in flight */
	unsigned jobs;            /* forked helpers at work */
	const char *path;         /* PATH for commands, where nobody says otherwise */
	struct rlimit nofile;     /* as it was at the start: what commands get */
	bool pid1;
	bool stopping;
};

struct app_conf {
	const char *port;  /* "49983"; "0" picks one */
	bool require_init; /* answer 425 until /init */
	const char *path;  /* PATH for commands, borrowed for ever */
};

/* On 0 the server listens and *ret is the caller's (app_free). *port is the bound port. */
int app_new(const struct app_conf *conf, struct app **ret, int *port, struct err *e) MUST_USE;
void app_free(struct app *a);
/* Cuts every stream, ends all processes (SIGTERM, one second, SIGKILL), then stops the loop. */
void app_stop(struct app *a);

#endif
