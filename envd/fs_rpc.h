/* The methods of filesystem.Filesystem but the watchers'. Everything is done as root; the user
 * only decides the home directory and who owns what is made. */
#ifndef ENVD_FS_RPC_H
#define ENVD_FS_RPC_H

#include "envd/rpc.h"

void fs_rpc_stat(struct rpc *c, const json_t *in);
void fs_rpc_make_dir(struct rpc *c, const json_t *in);
void fs_rpc_move(struct rpc *c, const json_t *in);
void fs_rpc_list_dir(struct rpc *c, const json_t *in); /* fs_list.c */
void fs_rpc_remove(struct rpc *c, const json_t *in);

/* The path in field `name`, resolved for the caller; *user may be NULL if it is not wanted. Both
 * are the caller's. */
int fs_rpc_path(struct rpc *c, const json_t *in, const char *name, char **path, struct user **user,
    struct err *e) MUST_USE;

#endif
