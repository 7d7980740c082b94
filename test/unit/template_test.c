#include "t.h"

#include "base/clock.h"
#include "base/fsutil.h"
#include "base/json.h"
#include "domain/template.h"

static struct templates *
parse(const char *text)
{
	struct templates *t;
	struct err e;

	assert_ok(e, templates_parse(strv_of(text), &t, &e));
	return t;
}

TEST(all_fields)
{
	struct templates *all = parse(
	    "[{\"name\":\"full\",\"image\":\"repo.io/a/b:1\",\"description\":\"d\",\"port\":80,"
	    "\"envd\":\"image\",\"user\":\"root\",\"workdir\":\"/w\",\"startCmd\":\"run me\","
	    "\"readyCmd\":\"true\",\"args\":[\"a\",1],\"cmd\":\"prog\",\"shell\":\"zsh\","
	    "\"envVars\":{\"A\":1,\"B\":true,\"C\":\"x\"},\"metadata\":{\"k\":\"v\"},"
	    "\"noStartupProbe\":true,\"resources\":{\"cpu\":1,\"memory\":\"1Gi\"},"
	    "\"pool\":{\"size\":2},\"unknown\":{\"kept\":1}}]");
	const struct template *t = templates_at(all, 0);

	assert_int_equal(templates_count(all), 1);
	assert_string_equal(t->name, "full");
	assert_string_equal(t->image, "repo.io/a/b:1");
	assert_string_equal(t->description, "d");
	assert_null(t->pattern);
	assert_int_equal(t->port, 80);
	assert_int_equal(t->envd, ENVD_IN_IMAGE);
	assert_string_equal(t->user, "root");
	assert_string_equal(t->workdir, "/w");
	assert_string_equal(t->start_cmd, "run me");
	assert_string_equal(t->ready_cmd, "true");
	assert_string_equal(t->shell, "zsh");
	assert_true(t->no_startup_probe);
	assert_string_equal(json_string_value(json_array_get(t->args, 1)), "1");
	assert_int_equal(json_array_size(t->cmd), 1);
	assert_string_equal(json_member_str(t->env_vars, "A"), "1");
	assert_string_equal(json_member_str(t->env_vars, "B"), "true");
	assert_string_equal(json_member_str(t->metadata, "k"), "v");
	assert_string_equal(t->resources.cpu, "1");
	assert_string_equal(t->resources.memory, "1Gi");
	assert_string_equal(t->resources.cpu_limit, "2000m");
	assert_string_equal(t->resources.memory_limit, "4000Mi");
	assert_int_equal(json_get_int(t->pool, "size", 0), 2);
	assert_int_equal(json_get_int(t->raw, "unknown.kept", 0), 1);
	templates_free(all);
	templates_free(NULL);
}

TEST(defaults)
{
	struct templates *all = parse("[{\"name\":\"a\",\"image\":\"b\",\"pool\":null,"
	                              "\"args\":[],\"cmd\":\"\",\"startCmd\":\"\"}]");
	const struct template *t = templates_at(all, 0);

	assert_int_equal(t->port, 8080);
	assert_int_equal(t->envd, ENVD_INJECT);
	assert_string_equal(t->description, "");
	assert_null(t->user);
	assert_null(t->start_cmd);
	assert_null(t->args);
	assert_null(t->cmd);
	assert_null(t->pool);
	assert_string_equal(t->resources.cpu, "50m");
	assert_string_equal(t->resources.memory, "100Mi");
	templates_free(all);
}

#define A "{\"name\":\"a\",\"image\":\"b\""

