/*
 * Secrets derived from the installation key. Each use has its own prefix, so that a token of one
 * kind is never one of another, and sealing uses a derived key, never the installation key itself.
 */
#include "domain/token.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crypto.h"
#include "base/json.h"

#define RAW_MIN 32
#define RAW_MAX 1024
#define KEY_ID_LEN 8
/* base64 of nonce, text and tag, and the key id in front, must fit in SEALED_MAX. */
#define PLAIN_MAX (SEALED_MAX / 4 * 3 - 64)

int
install_key_set(struct install_key *k, struct strv raw, struct err *e)
{
	if (raw.n < RAW_MIN || raw.n > RAW_MAX)
		return err_set(e, ERR_INVALID, "the installation key has %zu bytes, not %d to %d",
		    raw.n, RAW_MIN, RAW_MAX);
	if (raw.n == sizeof(k->key))
		memcpy(k->key, raw.p, raw.n);
	else
		crypto_sha256(raw, k->key);
	k->known = true;
	return 0;
}

void
install_key_done(struct install_key *k)
{
	OPENSSL_cleanse(k->key, sizeof(k->key));
	k->known = false;
}

static void
derive(
    const struct install_key *k, const char *prefix, struct strv id, unsigned char out[SHA256_LEN])
{
	struct strv key = { (const char *)k->key, sizeof(k->key) };
	struct strbuf b CLEANUP(strbuf_done) = { 0 };

	strbuf_init(&b, 64 * 1024);
	strbuf_adds(&b, prefix);
	strbuf_addv(&b, id);
	BUG_ON(b.failed);
	crypto_hmac_sha256(key, strbuf_view(&b), out);
}

static void
token(const struct install_key *k, const char *prefix, struct strv id, char out[TOKEN_LEN + 1])
{
	unsigned char mac[SHA256_LEN];

	derive(k, prefix, id, mac);
	hex_encode(mac, sizeof(mac), out);
	OPENSSL_cleanse(mac, sizeof(mac));
}

void
token_envd(const struct install_key *k, struct strv id, char out[TOKEN_LEN + 1])
{
	token(k, "envd:", id, out);
}

void
token_traffic(const struct install_key *k, struct strv id, char out[TOKEN_LEN + 1])
{
	token(k, "traffic:", id, out);
}

/* The sealing key and the public id that tells which installation key it comes from. */
static void
sealing_key(const struct install_key *k, unsigned char key[SHA256_LEN], char key_id[KEY_ID_LEN + 1])
{
	unsigned char hash[SHA256_LEN];

	derive(k, "seal:", STRV("1"), key);
	derive(k, "seal-id:", STRV("1"), hash);
	hex_encode(hash, KEY_ID_LEN / 2, key_id);
}

int
token_seal(
    const struct install_key *k, struct strv id, const json_t *secrets, char **ret, struct err *e)
{
	char key_id[KEY_ID_LEN + 1], *plain = json_text(secrets), *sealed = NULL;
	unsigned char key[SHA256_LEN];
	struct strbuf b;
	int r = -1;

	if (strlen(plain) > PLAIN_MAX) {
		err_set(e, ERR_TOO_LARGE,
		    "environment variables and secrets have more than %d bytes", PLAIN_MAX);
		goto out;
	}
	sealing_key(k, key, key_id);
	if (crypto_seal(key, strv_of(plain), id, &sealed, e) == -1)
		goto out;
	strbuf_init(&b, SEALED_MAX);
	strbuf_adds(&b, key_id);
	strbuf_addc(&b, '.');
	strbuf_adds(&b, sealed);
	r = strbuf_take(&b, ret, e);
out:
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(plain, strlen(plain));
	xfree(plain);
	xfree(sealed);
	return r;
}

int
token_open(
    const struct install_key *k, struct strv id, struct strv sealed, json_t **ret, struct err *e)
{
	char key_id[KEY_ID_LEN + 1], *plain = NULL;
	unsigned char key[SHA256_LEN];
	struct strv body, named;
	size_t n = 0;
	int r = -1;

	if (sealed.n > SEALED_MAX)
		return err_set(e, ERR_TOO_LARGE, "sealed data has more than %d bytes", SEALED_MAX);
	named = strv_cut(sealed, '.', &body);
	sealing_key(k, key, key_id);
	if (!strv_is(named, key_id)) {
		err_set(e, ERR_INVALID, "sealed with another installation key");
		goto out;
	}
	if (crypto_open(key, body, id, &plain, &n, e) == -1)
		goto out;
	r = json_parse((struct strv){ plain, n }, SEALED_MAX, ret, e);
	/* A parser's message could quote what it read. */
	if (r == -1)
		err_set(e, ERR_INVALID, "sealed data is not JSON");
out:
	OPENSSL_cleanse(key, sizeof(key));
	if (plain != NULL)
		OPENSSL_cleanse(plain, n);
	xfree(plain);
	return r;
}
