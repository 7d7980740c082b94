/*
 * Private to service*.c: one operation in flight and the steps that all of them are made of:
 * find → act → (write → act again after a lost race) → (wait for the start) → end.
 */
#ifndef APISERVER_SERVICE_OP_H
#define APISERVER_SERVICE_OP_H

#include "apiserver/service.h"
#include "base/list.h"
#include "domain/sandbox_init.h"

#define MISS_RING 256        /* ids known not to exist */
#define MISS_KEEP SECONDS(1) /* for so long */
#define MISS_LOOKS_PER_SECOND                                                                      \
	50 /* direct looks at the API server; beyond them a miss is a miss                         \
	    */

struct service {
	struct service_conf conf;
	TAILQ_HEAD(op_list, service_op) ops;
	unsigned flights;
	struct {
		char id[SANDBOX_ID_MAX + 1];
		int64_t until;
	} miss[MISS_RING];
	unsigned miss_next, looks;
	int64_t looks_second;
};

struct op_kind {
	const char *name; /* for logs */
	/* The sandbox was found. Must lead to op_end, op_write or op_await. */
	void (*act)(struct service_op *op, const struct sandbox_entry *entry);
	/* The conditional write went through. NULL: the operation is done. */
	void (*written)(struct service_op *op, const struct sandbox_entry *entry);
};

struct service_op {
	TAILQ_ENTRY(service_op) link;
	struct service *svc;
	const struct op_kind *kind;
	service_fn fn; /* NULL: cancelled, being wound up */
	void *arg;
	char tenant[TENANT_NAME_MAX + 1];
	enum role role;
	char id[SANDBOX_ID_MAX + 1];
	struct kube_call *call;
	char *killed_name,
	    *killed_uid; /* of what is being deleted, for its Event: the view may forget it first */
	struct defer begin;
	int tries;
	int64_t timeout; /* seconds, as asked */
	bool resumed;
	enum sandbox_state left; /* the one to be left while it waits for a change */
	bool waited;             /* for a start, long enough */
	/* of starting (service_start.c) */
	bool created; /* the object is ours to remove when the start fails */
	bool in_flight;
	struct view_sub sub;
	struct timer deadline, unschedulable;
	struct sandbox_init *init;
	char pod_uid[64];
	int pod_restarts, image_errors;
	char last_waiting[48];
	int64_t asked;    /* loop time */
	struct err early; /* an error found before anything was begun */
};

struct service_op *op_new(struct service *s, const struct op_kind *kind, const struct tenant *t,
    struct strv id, service_fn fn, void *arg);
/* Ends the operation: releases everything, calls back, frees. */
void op_end(struct service_op *op, const struct sandbox_entry *entry, const struct err *e);
void op_fail(struct service_op *op, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
/* The same for a call to Kubernetes that failed for good: its error becomes the caller's. */
void op_kube_failed(struct service_op *op, const struct err *e);
/* Releases without calling back. */
void op_free(struct service_op *op);

/* Looks the sandbox up (view, then one look at the API server) and goes on with kind->act. */
void op_find(struct service_op *op);
/* The view's entry if this caller may see it. */
bool op_visible(const struct service_op *op, struct sandbox_entry *ret);
/* The object is gone: the cache forgets it at once, before its watch event comes. */
void op_forget(struct service_op *op);
/* now + timeout (seconds; -1: never), no later than the longest life allows. Wall ns. */
int64_t op_end_after(const struct service *s, int64_t started, int64_t timeout);
/* Sends a conditional merge patch (stolen; its metadata gets the resourceVersion). A lost race
 * reads the object anew and calls kind->act again. */
void op_write(struct service_op *op, const struct sandbox *seen, json_t *patch);

/* Waits until the sandbox's pod runs and envd has its settings, then ends the operation. */
void op_await_start(struct service_op *op);
void op_start_release(struct service_op *op); /* for op_free */
void service_start_metrics(struct metrics *m);
/* Ends the operation a moment later, without an entry. What the caller does next may reach another
 * replica, and that one knows of a kill or a pause by its own watch only, a few milliseconds after
 * us. */
void op_settle(struct service_op *op);
/* service_cancel's half of it: nobody waits any more. */
void op_abandon(struct service_op *op);

void op_event(struct service *s, const struct sandbox *sb, bool warning, const char *reason,
    const char *message);

#endif
