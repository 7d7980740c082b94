/* See sandbox_patch.h. */
#include "domain/sandbox_patch.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "domain/names.h"

static void
put_time(json_t *annotations, const char *name, int64_t at)
{
	char text[TIME_TEXT_MAX];

	if (at != TIME_NEVER)
		time_format(at, 6, text);
	json_set_str(annotations, name, at == TIME_NEVER ? NEVER : text);
}

static void
put_number(json_t *annotations, const char *name, int64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%lld", (long long)n);
	json_set_str(annotations, name, text);
}

/* {"metadata":{"annotations":…}}; *annotations is borrowed. */
static json_t *
new_patch(json_t **annotations)
{
	json_t *patch = json_object(), *meta = json_object();

	*annotations = json_object();
	json_set(meta, "annotations", *annotations);
	json_set(patch, "metadata", meta);
	return patch;
}

static void
put_replicas(json_t *patch, int n)
{
	json_set(patch, "spec", json_pack("{s:i}", "replicas", n));
}

json_t *
sandbox_patch_end(int64_t end)
{
	json_t *annotations, *patch = new_patch(&annotations);

	put_time(annotations, ANNOTATION_END, end);
	return patch;
}

json_t *
sandbox_patch_restart_time(int64_t now, int64_t end)
{
	json_t *annotations, *patch = new_patch(&annotations);

	put_time(annotations, ANNOTATION_STARTED, now);
	put_time(annotations, ANNOTATION_END, end);
	return patch;
}

json_t *
sandbox_patch_pause(const struct sandbox *s, int64_t now)
{
	json_t *annotations, *patch = new_patch(&annotations);

	json_set_str(annotations, ANNOTATION_DESIRED, "stopped");
	put_number(annotations, ANNOTATION_GENERATION, s->generation + 1);
	if (s->end_at == TIME_NEVER)
		json_set_str(annotations, ANNOTATION_REMAINING, NEVER);
	else
		put_number(annotations, ANNOTATION_REMAINING,
		    s->end_at > now ? (s->end_at - now) / NS_PER_S : 0);
	json_set(annotations, ANNOTATION_END, json_null());
	put_time(annotations, ANNOTATION_PAUSED, now);
	put_replicas(patch, 0);
	return patch;
}

json_t *
sandbox_patch_resume(const struct sandbox *s, int64_t now, int64_t end)
{
	json_t *annotations, *patch = new_patch(&annotations);

	json_set_str(annotations, ANNOTATION_DESIRED, "running");
	put_number(annotations, ANNOTATION_GENERATION, s->generation + 1);
	put_time(annotations, ANNOTATION_STARTED, now);
	put_time(annotations, ANNOTATION_END, end);
	json_set(annotations, ANNOTATION_REMAINING, json_null());
	json_set(annotations, ANNOTATION_PAUSED, json_null());
	put_replicas(patch, 1);
	return patch;
}

void
sandbox_patch_condition(json_t *patch, const struct sandbox *s)
{
	json_t *meta = json_object_get(patch, "metadata");

	json_set_str(meta, "resourceVersion", s->resource_version);
	json_set_str(meta, "uid", s->uid);
}
