#include "t.h"

#include "base/json.h"
#include "envd/state.h"

static int
apply(struct state *s, const char *text, struct err *e)
{
	json_t *body;
	int r;

	assert_ok(*e, json_parse(strv_of(text), 10000, &body, e));
	r = state_apply(s, body, e);
	json_decref(body);
	return r;
}

TEST(the_first_token_wins)
{
	struct state *s = state_new(true);
	struct err e;

	assert_true(state_token_ok(s, STRV_NONE));
	assert_fails(e, ERR_INVALID, apply(s, "{\"accessToken\":\"\"}", &e));
	assert_false(s->initialised);
	assert_ok(e, apply(s, "{}", &e));
	assert_true(s->initialised);
	assert_ok(e, apply(s, "{\"accessToken\":\"abc\"}", &e));
	assert_true(state_token_ok(s, STRV("abc")));
	assert_false(state_token_ok(s, STRV("abd")));
	assert_false(state_token_ok(s, STRV_NONE));
	assert_ok(e, apply(s, "{\"accessToken\":\"abc\"}", &e));
	assert_fails(e, ERR_UNAUTHORIZED, apply(s, "{\"accessToken\":\"abd\"}", &e));
	assert_string_equal(e.msg, "access token validation failed");
	assert_fails(e, ERR_UNAUTHORIZED, apply(s, "{}", &e));
	assert_string_equal(e.msg, "access token reset not authorized");
	state_free(s);
}

TEST(variables_are_replaced_and_ours_are_protected)
{
	struct state *s = state_new(false);
	json_t *env;
	struct err e;

	assert_ok(e,
	    apply(s,
	        "{\"envVars\":{\"A\":\"1\",\"E2B_SANDBOX\":\"no\",\"E2B_SANDBOX_ID\":\"x\"},"
	        "\"sandboxID\":\"i1\"}",
	        &e));
	env = state_env(s);
	assert_string_equal(json_member_str(env, "A"), "1");
	assert_string_equal(json_member_str(env, "E2B_SANDBOX"), "true");
	assert_string_equal(json_member_str(env, "E2B_SANDBOX_ID"), "i1");
	assert_null(json_member_str(env, "E2B_TEMPLATE_ID"));
	json_decref(env);
	assert_ok(e, apply(s, "{\"envVars\":{\"B\":\"2\"},\"templateID\":\"t\"}", &e));
	env = state_env(s);
	assert_null(json_member_str(env, "A"));
	assert_string_equal(json_member_str(env, "B"), "2");
	assert_string_equal(json_member_str(env, "E2B_TEMPLATE_ID"), "t");
	json_decref(env);
	assert_ok(e, apply(s, "{}", &e)); /* no envVars: they stay */
	assert_string_equal(json_member_str(s->vars, "B"), "2");
	state_free(s);
}

TEST(older_calls_change_nothing)
{
	struct state *s = state_new(false);
	struct err e;

	assert_ok(
	    e, apply(s, "{\"timestamp\":\"2026-01-01T00:00:02Z\",\"defaultUser\":\"a\"}", &e));
	assert_ok(
	    e, apply(s, "{\"timestamp\":\"2026-01-01T00:00:01Z\",\"defaultUser\":\"b\"}", &e));
	assert_string_equal(s->user, "a");
	assert_ok(
	    e, apply(s, "{\"timestamp\":\"2026-01-01T00:00:02Z\",\"defaultUser\":\"b\"}", &e));
	assert_string_equal(s->user, "a");
	assert_ok(
	    e, apply(s, "{\"timestamp\":\"2026-01-01T00:00:02.1Z\",\"defaultUser\":\"b\"}", &e));
	assert_string_equal(s->user, "b");
	assert_fails(e, ERR_INVALID, apply(s, "{\"timestamp\":\"yesterday\"}", &e));
	state_free(s);
}

TEST(generations_only_rise)
{
	struct state *s = state_new(false);
	struct err e;

	assert_ok(e, apply(s, "{\"generation\":0}", &e));
	assert_ok(e, apply(s, "{\"generation\":5,\"defaultUser\":\"a\"}", &e));
	assert_ok(e, apply(s, "{\"generation\":5}", &e));
	assert_fails(e, ERR_CONFLICT, apply(s, "{\"generation\":4,\"defaultUser\":\"b\"}", &e));
	assert_string_equal(s->user, "a");
	assert_ok(e, apply(s, "{}", &e));
	assert_int_equal(s->generation, 5);
	state_free(s);
}

T_MAIN(T(the_first_token_wins), T(variables_are_replaced_and_ours_are_protected),
    T(older_calls_change_nothing), T(generations_only_rise))
