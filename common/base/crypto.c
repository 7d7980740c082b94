/* SHA-256, HMAC and AES-256-GCM on OpenSSL. Knows no key and no format but its own sealed text. */
#include "crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "alloc.h"
#include "rand.h"

#define NONCE_LEN 12
#define TAG_LEN 16
#define PLAIN_MAX ((size_t)16 * 1024 * 1024)
#define AAD_MAX 65536

void
crypto_sha256(struct strv in, unsigned char out[SHA256_LEN])
{
	BUG_ON(EVP_Digest(in.n ? in.p : "", in.n, out, NULL, EVP_sha256(), NULL) != 1);
}

void
crypto_hmac_sha256(struct strv key, struct strv in, unsigned char out[SHA256_LEN])
{
	unsigned len = SHA256_LEN;

	BUG_ON(key.n > INT32_MAX);
	BUG_ON(HMAC(EVP_sha256(), key.n ? key.p : "", (int)key.n,
	           (const unsigned char *)(in.n ? in.p : ""), in.n, out, &len) == NULL);
}

static const unsigned char *
bytes(struct strv v)
{
	return (const unsigned char *)(v.n ? v.p : "");
}

/* box: nonce | room for the ciphertext | tag. */
static int
encrypt(const unsigned char key[32], struct strv plain, struct strv aad, unsigned char *box)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	unsigned char *out = box + NONCE_LEN;
	int ok, n = 0, tail = 0;

	ok = ctx && EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, box) == 1 &&
	    EVP_EncryptUpdate(ctx, NULL, &n, bytes(aad), (int)aad.n) == 1 &&
	    EVP_EncryptUpdate(ctx, out, &n, bytes(plain), (int)plain.n) == 1 &&
	    EVP_EncryptFinal_ex(ctx, out + n, &tail) == 1 && (size_t)n + (size_t)tail == plain.n &&
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, out + plain.n) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return ok ? 0 : -1;
}

int
crypto_seal(
    const unsigned char key[32], struct strv plain, struct strv aad, char **ret, struct err *e)
{
	size_t n = NONCE_LEN + plain.n + TAG_LEN;
	unsigned char *box;
	char *text;

	if (plain.n > PLAIN_MAX || aad.n > AAD_MAX)
		return err_set(
		    e, ERR_TOO_LARGE, "text to seal is larger than %zu bytes", PLAIN_MAX);
	box = xmalloc(n);
	rand_bytes(box, NONCE_LEN);
	if (encrypt(key, plain, aad, box) == -1) {
		xfree(box);
		return err_set(e, ERR_INTERNAL, "encryption failed");
	}
	text = xmalloc(BASE64_LEN(n) + 1);
	base64_encode(box, n, text);
	xfree(box);
	*ret = text;
	return 0;
}

/* out has room for box.n bytes. */
static int
decrypt(const unsigned char key[32], struct strv box, struct strv aad, unsigned char *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	const unsigned char *in = bytes(box);
	size_t len = box.n - NONCE_LEN - TAG_LEN;
	unsigned char tag[TAG_LEN];
	int ok, n = 0, tail = 0;

	memcpy(tag, in + box.n - TAG_LEN, TAG_LEN);
	ok = ctx && EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, in) == 1 &&
	    EVP_DecryptUpdate(ctx, NULL, &n, bytes(aad), (int)aad.n) == 1 &&
	    EVP_DecryptUpdate(ctx, out, &n, in + NONCE_LEN, (int)len) == 1 &&
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag) == 1 &&
	    EVP_DecryptFinal_ex(ctx, out + n, &tail) == 1 && (size_t)n + (size_t)tail == len;
	EVP_CIPHER_CTX_free(ctx);
	return ok ? 0 : -1;
}

int
crypto_open(const unsigned char key[32], struct strv sealed, struct strv aad, char **ret, size_t *n,
    struct err *e)
{
	unsigned char *box, *plain;
	ptrdiff_t len = -1;

	if (sealed.n > BASE64_LEN(PLAIN_MAX + NONCE_LEN + TAG_LEN) || aad.n > AAD_MAX)
		return err_set(e, ERR_INVALID, "sealed text is invalid");
	box = xmalloc(sealed.n * 3 / 4 + 3);
	len = base64_decode(sealed, box);
	if (len < NONCE_LEN + TAG_LEN) {
		xfree(box);
		return err_set(e, ERR_INVALID, "sealed text is invalid");
	}
	plain = xmalloc((size_t)len);
	if (decrypt(key, (struct strv){ (char *)box, (size_t)len }, aad, plain) == -1) {
		/* What was decrypted is not authentic: nobody may see it. */
		OPENSSL_cleanse(plain, (size_t)len);
		xfree(plain);
		xfree(box);
		return err_set(e, ERR_INVALID, "sealed text is invalid");
	}
	xfree(box);
	*n = (size_t)len - NONCE_LEN - TAG_LEN;
	plain[*n] = '\0';
	*ret = (char *)plain;
	return 0;
}
