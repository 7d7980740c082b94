#include "t.h"

#include "base/json.h"
#include "base/yaml.h"

#define MAX 100000

static void
check(const char *yaml, const char *json)
{
	struct err e = { 0 };
	json_t *v;
	char *text;

	if (yaml_parse(strv_of(yaml), MAX, &v, &e) == -1)
		fail_msg("%s: %s", yaml, e.msg);
	text = json_text(v);
	assert_string_equal(text, json);
	xfree(text);
	json_decref(v);
}

static void
refused(const char *yaml, const char *why)
{
	json_t *v = NULL;
	struct err e;

	memset(&e, 0, sizeof(e));
	if (yaml_parse(strv_of(yaml), MAX, &v, &e) != -1)
		fail_msg("%s is taken", yaml);
	assert_int_equal(e.code, ERR_INVALID);
	assert_has(e.msg, why);
	assert_null(v);
}

TEST(collections)
{
	check("a: 1\nb:\n  - x\n  - {c: [d, 2]}\n", "{\"a\":1,\"b\":[\"x\",{\"c\":[\"d\",2]}]}");
	check("---\na: {}\n...\n", "{\"a\":{}}");
	check("[]", "[]");
	check("x", "\"x\"");
	check("---\n", "null");
	check("# only a comment\na:\n", "{\"a\":null}");
	check("%YAML 1.1\n---\na: 1\n", "{\"a\":1}");
	check("{\"json\": [true, null, \"\\u00e4\"]}", "{\"json\":[true,null,\"\xC3\xA4\"]}");
	check("a: |\n  two\n  lines\nb: >-\n  one\n  line\n",
	    "{\"a\":\"two\\nlines\\n\",\"b\":\"one line\"}");
}

TEST(plain_scalars)
{
	check("[~, null, Null, NULL, ]", "[null,null,null,null]");
	check("[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]");
	check("[yes, no, on, off, y, nULL, tRue, 'true', \"1\"]",
	    "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"nULL\",\"tRue\",\"true\",\"1\"]");
	check("[0, -0, +5, -12, 9223372036854775807, -9223372036854775808]",
	    "[0,0,5,-12,9223372036854775807,-9223372036854775808]");
	check("[0644, 0o17, 0x1F, -010]", "[420,15,31,-8]");
	check("[0.5, -.5, 5., 1e3, 1.5E-1, +0.25, 00.5]",
	    "[0.5,-0.5,5.0,1000.0,0.14999999999999999,0.25,0.5]");
	check("[1_000, 0x, 0xg, 0o8, 1.2.3, 1e, e1, '.', -, +, 10Gi, 100m, 2024-01-01, 1:30]",
	    "[\"1_000\",\"0x\",\"0xg\",\"0o8\",\"1.2.3\",\"1e\",\"e1\",\".\",\"-\",\"+\",\"10Gi\","
	    "\"100m\",\"2024-01-01\",\"1:30\"]");
}

TEST(keys_are_text)
{
	check("1: a\ntrue: b\n~: c\n\"q\": d\n? x\n: e\n",
	    "{\"1\":\"a\",\"true\":\"b\",\"~\":\"c\",\"q\":\"d\",\"x\":\"e\"}");
	check("'': 1", "{\"\":1}");
	check("<<: {a: 1}", "{\"<<\":{\"a\":1}}");
}

TEST(refuses_what_is_dangerous)
{
	refused("a: &x 1\n", "line 1, column 4: anchors");
	refused("&x {a: 1}\n", "anchors");
	refused("- &x [1]\n", "anchors");
	refused("&k a: 1\n", "anchors");
	refused("a: 1\nb: *x\n", "line 2, column 4: aliases");
	refused("*x : 1\n", "aliases");
	refused("a: !!str 1\n", "tags");
	refused("a: ! 1\n", "tags");
	refused("!!map {a: 1}\n", "tags");
	refused("!x [1]\n", "tags");
	refused("!!str a: 1\n", "tags");
	refused("%TAG ! tag:x,2000:\n---\na: 1\n", "tags");
	refused("a: 1\n---\nb: 2\n", "line 2, column 1: more than one document");
	refused("a: 1\n...\n---\n", "more than one document");
	refused("", "no document");
	refused("# nothing\n", "no document");
}

