/*
 * From a request to a ReplicaSet: renders the operator's blueprint structurally, then lays over it
 * what must hold whatever the blueprint says (name, labels, selector, annotations, envd). Pure:
 * values in, JSON out.
 */
#ifndef DOMAIN_BLUEPRINT_H
#define DOMAIN_BLUEPRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/sandbox.h"
#include "domain/template.h"

struct blueprint;

int blueprint_compile(struct strv text, struct blueprint **ret, struct err *e) MUST_USE;
void blueprint_free(struct blueprint *b);

/* What is asked for, resolved and validated. Everything is borrowed. Of network and mcp only what
 * is no secret is stored: no proxy password, no header values of rules, of mcp the names. */
struct sandbox_spec {
	const char *id, *name, *tenant;
	const struct template *template;
	const char *template_id; /* as clients know it */
	const char *image;
	const json_t *metadata; /* object of texts, or NULL */
	const json_t
	    *env_vars; /* request over template; for blueprints that render them. NULL: none */
	const json_t *cmd, *args;            /* arrays, or NULL: the template's */
	int port;                            /* 0: the template's */
	struct template_resources resources; /* NULL members: the template's */
	int64_t started, end_at;             /* wall ns; TIME_NEVER */
	int64_t timeout; /* seconds as asked at create; -1 never. Kept in data for auto-resume */
	enum on_end on_end;
	bool auto_resume, secure, pool;
	int64_t idle_after;                /* seconds; 0 off */
	const json_t *network;             /* as given, or NULL */
	const json_t *allow_internet;      /* JSON true/false, or NULL: not set */
	const json_t *volume_mounts, *mcp; /* as given, or NULL */
	const char *sealed;                /* or NULL */
};

struct blueprint_env {
	const char *ns;
	const char *envd_image; /* for ENVD_INJECT */
	const char *rev;        /* hash of template + blueprint; may be "" */
};

/* *rs is a complete apps/v1 ReplicaSet ready to POST (replicas 1). Errors say what is wrong with
 * the blueprint. */
int blueprint_render(const struct blueprint *b, const struct blueprint_env *env,
    const struct sandbox_spec *spec, json_t **rs, struct err *e) MUST_USE;

/* The labels (of ReplicaSet and pods) and annotations of a request by themselves, for the patch
 * that claims a warm one. generation is "1" and desired as for a create: the claimer sets its own.
 * New references. */
json_t *blueprint_labels(const struct sandbox_spec *spec);
json_t *blueprint_annotations(const struct blueprint_env *env, const struct sandbox_spec *spec);

/* Would it make a ReplicaSet at all? Renders a sample sandbox, so that a mistake is found when the
 * blueprint is stored and not when somebody asks for a sandbox. */
int blueprint_check(const struct blueprint *b, struct err *e) MUST_USE;

#endif
