/* The RPC methods, as a table. */
#include "envd/fs_rpc.h"
#include "envd/proc_rpc.h"
#include "envd/rpc.h"
#include "envd/watch_rpc.h"

#define PROCESS(name)                                                                              \
	"/process.Process/" name, "process." name "Request", "process." name "Response"
#define FS(name)                                                                                   \
	"/filesystem.Filesystem/" name, "filesystem." name "Request", "filesystem." name "Response"

static const struct rpc_method methods[] = {
	{ PROCESS("List"), RPC_UNARY, false, proc_rpc_list, NULL },
	{ PROCESS("Start"), RPC_SERVER_STREAM, true, proc_rpc_start, proc_rpc_keepalive },
	{ PROCESS("Connect"), RPC_SERVER_STREAM, false, proc_rpc_connect, proc_rpc_keepalive },
	{ PROCESS("Update"), RPC_UNARY, false, proc_rpc_update, NULL },
	{ PROCESS("SendInput"), RPC_UNARY, false, proc_rpc_send_input, NULL },
	{ PROCESS("StreamInput"), RPC_CLIENT_STREAM, false, proc_rpc_stream_input, NULL },
	{ PROCESS("CloseStdin"), RPC_UNARY, false, proc_rpc_close_stdin, NULL },
	{ PROCESS("SendSignal"), RPC_UNARY, false, proc_rpc_send_signal, NULL },
	{ FS("Stat"), RPC_UNARY, false, fs_rpc_stat, NULL },
	{ FS("ListDir"), RPC_UNARY, false, fs_rpc_list_dir, NULL },
	{ FS("MakeDir"), RPC_UNARY, false, fs_rpc_make_dir, NULL },
	{ FS("Move"), RPC_UNARY, false, fs_rpc_move, NULL },
	{ FS("Remove"), RPC_UNARY, false, fs_rpc_remove, NULL },
	{ FS("WatchDir"), RPC_SERVER_STREAM, false, watch_rpc_dir, watch_rpc_keepalive },
	{ FS("CreateWatcher"), RPC_UNARY, false, watch_rpc_create, NULL },
	{ FS("GetWatcherEvents"), RPC_UNARY, false, watch_rpc_events, NULL },
	{ FS("RemoveWatcher"), RPC_UNARY, false, watch_rpc_remove, NULL },
};

const struct rpc_method *
rpc_method_find(struct strv path)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (strv_is(path, methods[i].path))
			return &methods[i];
	}
	return NULL;
}
