/* See signature.h. SHA-256 comes from libmd. */
#include "envd/signature.h"

#include <sha2.h>

static void
add(SHA2_CTX *ctx, const char *colon, const char *text)
{
	SHA256Update(ctx, (const uint8_t *)colon, strlen(colon));
	SHA256Update(ctx, (const uint8_t *)text, strlen(text));
}

void
signature_make(const char *path, const char *op, const char *user, const char *token,
    const char *expires, char out[SIGNATURE_LEN + 1])
{
	uint8_t sum[SHA256_DIGEST_LENGTH];
	char text[BASE64_LEN(SHA256_DIGEST_LENGTH) + 1];
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	add(&ctx, "", path);
	add(&ctx, ":", op);
	add(&ctx, ":", user);
	add(&ctx, ":", token);
	if (expires)
		add(&ctx, ":", expires);
	SHA256Final(sum, &ctx);
	base64_encode(sum, sizeof(sum), text);
	memcpy(out, "v1_", 3);
	memcpy(out + 3, text, SIGNATURE_LEN - 3);
	out[SIGNATURE_LEN] = '\0';
}
