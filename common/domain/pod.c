/*
 * Pod → struct pod: only what state, routing and diagnosis need.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/pack.h"
#include "domain/sandbox.h"

static const char *
or_empty(const char *text)
{
	return text ? text : "";
}

static enum pod_phase
phase_of(const char *text)
{
	static const char *const names[] = {
		[POD_PENDING] = "Pending",
		[POD_RUNNING] = "Running",
		[POD_SUCCEEDED] = "Succeeded",
		[POD_FAILED] = "Failed",
	};

	if (text == NULL)
		return POD_PENDING;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0)
			return (enum pod_phase)i;
	}
	return POD_UNKNOWN;
}

static void
read_conditions(struct pod *p, const json_t *pod)
{
	const json_t *conditions = json_get_arr(pod, "status.conditions");

	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *c = json_array_get(conditions, i);
		const char *type = or_empty(json_get_str(c, "type"));
		const char *status = or_empty(json_get_str(c, "status"));

		if (strcmp(type, "Ready") == 0)
			p->ready = strcmp(status, "True") == 0;
		else if (strcmp(type, "PodScheduled") == 0 && strcmp(status, "False") == 0)
			p->unschedulable = or_empty(json_get_str(c, "message"));
	}
}

/* Waiting that is part of every start says nothing. */
static bool
is_trouble(const char *reason)
{
	return strcmp(reason, "ContainerCreating") != 0 && strcmp(reason, "PodInitializing") != 0;
}

/* What one container's status says about trouble; the first one that has any is kept. */
static void
read_trouble(struct pod *p, const json_t *status)
{
	const char *reason = json_get_str(status, "state.waiting.reason");
	const json_t *end = json_get_obj(status, "state.terminated");

	if (reason != NULL && is_trouble(reason) && p->waiting_reason[0] == '\0') {
		p->waiting_reason = reason;
		p->waiting_message = or_empty(json_get_str(status, "state.waiting.message"));
	}
	if (end == NULL)
		end = json_get_obj(status, "lastState.terminated");
	if (end != NULL && p->exit_reason[0] == '\0') {
		p->exit_reason = or_empty(json_get_str(end, "reason"));
		p->exit_code = (int)json_get_int(end, "exitCode", 0);
	}
}

/* RFC 3339 text as wall-clock ns; 0 when absent or not readable. */
static int64_t
moment(const char *text)
{
	int64_t at;

	return text != NULL && time_parse(strv_of(text), &at) == 0 ? at : 0;
}

static void
read_containers(struct pod *p, const json_t *pod)
{
	const json_t *list = json_get_arr(pod, "status.containerStatuses");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *status = json_array_get(list, i);
		const char *name = json_get_str(status, "name");

		if (name == NULL || strcmp(name, CONTAINER_NAME) != 0)
			continue;
		p->restarts = (int)json_get_int(status, "restartCount", 0);
		p->container_running = json_get_obj(status, "state.running") != NULL;
		p->running_since = moment(json_get_str(status, "state.running.startedAt"));
		read_trouble(p, status);
	}
	list = json_get_arr(pod, "status.initContainerStatuses");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *status = json_array_get(list, i);

		/* One that went well has ended with 0, which is no news. */
		if (json_get_int(status, "state.terminated.exitCode", -1) != 0)
			read_trouble(p, status);
	}
}

static void
read_pod(struct pod *p, const json_t *pod)
{

	p->name = or_empty(json_get_str(pod, "metadata.name"));
	p->uid = or_empty(json_get_str(pod, "metadata.uid"));
	p->resource_version = or_empty(json_get_str(pod, "metadata.resourceVersion"));
	p->ip = or_empty(json_get_str(pod, "status.podIP"));
	p->node = or_empty(json_get_str(pod, "spec.nodeName"));
	p->phase = phase_of(json_get_str(pod, "status.phase"));
	p->terminating = json_get_str(pod, "metadata.deletionTimestamp") != NULL;
	p->waiting_reason = p->waiting_message = p->unschedulable = p->exit_reason = "";
	p->created = moment(json_get_str(pod, "metadata.creationTimestamp"));
	read_conditions(p, pod);
	read_containers(p, pod);
	/* Evicted, Preempted, NodeLost …: said of the pod, not of a container. */
	if (p->exit_reason[0] == '\0')
		p->exit_reason = or_empty(json_get_str(pod, "status.reason"));
}

int
pod_decode(const json_t *pod, struct pod **ret, struct err *e)
{
	const char *id = json_member_str(json_get_obj(pod, "metadata.labels"), LABEL_ID);
	struct pod p = { 0 };
	const char **fields[] = { &p.name, &p.uid, &p.sandbox_id, &p.resource_version, &p.ip,
		&p.node, &p.waiting_reason, &p.waiting_message, &p.unschedulable, &p.exit_reason };
	struct pod *copy;

	if (id == NULL || !sandbox_id_valid(strv_of(id)))
		return err_set(e, ERR_INVALID, "Pod %s has no valid label %s",
		    or_empty(json_get_str(pod, "metadata.name")), LABEL_ID);
	read_pod(&p, pod);
	p.sandbox_id = id;
	copy = xmalloc(sizeof(*copy) + pack_size(fields, ARRAY_LEN(fields)));
	pack_move((char *)(copy + 1), fields, ARRAY_LEN(fields));
	*copy = p;
	*ret = copy;
	return 0;
}

void
pod_free(struct pod *p)
{
	xfree(p);
}
