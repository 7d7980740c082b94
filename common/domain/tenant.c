/*
 * The keyring: SHA-256 of a key → tenant. A key has at least 100 bits of chance in it, so looking
 * up its hash in a table tells nothing by time.
 */
#include "domain/tenant.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/map.h"

#define KEYS_TEXT_MAX (4 * 1024 * 1024)
#define KEY_MIN 16 /* characters of a key in the migration variables */
#define KEY_MAX 512
#define SYSTEM_TENANT "admin"

struct keyring {
	struct map *by_hash; /* 32 bytes → struct tenant */
};

static bool
alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A Kubernetes label value of at most TENANT_NAME_MAX bytes, not empty. */
bool
tenant_name_valid(struct strv name)
{
	if (name.n == 0 || name.n > TENANT_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		bool inner = i > 0 && i < name.n - 1 && (c == '-' || c == '_' || c == '.');

		if (!alnum(c) && !inner)
			return false;
	}
	return true;
}

/* Adds unless the hash is there already; the first one counts. */
static void
add(struct keyring *k, const unsigned char hash[SHA256_LEN], const struct tenant *t)
{
	struct strv key = { (const char *)hash, SHA256_LEN };

	if (map_get(k->by_hash, key) != NULL)
		return;
	map_set(k->by_hash, key, xmemdup0(t, sizeof(*t)));
}

static void
set_text(char *to, size_t size, struct strv text)
{
	size_t n = text.n < size ? text.n : size - 1;

	memcpy(to, text.p ? text.p : "", n);
	to[n] = '\0';
}

static int
add_entry(struct keyring *k, const json_t *entry, size_t i, struct err *e)
{
	const char *id = json_get_str(entry, "id");
	const char *tenant = json_get_str(entry, "tenant");
	const char *role = json_get_str(entry, "role");
	const char *hash = json_get_str(entry, "hash");
	unsigned char raw[SHA256_LEN];
	struct tenant t = { 0 };

	if (id == NULL || id[0] == '\0' || strlen(id) >= sizeof(t.key_id))
		return err_set(e, ERR_INVALID, "key %zu: 'id' must have 1 to %zu bytes", i,
		    sizeof(t.key_id) - 1);
	if (tenant == NULL || !tenant_name_valid(strv_of(tenant)))
		return err_set(e, ERR_INVALID,
		    "key '%s': 'tenant' must be a label value of 1 to %d bytes", id,
		    TENANT_NAME_MAX);
	if (role == NULL || strcmp(role, "user") == 0)
		t.role = ROLE_USER;
	else if (strcmp(role, "system") == 0)
		t.role = ROLE_SYSTEM;
	else
		return err_set(e, ERR_INVALID, "key '%s': 'role' must be system or user", id);
	if (hash == NULL || hex_decode(strv_of(hash), raw, sizeof(raw)) == -1)
		return err_set(
		    e, ERR_INVALID, "key '%s': 'hash' must be the SHA-256 of the key in hex", id);
	set_text(t.key_id, sizeof(t.key_id), strv_of(id));
	set_text(t.name, sizeof(t.name), strv_of(tenant));
	add(k, raw, &t);
	return 0;
}

static int
add_secret(struct keyring *k, struct strv text, struct err *e)
{
	json_t *list CLEANUP(json_unrefp) = NULL;

	if (strv_trim(text).n == 0)
		return 0;
	if (json_parse(text, KEYS_TEXT_MAX, &list, e) == -1)
		return err_wrap(e, "keys");
	if (!json_is_array(list))
		return err_set(e, ERR_INVALID, "keys: not a JSON array");
	if (json_array_size(list) > KEYS_MAX)
		return err_set(e, ERR_TOO_LARGE, "more than %d keys", KEYS_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (add_entry(k, json_array_get(list, i), i, e) == -1)
			return -1;
	}
	return 0;
}

/* Is s a UUID in its usual form? */
static bool
is_uuid(struct strv s)
{
	if (s.n != 36)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		char c = s.p[i];
		bool hex =
		    (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');

		if (dash ? c != '-' : !hex)
			return false;
	}
	return true;
}

/* "<name>-<uuid>" → name, else empty. */
static struct strv
name_in_key(struct strv key)
{
	struct strv name;

	if (key.n < 38 || !is_uuid((struct strv){ key.p + key.n - 36, 36 }) ||
	    key.p[key.n - 37] != '-')
		return STRV_NONE;
	name = (struct strv){ key.p, key.n - 37 };
	return tenant_name_valid(name) ? name : STRV_NONE;
}

static int
add_raw(struct keyring *k, struct strv key, enum role role, struct err *e)
{
	unsigned char hash[SHA256_LEN];
	struct strv name = name_in_key(key);
	struct tenant t = { .role = role };
	char hex[2 * 4 + 1];

	if (key.n < KEY_MIN || key.n > KEY_MAX)
		return err_set(e, ERR_INVALID, "a key in %s must have %d to %d bytes",
		    role == ROLE_SYSTEM ? "SYSTEM_TOKEN" : "API_TOKENS_RAW", KEY_MIN, KEY_MAX);
	crypto_sha256(key, hash);
	hex_encode(hash, 4, hex);
	snprintf(t.key_id, sizeof(t.key_id), "%s-%s", role == ROLE_SYSTEM ? "system" : "raw", hex);
	if (role == ROLE_SYSTEM)
		set_text(t.name, sizeof(t.name), STRV(SYSTEM_TENANT));
	else if (name.n > 0)
		set_text(t.name, sizeof(t.name), name);
	else
		snprintf(t.name, sizeof(t.name), "user-%s", hex);
	add(k, hash, &t);
	return 0;
}

static int
add_variables(struct keyring *k, const char *system_token, const char *raw_tokens, struct err *e)
{
	struct strv rest = strv_of(raw_tokens), key = strv_trim(strv_of(system_token));

	if (key.n > 0 && add_raw(k, key, ROLE_SYSTEM, e) == -1)
		return -1;
	while (rest.n > 0) {
		key = strv_trim(strv_cut(rest, ',', &rest));
		if (key.n > 0 && add_raw(k, key, ROLE_USER, e) == -1)
			return -1;
	}
	return 0;
}

int
keyring_parse(struct strv keys_json, const char *system_token, const char *raw_tokens,
    struct keyring **ret, struct err *e)
{
	struct keyring *k = xcalloc(1, sizeof(*k));

	k->by_hash = map_new();
	if (add_secret(k, keys_json, e) == -1 ||
	    add_variables(k, system_token, raw_tokens, e) == -1) {
		keyring_free(k);
		return -1;
	}
	*ret = k;
	return 0;
}

void
keyring_free(struct keyring *k)
{
	if (k == NULL)
		return;
	map_free(k->by_hash, xfree);
	xfree(k);
}

const struct tenant *
keyring_find(const struct keyring *k, struct strv key)
{
	unsigned char hash[SHA256_LEN];

	if (key.n == 0 || key.n > KEY_MAX)
		return NULL;
	crypto_sha256(key, hash);
	return map_get(k->by_hash, (struct strv){ (const char *)hash, sizeof(hash) });
}

size_t
keyring_count(const struct keyring *k)
{
	return map_count(k->by_hash);
}