TEST(mistakes_name_template_and_field)
{
	static const struct {
		const char *json, *part;
	} bad[] = {
		{ "[\n{]", "line 2, column" },
		{ "{}", "must be a JSON array" },
		{ "[1]", "template number 1 is not an object" },
		{ "[" A "},{}]", "template number 2: field 'name'" },
		{ "[{\"name\":\"a b\"}]", "field 'name'" },
		{ "[{\"name\":\"a\"}]", "template 'a': field 'image' is missing" },
		{ "[{\"name\":\"a\",\"image\":\"A B\"}]", "field 'image' is not an image" },
		{ "[" A "}," A "}]", "template 'a' exists twice" },
		{ "[" A ",\"port\":0}]", "field 'port' must be a number from 1 to 65535" },
		{ "[" A ",\"port\":\"80\"}]", "field 'port'" },
		{ "[" A ",\"envd\":\"no\"}]", "field 'envd'" },
		{ "[" A ",\"args\":[{}]}]", "field 'args'" },
		{ "[" A ",\"args\":{}}]", "field 'args'" },
		{ "[" A ",\"envVars\":{\"K\":[]}}]",
		    "field 'envVars' must be an object of texts: "
		    "see 'K'" },
		{ "[" A ",\"metadata\":[]}]", "field 'metadata'" },
		{ "[" A ",\"noStartupProbe\":1}]", "field 'noStartupProbe'" },
		{ "[" A ",\"description\":1}]", "field 'description'" },
		{ "[" A ",\"resources\":{\"cpu\":\"fast\"}}]", "field 'cpu' must be a quantity" },
		{ "[" A ",\"resources\":{\"memory\":\"-1\"}}]", "field 'memory'" },
		{ "[" A ",\"resources\":[]}]", "field 'resources'" },
		{ "[" A ",\"type\":\"magic\"}]", "field 'type'" },
		{ "[" A ",\"type\":\"dynamic\"}]", "field 'pattern'" },
		{ "[" A ",\"type\":\"dynamic\",\"pattern\":\"(a\"}]", "at character 3" },
		{ "[" A ",\"type\":\"dynamic\",\"pattern\":\"\\\\C\"}]", "field 'pattern'" },
		{ "[" A ":<x>\",\"type\":\"dynamic\",\"pattern\":\"(?P<y>a)\"}]", "line 1" },
		{ "[{\"name\":\"a\",\"image\":\"b:<x>\",\"type\":\"dynamic\","
		  "\"pattern\":\"(?P<y>a)\"}]",
		    "<x> is no group of the pattern" },
		{ "[" A ",\"pool\":1}]", "field 'pool'" },
		{ "[" A ",\"pool\":{\"size\":-1}}]", "field 'pool.size'" },
		{ "[" A ",\"pool\":{\"size\":1},\"type\":\"dynamic\",\"pattern\":\"x\"}]",
		    "is not possible in a dynamic template" },
	};
	struct templates *t;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_fails(e, ERR_INVALID, templates_parse(strv_of(bad[i].json), &t, &e));
		assert_has(e.msg, bad[i].part);
	}
}

TEST(too_many_are_refused)
{
	struct templates *t;
	struct strbuf b;
	struct err e;

	strbuf_init(&b, 1 << 20);
	strbuf_adds(&b, "[");
	for (int i = 0; i <= TEMPLATES_MAX; i++)
		strbuf_addf(&b, "%s{\"name\":\"t%d\",\"image\":\"x\"}", i ? "," : "", i);
	strbuf_adds(&b, "]");
	assert_fails(e, ERR_TOO_LARGE, templates_parse(strbuf_view(&b), &t, &e));
	strbuf_done(&b);
}

static const char *const several =
    "[{\"name\":\"base\",\"image\":\"img/base:1\"},"
    "{\"name\":\"py\",\"type\":\"dynamic\",\"image\":\"docker.io/<name>:<version>\","
    "\"pattern\":\"^(?P<name>python|node)-(?P<version>[0-9.]+)(?P<rest>-slim)?$\"},"
    "{\"name\":\"any\",\"type\":\"dynamic\",\"image\":\"x/y<rest>\","
    "\"pattern\":\"^any(?P<rest>-.*)?$\"},"
    "{\"name\":\"my-vnc\",\"image\":\"img/vnc\"}]";

