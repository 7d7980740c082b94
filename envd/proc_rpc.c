/* See proc_rpc.h: the unary methods but input. */
#include "envd/proc_rpc.h"

#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "envd/msg.h"
#include "envd/proc_rpc_priv.h"

int
proc_rpc_select_any(struct app *a, const json_t *in, struct process **ret, struct err *e)
{
	const json_t *sel;
	const char *tag;
	uint32_t pid;
	struct process *p;

	if (msg_message(in, "process", &sel, e) == -1 || msg_text(sel, "tag", &tag, e) == -1 ||
	    msg_u32(sel, "pid", &pid, e) == -1)
		return -1;
	if (tag && msg_field(sel, "pid"))
		return err_set(e, ERR_INVALID, "unmarshal message: both pid and tag are set");
	if (tag == NULL && pid == 0)
		return err_set(e, ERR_UNSUPPORTED, "invalid input type");
	p = proc_table_find(a->procs, pid, tag);
	if (p == NULL && tag)
		return err_set(e, ERR_NOT_FOUND, "process with tag %.64s not found", tag);
	if (p == NULL)
		return err_set(e, ERR_NOT_FOUND, "process with pid %u not found", pid);
	*ret = p;
	return 0;
}

int
proc_rpc_select(struct app *a, const json_t *in, struct process **ret, struct err *e)
{
	struct process *p;

	if (proc_rpc_select_any(a, in, &p, e) == -1)
		return -1;
	if (proc_state(p) == PROC_ENDED)
		return err_set(e, ERR_NOT_FOUND, "process with pid %d not found", (int)proc_pid(p));
	*ret = p;
	return 0;
}

static void
add_process(const struct process *p, void *arg)
{
	json_t *list = arg, *info = json_object(), *config = json_object();
	const json_t *asked = proc_config(p);
	static const char *const fields[] = { "cmd", "args", "envs", "cwd" };

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *v = msg_field(asked, fields[i]);

		if (v)
			json_set(config, fields[i], json_incref((json_t *)(uintptr_t)v));
	}
	json_set(info, "config", config);
	msg_put_int(info, "pid", proc_pid(p));
	if (proc_tag(p))
		json_set_str(info, "tag", proc_tag(p));
	json_array_append_new(list, info);
}

void
proc_rpc_list(struct rpc *c, const json_t *in UNUSED)
{
	json_t *list = json_array(), *out = json_object();

	proc_table_each(c->app->procs, add_process, list);
	if (json_array_size(list) > 0)
		json_set(out, "processes", json_incref(list));
	json_decref(list);
	rpc_reply(c, out);
}

/* SIGNAL_SIGKILL and SIGNAL_SIGTERM, by name or number. 0 for others. */
static int
signal_of(const json_t *v)
{
	const char *name = json_string_value(v);

	if (json_is_integer(v))
		return json_integer_value(v) == SIGKILL ? SIGKILL
		    : json_integer_value(v) == SIGTERM  ? SIGTERM
		                                        : 0;
	if (name && strcmp(name, "SIGNAL_SIGKILL") == 0)
		return SIGKILL;
	return name && strcmp(name, "SIGNAL_SIGTERM") == 0 ? SIGTERM : 0;
}

void
proc_rpc_send_signal(struct rpc *c, const json_t *in)
{
	int signo = signal_of(msg_field(in, "signal"));
	struct process *p;
	struct err e;

	if (proc_rpc_select(c->app, in, &p, &e) == -1) {
		rpc_fail_err(c, &e);
		return;
	}
	if (signo == 0) {
		rpc_fail(c, CONNECT_UNIMPLEMENTED, "invalid signal");
		return;
	}
	if (proc_signal(p, signo, &e) == -1) {
		rpc_fail_err(c, &e);
		return;
	}
	rpc_reply(c, json_object());
}

void
proc_rpc_update(struct rpc *c, const json_t *in)
{
	const json_t *pty, *size = NULL;
	uint32_t cols = 0, rows = 0;
	struct process *p;
	struct err e;

	if (proc_rpc_select(c->app, in, &p, &e) == -1 || msg_message(in, "pty", &pty, &e) == -1 ||
	    msg_message(pty, "size", &size, &e) == -1 || msg_u32(size, "cols", &cols, &e) == -1 ||
	    msg_u32(size, "rows", &rows, &e) == -1 ||
	    (pty && proc_resize(p, cols, rows, &e) == -1)) {
		rpc_fail_err(c, &e);
		return;
	}
	rpc_reply(c, json_object());
}

void
proc_rpc_close_stdin(struct rpc *c, const json_t *in)
{
	struct process *p;
	struct err e;

	if (proc_rpc_select(c->app, in, &p, &e) == -1) {
		rpc_fail_err(c, &e);
		return;
	}
	if (proc_close_stdin(p, &e) == -1) {
		rpc_fail(c, CONNECT_UNKNOWN, "%s", e.msg);
		return;
	}
	rpc_reply(c, json_object());
}
