/*
 * ReplicaSet → struct sandbox, and what state a sandbox is in. One allocation per sandbox, except
 * for what its sandbox-data says, which equal ones share (sandbox_data.h). Pods: pod.c.
 */
#include "domain/sandbox.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rand.h"
#include "domain/pack.h"
#include "domain/sandbox_data.h"

/* What sandbox_decode really allocates. */
struct box {
	struct sandbox
	    s; /* s.data is the text of a struct sandbox_data, to which it is a reference */
	char text[];
};

static const char *const desired_names[DESIRED_COUNT] = {
	[DESIRED_RUNNING] = "running",
	[DESIRED_WARM] = "warm",
	[DESIRED_FROZEN] = "frozen",
	[DESIRED_STOPPED] = "stopped",
	[DESIRED_DELETED] = "deleted",
};

static const char *
or_empty(const char *text)
{
	return text ? text : "";
}

static enum sandbox_desired
desired_of(const char *text, bool pool)
{
	for (size_t i = 0; text != NULL && i < DESIRED_COUNT; i++) {
		if (strcmp(text, desired_names[i]) == 0)
			return (enum sandbox_desired)i;
	}
	return pool ? DESIRED_WARM : DESIRED_RUNNING;
}

/* A moment, or dflt when absent or not readable; "never" is TIME_NEVER. */
static int64_t
moment(const char *text, int64_t dflt)
{
	int64_t t;

	if (text == NULL)
		return dflt;
	if (strcmp(text, NEVER) == 0)
		return TIME_NEVER;
	return time_parse(strv_of(text), &t) == 0 ? t : dflt;
}

static int64_t
number(const char *text, int64_t dflt)
{
	int64_t n;

	if (text == NULL)
		return dflt;
	if (strcmp(text, NEVER) == 0)
		return TIME_NEVER;
	return strv_i64(strv_of(text), 0, INT64_MAX, &n) == 0 ? n : dflt;
}

static bool
is_true(const char *text)
{
	return text != NULL && strcmp(text, "true") == 0;
}

/* Kubernetes could not make the pod (quota, admission): the message of that condition, or NULL. */
static const char *
replica_failure(const json_t *rs)
{
	const json_t *conditions = json_get_arr(rs, "status.conditions"), *c;
	size_t i;

	json_array_foreach (conditions, i, c) {
		const char *type = json_get_str(c, "type"), *status = json_get_str(c, "status");

		if (type != NULL && status != NULL && strcmp(type, "ReplicaFailure") == 0 &&
		    strcmp(status, "True") == 0)
			return or_empty(json_get_str(c, "message"));
	}
	return NULL;
}

static void
read_metadata(struct sandbox *s, const json_t *rs, const json_t *labels)
{
	s->name = or_empty(json_get_str(rs, "metadata.name"));
	s->uid = or_empty(json_get_str(rs, "metadata.uid"));
	s->resource_version = or_empty(json_get_str(rs, "metadata.resourceVersion"));
	s->tenant = or_empty(json_member_str(labels, LABEL_TENANT));
	s->template_id = or_empty(json_member_str(labels, LABEL_TEMPLATE));
	s->pool = is_true(json_member_str(labels, LABEL_POOL));
	s->terminating = json_get_str(rs, "metadata.deletionTimestamp") != NULL;
	s->created = moment(json_get_str(rs, "metadata.creationTimestamp"), 0);
	s->replica_failure = replica_failure(rs);
	s->replicas = (int)json_get_int(rs, "spec.replicas", 1);
}

static void
read_annotations(struct sandbox *s, const json_t *ann)
{
	const char *on_end = json_member_str(ann, ANNOTATION_ON_END);

	s->desired = desired_of(json_member_str(ann, ANNOTATION_DESIRED), s->pool);
	s->generation = number(json_member_str(ann, ANNOTATION_GENERATION), 1);
	s->started = moment(json_member_str(ann, ANNOTATION_STARTED), s->created);
	s->end_at = moment(json_member_str(ann, ANNOTATION_END), TIME_NEVER);
	s->paused_at = moment(json_member_str(ann, ANNOTATION_PAUSED), 0);
	s->remaining = number(json_member_str(ann, ANNOTATION_REMAINING), TIME_NEVER);
	s->on_end = on_end && strcmp(on_end, "pause") == 0 ? ON_END_PAUSE : ON_END_KILL;
	s->idle_after = number(json_member_str(ann, ANNOTATION_IDLE_AFTER), 0);
	s->auto_resume = is_true(json_member_str(ann, ANNOTATION_AUTO_RESUME));
	s->ready = or_empty(json_member_str(ann, ANNOTATION_READY));
	s->failed = json_member_str(ann, ANNOTATION_FAILED);
	s->sealed = json_member_str(ann, ANNOTATION_SEALED);
	s->rev = or_empty(json_member_str(ann, ANNOTATION_REV));
}

