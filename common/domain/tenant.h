/*
 * Who calls: API keys (only their SHA-256 is known) → tenant and role. Parsed from the keys Secret,
 * plus the two migration variables. Immutable once parsed.
 */
#ifndef DOMAIN_TENANT_H
#define DOMAIN_TENANT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/names.h"

enum role { ROLE_USER = 0, ROLE_SYSTEM };

struct tenant {
	char name[TENANT_NAME_MAX + 1]; /* a valid label value */
	enum role role;
	char key_id[64];
};

/* A label value of 1 to TENANT_NAME_MAX bytes. */
bool tenant_name_valid(struct strv name);

struct keyring;

#define KEYS_MAX 10000

/* keys_json: the array of the Secret ("" = none). system_token / raw_tokens: SYSTEM_TOKEN and
 * API_TOKENS_RAW (comma separated; "name-uuid" gives tenant name; others get "user-" + 8 hex of
 * their hash), "" = none. */
int keyring_parse(struct strv keys_json, const char *system_token, const char *raw_tokens,
    struct keyring **ret, struct err *e) MUST_USE;
void keyring_free(struct keyring *k);
/* Hashes the key and looks it up; NULL: unknown. Borrowed from k. */
const struct tenant *keyring_find(const struct keyring *k, struct strv key);
size_t keyring_count(const struct keyring *k);

#endif
