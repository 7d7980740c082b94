/* See auth.h. Texts as E2B answers them. */
#include "apiserver/auth.h"

#define BEARER "bearer "

static struct strv
credentials(const struct http_head *h)
{
	const struct strv *v = http_head_get(h, "x-api-key");

	if (v != NULL)
		return strv_trim(*v);
	v = http_head_get(h, "authorization");
	if (v == NULL || v->n < sizeof(BEARER) - 1 ||
	    !strv_caseeq((struct strv){ v->p, sizeof(BEARER) - 1 }, STRV(BEARER)))
		return STRV_NONE;
	return strv_trim((struct strv){ v->p + sizeof(BEARER) - 1, v->n - (sizeof(BEARER) - 1) });
}

int
auth_check(const struct keyring *k, const struct http_head *h, struct tenant *ret, struct err *e)
{
	struct strv key = credentials(h);
	const struct tenant *t;

	if (key.n == 0)
		return err_set(e, ERR_UNAUTHORIZED, "authorization header is missing");
	if (k == NULL)
		return err_set(e, ERR_UNAVAILABLE, "the server is starting");
	t = keyring_find(k, key);
	if (t == NULL)
		return err_set(e, ERR_UNAUTHORIZED,
		    "invalid API key, ask whoever runs this installation for one");
	*ret = *t;
	return 0;
}