static void
check_resolve(const struct templates *all, const char *id, const char *name, const char *image)
{
	const struct template *t;
	struct err e;
	char *got;

	assert_ok(e, templates_resolve(all, strv_of(id), &t, &got, &e));
	assert_string_equal(t->name, name);
	assert_string_equal(got, image);
	xfree(got);
}

TEST(resolving)
{
	struct templates *all = parse(several);
	const struct template *t;
	char *image = NULL;
	struct err e;

	check_resolve(all, "base", "base", "img/base:1");
	check_resolve(all, "base-v1", "base", "img/base:1");
	check_resolve(all, "my-vnc", "my-vnc", "img/vnc");
	check_resolve(all, "python-3.12", "py", "docker.io/python:3.12");
	check_resolve(all, "node-20-slim", "py", "docker.io/node:20");
	check_resolve(all, "python-3-v1", "py", "docker.io/python:3");
	check_resolve(all, "any", "any", "x/y");
	check_resolve(all, "any-z", "any", "x/y-z");
	assert_fails(e, ERR_NOT_FOUND, templates_resolve(all, STRV("my"), &t, &image, &e));
	assert_string_equal(e.msg, "template 'my' not found");
	assert_fails(e, ERR_NOT_FOUND, templates_resolve(all, STRV("base-v2"), &t, &image, &e));
	assert_fails(e, ERR_NOT_FOUND, templates_resolve(all, STRV("py"), &t, &image, &e));
	assert_fails(e, ERR_NOT_FOUND, templates_resolve(all, STRV_NONE, &t, &image, &e));
	assert_fails(e, ERR_NOT_FOUND, templates_resolve(all, STRV("-v1"), &t, &image, &e));
	/* The pattern matches, but what it makes is no image. */
	assert_fails(e, ERR_INVALID, templates_resolve(all, STRV("any- x"), &t, &image, &e));
	assert_has(e.msg, "template 'any' makes no image reference");
	/* $ is the end, not the place before a last newline. */
	assert_fails(e, ERR_NOT_FOUND, templates_resolve(all, STRV("python-3\n"), &t, &image, &e));
	templates_free(all);
}

TEST(hostile_patterns_stop_early)
{
	static const char *const patterns[] = { "^(a+)+$", "^(a|aa)+$", "^(.*)*x$",
		"(((((a*)*)*)*)*)*b", "^(?:(a)|b|aa|(c)|a)*x$", "(?R)?a*$^" };
	char id[TEMPLATE_SUBJECT_MAX + 2], text[512];

	memset(id, 'a', sizeof(id));
	id[TEMPLATE_SUBJECT_MAX - 1] = '!';
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		struct templates *all;
		const struct template *t;
		char *image = NULL;
		int64_t start = clock_mono();
		struct err e = { 0 };

		snprintf(text, sizeof(text),
		    "[{\"name\":\"h\",\"type\":\"dynamic\",\"image\":\"x\",\"pattern\":\"%s\"}]",
		    patterns[i]);
		all = parse(text);
		if (templates_resolve(
		        all, (struct strv){ id, TEMPLATE_SUBJECT_MAX }, &t, &image, &e) == -1)
			assert_true(e.code == ERR_NOT_FOUND || e.code == ERR_INVALID);
		xfree(image);
		/* Longer ids are not matched at all. */
		assert_fails(e, ERR_NOT_FOUND,
		    templates_resolve(
		        all, (struct strv){ id, TEMPLATE_SUBJECT_MAX + 1 }, &t, &image, &e));
		templates_free(all);
		/* Milliseconds as a rule; the bound leaves room for a busy machine. */
		assert_true(clock_mono() - start < SECONDS(1));
	}
}

