/*
 * Templates: what kinds of sandbox exist. Parsed from the ConfigMap's JSON array; static ones by
 * exact name, dynamic ones by a bounded PCRE2 pattern with named groups. Immutable once parsed.
 */
#ifndef DOMAIN_TEMPLATE_H
#define DOMAIN_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

#define TEMPLATES_MAX 1000
#define TEMPLATES_TEXT_MAX (1024 * 1024)
#define TEMPLATE_NAME_MAX 128
#define TEMPLATE_SUBJECT_MAX 256 /* longest id that patterns are matched against */

enum envd_mode { ENVD_INJECT = 0, ENVD_IN_IMAGE };

struct template_resources {
	char *cpu, *memory, *cpu_limit, *memory_limit; /* Kubernetes quantities; never NULL */
};

struct template
{
	char *name, *image, *description, *pattern; /* pattern NULL: static */
	int port;
	enum envd_mode envd;
	char *user, *workdir;        /* default user and folder inside; NULL: envd's own default */
	char *start_cmd, *ready_cmd; /* NULL: none */
	json_t *args, *cmd, *env_vars, *metadata; /* arrays / objects; NULL: none */
	char *shell;
	bool no_startup_probe;
	struct template_resources resources;
	json_t *pool; /* raw; NULL: none */
	json_t *raw;  /* the whole definition as given */
};

struct templates;

/* Errors name the template and the field (line and column for JSON errors). */
int templates_parse(struct strv json, struct templates **ret, struct err *e) MUST_USE;
void templates_free(struct templates *t); /* accepts NULL */
size_t templates_count(const struct templates *t);
const struct template *templates_at(const struct templates *t, size_t i);

/* The template for an id: exact name, else first matching dynamic pattern, else id without a
 * trailing "-v1". For a dynamic one *image is the image with its groups filled in; for a static one
 * a copy of its image. ERR_NOT_FOUND: "template 'x' not found". Caller frees *image. */
int templates_resolve(const struct templates *t, struct strv id, const struct template **ret,
    char **image, struct err *e) MUST_USE;

/* E2B reference "[namespace/]name[:tag]", trimmed and lower-cased into the caller's buffers (sizes
 * TEMPLATE_NAME_MAX + 1). ERR_INVALID "Invalid template reference: …". Empty ns/tag when absent;
 * tag "default" becomes "". */
struct template_ref {
	char ns[TEMPLATE_NAME_MAX + 1], name[TEMPLATE_NAME_MAX + 1], tag[TEMPLATE_NAME_MAX + 1];
};
int template_ref_parse(struct strv text, struct template_ref *ret, struct err *e) MUST_USE;

/* Is it a plausible image reference (lower-case path, optional tag and digest, ≤ 255)? */
bool image_ref_valid(struct strv image);

#endif
