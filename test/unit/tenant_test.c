#include "t.h"

#include "base/crypto.h"
#include "domain/tenant.h"

#define UUID "aef134ef-7aa1-945e-9399-7df9a4ad0c3f"

static const char *
hash_of(const char *key)
{
	static char hex[SHA256_LEN * 2 + 1];
	unsigned char hash[SHA256_LEN];

	crypto_sha256(strv_of(key), hash);
	hex_encode(hash, sizeof(hash), hex);
	return hex;
}

TEST(keys_of_the_secret)
{
	struct keyring *k;
	const struct tenant *t;
	char text[1024];
	struct err e;
	int n;

	n = snprintf(text, sizeof(text),
	    "[{\"id\":\"k1\",\"tenant\":\"admin\",\"role\":\"system\",\"hash\":\"%s\","
	    "\"createdAt\":\"2026-01-01T00:00:00Z\"},",
	    hash_of("e2b_one"));
	snprintf(text + n, sizeof(text) - (size_t)n,
	    "{\"id\":\"k2\",\"tenant\":\"team.a_b-c\",\"role\":\"user\",\"hash\":\"%s\"}]",
	    hash_of("e2b_two"));
	assert_ok(e, keyring_parse(strv_of(text), "", "", &k, &e));
	assert_int_equal(keyring_count(k), 2);
	t = keyring_find(k, STRV("e2b_one"));
	assert_non_null(t);
	assert_string_equal(t->name, "admin");
	assert_string_equal(t->key_id, "k1");
	assert_int_equal(t->role, ROLE_SYSTEM);
	t = keyring_find(k, STRV("e2b_two"));
	assert_non_null(t);
	assert_string_equal(t->name, "team.a_b-c");
	assert_int_equal(t->role, ROLE_USER);
	assert_null(keyring_find(k, STRV("e2b_three")));
	assert_null(keyring_find(k, STRV("")));
	assert_null(keyring_find(k, strv_of(hash_of("e2b_one"))));
	keyring_free(k);
	keyring_free(NULL);
}

TEST(no_keys_at_all)
{
	struct keyring *k;
	struct err e;

	assert_ok(e, keyring_parse(STRV(""), "", "", &k, &e));
	assert_int_equal(keyring_count(k), 0);
	assert_null(keyring_find(k, STRV("anything-at-all-here")));
	keyring_free(k);
	assert_ok(e, keyring_parse(STRV_NONE, NULL, NULL, &k, &e));
	keyring_free(k);
}

TEST(migration_variables)
{
	const struct tenant *t;
	struct keyring *k;
	struct err e;

	assert_ok(e,
	    keyring_parse(STRV("[]"), "sys-token-with-length",
	        " testuser-" UUID " , e2b_0123456789abcdef0123,, bad_name-" UUID ",", &k, &e));
	assert_int_equal(keyring_count(k), 4);
	t = keyring_find(k, STRV("sys-token-with-length"));
	assert_int_equal(t->role, ROLE_SYSTEM);
	assert_string_equal(t->name, "admin");
	t = keyring_find(k, STRV("testuser-" UUID));
	assert_int_equal(t->role, ROLE_USER);
	assert_string_equal(t->name, "testuser");
	t = keyring_find(k, STRV("e2b_0123456789abcdef0123"));
	assert_int_equal(strlen(t->name), strlen("user-") + 8);
	assert_memory_equal(t->name + 5, hash_of("e2b_0123456789abcdef0123"), 8);
	t = keyring_find(k, STRV("bad_name-" UUID));
	assert_string_equal(t->name, "bad_name");
	keyring_free(k);
	assert_fails(e, ERR_INVALID, keyring_parse(STRV(""), "short", "", &k, &e));
	assert_has(e.msg, "SYSTEM_TOKEN");
	assert_fails(e, ERR_INVALID, keyring_parse(STRV(""), "", "short", &k, &e));
	assert_has(e.msg, "API_TOKENS_RAW");
}

/* The Secret was there first: its role counts. */
TEST(the_same_key_twice_keeps_the_first)
{
	struct keyring *k;
	char text[256];
	struct err e;

	snprintf(text, sizeof(text), "[{\"id\":\"k\",\"tenant\":\"t\",\"hash\":\"%s\"}]",
	    hash_of("the-key-that-is-there"));
	assert_ok(e, keyring_parse(strv_of(text), "the-key-that-is-there", "", &k, &e));
	assert_int_equal(keyring_find(k, STRV("the-key-that-is-there"))->role, ROLE_USER);
	keyring_free(k);
}

TEST(bad_entries_are_refused)
{
	static const struct {
		const char *json, *part;
	} bad[] = {
		{ "{}", "not a JSON array" },
		{ "[", "keys: line 1" },
		{ "[1]", "key 0: 'id'" },
		{ "[{\"id\":\"\",\"tenant\":\"t\"}]", "key 0: 'id'" },
		{ "[{\"id\":\"a\",\"tenant\":\"\"}]", "'tenant' must be" },
		{ "[{\"id\":\"a\",\"tenant\":\"-x\"}]", "'tenant' must be" },
		{ "[{\"id\":\"a\",\"tenant\":\"a b\"}]", "'tenant' must be" },
		{ "[{\"id\":\"a\",\"tenant\":\"t\",\"role\":\"root\"}]", "'role' must be" },
		{ "[{\"id\":\"a\",\"tenant\":\"t\",\"role\":\"user\"}]", "'hash' must be" },
		{ "[{\"id\":\"a\",\"tenant\":\"t\",\"hash\":\"00\"}]", "'hash' must be" },
	};
	struct keyring *k;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_fails(e, ERR_INVALID, keyring_parse(strv_of(bad[i].json), "", "", &k, &e));
		assert_has(e.msg, bad[i].part);
	}
}

TEST(tenant_names)
{
	char longest[TENANT_NAME_MAX + 2];

	memset(longest, 'a', sizeof(longest));
	assert_true(tenant_name_valid((struct strv){ longest, TENANT_NAME_MAX }));
	assert_false(tenant_name_valid((struct strv){ longest, TENANT_NAME_MAX + 1 }));
	assert_true(tenant_name_valid(STRV("A")));
	assert_true(tenant_name_valid(STRV("a.b-c_d")));
	assert_false(tenant_name_valid(STRV("")));
	assert_false(tenant_name_valid(STRV("a-")));
	assert_false(tenant_name_valid(STRV(".a")));
	assert_false(tenant_name_valid(STRV("a/b")));
	assert_false(tenant_name_valid((struct strv){ "a\0b", 3 }));
}

T_MAIN(T(keys_of_the_secret), T(no_keys_at_all), T(migration_variables),
    T(the_same_key_twice_keeps_the_first), T(bad_entries_are_refused), T(tenant_names))
