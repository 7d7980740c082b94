#include "t.h"

#include "base/json.h"
#include "domain/gotemplate.h"

static const char *const sample =
    "{\"\\u0001struct\":true,\"Name\":\"n1\",\"Port\":8080,\"Big\":9007199254740993,"
    "\"Real\":1.5,\"Yes\":true,\"No\":false,\"Empty\":\"\",\"List\":[\"a\",\"b c\"],"
    "\"None\":[],\"Map\":{\"b\":\"2\",\"a\":\"1\"},\"Deep\":{\"x\":{\"y\":\"z\"}},"
    "\"Evil\":\"x\\nkind: Pod\\n\\\"quote\\\" '{{.Name}}' # c\",\"Number\":\"123\"}";

static json_t *
data_of(const char *text)
{
	struct err e;
	json_t *v;

	assert_ok(e, json_parse(strv_of(text), 65536, &v, &e));
	return v;
}

/* The rendered text with every token replaced by its text. */
static char *
render_with(const char *template, const char *data)
{
	struct gotemplate_values *values;
	struct gotemplate *t;
	json_t *d = data_of(data), *all;
	char *text, *ret;
	struct err e;

	assert_ok(e, gotemplate_compile(strv_of(template), &t, &e));
	assert_ok(e, gotemplate_render(t, d, &text, &values, &e));
	all = gotemplate_resolve(values, strv_of(text), true);
	ret = all ? xstrdup(json_string_value(all)) : xstrdup(text);
	json_decref(all);
	xfree(text);
	gotemplate_values_free(values);
	gotemplate_free(t);
	json_decref(d);
	return ret;
}

static void
check(const char *template, const char *want)
{
	char *got = render_with(template, sample);

	if (strcmp(got, want) != 0)
		fail_msg("%s gives \"%s\", not \"%s\"", template, got, want);
	xfree(got);
}

TEST(plain_text_and_values)
{
	check("", "");
	check("just text } }} {", "just text } }} {");
	check("a{{.Name}}b{{.Name}}{{.Name}}c", "an1bn1n1c");
	check("{{.Port}} {{.Real}} {{.Yes}} {{.No}}|{{.Empty}}|", "8080 1.5 true false||");
	check("{{.Big}}", "9007199254740993");
	check("{{.List}} {{.Map}}", "[a b c] map[a:1 b:2]");
	check("{{.Deep.x.y}} {{$.Deep.x.y}} {{ .Name }}", "z z n1");
	check("{{.Map.missing}}{{.Map.missing.more}}", "");
	check("{{\"t\\t\\\"\\u00e9\\x41\"}} {{`r\\aw`}} {{12}} {{-3}} {{2.5}} {{true}}",
	    "t\t\"\xc3\xa9"
	    "A r\\aw 12 -3 2.5 true");
}

TEST(trimming_and_comments)
{
	check("a \n {{- .Name -}} \n\t b", "an1b");
	check("a {{- /* c }} */ -}} b", "ab");
	check("a {{/* c */}} b", "a  b");
	check("{{/* only\n lines */ -}}\n\nx", "x");
	check("a {{.Name -}}\n{{- .Name}} b", "a n1n1 b");
}

TEST(branches)
{
	check("{{if .Yes}}y{{else}}n{{end}}{{if .No}}y{{else}}n{{end}}", "yn");
	check("{{if .Empty}}1{{else if .None}}2{{else if .Port}}3{{else}}4{{end}}", "3");
	check("{{if .Empty}}1{{else if .No}}2{{end}}", "");
	check("{{if and .Yes .Port .Name}}y{{end}}{{if and .Yes .No .Name}}n{{end}}", "y");
	check("{{or .Empty .No .Name}} {{and .Name .Port}}", "n1 8080");
	check("{{if not .Empty}}y{{end}}", "y");
	check("{{with .Deep.x}}{{.y}}{{$.Name}}{{end}}{{with .Empty}}no{{else}}e{{end}}", "zn1e");
	check("{{with .Empty}}1{{else with .Name}}{{.}}{{end}}", "n1");
	check("{{if eq .Name \"x\" \"n1\"}}y{{end}}{{if ne .Port 1}}y{{end}}", "yy");
	check("{{if lt .Port 9000}}a{{end}}{{if gt .Port 9000}}b{{end}}{{if ge .Port 8080}}c{{end}}"
	      "{{if le .Real 1.5}}d{{end}}{{if lt \"a\" \"b\"}}e{{end}}",
	    "acde");
	check("{{if eq .Map.nothing \"\"}}y{{end}}{{if eq .Yes true}}y{{end}}", "yy");
	check("{{if .Yes}}{{if .No}}a{{else}}b{{end}}c{{end}}", "bc");
}

