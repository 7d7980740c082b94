/*
 * The merge patches that move a sandbox from one desired state to another, made by both programs in
 * the same way: desired state, generation, times and replicas always change together, in one write.
 * Pure. The writer adds the resourceVersion.
 */
#ifndef DOMAIN_SANDBOX_PATCH_H
#define DOMAIN_SANDBOX_PATCH_H

#include <jansson.h>
#include <stdint.h>

#include "domain/sandbox.h"

/* Each returns a new reference. Times are wall-clock ns; TIME_NEVER = no end. */
json_t *sandbox_patch_end(int64_t end);
/* Its time starts now: for a start that took long. */
json_t *sandbox_patch_restart_time(int64_t now, int64_t end);
json_t *sandbox_patch_pause(const struct sandbox *s, int64_t now);
json_t *sandbox_patch_resume(const struct sandbox *s, int64_t now, int64_t end);
/* Makes the patch conditional on s being unchanged. */
void sandbox_patch_condition(json_t *patch, const struct sandbox *s);

#endif
