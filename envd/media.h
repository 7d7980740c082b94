/* Header values of the form `type; name=value; name="value"` (Content-Type, Content-Disposition),
 * read as Go's mime package reads them. Pure. */
#ifndef ENVD_MEDIA_H
#define ENVD_MEDIA_H

#include "base/bug.h"
#include "base/str.h"

/* What is before the first ';', trimmed. */
struct strv media_type(struct strv value);
/* The parameter's value: unquoted, `name*=utf-8''…` decoded and preferred. NULL if absent; caller
 * frees. Values with a NUL byte, or longer than 16 KiB, count as absent. */
char *media_param(struct strv value, const char *name);

#endif
