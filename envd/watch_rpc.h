/* The watching methods of filesystem.Filesystem: a stream, and watchers that are asked. */
#ifndef ENVD_WATCH_RPC_H
#define ENVD_WATCH_RPC_H

#include "envd/rpc.h"

void watch_rpc_dir(struct rpc *c, const json_t *in);
void watch_rpc_create(struct rpc *c, const json_t *in);
void watch_rpc_events(struct rpc *c, const json_t *in);
void watch_rpc_remove(struct rpc *c, const json_t *in);
json_t *watch_rpc_keepalive(void);
/* The watchers that CreateWatcher made. */
void watch_rpc_free(struct app *a);

#endif
