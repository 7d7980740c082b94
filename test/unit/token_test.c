#include "t.h"

#include "base/crypto.h"
#include "base/json.h"
#include "domain/token.h"

static struct install_key
key_of(char fill)
{
	struct install_key k;
	char raw[32];
	struct err e;

	memset(raw, fill, sizeof(raw));
	assert_ok(e, install_key_set(&k, (struct strv){ raw, sizeof(raw) }, &e));
	return k;
}

TEST(key_lengths)
{
	struct install_key k = { 0 };
	unsigned char hash[SHA256_LEN];
	char raw[1025];
	struct err e;

	memset(raw, 'k', sizeof(raw));
	assert_fails(e, ERR_INVALID, install_key_set(&k, (struct strv){ raw, 31 }, &e));
	assert_fails(e, ERR_INVALID, install_key_set(&k, (struct strv){ raw, 1025 }, &e));
	assert_ok(e, install_key_set(&k, (struct strv){ raw, 32 }, &e));
	assert_memory_equal(k.key, raw, 32);
	assert_ok(e, install_key_set(&k, (struct strv){ raw, 1024 }, &e));
	crypto_sha256((struct strv){ raw, 1024 }, hash);
	assert_memory_equal(k.key, hash, 32);
	install_key_done(&k);
	for (size_t i = 0; i < sizeof(k.key); i++)
		assert_int_equal(k.key[i], 0);
}

TEST(tokens_are_hmacs_of_kind_and_id)
{
	struct install_key k = key_of('a'), other = key_of('b');
	char envd[TOKEN_LEN + 1], traffic[TOKEN_LEN + 1], again[TOKEN_LEN + 1];
	unsigned char mac[SHA256_LEN];
	char want[TOKEN_LEN + 1];

	token_envd(&k, STRV("i123"), envd);
	crypto_hmac_sha256((struct strv){ (const char *)k.key, 32 }, STRV("envd:i123"), mac);
	hex_encode(mac, sizeof(mac), want);
	assert_string_equal(envd, want);
	token_traffic(&k, STRV("i123"), traffic);
	assert_string_not_equal(envd, traffic);
	token_envd(&k, STRV("i124"), again);
	assert_string_not_equal(envd, again);
	token_envd(&other, STRV("i123"), again);
	assert_string_not_equal(envd, again);
	token_envd(&k, STRV("i123"), again);
	assert_string_equal(envd, again);
	assert_int_equal(strlen(envd), TOKEN_LEN);
}

TEST(sealed_opens_only_where_it_belongs)
{
	json_t *secrets = json_pack("{s:{s:s}}", "envVars", "KEY", "very secret"), *back;
	struct install_key k = key_of('a'), other = key_of('b');
	char *sealed, *again;
	struct err e;

	assert_ok(e, token_seal(&k, STRV("i1"), secrets, &sealed, &e));
	assert_has_not(sealed, "secret");
	assert_ok(e, token_seal(&k, STRV("i1"), secrets, &again, &e));
	assert_string_not_equal(sealed, again);
	assert_ok(e, token_open(&k, STRV("i1"), strv_of(sealed), &back, &e));
	assert_true(json_equal(back, secrets));
	json_decref(back);
	assert_fails(e, ERR_INVALID, token_open(&k, STRV("i2"), strv_of(sealed), &back, &e));
	assert_fails(e, ERR_INVALID, token_open(&other, STRV("i1"), strv_of(sealed), &back, &e));
	assert_has(e.msg, "another installation key");
	sealed[strlen(sealed) / 2] ^= 1;
	assert_fails(e, ERR_INVALID, token_open(&k, STRV("i1"), strv_of(sealed), &back, &e));
	assert_fails(e, ERR_INVALID, token_open(&k, STRV("i1"), STRV_NONE, &back, &e));
	assert_fails(e, ERR_INVALID, token_open(&k, STRV("i1"), STRV("abc"), &back, &e));
	xfree(sealed);
	xfree(again);
	json_decref(secrets);
}

TEST(sealing_is_bounded)
{
	struct install_key k = key_of('a');
	json_t *secrets, *back;
	char *text = xcalloc(1, SEALED_MAX + 1), *sealed = NULL;
	struct err e;

	memset(text, 'x', SEALED_MAX);
	secrets = json_pack("{s:s}", "a", text);
	assert_fails(e, ERR_TOO_LARGE, token_seal(&k, STRV("i1"), secrets, &sealed, &e));
	json_decref(secrets);
	text[SEALED_MAX / 4 * 3 - 100] = '\0';
	secrets = json_pack("{s:s}", "a", text);
	assert_ok(e, token_seal(&k, STRV("i1"), secrets, &sealed, &e));
	assert_true(strlen(sealed) <= SEALED_MAX);
	assert_ok(e, token_open(&k, STRV("i1"), strv_of(sealed), &back, &e));
	json_decref(back);
	json_decref(secrets);
	xfree(sealed);
	xfree(text);
}

T_MAIN(T(key_lengths), T(tokens_are_hmacs_of_kind_and_id), T(sealed_opens_only_where_it_belongs),
    T(sealing_is_bounded))