TEST(ranges_and_variables)
{
	check("{{range .List}}<{{.}}>{{end}}", "<a><b c>");
	check("{{range $i, $v := .List}}{{$i}}={{$v}};{{end}}", "0=a;1=b c;");
	check("{{range $k, $v := .Map}}{{$k}}={{$v}};{{end}}", "a=1;b=2;");
	check("{{range $v := .Map}}{{$v}}{{end}}", "12");
	check(
	    "{{range .None}}x{{else}}none{{end}}{{range .Map.no}}x{{else}}none{{end}}", "nonenone");
	check("{{$x := .Name}}{{$x}}{{if .Yes}}{{$x := 5}}{{$x}}{{end}}{{$x}}", "n15n1");
	check("{{$x := 1}}{{range .List}}{{$x = .}}{{end}}{{$x}}", "b c");
	check("{{with $y := .Map}}{{$y.a}}{{end}}", "1");
	check("{{range $i, $v := .List}}{{if $i}},{{end}}{{$v}}{{end}}", "a,b c");
}

TEST(functions)
{
	check("{{index .Map \"a\"}} {{index .List 1}} {{index .Deep \"x\" \"y\"}}", "1 b c z");
	check("{{index .Map \"none\"}}|", "|");
	check("{{len .List}} {{len .Name}} {{.Map | len}}", "2 2 2");
	check("{{printf \"%s-%d-%v-%t-%%\" .Name .Port .Real .Yes}}", "n1-8080-1.5-true-%");
	check("{{.Name | printf \"%s:%s\" \"x\"}}", "x:n1");
	check("{{printf \"a=%q\" .Name}} {{(printf \"%s\" .Name) | len}}", "a=\"n1\" 2");
	check("{{(index .Deep \"x\").y}} {{(index .List 0)}}", "z a");
	check("{{.Name | quote}}", "\"n1\"");
}

/* The value that a YAML scalar made of this template would get. */
static json_t *
scalar(const char *template, bool quoted)
{
	struct gotemplate_values *values;
	json_t *d = data_of(sample), *ret;
	struct gotemplate *t;
	struct err e;
	char *text;

	assert_ok(e, gotemplate_compile(strv_of(template), &t, &e));
	assert_ok(e, gotemplate_render(t, d, &text, &values, &e));
	ret = gotemplate_resolve(values, strv_of(text), quoted);
	xfree(text);
	gotemplate_values_free(values);
	gotemplate_free(t);
	json_decref(d);
	return ret;
}

static void
check_scalar(const char *template, bool quoted, const char *want)
{
	json_t *v = scalar(template, quoted);
	char *text = v ? json_dumps(v, JSON_ENCODE_ANY) : xstrdup("nothing");

	if (strcmp(text, want) != 0)
		fail_msg("%s gives %s, not %s", template, text, want);
	xfree(text);
	json_decref(v);
}