static void
read_data(struct sandbox *s, const struct sandbox_data *d)
{
	s->data = d->text;
	s->secure = d->secure;
	s->metadata_n = d->metadata_n;
	s->metadata = d->metadata;
	s->private_ingress = d->private_traffic;
	s->mask_host = d->mask_host;
	/* The label may be a shortened form of the id that the client used. */
	if (d->template_id[0] != '\0')
		s->template_id = d->template_id;
}

/* The usual name is "sbx-<id>", and then the id needs no bytes of its own. */
static const char *
tail_of(const char *name, const char *id)
{
	size_t n = strlen(name), m = strlen(id);

	return n >= m && strcmp(name + n - m, id) == 0 ? name + n - m : NULL;
}

int
sandbox_decode(const json_t *rs, struct sandbox **ret, struct err *e)
{
	const json_t *labels = json_get_obj(rs, "metadata.labels");
	const json_t *ann = json_get_obj(rs, "metadata.annotations");
	const char *id = json_member_str(labels, LABEL_ID);
	struct sandbox s = { 0 };
	const char **fields[] = { &s.name, &s.uid, &s.tenant, &s.resource_version, &s.ready,
		&s.failed, &s.sealed, &s.rev, &s.replica_failure, &s.template_id, &s.id };
	size_t n = ARRAY_LEN(fields);
	struct sandbox_data *data;
	struct box *box;

	if (id == NULL || !sandbox_id_valid(strv_of(id)))
		return err_set(e, ERR_INVALID, "ReplicaSet %s has no valid label %s",
		    or_empty(json_get_str(rs, "metadata.name")), LABEL_ID);
	read_metadata(&s, rs, labels);
	read_annotations(&s, ann);
	data = sandbox_data_get(or_empty(json_member_str(ann, ANNOTATION_DATA)));
	read_data(&s, data);
	s.id = id;
	if (tail_of(s.name, id))
		n--; /* id, the last one */
	if (s.template_id == data->template_id)
		fields[9] = fields[--n]; /* lives in data; the last one takes its place */
	box = xmalloc(sizeof(*box) + pack_size(fields, n));
	pack_move(box->text, fields, n);
	if (s.id == id)
		s.id = tail_of(s.name, id);
	box->s = s;
	*ret = &box->s;
	return 0;
}

void
sandbox_free(struct sandbox *s)
{
	if (s == NULL)
		return;
	sandbox_data_unref(sandbox_data_of(s->data));
	xfree(container_of(s, struct box, s));
}

/* --- state --- */

static const char *const state_names[SANDBOX_STATE_COUNT] = {
	[SANDBOX_DELETING] = "deleting",
	[SANDBOX_FAILED] = "failed",
	[SANDBOX_WARMING] = "warming",
	[SANDBOX_WARM] = "warm",
	[SANDBOX_PAUSING] = "pausing",
	[SANDBOX_PAUSED] = "paused",
	[SANDBOX_CREATING] = "creating",
	[SANDBOX_RESUMING] = "resuming",
	[SANDBOX_RESTARTING] = "restarting",
	[SANDBOX_RUNNING] = "running",
};

const char *
sandbox_state_name(enum sandbox_state s)
{
	BUG_ON((unsigned)s >= SANDBOX_STATE_COUNT);
	return state_names[s];
}

#define TO(x) (1u << SANDBOX_##x)
#define ENDS (TO(DELETING) | TO(FAILED))
#define STARTS (TO(RESUMING) | TO(RESTARTING) | TO(RUNNING))
#define STOPS (TO(PAUSING) | TO(PAUSED))

/* States are derived, and a watch may fold several changes into one, so a row holds every state
 * that can be seen next, not only the neighbour. What it forbids: coming back from the end, a
 * sandbox with an owner that becomes warm, and creating after having been ready. */
