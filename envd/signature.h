/*
 * Signed file URLs: "v1_" + base64 (no padding) of the SHA-256 over path:operation:user:token and,
 * with an expiration, :seconds. Pure.
 */
#ifndef ENVD_SIGNATURE_H
#define ENVD_SIGNATURE_H

#include <stdint.h>

#include "base/str.h"

#define SIGNATURE_LEN 46 /* with prefix, without NUL */

/* expires: the text of signature_expiration, or NULL when there is none. */
void signature_make(const char *path, const char *op, const char *user, const char *token,
    const char *expires, char out[SIGNATURE_LEN + 1]);

#endif
