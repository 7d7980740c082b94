/*
 * Who may call and as whom: the access token, signed file URLs, and the user of a call (Basic name
 * or default). Asks state and users; answers nothing itself.
 */
#ifndef ENVD_AUTH_H
#define ENVD_AUTH_H

#include <stdbool.h>

#include "base/err.h"
#include "envd/app.h"
#include "envd/users.h"
#include "http/http1.h"

#define AUTH_DENIED                                                                                \
	"unauthorized access, please provide a valid access token or method signing if supported"

/* Does X-Access-Token fit (or is there no token yet)? */
bool auth_token_ok(const struct app *a, const struct http_head *h);
/* For /files: the token header, or a signature over path (as sent, "" if absent), op ("read",
 * "write") and username (NULL if absent). ERR_UNAUTHORIZED, ERR_INVALID. */
int auth_file(const struct app *a, const struct http_head *h, const char *op, const char *path,
    const char *username, struct err *e) MUST_USE;
/* The name in Authorization: Basic, or NULL without one (or with an empty one); caller frees. */
char *auth_basic_name(const struct http_head *h);
/* The user called `name`, or the default one for NULL or "". ERR_UNAUTHORIZED. */
int auth_user(const struct app *a, const char *name, struct user **ret, struct err *e) MUST_USE;
/* The same with the words that /files uses. */
int auth_file_user(
    const struct app *a, const char *name, struct user **ret, struct err *e) MUST_USE;

#endif
