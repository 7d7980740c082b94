/* The methods of process.Process. Translates between messages and process.h. */
#ifndef ENVD_PROC_RPC_H
#define ENVD_PROC_RPC_H

#include "envd/rpc.h"

void proc_rpc_list(struct rpc *c, const json_t *in);
void proc_rpc_start(struct rpc *c, const json_t *in);
void proc_rpc_connect(struct rpc *c, const json_t *in);
void proc_rpc_update(struct rpc *c, const json_t *in);
void proc_rpc_send_input(struct rpc *c, const json_t *in);
void proc_rpc_stream_input(struct rpc *c, const json_t *in); /* in is NULL */
void proc_rpc_close_stdin(struct rpc *c, const json_t *in);
void proc_rpc_send_signal(struct rpc *c, const json_t *in);
json_t *proc_rpc_keepalive(void);

#endif
