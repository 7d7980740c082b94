/*
 * Leaves out metadata.managedFields before an object is parsed: often half of its nodes, and nobody
 * here reads them. Private to common/kube.
 */
#ifndef KUBE_STRIP_H
#define KUBE_STRIP_H

#include "base/str.h"

/* text itself, or a shorter copy in scratch (reset first; valid until its next use). */
struct strv kube_strip(struct strv text, struct strbuf *scratch);

#endif
