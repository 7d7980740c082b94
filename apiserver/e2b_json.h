/*
 * E2B's wire shapes, and only those. Values in, new JSON out.
 */
#ifndef APISERVER_E2B_JSON_H
#define APISERVER_E2B_JSON_H

#include <jansson.h>

#include "domain/sandbox_view.h"
#include "domain/token.h"

/* Sandbox: the answer of create, connect and resume. domain "" = null: the client's own. */
json_t *e2b_json_sandbox(
    const struct sandbox *s, const struct install_key *key, const char *domain);
/* ListedSandbox. */
json_t *e2b_json_listed(const struct sandbox_entry *e);
/* SandboxDetail. */
json_t *e2b_json_detail(
    const struct sandbox_entry *e, const struct install_key *key, const char *domain);
/* E2B knows two states. */
bool e2b_is_paused(const struct sandbox_entry *e);

#endif
