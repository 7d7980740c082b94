/* Content types for downloads: by file name, else from the first bytes. */
#ifndef ENVD_MIME_H
#define ENVD_MIME_H

#include "base/str.h"

/* Constant text; NULL if the name's extension is not known. */
const char *mime_by_name(const char *name);
/* Never NULL. */
const char *mime_by_content(struct strv start);

#endif
