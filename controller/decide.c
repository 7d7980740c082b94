/* See decide.h. */
#include "controller/decide.h"

static const char *const names[ACTION_COUNT] = {
	[ACTION_NONE] = "none",
	[ACTION_END_KILL] = "end_kill",
	[ACTION_END_PAUSE] = "end_pause",
	[ACTION_INIT] = "init",
	[ACTION_DROP] = "drop",
	[ACTION_FINISH_DELETE] = "finish_delete",
	[ACTION_DELETE_POD] = "delete_pod",
};

const char *
action_name(enum action_type t)
{
	return names[t];
}

static struct action
nothing_until(int64_t at)
{
	return (struct action){ .type = ACTION_NONE, .look_again = at };
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Pods whose ReplicaSet is gone: Kubernetes collects them by ownerReference, unless somebody
 * orphaned them. */
static struct action
decide_orphan(const struct sandbox_entry *seen, int64_t now)
{
	int64_t at = DECIDE_NEVER;

	for (size_t i = 0; i < seen->pod_n; i++) {
		const struct pod *p = seen->pods[i];

		if (p->terminating)
			continue;
		if (p->created + DECIDE_ORPHAN_GRACE <= now)
			return (struct action){
				.type = ACTION_DELETE_POD, .look_again = now + SECONDS(1), .pod = p
			};
		at = earlier(at, p->created + DECIDE_ORPHAN_GRACE);
	}
	return nothing_until(at);
}

/* Its time runs from when it is usable: as long as its start is waited for, no end falls due. */
static int64_t
end_of(const struct sandbox_entry *seen)
{
	const struct sandbox *s = seen->sandbox;
	bool starting = seen->state == SANDBOX_CREATING || seen->state == SANDBOX_RESUMING;
	int64_t grace = s->started + DECIDE_START_GRACE;

	return starting && s->end_at < grace ? grace : s->end_at;
}

/* Not usable yet. A restarted container has nobody else who would give it its settings; a new one
 * has its creator. */
static struct action
decide_start(const struct sandbox_entry *seen, int64_t now)
{
	const struct sandbox *s = seen->sandbox;
	const struct pod *live = sandbox_live_pod(seen->pods, seen->pod_n);
	int64_t give_up = s->started + DECIDE_HALF_MADE, init_at;

	if (live != NULL) {
		init_at = seen->state == SANDBOX_RESTARTING
		    ? now
		    : live->running_since + DECIDE_INIT_GRACE;
		if (init_at <= now)
			return (struct action){ .type = ACTION_INIT,
				.reason = "Initialised",
				.message = "settings given by the controller",
				.look_again = end_of(seen),
				.pod = live };
		return nothing_until(earlier(init_at, end_of(seen)));
	}
	if (seen->state != SANDBOX_CREATING)
		return nothing_until(end_of(seen));
	if (give_up <= now)
		return (struct action){ .type = ACTION_DROP,
			.reason = "StartFailed",
			.message = "never became usable",
			.look_again = DECIDE_NEVER };
	return nothing_until(earlier(give_up, end_of(seen)));
}

struct action
decide(const struct sandbox_entry *seen, int64_t now)
{
	const struct sandbox *s = seen->sandbox;
	int64_t end;

	if (s == NULL)
		return decide_orphan(seen, now);
	if (s->terminating)
		return nothing_until(DECIDE_NEVER);
	if (s->desired == DESIRED_DELETED)
		return (struct action){ .type = ACTION_FINISH_DELETE,
			.reason = "Killed",
			.message = "killed on request",
			.look_again = DECIDE_NEVER };
	if (s->desired != DESIRED_RUNNING)
		return nothing_until(DECIDE_NEVER);
	end = end_of(seen);
	if (end <= now && s->on_end == ON_END_PAUSE)
		return (struct action){ .type = ACTION_END_PAUSE,
			.reason = "Paused",
			.message = "paused at the end of its time",
			.look_again = DECIDE_NEVER };
	if (end <= now)
		return (struct action){ .type = ACTION_END_KILL,
			.reason = "Expired",
			.message = "killed at the end of its time",
			.look_again = DECIDE_NEVER };
	if (seen->state == SANDBOX_RUNNING || seen->state == SANDBOX_FAILED)
		return nothing_until(s->end_at);
	return decide_start(seen, now);
}
