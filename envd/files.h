/* GET and POST /files: contents in and out, as streams, in constant memory. */
#ifndef ENVD_FILES_H
#define ENVD_FILES_H

#include "envd/call.h"

void files_get(struct call *c, const struct http_head *h);
void files_post(struct call *c, const struct http_head *h);

#endif
