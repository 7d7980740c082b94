/* See auth.h. */
#include "envd/auth.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rand.h"
#include "envd/call.h"
#include "envd/signature.h"
#include "envd/state.h"

#define BASIC_MAX 1024

bool
auth_token_ok(const struct app *a, const struct http_head *h)
{
	const struct strv *t = http_head_get(h, "X-Access-Token");

	return state_token_ok(a->state, t ? *t : STRV_NONE);
}

static int
check_signature(const struct app *a, const char *sig, const char *expires, const char *op,
    const char *path, const char *username, struct err *e)
{
	char want[SIGNATURE_LEN + 1];
	int64_t at = 0;

	if (expires && strv_i64(strv_of(expires), INT64_MIN, INT64_MAX, &at) == -1)
		return err_set(e, ERR_INVALID, "signature_expiration is not a number");
	signature_make(path, op, username ? username : "", a->state->token, expires, want);
	if (!equal_consttime(strv_of(want), strv_of(sig)))
		return err_set(e, ERR_UNAUTHORIZED, "invalid signature");
	if (expires && at < clock_wall() / NS_PER_S)
		return err_set(e, ERR_UNAUTHORIZED, "signature is already expired");
	return 0;
}

int
auth_file(const struct app *a, const struct http_head *h, const char *op, const char *path,
    const char *username, struct err *e)
{
	char *sig CLEANUP(xfreep) = NULL, *expires CLEANUP(xfreep) = NULL;
	const struct strv *header = http_head_get(h, "X-Access-Token");

	if (call_query(h, "signature_expiration", &expires, e) == -1 ||
	    call_query(h, "signature", &sig, e) == -1)
		return -1;
	if (a->state->token == NULL)
		return 0;
	if (header && header->n > 0) {
		if (state_token_ok(a->state, *header))
			return 0;
		return err_set(
		    e, ERR_UNAUTHORIZED, "access token present in header but does not match");
	}
	if (sig == NULL)
		return err_set(e, ERR_UNAUTHORIZED, "missing signature query parameter");
	return check_signature(a, sig, expires, op, path, username, e);
}

char *
auth_basic_name(const struct http_head *h)
{
	const struct strv *v = http_head_get(h, "Authorization");
	unsigned char text[BASIC_MAX];
	struct strv word, rest, name;
	ptrdiff_t n;

	if (v == NULL)
		return NULL;
	word = strv_cut(strv_trim(*v), ' ', &rest);
	rest = strv_trim(rest);
	if (!strv_caseis(word, "Basic") || rest.n > BASIC_MAX)
		return NULL;
	n = base64_decode(rest, text);
	if (n <= 0)
		return NULL;
	name = strv_cut((struct strv){ (char *)text, (size_t)n }, ':', &rest);
	if (name.n == 0 || memchr(name.p, '\0', name.n))
		return NULL;
	return strv_dup(name);
}

int
auth_user(const struct app *a, const char *name, struct user **ret, struct err *e)
{
	bool dflt = name == NULL || name[0] == '\0';
	const char *who = dflt ? a->state->user : name;

	if (users_find(a->users, who, ret, NULL) == 0)
		return 0;
	if (dflt)
		return err_set(e, ERR_UNAUTHORIZED, "invalid default user: '%.64s'", who);
	return err_set(e, ERR_UNAUTHORIZED, "invalid username: '%.64s'", who);
}

int
auth_file_user(const struct app *a, const char *name, struct user **ret, struct err *e)
{
	const char *who = name == NULL || name[0] == '\0' ? a->state->user : name;
	struct err why;

	if (users_find(a->users, who, ret, &why) == 0)
		return 0;
	return err_set(e, ERR_UNAUTHORIZED, "error looking up user '%.64s': %s", who, why.msg);
}
