/* Probes and metrics: /health, /healthz, /readyz on every listener, /metrics on its own. */
#ifndef APISERVER_HEALTH_H
#define APISERVER_HEALTH_H

#include "apiserver/api.h"

extern const struct route health_routes[];
extern const size_t health_routes_n;

/* The metrics listener's requests. */
void health_handle(struct app *app, struct http_req *r, const struct http_head *h);

#endif
