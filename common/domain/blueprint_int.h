/*
 * The parts of blueprint among themselves. Private to blueprint*.c and envd_inject.c.
 */
#ifndef DOMAIN_BLUEPRINT_INT_H
#define DOMAIN_BLUEPRINT_INT_H

#include <jansson.h>

#include "domain/blueprint.h"

/* A spec with the template's values where the request has none. Borrowed, but for the last three.
 */
struct blueprint_request {
	const struct sandbox_spec *spec;
	struct template_resources res;
	int port;
	json_t *metadata; /* the template's under the request's */
	char *start_cmd;  /* NULL: none */
	char *data;       /* the sandbox-data JSON */
};

void blueprint_request_init(struct blueprint_request *r, const struct sandbox_spec *spec);
void blueprint_request_done(struct blueprint_request *r);
/* The dot of the template. New reference. */
json_t *blueprint_template_data(const struct blueprint_request *r, const char *ns);
json_t *blueprint_request_annotations(
    const struct blueprint_request *r, const struct blueprint_env *env);
/* Text of a scalar for places where Kubernetes wants one; NULL for lists and objects. New
 * reference. */
json_t *blueprint_as_text(json_t *v);

/* Makes envd the program of the container and brings it there (envd_inject.c). pod_spec: the spec
 * of the pod template, which has the container. */
int envd_inject(json_t *pod_spec, json_t *container, enum envd_mode mode, const char *envd_image,
    struct err *e) MUST_USE;
/* Sets (or replaces) a variable of the container. */
int envd_set_env(json_t *container, const char *name, const char *value, struct err *e) MUST_USE;

#endif
