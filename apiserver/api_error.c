/*
 * See api_error.h. E2B's clients read `code` from the body and need it equal to the status;
 * statuses are those that Python's http.HTTPStatus knows.
 */
#include "apiserver/api_error.h"

#include "base/json.h"

#define RETRY_AFTER_DEFAULT 2 /* seconds, for 429 and 503 without a better figure */

static const int statuses[ERR_CODE_COUNT] = {
	[ERR_NONE] = 500,
	[ERR_INVALID] = 400,
	[ERR_UNAUTHORIZED] = 401,
	[ERR_FORBIDDEN] = 403,
	[ERR_NOT_FOUND] = 404,
	[ERR_CONFLICT] = 409,
	[ERR_EXISTS] = 409,
	[ERR_TOO_LARGE] = 413,
	[ERR_LIMIT] = 429,
	[ERR_GONE] = 503, /* our own cache is being renewed */
	[ERR_UNSUPPORTED] = 501,
	[ERR_UNAVAILABLE] = 503,
	[ERR_TIMEOUT] = 504,
	[ERR_CANCELED] = 503,
	[ERR_IO] = 502,
	[ERR_INTERNAL] = 500,
};

int
api_error_status(enum err_code code)
{
	return statuses[code];
}

json_t *
api_error_body(int status, const char *message)
{
	json_t *body = json_object();

	json_set_int(body, "code", status);
	json_set_str(body, "message", message);
	return body;
}

int
api_error_retry_after(const struct err *e)
{
	int status = api_error_status(e->code);

	if (e->retry_after > 0)
		return e->retry_after;
	return status == 429 || status == 503 ? RETRY_AFTER_DEFAULT : 0;
}
