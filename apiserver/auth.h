/* From a request's credentials to a tenant. */
#ifndef APISERVER_AUTH_H
#define APISERVER_AUTH_H

#include "base/bug.h"
#include "base/err.h"
#include "domain/tenant.h"
#include "http/http1.h"

/* X-API-Key, or Authorization: Bearer. keyring NULL: not loaded yet (ERR_UNAVAILABLE). */
int auth_check(
    const struct keyring *k, const struct http_head *h, struct tenant *ret, struct err *e) MUST_USE;

#endif
