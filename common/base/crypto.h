/*
 * The few cryptographic operations we need, on OpenSSL's EVP interface. Not linked into envd.
 */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include <stddef.h>

#include "bug.h"
#include "err.h"
#include "str.h"

#define SHA256_LEN 32

void crypto_sha256(struct strv in, unsigned char out[SHA256_LEN]);
void crypto_hmac_sha256(struct strv key, struct strv in, unsigned char out[SHA256_LEN]);

/* AES-256-GCM: nonce (12) | ciphertext | tag (16), base64 text in *ret (xfree). aad binds the
 * result to its place (the sandbox id). key is 32 bytes. */
int crypto_seal(const unsigned char key[32], struct strv plain, struct strv aad, char **ret,
    struct err *e) MUST_USE;
/* *ret is NUL-terminated, *n its length. Fails without detail when anything was changed. */
int crypto_open(const unsigned char key[32], struct strv sealed, struct strv aad, char **ret,
    size_t *n, struct err *e) MUST_USE;

#endif
