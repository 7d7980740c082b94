/*
 * Kubernetes' Status objects and HTTP status codes to struct err, in one place. Private to
 * common/kube.
 */
#ifndef KUBE_STATUS_H
#define KUBE_STATUS_H

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

/* status: of HTTP, or Status.code for an ERROR event. body: the Status object, or NULL.
 * retry_after: the header's seconds, 0 if not said. Always fills e. */
void kube_status_err(int status, const json_t *body, int retry_after, struct err *e);
/* The same from the text of a body that may be no JSON at all. */
void kube_status_err_text(int status, struct strv body, int retry_after, struct err *e);

#endif
