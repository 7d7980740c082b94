/*
 * A sandbox as read from its ReplicaSet, a pod as read from its Pod, and the one function that says
 * what state they are in together (shared by both programs). Values are decoded once and never
 * changed; the cache owns them. Knows JSON shapes and names.h, nothing of HTTP or calls.
 */
#ifndef DOMAIN_SANDBOX_H
#define DOMAIN_SANDBOX_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/names.h"

enum sandbox_desired {
	DESIRED_RUNNING = 0,
	DESIRED_WARM,
	DESIRED_FROZEN,
	DESIRED_STOPPED,
	DESIRED_DELETED,
	DESIRED_COUNT
};
enum on_end { ON_END_KILL = 0, ON_END_PAUSE };

#define TIME_NEVER INT64_MAX
#define SANDBOX_DATA_MAX (256 * 1024) /* of sandbox-data; longer texts are kept but not read */

struct kv {
	const char *key, *value;
};

/* All texts live in the object itself. Times are wall-clock ns. */
struct sandbox {
	const char *name, *id, *uid, *tenant, *template_id;
	const char *resource_version;
	enum sandbox_desired desired;
	int64_t generation;
	int64_t created, started; /* started: last create or resume */
	int64_t end_at;           /* TIME_NEVER: none; while paused: meaningless */
	int64_t remaining;        /* seconds while paused; TIME_NEVER */
	int64_t paused_at;        /* last pause asked; 0: never */
	enum on_end on_end;
	int64_t idle_after; /* seconds; 0: off */
	bool auto_resume, pool, terminating, secure;
	int replicas;
	const char *ready;           /* "<pod uid>/<restarts>" or "" */
	const char *failed;          /* reason and message, or NULL */
	const char *sealed;          /* or NULL */
	const char *replica_failure; /* why Kubernetes makes no pod, or NULL */
	const char *rev;
	const char *data; /* the sandbox-data JSON as text; parse it for what is not here */
	size_t metadata_n;
	const struct kv *metadata;
	bool private_ingress;  /* network.allowPublicTraffic is false */
	const char *mask_host; /* network.maskRequestHost, or "" */
};

/* ReplicaSet JSON → new object; free with sandbox_free. Unknown or missing optional fields get
 * their defaults; a ReplicaSet without id label is an error. */
int sandbox_decode(const json_t *rs, struct sandbox **ret, struct err *e) MUST_USE;
void sandbox_free(struct sandbox *s); /* accepts NULL */

enum pod_phase { POD_PENDING = 0, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

struct pod {
	const char *name, *uid, *sandbox_id, *resource_version;
	const char *ip, *node; /* "" until known */
	enum pod_phase phase;
	bool ready, terminating;
	bool container_running; /* the container `sandbox` runs */
	int restarts;           /* of the container `sandbox` */
	const char *waiting_reason,
	    *waiting_message; /* ErrImagePull, CrashLoopBackOff …; "" none. Init containers count */
	const char *unschedulable; /* message, or "" */
	const char *exit_reason;   /* last termination: OOMKilled, Error …; "" none */
	int exit_code;
	int64_t created;
	int64_t running_since; /* of that container; 0: it does not run */
};

int pod_decode(const json_t *pod, struct pod **ret, struct err *e) MUST_USE;
void pod_free(struct pod *p); /* accepts NULL */

enum sandbox_state {
	SANDBOX_DELETING = 0,
	SANDBOX_FAILED,
	SANDBOX_WARMING,
	SANDBOX_WARM,
	SANDBOX_PAUSING,
	SANDBOX_PAUSED,
	SANDBOX_CREATING,
	SANDBOX_RESUMING,
	SANDBOX_RESTARTING,
	SANDBOX_RUNNING,
	SANDBOX_STATE_COUNT
};
const char *sandbox_state_name(enum sandbox_state s);
bool sandbox_move_allowed(
    enum sandbox_state from, enum sandbox_state to); /* the table, for tests and debug checks */

/* First match of the rules of state; pods may be in any order, terminating ones included. */
enum sandbox_state sandbox_state(const struct sandbox *s, const struct pod *const *pods, size_t n);
/* The pod that serves the sandbox now: not terminating, container running, has an IP; newest wins.
 * NULL: none. */
const struct pod *sandbox_live_pod(const struct pod *const *pods, size_t n);
/* Does `ready` name this incarnation of the pod? */
bool sandbox_ready_names(const struct sandbox *s, const struct pod *p);

/* ^[a-z0-9]{1,40}$ */
bool sandbox_id_valid(struct strv id);
void sandbox_id_new(char out[SANDBOX_ID_LEN + 1]);

#endif
