/*
 * The operations on sandboxes, under every face (E2B, REST, MCP, UI). Owns what happens in
 * Kubernetes and in which order; knows no HTTP and no wire shape of any face. Reads the view,
 * states intents by conditional writes, waits on the watch, never polls the API server.
 *
 * Every operation ends by its callback, later, exactly once, unless it is cancelled. All of them
 * check the tenant: a sandbox of another tenant is ERR_NOT_FOUND, except for the system role.
 */
#ifndef APISERVER_SERVICE_H
#define APISERVER_SERVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "domain/sandbox_view.h"
#include "domain/settings.h"
#include "domain/tenant.h"
#include "kube/kube_client.h"
#include "kube/kube_event.h"

#define SERVICE_START_TIMEOUT SECONDS(55) /* create and resume; clients give up after 60 s */
#define SERVICE_SLOW_START SECONDS(2) /* beyond it the asked time counts from when it is usable */
#define SERVICE_PAUSE_WAIT                                                                         \
	SECONDS(30) /* a resume waits this long for a pause, and it for a start */
#define SERVICE_SETTLE                                                                             \
	MILLIS(30) /* a kill or pause is answered after it: the others see it by then */
#define SERVICE_UNSCHEDULABLE                                                                      \
	SECONDS(15)              /* a pod that no node takes for so long fails the start           \
	                          */
#define SERVICE_IMAGE_ERRORS 3   /* image errors seen before a start is given up */
#define SERVICE_WRITE_TRIES 5    /* conditional writes that lost a race are decided again */
#define SERVICE_FLIGHTS_MAX 4096 /* creates and resumes in flight per replica */

struct service;
struct service_op; /* one operation in flight */

struct service_conf {
	struct loop *loop;
	struct kube *kube;
	struct settings *settings;
	struct sandbox_view *view;
	struct kube_recorder *recorder;
	struct metrics *metrics;
	const char *ns, *envd_image, *default_template;
	int64_t max_lifetime; /* seconds; 0: none */
};

struct service *service_new(const struct service_conf *conf);
void service_free(struct service *s);
/* Watches are in sync, settings are known and the API server answers. why: constant text when not.
 */
bool service_ready(const struct service *s, const char **why);

/* A sandbox for the caller, or an error. entry is borrowed for the call. */
typedef void (*service_fn)(const struct sandbox_entry *entry, const struct err *e, void *arg);

/* What is asked of create; everything is borrowed during the call. */
struct create_request {
	const struct tenant *tenant;
	const char *template_id; /* NULL: the default template */
	const json_t *metadata, *env_vars, *network, *mcp;
	const json_t *allow_internet; /* true/false; NULL: not set */
	int64_t timeout;              /* seconds; -1: never ends */
	enum on_end on_end;
	bool auto_resume, secure;
	int64_t idle_after; /* seconds; 0: off */
};
/* Ends when envd has taken its settings. Cancelled before that: the sandbox is removed again. */
struct service_op *service_create(
    struct service *s, const struct create_request *req, service_fn fn, void *arg);

/* A visible sandbox by id from the view (not warm, not deleting, not failed, of this tenant). A
 * miss is settled by one look at the API server, since another replica's create may not have come
 * by the watch yet. */
struct service_op *service_get(
    struct service *s, const struct tenant *t, struct strv id, service_fn fn, void *arg);
/* The same without the second look; false: not known here. For lists and hot paths. */
bool service_visible(
    const struct service *s, const struct tenant *t, const struct sandbox_entry *entry);

/* entry is NULL on success. ERR_NOT_FOUND when it is gone. */
struct service_op *service_kill(
    struct service *s, const struct tenant *t, struct strv id, service_fn fn, void *arg);

/* New end = now + timeout (seconds, -1 never), capped at start + maximum lifetime. Only while
 * running: paused is ERR_NOT_FOUND, pausing ERR_CONFLICT (E2B's rules). */
struct service_op *service_set_timeout(struct service *s, const struct tenant *t, struct strv id,
    int64_t timeout, service_fn fn, void *arg);

/* Running: extends the end to now + timeout if that is later (nothing is written otherwise).
 * Paused: starts it again with end = now + timeout. resumed (may be NULL) tells which. */
struct service_op *service_connect(struct service *s, const struct tenant *t, struct strv id,
    int64_t timeout, service_fn fn, void *arg);
/* Was the operation that just called back a resume (201) rather than a running one (200)? Valid
 * inside fn. */
bool service_op_resumed(const struct service_op *op);

/* Stops the pod and keeps the object; of one that starts, once it has started. Already paused:
 * ERR_CONFLICT, unless it came in between: pauses at once all succeed. */
struct service_op *service_pause(
    struct service *s, const struct tenant *t, struct strv id, service_fn fn, void *arg);

/* The callback does not run any more; what was begun ends in a defined state. Accepts NULL. */
void service_cancel(struct service_op *op);

#endif