TEST(refuses_what_is_wrong)
{
	refused("a: 1\nb: 2\na: 3\n", "line 3, column 1: duplicate");
	refused("a: null\na: 3\n", "duplicate");
	refused("1: x\n'1': y\n", "duplicate");
	refused("[a]: 1\n", "not a scalar");
	refused("? {a: 1}\n: 1\n", "not a scalar");
	refused("a: [1\n", "line 2, column 1");
	refused("a: 'x\n", "line ");
	refused("a: b: c\n", "line 1, column 5");
	refused("a:\n\t- b\n", "line 2");
	refused("a: \"\\0\"\n", "zero byte");
	refused("a: \"\\q\"\n", "line 1");
	refused("a: \xFF\n", "byte 3");
	refused("a: \x01\n", "byte ");
	refused("9223372036854775808", "out of range");
	refused("-9223372036854775809", "out of range");
	refused("0xFFFFFFFFFFFFFFFFF", "out of range");
	refused("0x8000000000000000", "out of range");
	refused("089", "octal");
	refused("1e999", "out of range");
	refused(".inf", "no such number");
	refused("-.INF", "no such number");
	refused(".nan", "no such number");
}

TEST(limits)
{
	CLEANUP(strbuf_done) struct strbuf b;
	struct err e;
	json_t *v;

	assert_ok(e, yaml_parse(STRV("a: 1"), 4, &v, &e));
	json_decref(v);
	assert_fails(e, ERR_TOO_LARGE, yaml_parse(STRV("a: 1\n"), 4, &v, &e));
	for (int more = 0; more < 2; more++) {
		strbuf_init(&b, MAX);
		for (int i = 0; i < YAML_DEPTH_MAX + more; i++)
			strbuf_adds(&b, "[");
		for (int i = 0; i < YAML_DEPTH_MAX + more; i++)
			strbuf_adds(&b, "]");
		if (more) {
			assert_fails(e, ERR_INVALID, yaml_parse(strbuf_view(&b), MAX, &v, &e));
			assert_has(e.msg, "line 1, column 65: nested too deep");
		} else {
			assert_ok(e, yaml_parse(strbuf_view(&b), MAX, &v, &e));
			json_decref(v);
		}
		strbuf_done(&b);
	}
	strbuf_init(&b, MAX);
	for (int i = 0; i < 50000; i++)
		strbuf_adds(&b, "[");
	assert_fails(e, ERR_INVALID, yaml_parse(strbuf_view(&b), MAX, &v, &e));
	assert_fails(e, ERR_INVALID, yaml_parse((struct strv){ "a: 1\0b", 6 }, MAX, &v, &e));
	assert_fails(e, ERR_INVALID,
	    yaml_parse(STRV("\xFF\xFE"
	                    "a\0"),
	        MAX, &v, &e)); /* no UTF-16 */
	assert_fails(e, ERR_INVALID, yaml_parse(STRV_NONE, MAX, &v, &e));
}

/* $name becomes a number as a value and text as a key; $bad a number even as a key. */
static json_t *
replace(struct strv v, bool quoted, bool is_key, void *arg)
{
	++*(int *)arg;
	if (strv_is(v, "$name"))
		return is_key ? json_string("key") : json_integer(quoted ? 1 : 2);
	if (strv_is(v, "$bad"))
		return json_integer(3);
	return NULL;
}

TEST(scalar_hook)
{
	CLEANUP(xfreep) char *text = NULL;
	int calls = 0;
	struct err e;
	json_t *v;

	assert_ok(e,
	    yaml_parse_with(
	        STRV("a: $name\n$name: [\"$name\", $bad, x, 7]\n"), MAX, replace, &calls, &v, &e));
	text = json_text(v);
	assert_string_equal(text, "{\"a\":2,\"key\":[1,3,\"x\",7]}");
	assert_int_equal(calls, 7);
	json_decref(v);
	assert_fails(
	    e, ERR_INVALID, yaml_parse_with(STRV("$bad: 1"), MAX, replace, &calls, &v, &e));
	assert_has(e.msg, "line 1, column 1: mapping key");
	assert_fails(e, ERR_INVALID,
	    yaml_parse_with(STRV("key: 1\n$name: 1"), MAX, replace, &calls, &v, &e));
	assert_has(e.msg, "duplicate");
}

T_MAIN(T(collections), T(plain_scalars), T(keys_are_text), T(refuses_what_is_dangerous),
    T(refuses_what_is_wrong), T(limits), T(scalar_hook))
