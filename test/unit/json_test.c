#include "t.h"

#include "base/json.h"

#define MAX 100000

static json_t *
parse(const char *text)
{
	struct err e = { 0 };
	json_t *v = NULL;

	if (json_parse(strv_of(text), MAX, &v, &e) == -1)
		fail_msg("%s: %s", text, e.msg);
	return v;
}

TEST(parses_one_value)
{
	static const char *const good[] = { "{}", "[]", " 1 ", "\"x\"", "null", "true", "-0.5e3",
		"{\"a\":{\"b\":[1,2,{}]}}", "9223372036854775807", "\"\\u00e4\\ud83d\\ude00\"" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		json_decref(parse(good[i]));
}

TEST(refuses)
{
	static const char *const bad[] = { "", " ", "{", "[1,]", "{\"a\":1,}", "{'a':1}", "{} x",
		"1 2", "{\"a\":1,\"a\":2}", "{\"x\":{\"a\":1,\"a\":1}}", "nul", "NaN", "01", "+1",
		"\"\\x\"", "\"\t\"", "\"\xFF\"", "\"\\ud800\"", "\"\\u0000\"", "1e999",
		"9223372036854775808", "//c\n1", "\xEF\xBB\xBF{}" };
	json_t *v = (json_t *)&v;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (json_parse(strv_of(bad[i]), MAX, &v, NULL) != -1)
			fail_msg("%s is taken", bad[i]);
	}
	assert_fails(e, ERR_INVALID, json_parse(STRV_NONE, MAX, &v, &e));
	assert_fails(e, ERR_INVALID, json_parse((struct strv){ "{}\0", 3 }, MAX, &v, &e));
	assert_fails(e, ERR_INVALID, json_parse((struct strv){ "\"a\0b\"", 5 }, MAX, &v, &e));
	assert_fails(e, ERR_INVALID, json_parse((struct strv){ "{}", 1 }, MAX, &v, &e));
	assert_ptr_equal(v, &v); /* untouched */
}

TEST(errors_name_the_place_but_not_the_text)
{
	struct err e;
	json_t *v;

	assert_fails(e, ERR_INVALID, json_parse(STRV("{\n  \"key\": secret1\n}"), MAX, &v, &e));
	assert_has(e.msg, "line 2, column 1");
	assert_has_not(e.msg, "secret1");
}

TEST(size_limit)
{
	struct err e;
	json_t *v;

	assert_ok(e, json_parse(STRV("[1]"), 3, &v, &e));
	json_decref(v);
	assert_fails(e, ERR_TOO_LARGE, json_parse(STRV("[1] "), 3, &v, &e));
}

static char *
nested(size_t depth, const char *open, const char *inner, const char *close)
{
	struct strbuf b;
	char *text;

	strbuf_init(&b, MAX);
	for (size_t i = 0; i < depth; i++)
		strbuf_adds(&b, open);
	strbuf_adds(&b, inner);
	for (size_t i = 0; i < depth; i++)
		strbuf_adds(&b, close);
	assert_int_equal(strbuf_take(&b, &text, NULL), 0);
	return text;
}

TEST(depth_limit)
{
	CLEANUP(xfreep) char *ok = nested(JSON_DEPTH_MAX, "[", "", "]");
	CLEANUP(xfreep) char *deep = nested(JSON_DEPTH_MAX + 1, "[", "", "]");
	CLEANUP(xfreep) char *objects = nested(JSON_DEPTH_MAX + 1, "{\"a\":\n", "1", "}");
	CLEANUP(xfreep) char *flood = nested(MAX / 2, "[", "", "");
	struct err e;
	json_t *v;

	json_decref(parse(ok));
	assert_fails(e, ERR_INVALID, json_parse(strv_of(deep), MAX, &v, &e));
	assert_has(e.msg, "line 1, column 65");
	assert_fails(e, ERR_INVALID, json_parse(strv_of(objects), MAX, &v, &e));
	assert_has(e.msg, "line 65, column 1");
	assert_fails(e, ERR_INVALID, json_parse(strv_of(flood), MAX, &v, &e));
}

