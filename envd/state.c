/* See state.h. */
#include "envd/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rand.h"

struct state *
state_new(bool require_init)
{
	struct state *s = xcalloc(1, sizeof(*s));

	s->require_init = require_init;
	s->vars = json_object();
	s->user = xstrdup("root");
	s->workdir = xstrdup("");
	s->generation = -1;
	return s;
}

static void
forget_token(struct state *s)
{
	if (s->token)
		explicit_bzero(s->token, strlen(s->token));
	xfree(s->token);
	s->token = NULL;
}

void
state_free(struct state *s)
{
	if (s == NULL)
		return;
	forget_token(s);
	json_decref(s->vars);
	xfree(s->sandbox_id);
	xfree(s->template_id);
	xfree(s->events_address);
	xfree(s->user);
	xfree(s->workdir);
	xfree(s);
}

json_t *
state_env(const struct state *s)
{
	json_t *env = json_copy(s->vars);

	json_set_str(env, "E2B_SANDBOX", "true");
	json_set_str(env, "E2B_SANDBOX_ID", s->sandbox_id);
	json_set_str(env, "E2B_TEMPLATE_ID", s->template_id);
	json_set_str(env, "E2B_EVENTS_ADDRESS", s->events_address);
	return env;
}

bool
state_token_ok(const struct state *s, struct strv given)
{
	return s->token == NULL || equal_consttime(given, strv_of(s->token));
}

/* Whoever comes first owns the sandbox; later ones must know the token. */
static int
check_token(const struct state *s, const char *token, struct err *e)
{
	if (token && token[0] == '\0')
		return err_set(e, ERR_INVALID, "access token must not be empty");
	if (s->token == NULL)
		return 0;
	if (token == NULL)
		return err_set(e, ERR_UNAUTHORIZED, "access token reset not authorized");
	if (!state_token_ok(s, strv_of(token)))
		return err_set(e, ERR_UNAUTHORIZED, "access token validation failed");
	return 0;
}

static void
replace(char **at, const char *v)
{
	if (v == NULL || v[0] == '\0')
		return;
	xfree(*at);
	*at = xstrdup(v);
}

static void
take_vars(struct state *s, const json_t *vars)
{
	if (vars == NULL)
		return;
	json_decref(s->vars);
	s->vars = json_deep_copy(vars);
	json_object_del(s->vars, "E2B_SANDBOX");
	json_object_del(s->vars, "E2B_SANDBOX_ID");
	json_object_del(s->vars, "E2B_TEMPLATE_ID");
	json_object_del(s->vars, "E2B_EVENTS_ADDRESS");
}

int
state_apply(struct state *s, const json_t *body, struct err *e)
{
	const char *token = json_get_str(body, "accessToken");
	const char *when = json_get_str(body, "timestamp");
	int64_t generation = json_get_int(body, "generation", s->generation), at = 0;

	if (check_token(s, token, e) == -1)
		return -1;
	if (when && time_parse(strv_of(when), &at) == -1)
		return err_set(e, ERR_INVALID, "timestamp is not RFC 3339");
	if (generation < s->generation)
		return err_set(e, ERR_CONFLICT, "generation %lld is older than %lld",
		    (long long)generation, (long long)s->generation);
	s->generation = generation;
	if (s->token == NULL && token)
		s->token = xstrdup(token);
	s->initialised = true;
	if (when && s->timestamp != 0 && at <= s->timestamp)
		return 0;
	if (when)
		s->timestamp = at;
	take_vars(s, json_get_obj(body, "envVars"));
	replace(&s->user, json_get_str(body, "defaultUser"));
	replace(&s->workdir, json_get_str(body, "defaultWorkdir"));
	replace(&s->sandbox_id, json_get_str(body, "sandboxID"));
	replace(&s->template_id, json_get_str(body, "templateID"));
	return 0;
}
