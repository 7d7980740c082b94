/*
 * What stands around a program in unit tests: a fake cluster with its settings, a fake kubelet and
 * a fake envd, all on one loop and the fake clock. Knows neither program; rig_api.h puts the
 * apiserver on it. A failure of the rig itself ends the test program.
 */
#ifndef FAKE_RIG_H
#define FAKE_RIG_H

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "domain/names.h"
#include "fake/cluster.h"
#include "http/http_server.h"

#define RIG_SYSTEM_KEY "e2b_0123456789abcdef0123456789abcdef01234567"
#define RIG_KEY_A "alice-0f8fad5b-d9cb-469f-a165-70867728950e" /* tenant "alice" */
#define RIG_KEY_B "bob-7c9e6679-7425-40de-944b-e07fc1f90ae7"   /* tenant "bob" */
#define RIG_DOMAIN "sandbox.test:10443"

struct rig {
	struct loop *loop;
	struct cluster *cluster;
	struct app *app; /* rig_api.h */
	int port;        /* of the API, on 127.0.0.1 */
	/* Pods follow their ReplicaSets by themselves and run at once. Default true. */
	bool kubelet;
	bool pods_linger; /* scaled down, they only become terminating; see rig_pods_gone */
	unsigned pods;    /* made so far */
	/* envd: what /init answers, how often it was called, and the last body. */
	struct http_server *envd;
	char envd_ip[16];
	int envd_status;
	bool envd_hold; /* /init is not answered */
	unsigned inits;
	json_t *init;
};

void rig_world_start(struct rig *r);
/* After everything that uses it. */
void rig_world_stop(struct rig *r);
#define RIG_NS "ns"
#define RIG_CONFIGMAP "config"
#define RIG_KEYS "keys"
#define RIG_INSTALL "install"

/* Ends the program unless good. */
void rig_must(bool good, const char *what, const struct err *e);

/* n turns of the loop, a millisecond of fake time each. */
void rig_turns(struct rig *r, unsigned n);
/* Turns until *done is at least n; ends the program if that takes too long. */
void rig_until(struct rig *r, const unsigned *done, unsigned n);
/* Fake time goes by, then some turns. */
void rig_advance(struct rig *r, int64_t ns);

/* --- objects --- */

/* A pod of the sandbox, with this status (stolen). Replaces one of that name. */
void rig_pod(struct rig *r, const char *id, const char *name, json_t *status);
json_t *rig_status_running(const struct rig *r, int restarts);
json_t *rig_status_waiting(const char *reason, const char *message);
json_t *rig_status_unschedulable(const char *message);
/* Removes the pods of a sandbox. */
void rig_pods_gone(struct rig *r, const char *id);

/* A sandbox as somebody else made it: its ReplicaSet, and a pod if it is running. */
struct rig_sandbox {
	const char *id, *tenant; /* NULL: "alice" */
	const char *template;    /* NULL: "base" */
	const char *started;     /* RFC 3339; NULL: now */
	const char *end;         /* NULL: in an hour */
	const char *desired;     /* NULL: running */
	const char *metadata;    /* JSON; NULL: {} */
	const char *network;     /* JSON; NULL: none */
	bool secure, starting;   /* starting: no pod, not ready */
};
void rig_sandbox(struct rig *r, const struct rig_sandbox *s);
/* An annotation of a sandbox's ReplicaSet as it is in the cluster, or NULL. */
const char *rig_annotation(const struct rig *r, const char *id, const char *name);
/* The id of the only sandbox in the cluster, in a static buffer. */
const char *rig_only_id(const struct rig *r);

#endif
