/* Status → err. Must not know which call failed: the caller adds that by err_wrap. */
#include "kube/kube_status.h"

#include <string.h>

#include "base/json.h"

#define STATUS_BODY_MAX ((size_t)64 * 1024)

static enum err_code
code_of(int status, const char *reason, const char *message)
{
	switch (status) {
	case 400:
	case 422:
		return ERR_INVALID;
	case 403:
		return strstr(message, "exceeded quota") != NULL ? ERR_LIMIT : ERR_FORBIDDEN;
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return strcmp(reason, "AlreadyExists") == 0 ? ERR_EXISTS : ERR_CONFLICT;
	case 410:
		return ERR_GONE;
	case 413:
		return ERR_TOO_LARGE;
	case 504:
		return ERR_TIMEOUT;
	case 401: /* our own credentials, never the client's: he can only wait */
	case 408:
	case 429:
		return ERR_UNAVAILABLE;
	default:
		return status >= 500 ? ERR_UNAVAILABLE : ERR_INTERNAL;
	}
}

void
kube_status_err(int status, const json_t *body, int retry_after, struct err *e)
{
	const char *reason = json_get_str(body, "reason");
	const char *message = json_get_str(body, "message");
	int64_t details = json_get_int(body, "details.retryAfterSeconds", 0);
	enum err_code code;

	if (reason == NULL)
		reason = "";
	if (message == NULL)
		message = "";
	code = code_of(status, reason, message);
	if (strcmp(reason, "Expired") == 0 || strcmp(reason, "Gone") == 0)
		code = ERR_GONE;
	if (*message != '\0')
		err_set(e, code, "Kubernetes answered %d: %s", status, message);
	else
		err_set(e, code, "Kubernetes answered %d", status);
	if (retry_after == 0 && details > 0 && details < 3600)
		retry_after = (int)details;
	e->retry_after = retry_after;
}

void
kube_status_err_text(int status, struct strv body, int retry_after, struct err *e)
{
	CLEANUP(json_unrefp) json_t *tree = NULL;
	struct err ignored;

	if (json_parse(body, STATUS_BODY_MAX, &tree, &ignored) == -1)
		tree = NULL; /* a proxy's HTML, say: the status alone must do */
	kube_status_err(status, tree, retry_after, e);
}