static const unsigned short moves[SANDBOX_STATE_COUNT] = {
	[SANDBOX_DELETING] = 0,
	[SANDBOX_FAILED] = TO(DELETING),
	[SANDBOX_WARMING] = ENDS | STOPS | STARTS | TO(WARM) | TO(CREATING),
	[SANDBOX_WARM] = ENDS | STOPS | STARTS | TO(WARMING) | TO(CREATING),
	[SANDBOX_CREATING] = ENDS | STOPS | STARTS,
	[SANDBOX_RESUMING] = ENDS | STOPS | STARTS,
	[SANDBOX_RESTARTING] = ENDS | STOPS | STARTS,
	[SANDBOX_RUNNING] = ENDS | STOPS | STARTS,
	[SANDBOX_PAUSING] = ENDS | STOPS | STARTS | TO(CREATING),
	[SANDBOX_PAUSED] = ENDS | STOPS | STARTS | TO(CREATING),
};

bool
sandbox_move_allowed(enum sandbox_state from, enum sandbox_state to)
{
	BUG_ON((unsigned)from >= SANDBOX_STATE_COUNT || (unsigned)to >= SANDBOX_STATE_COUNT);
	return from == to || (moves[from] & 1u << to) != 0;
}

static bool
newer(const struct pod *a, const struct pod *b)
{
	if (a->created != b->created)
		return a->created > b->created;
	return strcmp(a->uid, b->uid) > 0;
}

const struct pod *
sandbox_live_pod(const struct pod *const *pods, size_t n)
{
	const struct pod *best = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct pod *p = pods[i];

		if (p->terminating || !p->container_running || p->ip[0] == '\0')
			continue;
		if (best == NULL || newer(p, best))
			best = p;
	}
	return best;
}

/* Splits `ready`; false when it is empty or malformed. */
static bool
ready_split(const struct sandbox *s, struct strv *uid, int64_t *restarts)
{
	struct strv rest;

	*uid = strv_cut(strv_of(s->ready), '/', &rest);
	return uid->n > 0 && strv_i64(rest, 0, INT32_MAX, restarts) == 0;
}

bool
sandbox_ready_names(const struct sandbox *s, const struct pod *p)
{
	int64_t restarts;
	struct strv uid;

	return ready_split(s, &uid, &restarts) && strv_is(uid, p->uid) && restarts == p->restarts;
}

/* Wanted running, but not known to be ready: why? */
static enum sandbox_state
starting(const struct sandbox *s, const struct pod *const *pods, size_t n)
{
	const struct pod *live = sandbox_live_pod(pods, n);
	int64_t restarts;
	struct strv uid;

	if (!ready_split(s, &uid, &restarts))
		return SANDBOX_CREATING;
	if (live != NULL)
		return strv_is(uid, live->uid) ? SANDBOX_RESTARTING : SANDBOX_RESUMING;
	/* Nothing runs now: the pod that was ready is between two runs, or is gone. */
	for (size_t i = 0; i < n; i++) {
		if (!pods[i]->terminating && strv_is(uid, pods[i]->uid))
			return SANDBOX_RESTARTING;
	}
	return SANDBOX_RESUMING;
}

enum sandbox_state
sandbox_state(const struct sandbox *s, const struct pod *const *pods, size_t n)
{
	const struct pod *live;

	if (s->terminating || s->desired == DESIRED_DELETED)
		return SANDBOX_DELETING;
	if (s->failed != NULL)
		return SANDBOX_FAILED;
	if (s->desired == DESIRED_FROZEN)
		return SANDBOX_PAUSED;
	if (s->desired == DESIRED_STOPPED)
		return n > 0 ? SANDBOX_PAUSING : SANDBOX_PAUSED;
	live = sandbox_live_pod(pods, n);
	if (s->desired == DESIRED_WARM)
		return live != NULL && live->ready ? SANDBOX_WARM : SANDBOX_WARMING;
	if (live != NULL && sandbox_ready_names(s, live))
		return SANDBOX_RUNNING;
	return starting(s, pods, n);
}

/* --- ids --- */

bool
sandbox_id_valid(struct strv id)
{
	if (id.n == 0 || id.n > SANDBOX_ID_MAX)
		return false;
	for (size_t i = 0; i < id.n; i++) {
		char c = id.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
			return false;
	}
	return true;
}

void
sandbox_id_new(char out[SANDBOX_ID_LEN + 1])
{
	out[0] = 'i';
	rand_base36(out + 1, SANDBOX_ID_LEN - 1);
}