TEST(a_bound_that_is_reached_says_so)
{
	struct templates *all = parse("[{\"name\":\"h\",\"type\":\"dynamic\",\"image\":\"x\","
	                              "\"pattern\":\"^(a|aa)+$\"}]");
	const struct template *t;
	char *image = NULL;
	struct err e;

	assert_fails(e, ERR_INVALID,
	    templates_resolve(all,
	        STRV("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"), &t,
	        &image, &e));
	assert_has(e.msg, "template 'h': the pattern needs too much");
	templates_free(all);
}

TEST(references)
{
	static const struct {
		const char *text, *ns, *name, *tag;
	} good[] = {
		{ "base", "", "base", "" },
		{ "  BASE\n", "", "base", "" },
		{ "team/My_Tpl-1:v1.0", "team", "my_tpl-1", "v1.0" },
		{ "a:default", "", "a", "" },
	};
	static const char *const bad[] = { "", " ", "a/b/c", "/a", "a/", "a:", ":a", "a b", "a.b",
		"a:b:c", "\xc3\xa9", "a:aef134ef-7aa1-945e-9399-7df9a4ad0c3f" };
	struct template_ref ref;
	char text[TEMPLATE_NAME_MAX + 2];
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_ok(e, template_ref_parse(strv_of(good[i].text), &ref, &e));
		assert_string_equal(ref.ns, good[i].ns);
		assert_string_equal(ref.name, good[i].name);
		assert_string_equal(ref.tag, good[i].tag);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_fails(e, ERR_INVALID, template_ref_parse(strv_of(bad[i]), &ref, &e));
		assert_has(e.msg, "Invalid template reference: ");
	}
	memset(text, 'a', sizeof(text));
	assert_ok(e, template_ref_parse((struct strv){ text, TEMPLATE_NAME_MAX }, &ref, &e));
	assert_fails(e, ERR_INVALID,
	    template_ref_parse((struct strv){ text, TEMPLATE_NAME_MAX + 1 }, &ref, &e));
}

#define SHA "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(image_references)
{
	static const char *const good[] = { "a", "busybox:1", "docker.io/library/x:latest",
		"localhost/agent-sandbox-base:dev", "localhost:5000/a/b-c__d.e:T.1", "a@" SHA,
		"Reg.example.com/a:1@" SHA, "a--b", "127.0.0.1:80/x" };
	static const char *const bad[] = { "", "A", "a:", "a/", "/a", "a//b", "a b", "a:b c", "a@x",
		"a@sha256:00", "-a", "a-", "a._b", "reg.io:x/a", "reg.io:99999/a", "a:b/c:d",
		"a\nb", "<name>", "a:.x", "reg_x.io/a" };
	char text[300];

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (!image_ref_valid(strv_of(good[i])))
			fail_msg("%s is refused", good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (image_ref_valid(strv_of(bad[i])))
			fail_msg("%s is accepted", bad[i]);
	}
	memset(text, 'a', sizeof(text));
	assert_true(image_ref_valid((struct strv){ text, 255 }));
	assert_false(image_ref_valid((struct strv){ text, 256 }));
}

/* The ones that the chart brings; placeholders are filled in at install time. */
TEST(shipped_templates)
{
	struct templates *all;
	char *text, *at;
	struct err e;

	if (access("charts/agent-sandbox/files/templates.json", R_OK) != 0)
		skip();
	assert_ok(
	    e, file_read("charts/agent-sandbox/files/templates.json", 1 << 20, &text, NULL, &e));
	while ((at = strstr(text, "@BASE_IMAGE@")) != NULL)
		memcpy(at, "example/base", 12);
	assert_ok(e, templates_parse(strv_of(text), &all, &e));
	assert_true(templates_count(all) >= 1);
	check_resolve(all, "base", "base", templates_at(all, 0)->image);
	templates_free(all);
	xfree(text);
}

T_MAIN(T(all_fields), T(defaults), T(mistakes_name_template_and_field), T(too_many_are_refused),
    T(resolving), T(hostile_patterns_stop_early), T(a_bound_that_is_reached_says_so), T(references),
    T(image_references), T(shipped_templates))