TEST(values_keep_their_type_when_alone)
{
	check_scalar("{{.Port}}", false, "8080");
	check_scalar("{{.Real}}", false, "1.5");
	check_scalar("{{.Yes}}", false, "true");
	check_scalar("{{.Number}}", false, "\"123\"");
	check_scalar("{{.Empty}}", false, "\"\"");
	check_scalar("{{.Map.none}}", false, "null");
	check_scalar("{{.Port}}", true, "\"8080\"");
	check_scalar("{{.Yes}}", true, "\"true\"");
	check_scalar("{{.Map.none}}", true, "\"\"");
	check_scalar("x{{.Port}}", false, "\"x8080\"");
	check_scalar("{{.Port}}{{.Port}}", false, "\"80808080\"");
	check_scalar("{{.List}}", false, "\"[a b c]\"");
	check_scalar("just text", false, "nothing");
}

TEST(quoted_values_lose_their_quotes_only_where_yaml_takes_them)
{
	check_scalar("{{printf \"%q\" .Name}}", false, "\"n1\"");
	check_scalar("{{quote .Port}}", false, "\"8080\"");
	check_scalar("{{printf \"%q\" .Number}}", false, "\"123\"");
	check_scalar("x={{printf \"%q\" .Name}}", false, "\"x=\\\"n1\\\"\"");
	check_scalar("{{printf \"%q\" .Name}}", true, "\"\\\"n1\\\"\"");
}

TEST(values_never_appear_in_the_rendered_text)
{
	struct gotemplate_values *values;
	json_t *d = data_of(sample);
	struct gotemplate *t;
	struct err e;
	char *text;

	assert_ok(
	    e, gotemplate_compile(STRV("a: {{.Evil}}\nb: \"{{printf \"%q\" .Evil}}\"\n"), &t, &e));
	assert_ok(e, gotemplate_render(t, d, &text, &values, &e));
	assert_has_not(text, "kind");
	assert_has_not(text, "quote");
	for (const char *p = text; *p; p++)
		assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz0123456789: \n\"", *p));
	xfree(text);
	gotemplate_values_free(values);
	gotemplate_free(t);
	json_decref(d);
}

/* A value that looks like a token of another rendering, or of this one, stays text. */
TEST(tokens_cannot_be_forged)
{
	struct gotemplate_values *v1, *v2;
	json_t *d = data_of(sample), *stolen = json_object(), *got;
	struct gotemplate *t;
	char *one, *two;
	struct err e;

	assert_ok(e, gotemplate_compile(STRV("{{.Name}}"), &t, &e));
	assert_ok(e, gotemplate_render(t, d, &one, &v1, &e));
	json_set_str(stolen, "Name", one);
	assert_ok(e, gotemplate_render(t, stolen, &two, &v2, &e));
	assert_string_not_equal(one, two);
	got = gotemplate_resolve(v2, strv_of(two), false);
	assert_string_equal(json_string_value(got), one);
	json_decref(got);
	assert_null(gotemplate_resolve(v2, strv_of(one), false));
	xfree(one);
	xfree(two);
	gotemplate_values_free(v1);
	gotemplate_values_free(v2);
	gotemplate_free(t);
	json_decref(d);
	json_decref(stolen);
}

static void
check_bad(const char *template, const char *part)
{
	struct gotemplate *t = NULL;
	struct err e = { 0 };

	if (gotemplate_compile(strv_of(template), &t, &e) == 0)
		fail_msg("%s compiles", template);
	if (strstr(e.msg, part) == NULL)
		fail_msg("%s fails with \"%s\", not \"%s\"", template, e.msg, part);
}

