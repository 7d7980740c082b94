/* See command.h. */
#include "envd/command.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/json.h"
#include "envd/auth.h"
#include "envd/msg.h"
#include "envd/path.h"
#include "envd/spawn.h"
#include "envd/state.h"

#define ENV_MAX ((size_t)2 * 1024 * 1024) /* the kernel's limit for arguments and environment */

static void
free_config(void *config)
{
	json_decref(config);
}

/* Later ones win: PATH, HOME, USER, LOGNAME, the defaults, the request's. */
static json_t *
merge_env(const struct app *a, const struct user *u, const json_t *envs)
{
	json_t *all = json_object(), *dflt = state_env(a->state);

	json_set_str(all, "PATH", a->path);
	json_set_str(all, "HOME", u->home);
	json_set_str(all, "USER", u->name);
	json_set_str(all, "LOGNAME", u->name);
	json_object_update(all, dflt);
	json_decref(dflt);
	if (envs)
		json_object_update(all, (json_t *)(uintptr_t)envs);
	return all;
}

static char **
env_list(json_t *env)
{
	char **list = xcalloc(json_object_size(env) + 1, sizeof(*list));
	const char *key;
	json_t *v;
	size_t n = 0;

	json_object_foreach (env, key, v) {
		struct strbuf b;

		/* a name with '=' or nothing cannot be a variable */
		if (key[0] == '\0' || strchr(key, '='))
			continue;
		strbuf_init(&b, ENV_MAX);
		strbuf_addf(&b, "%s=%s", key, json_string_value(v));
		if (strbuf_take(&b, &list[n], NULL) == 0)
			n++;
	}
	return list;
}

static char **
arg_list(const json_t *args)
{
	char **list = xcalloc(json_array_size(args) + 1, sizeof(*list));
	size_t i;
	json_t *v;

	json_array_foreach (args, i, v)
		list[i] = xstrdup(json_string_value(v));
	return list;
}

static bool
is_missing(const char *path)
{
	struct stat st;

	return stat(path, &st) == -1 && (errno == ENOENT || errno == ENOTDIR);
}

static int
find_cwd(const struct app *a, const char *cwd, struct command *c, struct err *e)
{
	bool asked = (cwd && cwd[0] != '\0') || a->state->workdir[0] != '\0';

	if (path_resolve(cwd ? cwd : "", c->user, a->state->workdir, &c->cwd, e) == -1)
		return -1;
	if (!is_missing(c->cwd))
		return 0;
	if (asked)
		return err_set(e, ERR_INVALID, "cwd '" PATH_SHOWN "' does not exist", c->cwd);
	/* small images have no home for root */
	xfree(c->cwd);
	c->cwd = xstrdup("/");
	return 0;
}

static int
read_config(struct app *a, const json_t *config, struct command *c, struct err *e)
{
	const json_t *args, *envs;
	const char *cmd, *cwd;
	json_t *all;

	if (msg_text(config, "cmd", &cmd, e) == -1 || msg_text(config, "cwd", &cwd, e) == -1 ||
	    msg_list(config, "args", &args, e) == -1 || msg_all_text(args, "args", e) == -1 ||
	    msg_message(config, "envs", &envs, e) == -1 || msg_all_text(envs, "envs", e) == -1)
		return -1;
	if (find_cwd(a, cwd, c, e) == -1)
		return -1;
	all = merge_env(a, c->user, envs);
	c->env = env_list(all);
	c->args = arg_list(args);
	c->spec.cmd = cmd ? cmd : "";
	c->spec.path = a->path;
	if (json_member_str(envs, "PATH") || json_member_str(a->state->vars, "PATH"))
		c->spec.path = json_member_str(envs, "PATH")
		    ? json_member_str(envs, "PATH")
		    : json_member_str(a->state->vars, "PATH");
	json_decref(all);
	return 0;
}

int
command_init(
    struct app *a, const json_t *config, struct user *user, struct command *c, struct err *e)
{
	*c = (struct command){ .user = user };
	if (read_config(a, config, c, e) == -1) {
		command_done(c);
		return -1;
	}
	c->spec.args = c->args;
	c->spec.env = c->env;
	c->spec.user = c->user;
	c->spec.cwd = c->cwd;
	c->spec.config = json_deep_copy(config);
	c->spec.free_config = free_config;
	return 0;
}

int
command_shell(struct app *a, const char *text, struct command *c, struct err *e)
{
	json_t *config CLEANUP(json_unrefp) = json_object(), *args = json_array();
	struct user *user;

	json_set_str(config, "cmd", "/bin/bash");
	json_array_append_new(args, json_string("-l"));
	json_array_append_new(args, json_string("-c"));
	json_array_append_new(args, json_string(text));
	json_set(config, "args", args);
	if (auth_user(a, NULL, &user, e) == -1)
		return -1;
	if (command_init(a, config, user, c, e) == -1)
		return -1;
	/* config goes away: what is borrowed from it must come from the copy */
	c->spec.cmd = json_member_str(c->spec.config, "cmd");
	return 0;
}

void
command_done(struct command *c)
{
	user_free(c->user);
	xfree(c->cwd);
	strings_free(c->args);
	strings_free(c->env);
	*c = (struct command){ 0 };
}
