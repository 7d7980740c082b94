#include "t.h"

#include <errno.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/log.h"

#define LINE_MAX_BYTES 8192

static int
setup(void **state UNUSED)
{
	clock_fake_start(1, INT64_C(1709210096123456789));
	log_set_level(LOG_INFO);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	clock_fake_end();
	return 0;
}

static void
write_all_kinds(void *arg UNUSED)
{
	struct err e;

	err_set(&e, ERR_IO, "disk \"full\"");
	log_info("started", log_s("sandbox", "i123"), log_i("ms", -5), log_b("ok", true),
	    log_b("no", false), log_s("none", NULL), log_s("empty", ""), log_err(&e),
	    log_v("part", (struct strv){ "abcdef", 3 }));
	log_debug("hidden", log_i("n", 1));
	log_warn("bare");
}

TEST(lines)
{
	CLEANUP(xfreep) char *text = t_stderr(write_all_kinds, NULL);

	assert_string_equal(text,
	    "{\"time\":\"2024-02-29T12:34:56.123Z\",\"level\":\"info\",\"msg\":\"started\","
	    "\"sandbox\":\"i123\",\"ms\":-5,\"ok\":true,\"no\":false,\"err\":\"disk "
	    "\\\"full\\\"\",\"part\":\"abc\"}\n"
	    "{\"time\":\"2024-02-29T12:34:56.123Z\",\"level\":\"warn\",\"msg\":\"bare\"}\n");
}

TEST(levels)
{
	enum log_level level = LOG_WARN;

	assert_true(log_on(LOG_INFO));
	assert_false(log_on(LOG_DEBUG));
	assert_int_equal(log_level_parse(STRV("debug"), &level), 0);
	assert_int_equal(level, LOG_DEBUG);
	assert_int_equal(log_level_parse(STRV("error"), &level), 0);
	assert_int_equal(level, LOG_ERROR);
	assert_int_equal(log_level_parse(STRV("Error"), &level), -1);
	assert_int_equal(log_level_parse(STRV(""), &level), -1);
	assert_int_equal(level, LOG_ERROR);
	log_set_level(level);
	assert_false(log_on(LOG_WARN));
}

static void
write_value(void *arg)
{
	log_error("m", log_v("v", *(struct strv *)arg), log_i("last", 1));
}

/* The line of one value, parsed by another implementation. */
static json_t *
round_trip(struct strv v)
{
	CLEANUP(xfreep) char *text = t_stderr(write_value, &v);
	json_t *line;

	assert_true(strlen(text) <= LINE_MAX_BYTES);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	line = json_loads(text, 0, NULL);
	assert_non_null(line);
	return line;
}

TEST(outside_text_is_escaped)
{
	char all[256];
	json_t *line;

	for (int i = 0; i < 256; i++)
		all[i] = (char)(i ? i : 'x');
	line = round_trip((struct strv){ all, sizeof(all) });
	assert_non_null(json_string_value(json_object_get(line, "v")));
	assert_int_equal(json_integer_value(json_object_get(line, "last")), 1);
	json_decref(line);
	line = round_trip(STRV("a\n{\"level\":\"fake\"}\x1b[0m\x7f\xE2\x82\xAC"));
	assert_string_equal(json_string_value(json_object_get(line, "v")),
	    "a\n{\"level\":\"fake\"}\x1b[0m\x7f\xE2\x82\xAC");
	json_decref(line);
}

TEST(long_values_are_cut)
{
	static const char *const fill[] = { "x", "\x01", "\xE2\x82\xAC", "\xFF", "\"" };

	for (size_t f = 0; f < ARRAY_LEN(fill); f++) {
		CLEANUP(strbuf_done) struct strbuf b;
		const char *v;
		json_t *line;

		strbuf_init(&b, 100000);
		for (int i = 0; i < 20000; i++)
			strbuf_adds(&b, fill[f]);
		line = round_trip(strbuf_view(&b));
		v = json_string_value(json_object_get(line, "v"));
		assert_true(strlen(v) > 200);
		assert_string_equal(v + strlen(v) - 3, "...");
		assert_int_equal(json_integer_value(json_object_get(line, "last")), 1);
		json_decref(line);
	}
}

static void
write_many(void *arg UNUSED)
{
	struct log_kv kv[40];
	char text[1200];

	for (size_t n = 0; n < sizeof(text); n++)
		text[n] = 'y';
	for (size_t i = 0; i < ARRAY_LEN(kv); i++)
		kv[i] = log_v("key", (struct strv){ text, sizeof(text) - i });
	log_write(LOG_INFO, "m", kv, ARRAY_LEN(kv));
}

TEST(many_values_stay_within_a_line)
{
	CLEANUP(xfreep) char *text = t_stderr(write_many, NULL);
	json_t *line = json_loads(text, 0, NULL);

	assert_non_null(line);
	assert_true(strlen(text) > LINE_MAX_BYTES - 100 && strlen(text) <= LINE_MAX_BYTES);
	json_decref(line);
}

TEST(errno_is_kept)
{
	CLEANUP(xfreep) char *text = NULL;
	int keep = dup(STDERR_FILENO);

	errno = EBUSY;
	log_info("x", log_i("n", 1));
	assert_int_equal(errno, EBUSY);
	close(STDERR_FILENO);
	log_info("x", log_i("n", 1)); /* nowhere to write: no matter */
	dup2(keep, STDERR_FILENO);
	close(keep);
	assert_int_equal(errno, EBUSY);
}

#define L(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
T_MAIN(L(lines), L(levels), L(outside_text_is_escaped), L(long_values_are_cut),
    L(many_values_stay_within_a_line), L(errno_is_kept))