TEST(brackets_in_strings_do_not_count)
{
	CLEANUP(xfreep) char *text = nested(200, "\"[{\\\"[\",", "1", "");
	CLEANUP(strbuf_done) struct strbuf b;
	struct err e;
	json_t *v;

	strbuf_init(&b, MAX);
	strbuf_addf(&b, "[%s]", text);
	assert_ok(e, json_parse(strbuf_view(&b), MAX, &v, &e));
	assert_int_equal(json_array_size(v), 201);
	json_decref(v);
	/* A string that never ends, and one that ends in a backslash. */
	assert_fails(e, ERR_INVALID, json_parse(STRV("[\"[[["), MAX, &v, &e));
	assert_fails(e, ERR_INVALID, json_parse(STRV("\"\\"), MAX, &v, &e));
}

TEST(accessors)
{
	CLEANUP(json_unrefp)
	json_t *v =
	    parse("{\"a\":{\"b\":{\"s\":\"x\",\"i\":-7,\"t\":true,\"f\":false,\"n\":null,\"r\":1.5,"
	          "\"arr\":[1]}},\"k.l/m\":\"dots\",\"\":\"empty\"}");

	assert_string_equal(json_get_str(v, "a.b.s"), "x");
	assert_null(json_get_str(v, "a.b.i"));
	assert_null(json_get_str(v, "a.b.none"));
	assert_null(json_get_str(v, "a.b.s.deeper"));
	assert_null(json_get_str(v, "a..s"));
	assert_null(json_get_str(v, ".a"));
	assert_null(json_get_str(NULL, "a"));
	assert_int_equal(json_get_int(v, "a.b.i", 3), -7);
	assert_int_equal(json_get_int(v, "a.b.s", 3), 3);
	assert_int_equal(json_get_int(v, "a.b.r", 3), 3);
	assert_int_equal(json_get_int(v, "x", 3), 3);
	assert_true(json_get_bool(v, "a.b.t", false));
	assert_false(json_get_bool(v, "a.b.f", true));
	assert_true(json_get_bool(v, "a.b.i", true));
	assert_false(json_get_bool(v, "a.b.n", false));
	assert_null(json_get(v, "a.b.n"));
	assert_ptr_equal(json_get(v, ""), v);
	assert_non_null(json_get_obj(v, "a.b"));
	assert_null(json_get_obj(v, "a.b.arr"));
	assert_int_equal(json_array_size(json_get_arr(v, "a.b.arr")), 1);
	assert_null(json_get_arr(v, "a"));
	assert_string_equal(json_member_str(v, "k.l/m"), "dots");
	assert_null(json_member_str(v, "a"));
	assert_null(json_member_str(NULL, "a"));
}

TEST(builders_and_text)
{
	CLEANUP(json_unrefp) json_t *v = json_object();
	CLEANUP(xfreep) char *text = NULL, *null = json_text(NULL);

	json_set_str(v, "z", "x\"\n");
	json_set_str(v, "none", NULL);
	json_set_int(v, "i", INT64_MIN);
	json_set_bool(v, "b", false);
	json_set(v, "arr", json_pack("[i,n]", 1));
	json_set(v, "nothing", NULL);
	json_set_str(v, "bad", "a\xFFz");
	json_set_str(v, "k\xFE", "y");
	text = json_text(v);
	assert_string_equal(text,
	    "{\"z\":\"x\\\"\\n\",\"i\":-9223372036854775808,\"b\":false,\"arr\":[1,null],"
	    "\"bad\":\"a\xEF\xBF\xBDz\",\"k\xEF\xBF\xBD\":\"y\"}");
	assert_string_equal(null, "null");
}

TEST(text_of_scalars)
{
	static const char *const texts[] = { "1", "\"x\"", "null", "[]", "0.5",
		"{\"b\":1,\"a\":2}" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(json_unrefp) json_t *v = parse(texts[i]);
		CLEANUP(xfreep) char *out = json_text(v);

		assert_string_equal(out, texts[i]);
	}
}

static void
set_on_array(void *arg)
{
	json_set_int(arg, "a", 1);
}

TEST(member_of_no_object_is_a_bug)
{
	CLEANUP(json_unrefp) json_t *v = json_array(), *none = NULL;

	assert_true(t_aborts(set_on_array, v));
	json_unrefp(&none);
}

T_MAIN(T(parses_one_value), T(refuses), T(errors_name_the_place_but_not_the_text), T(size_limit),
    T(depth_limit), T(brackets_in_strings_do_not_count), T(accessors), T(builders_and_text),
    T(text_of_scalars), T(member_of_no_object_is_a_bug))
