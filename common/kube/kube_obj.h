/*
 * Small readers for Kubernetes objects as JSON trees: metadata, quantities. Pure functions; nothing
 * of sandboxes. Everything returned is borrowed from the tree.
 */
#ifndef KUBE_OBJ_H
#define KUBE_OBJ_H

#include <jansson.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/str.h"
#include "kube/kube_client.h"

/* metadata.*; NULL if absent. */
const char *kube_obj_name(const json_t *obj);
const char *kube_obj_uid(const json_t *obj);
const char *kube_obj_version(const json_t *obj); /* metadata.resourceVersion as text */
/* As a number, for comparing; 0 if absent or not a number. */
uint64_t kube_obj_version_u64(const json_t *obj);

/* The part of the text that says a resource type: "apps/v1" or "v1". */
#define KUBE_API_VERSION_MAX 64
void kube_obj_api_version(const struct kube_res *res, char out[KUBE_API_VERSION_MAX]);

/* Quantities ("250m", "1.5Gi", "2e3"), rounded up as Kubernetes does. -1: not a quantity, negative,
 * or beyond int64. *ret untouched then. */
int kube_obj_milli(struct strv quantity, int64_t *ret) MUST_USE; /* thousandths: milli-CPU */
int kube_obj_units(struct strv quantity, int64_t *ret) MUST_USE; /* whole units: bytes */

#endif
