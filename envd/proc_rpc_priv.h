/* What the files of process.Process share. */
#ifndef ENVD_PROC_RPC_PRIV_H
#define ENVD_PROC_RPC_PRIV_H

#include "envd/process.h"
#include "envd/rpc.h"

/* The running process that in.process selects. ERR_NOT_FOUND, ERR_INVALID. */
int proc_rpc_select(struct app *a, const json_t *in, struct process **ret, struct err *e) MUST_USE;
/* The same, but also one that ended lately. */
int proc_rpc_select_any(
    struct app *a, const json_t *in, struct process **ret, struct err *e) MUST_USE;

#endif
