/* The HTTP endpoints, as a table, and the way from a request's head to its handler. */
#ifndef ENVD_ROUTES_H
#define ENVD_ROUTES_H

#include "envd/call.h"

/* Answers, or hands the call to its handler. */
void routes_dispatch(struct call *c, const struct http_head *h);

#endif
