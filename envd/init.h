/*
 * POST /init: the control plane tells this envd whose sandbox it is. Beside E2B's fields it takes
 * ours: generation, sandboxID, templateID, startCmd, readyCmd, readyTimeoutMs.
 */
#ifndef ENVD_INIT_H
#define ENVD_INIT_H

#include "envd/call.h"

#define INIT_BODY_MAX ((size_t)4 * 1024 * 1024)

void init_post(struct call *c, const struct http_head *h);

#endif
