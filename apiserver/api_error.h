/*
 * The one mapping from err.code to what clients see.
 */
#ifndef APISERVER_API_ERROR_H
#define APISERVER_API_ERROR_H

#include <jansson.h>

#include "base/err.h"

int api_error_status(enum err_code code);
/* {"code":<status>,"message":…}: E2B and REST alike. New reference. */
json_t *api_error_body(int status, const char *message);
/* Seconds for Retry-After; 0: none is sent. */
int api_error_retry_after(const struct err *e);

#endif