TEST(mistakes_are_found_at_compile_time)
{
	check_bad("a\n  {{.Name", "line 2, column 10: action without its closing }}");
	check_bad("{{if .A}}x", "line 1, column 3: block without its {{end}}");
	check_bad("x{{end}}", "line 1, column 4: end without a block");
	check_bad("{{else}}", "else without a block");
	check_bad("{{if .A}}{{else}}{{else}}{{end}}", "second else");
	check_bad("{{if .A}}{{else foo}}{{end}}", "unexpected after else");
	check_bad("{{range .A}}{{else if .B}}{{end}}", "unexpected after else");
	check_bad("{{end x}}", "unexpected after end");
	check_bad("{{if}}{{end}}", "a value is missing");
	check_bad("{{}}", "a value is missing");
	check_bad("{{.A | }}", "a value is missing");
	check_bad("{{.A | .B}}", "a function must follow '|'");
	check_bad("{{.A .B}}", "only a function takes arguments");
	check_bad("{{define \"x\"}}{{end}}", "'define' is not supported here");
	check_bad("{{template \"x\"}}", "'template' is not supported here");
	check_bad("{{env \"HOME\"}}", "'env' is not supported here");
	check_bad("{{printf}}", "wrong number of arguments for printf: 0");
	check_bad("{{not 1 2}}", "wrong number of arguments for not: 2");
	check_bad("{{not len .A}}", "needs parentheses");
	check_bad("{{$x}}", "variable $x is not defined");
	check_bad("{{$x = 1}}", "not defined");
	check_bad("{{if .A}}{{$x := 1}}{{end}}{{$x}}", "variable $x is not defined");
	check_bad("{{$a, $b := .A}}", "two variables are for range only");
	check_bad("{{(.A}}", "')' is missing");
	check_bad("{{.A)}}", "unexpected ')'");
	check_bad("{{\"abc}}", "text without its closing quote");
	check_bad("{{\"\\q\"}}", "unknown escape");
	check_bad("{{\"\\xff\"}}", "unknown escape");
	check_bad("{{12ab}}", "'12ab' is not a number");
	check_bad("{{99999999999999999999}}", "is not a number");
	check_bad("{{.A ^ .B}}", "unexpected '^'");
	check_bad("{{\x01}}", "unexpected byte 0x01");
	check_bad("{{/* x }}", "comment without its end");
	check_bad("{{/* x */ .A}}", "a comment must be alone");
	check_bad("\xff", "not UTF-8");
	check_bad("{{.A\"x\"}}", "a blank is missing");
}

static void
check_fails(const char *template, const char *part)
{
	struct gotemplate_values *values;
	json_t *d = data_of(sample);
	struct gotemplate *t;
	struct err e;
	char *text;

	assert_ok(e, gotemplate_compile(strv_of(template), &t, &e));
	if (gotemplate_render(t, d, &text, &values, &e) == 0)
		fail_msg("%s renders", template);
	if (strstr(e.msg, part) == NULL)
		fail_msg("%s fails with \"%s\", not \"%s\"", template, e.msg, part);
	gotemplate_free(t);
	json_decref(d);
}

TEST(mistakes_are_found_while_rendering)
{
	check_fails("\n {{.Nme}}", "line 2, column 4: there is no .Nme");
	check_fails("{{.Name.x}}", "of something that has no fields");
	check_fails("{{eq .Port \"8080\"}}", "different types");
	check_fails("{{lt .Yes .No}}", "no order");
	check_fails("{{index .List 2}}", "out of the list's range");
	check_fails("{{index .List \"a\"}}", "out of the list's range");
	check_fails("{{index .Map 1}}", "must be a text");
	check_fails("{{index .Port 1}}", "needs a map or a list");
	check_fails("{{len .Port}}", "len needs");
	check_fails("{{range .Name}}{{end}}", "range needs a list or a map");
	check_fails("{{range .}}{{end}}", "range needs a list or a map");
	check_fails("{{printf \"%s\"}}", "too few arguments");
	check_fails("{{printf \"x\" 1}}", "too many arguments");
	check_fails("{{printf \"%d\" .Name}}", "%d needs");
	check_fails("{{printf \"%x\" .Port}}", "printf knows");
	check_fails("{{printf \"%\" .Port}}", "printf knows");
	check_fails("{{printf .Port}}", "printf needs a format");
}

/* Short circuit: what is not reached cannot fail. */
TEST(and_or_stop_early)
{
	check("{{if and .No .Nothing}}x{{end}}{{if or .Yes .Nothing}}y{{end}}", "y");
}

