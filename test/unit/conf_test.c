#include "t.h"

#include "base/conf.h"

static const struct conf_option table[] = {
	{ .name = "T_ADDR", .type = CONF_TEXT, .dflt = "0.0.0.0:1", .help = "Where to listen." },
	{ .name = "T_SECRET", .type = CONF_TEXT, .dflt = "", .secret = true, .help = "A token." },
	{ .name = "T_COUNT",
	    .type = CONF_INT,
	    .dflt = "5",
	    .min = 1,
	    .max = 10,
	    .help = "How many." },
	{ .name = "T_LOUD", .type = CONF_BOOL, .dflt = "false", .help = "Say more." },
	{ .name = "T_PIN",
	    .type = CONF_INT,
	    .dflt = "1",
	    .max = 9,
	    .secret = true,
	    .help = "A pin." },
};

static int
load(struct conf **c, struct err *e, const char *a, const char *b)
{
	char *argv[] = { "prog", (char *)(uintptr_t)a, (char *)(uintptr_t)b, NULL };

	return conf_load(table, ARRAY_LEN(table), 1 + (a != NULL) + (b != NULL), argv, c, e);
}

static int
clear_env(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		unsetenv(table[i].name);
	return 0;
}

TEST(defaults)
{
	struct conf *c;
	struct err e;

	assert_ok(e, load(&c, &e, NULL, NULL));
	assert_string_equal(conf_text(c, "T_ADDR"), "0.0.0.0:1");
	assert_string_equal(conf_text(c, "T_SECRET"), "");
	assert_int_equal(conf_int(c, "T_COUNT"), 5);
	assert_false(conf_bool(c, "T_LOUD"));
	assert_false(conf_help_asked(c));
	conf_free(c);
	conf_free(NULL);
	assert_int_equal(conf_load(table, ARRAY_LEN(table), 0, NULL, &c, NULL), 0);
	conf_free(c);
}

TEST(flag_wins_over_environment)
{
	struct conf *c;
	struct err e;

	setenv("T_COUNT", "7", 1);
	setenv("T_ADDR", "env", 1);
	setenv("T_LOUD", "Yes", 1);
	assert_ok(e, load(&c, &e, "--t-count=9", NULL));
	assert_int_equal(conf_int(c, "T_COUNT"), 9);
	assert_string_equal(conf_text(c, "T_ADDR"), "env");
	assert_true(conf_bool(c, "T_LOUD"));
	conf_free(c);
	assert_ok(e, load(&c, &e, "--t-loud=off", "--t-addr=a=b"));
	assert_false(conf_bool(c, "T_LOUD"));
	assert_string_equal(conf_text(c, "T_ADDR"), "a=b");
	conf_free(c);
}

TEST(empty_values)
{
	struct conf *c;
	struct err e;

	setenv("T_COUNT", "", 1);
	setenv("T_LOUD", "", 1);
	setenv("T_ADDR", "", 1);
	assert_ok(e, load(&c, &e, "--t-loud", NULL));
	assert_int_equal(conf_int(c, "T_COUNT"), 5);
	assert_true(conf_bool(c, "T_LOUD")); /* the flag alone */
	assert_string_equal(conf_text(c, "T_ADDR"), "");
	conf_free(c);
	assert_ok(e, load(&c, &e, "--t-addr=", NULL));
	assert_string_equal(conf_text(c, "T_ADDR"), "");
	conf_free(c);
	assert_fails(e, ERR_INVALID, load(&c, &e, "--t-count=", NULL));
}

TEST(bad_flags)
{
	static const char *const bad[][2] = { { "--t-count=0", "T_COUNT" },
		{ "--t-count=11", "T_COUNT" }, { "--t-count=5x", "T_COUNT" },
		{ "--t-count=-1", "T_COUNT" }, { "--t-count", "t-count" }, { "--t-addr", "t-addr" },
		{ "--t-loud=maybe", "T_LOUD" }, { "--t-none=1", "t-none" },
		{ "--T_COUNT=5", "T_COUNT" }, { "--t_count=5", "t_count" },
		{ "--t-coun=5", "t-coun" }, { "--t-counts=5", "t-counts" }, { "-x", "-x" },
		{ "word", "word" }, { "--", "--" }, { "", "''" }, { "--=5", "--" } };
	struct conf *c = NULL;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_fails(e, ERR_INVALID, load(&c, &e, bad[i][0], NULL));
		assert_has(e.msg, bad[i][1]);
	}
	assert_null(c);
}

TEST(bad_environment_names_the_option)
{
	struct conf *c;
	struct err e;

	setenv("T_COUNT", "many", 1);
	assert_fails(e, ERR_INVALID, load(&c, &e, NULL, NULL));
	assert_has(e.msg, "T_COUNT (environment)");
	assert_has(e.msg, "many");
	clear_env(NULL);
	setenv("T_PIN", "hunter2", 1);
	assert_fails(e, ERR_INVALID, load(&c, &e, NULL, NULL));
	assert_has(e.msg, "T_PIN");
	assert_has_not(e.msg, "hunter2");
}

TEST(help_beats_errors)
{
	struct conf *c;
	struct err e;

	setenv("T_COUNT", "many", 1);
	assert_ok(e, load(&c, &e, "--nonsense", "--help"));
	assert_true(conf_help_asked(c));
	conf_free(c);
	assert_ok(e, load(&c, &e, "-h", NULL));
	assert_true(conf_help_asked(c));
	conf_free(c);
}

TEST(help_and_dump)
{
	CLEANUP(xfreep) char *text = xcalloc(1, 8000);
	FILE *f = fmemopen(text, 8000, "w");
	struct conf *c;
	struct err e;

	conf_print_help(table, ARRAY_LEN(table), "prog", f);
	fflush(f);
	assert_has(text, "Usage: prog");
	assert_has(text, "--t-addr=TEXT");
	assert_has(text, "Where to listen. Default: 0.0.0.0:1.");
	assert_has(text, "How many. Default: 5. From 1 to 10.");
	assert_has(text, "--t-loud[=true|false]");
	assert_ok(e, load(&c, &e, "--t-secret=hunter2", "--t-count=3"));
	rewind(f);
	memset(text, 0, 8000);
	conf_dump(c, f);
	fclose(f);
	assert_has(text, "T_SECRET=***\n");
	assert_has(text, "T_COUNT=3\n");
	assert_has_not(text, "hunter2");
	conf_free(c);
}

static void
get_wrong_type(void *c)
{
	conf_int(c, "T_ADDR");
}

static void
get_unknown(void *c)
{
	conf_text(c, "T_NONE");
}

static void
load_bad_default(void *arg UNUSED)
{
	static const struct conf_option bad[] = {
		{ .name = "T_X", .type = CONF_INT, .dflt = "0", .min = 1, .max = 2, .help = "" }
	};
	struct conf *c;

	if (conf_load(bad, 1, 0, NULL, &c, NULL) == 0)
		conf_free(c);
}

TEST(misuse_is_a_bug)
{
	struct conf *c;
	struct err e;

	assert_ok(e, load(&c, &e, NULL, NULL));
	assert_true(t_aborts(get_wrong_type, c));
	assert_true(t_aborts(get_unknown, c));
	assert_true(t_aborts(load_bad_default, NULL));
	conf_free(c);
}

#define L(name) cmocka_unit_test_setup(name, clear_env)
T_MAIN(L(defaults), L(flag_wins_over_environment), L(empty_values), L(bad_flags),
    L(bad_environment_names_the_option), L(help_beats_errors), L(help_and_dump), L(misuse_is_a_bug))
