/*
 * Per-sandbox secrets, derived from the installation key so that every replica computes the same
 * ones and none are stored: envd token and traffic token (HMAC-SHA256, lower hex), and the sealed
 * annotation (env values).
 */
#ifndef DOMAIN_TOKEN_H
#define DOMAIN_TOKEN_H

#include <jansson.h>
#include <stdbool.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/str.h"

#define TOKEN_LEN 64
#define SEALED_MAX (128 * 1024)

/* Copies of key material are wiped by install_key_done. */
struct install_key {
	unsigned char key[32];
	bool known; /* false: nothing may be derived from it or compared with it yet */
};
int install_key_set(struct install_key *k, struct strv raw,
    struct err *e) MUST_USE; /* 32..1024 bytes, hashed if not 32 */
void install_key_done(struct install_key *k);

void token_envd(const struct install_key *k, struct strv id, char out[TOKEN_LEN + 1]);
void token_traffic(const struct install_key *k, struct strv id, char out[TOKEN_LEN + 1]);
/* For Upload/other signatures of the service itself come later under other prefixes. */

/* secrets: an object such as {"envVars":{…}}. */
int token_seal(const struct install_key *k, struct strv id, const json_t *secrets, char **ret,
    struct err *e) MUST_USE;
int token_open(const struct install_key *k, struct strv id, struct strv sealed, json_t **ret,
    struct err *e) MUST_USE;

#endif