TEST(depth_is_bounded)
{
	struct strbuf b;
	struct gotemplate *t;
	struct err e;

	strbuf_init(&b, 1 << 20);
	for (int i = 0; i < 1000; i++)
		strbuf_adds(&b, "{{if .Yes}}");
	assert_fails(e, ERR_INVALID, gotemplate_compile(strbuf_view(&b), &t, &e));
	assert_has(e.msg, "nested deeper");
	strbuf_reset(&b);
	strbuf_adds(&b, "{{");
	for (int i = 0; i < 1000; i++)
		strbuf_addc(&b, '(');
	assert_fails(e, ERR_INVALID, gotemplate_compile(strbuf_view(&b), &t, &e));
	assert_has(e.msg, "nested deeper");
	/* A long chain is not deep. */
	strbuf_reset(&b);
	strbuf_adds(&b, "{{if .No}}");
	for (int i = 0; i < 5000; i++)
		strbuf_adds(&b, "{{else if .No}}n");
	strbuf_adds(&b, "{{else}}last{{end}}");
	check(b.p, "last");
	strbuf_done(&b);
}

TEST(work_is_bounded)
{
	struct strbuf b;
	json_t *d = data_of("{\"L\":[1,2,3,4,5,6,7,8,9,10],\"T\":\"\"}"), *long_text;
	static const char *const heavy[] = {
		/* 10^6 turns */
		"{{range .L}}{{range $.L}}{{range $.L}}{{range $.L}}{{range $.L}}{{range $.L}}"
		"{{end}}{{end}}{{end}}{{end}}{{end}}{{end}}",
		/* doubling */
		"{{$x := \"aaaaaaaa\"}}{{range .L}}{{range $.L}}{{$x = printf \"%s%s\" $x $x}}"
		"{{end}}{{end}}",
		/* much out of little */
		"{{range .L}}{{range $.L}}{{range $.L}}{{$.T}}{{end}}{{end}}{{end}}",
		/* much literal text */
		"{{range .L}}{{range $.L}}{{range $.L}}{{range $.L}}"
		"0123456789012345678901234567890123456789012345678901234567890123456789"
		"0123456789012345678901234567890123456789012345678901234567890123456789"
		"{{end}}{{end}}{{end}}{{end}}",
	};

	strbuf_init(&b, 1 << 20);
	for (int i = 0; i < 100000; i++)
		strbuf_addc(&b, 'x');
	long_text = json_string(b.p);
	json_set(d, "T", long_text);
	for (size_t i = 0; i < ARRAY_LEN(heavy); i++) {
		struct gotemplate_values *values;
		struct gotemplate *t;
		struct err e;
		char *text;

		assert_ok(e, gotemplate_compile(strv_of(heavy[i]), &t, &e));
		assert_fails(e, ERR_INVALID, gotemplate_render(t, d, &text, &values, &e));
		gotemplate_free(t);
	}
	strbuf_done(&b);
	json_decref(d);
}

TEST(size_is_bounded)
{
	char *text = xcalloc(1, GOTEMPLATE_TEXT_MAX + 2);
	struct gotemplate *t;
	struct err e;

	memset(text, 'x', GOTEMPLATE_TEXT_MAX + 1);
	assert_fails(e, ERR_TOO_LARGE,
	    gotemplate_compile((struct strv){ text, GOTEMPLATE_TEXT_MAX + 1 }, &t, &e));
	assert_ok(e, gotemplate_compile((struct strv){ text, GOTEMPLATE_TEXT_MAX }, &t, &e));
	gotemplate_free(t);
	xfree(text);
	gotemplate_free(NULL);
}

T_MAIN(T(plain_text_and_values), T(trimming_and_comments), T(branches), T(ranges_and_variables),
    T(functions), T(values_keep_their_type_when_alone),
    T(quoted_values_lose_their_quotes_only_where_yaml_takes_them),
    T(values_never_appear_in_the_rendered_text), T(tokens_cannot_be_forged),
    T(mistakes_are_found_at_compile_time), T(mistakes_are_found_while_rendering),
    T(and_or_stop_early), T(depth_is_bounded), T(work_is_bounded), T(size_is_bounded))
