/* The endpoints without parameters: health, default variables, resource usage. */
#ifndef ENVD_SMALL_H
#define ENVD_SMALL_H

#include "envd/call.h"

void small_health(struct call *c, const struct http_head *h);
void small_envs(struct call *c, const struct http_head *h);
void small_metrics(struct call *c, const struct http_head *h);

#endif
