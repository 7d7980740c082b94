/*
 * File system work of unknown length (removing and copying trees) in a forked helper, so that the
 * loop goes on. The helper has a copy of everything and reports one struct err through a pipe.
 */
#ifndef ENVD_FS_JOB_H
#define ENVD_FS_JOB_H

#include "base/bug.h"
#include "base/err.h"
#include "envd/app.h"

#define FS_JOBS_MAX 16

struct fs_job;

/* fn(a, b) runs in the helper; done comes from the loop, with e NULL for success. The texts are
 * copied by the fork. ERR_UNAVAILABLE when too many run. */
int fs_job_start(struct app *app, int (*fn)(const char *a, const char *b, struct err *e),
    const char *a, const char *b, void (*done)(void *arg, const struct err *e), void *arg,
    struct fs_job **ret, struct err *e) MUST_USE;
/* done will not be called; the work goes on. */
void fs_job_forget(struct fs_job *j);

#endif
