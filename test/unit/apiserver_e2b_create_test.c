/* E2B's create: what is refused and how it is said, and what a good request becomes. */
#include "t.h"

#include "base/json.h"
#include "domain/token.h"
#include "fake/rig_api.h"

static struct rig rig;

static int
setup(void **state UNUSED)
{
	rig_start(&rig);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	rig_stop(&rig);
	return 0;
}

static struct reply
create(const char *path, const char *body)
{
	return rig_call(&rig, RIG_KEY_A, "POST", path, body);
}

/* What a create refuses: nothing is made, and the message names what is wrong. */
static const struct {
	const char *body;
	int status;
	const char *says;
} refused[] = {
	/* types */
	{ "{}", 400, "templateID" },
	{ "{\"templateID\":null}", 400, "templateID" },
	{ "{\"templateID\":5}", 400, "validation error: 'templateID'" },
	{ "{\"templateID\":\"base\",\"timeout\":\"abc\"}", 400, "validation error: 'timeout'" },
	{ "{\"templateID\":\"base\",\"timeout\":1.5}", 400, "validation error: 'timeout'" },
	{ "{\"templateID\":\"base\",\"metadata\":[]}", 400, "'metadata'" },
	{ "{\"templateID\":\"base\",\"metadata\":{\"a\":1}}", 400, "'metadata'" },
	{ "{\"templateID\":\"base\",\"metadata\":{\"a\":null}}", 400, "'metadata'" },
	{ "{\"templateID\":\"base\",\"envVars\":{\"A\":true}}", 400, "'envVars'" },
	{ "{\"templateID\":\"base\",\"secure\":\"yes\"}", 400, "'secure'" },
	{ "{\"templateID\":\"base\",\"allow_internet_access\":0}", 400, "'allow_internet_access'" },
	{ "{\"templateID\":\"base\",\"autoPause\":1}", 400, "'autoPause'" },
	{ "{\"templateID\":\"base\",\"autoPauseMemory\":\"\"}", 400, "'autoPauseMemory'" },
	{ "{\"templateID\":\"base\",\"autoResume\":true}", 400, "'autoResume'" },
	{ "{\"templateID\":\"base\",\"autoResume\":{\"enabled\":\"on\"}}", 400,
	    "autoResume.enabled" },
	{ "{\"templateID\":\"base\",\"network\":[]}", 400, "'network'" },
	{ "{\"templateID\":\"base\",\"network\":{\"allowPublicTraffic\":\"false\"}}", 400,
	    "network.allowPublicTraffic" },
	{ "{\"templateID\":\"base\",\"network\":{\"maskRequestHost\":7}}", 400,
	    "network.maskRequestHost" },
	{ "{\"templateID\":\"base\",\"network\":{\"denyOut\":\"8.8.8.8\"}}", 400,
	    "network.denyOut" },
	{ "{\"templateID\":\"base\",\"network\":{\"allowOut\":[1]}}", 400, "network.allowOut" },
	{ "{\"templateID\":\"base\",\"volumeMounts\":{}}", 400, "'volumeMounts'" },
	{ "{\"templateID\":\"base\",\"mcp\":\"x\"}", 400, "'mcp'" },
	/* time */
	{ "{\"templateID\":\"base\",\"timeout\":0}", 400, "Timeout must be greater than 0" },
	{ "{\"templateID\":\"base\",\"timeout\":-2}", 400, "'timeout'" },
	{ "{\"templateID\":\"base\",\"timeout\":86401}", 400, "cannot be greater than 24 hours" },
	{ "{\"templateID\":\"base\",\"timeout\":4294967296}", 400, "'timeout'" },
	/* pause */
	{ "{\"templateID\":\"base\",\"autoPauseMemory\":false}", 400, "autoPause" },
	{ "{\"templateID\":\"base\",\"autoPauseMemory\":false,\"autoPause\":true,"
	  "\"autoResume\":{\"enabled\":true}}",
	    400, "autoResume" },
	/* network */
	{ "{\"templateID\":\"base\",\"network\":{\"allowPublicTraffic\":false}}", 400, "secure" },
	{ "{\"templateID\":\"base\",\"network\":{\"maskRequestHost\":\"foo bar\"}}", 400,
	    "maskRequestHost" },
	{ "{\"templateID\":\"base\",\"network\":{\"maskRequestHost\":\"\xc3\xa9.com\"}}", 400,
	    "maskRequestHost" },
	{ "{\"templateID\":\"base\",\"network\":{\"maskRequestHost\":\"\"}}", 400,
	    "maskRequestHost" },
	{ "{\"templateID\":\"base\",\"network\":{\"maskRequestHost\":\"a/b\"}}", 400,
	    "maskRequestHost" },
	{ "{\"templateID\":\"base\",\"network\":{\"rules\":{\"a.com\":[]}}}", 400, "rules" },
	{ "{\"templateID\":\"base\",\"network\":{\"egressProxy\":{\"address\":\"a:1\"}}}", 403,
	    "egressProxy" },
	{ "{\"templateID\":\"base\",\"network\":{\"denyOut\":[\"8.8.8.8\"]}}", 501, "outgoing" },
	{ "{\"templateID\":\"base\",\"network\":{\"allowOut\":[\"8.8.8.8\"]}}", 501, "outgoing" },
	{ "{\"templateID\":\"base\",\"allow_internet_access\":false}", 501, "outgoing" },
	/* the rest */
	{ "{\"templateID\":\"base\",\"envVars\":{\"A=B\":\"c\"}}", 400, "envVars" },
	{ "{\"templateID\":\"base\",\"envVars\":{\"\":\"c\"}}", 400, "envVars" },
	{ "{\"templateID\":\"base\",\"iam\":{\"tokens\":{}}}", 400, "iam" },
	{ "{\"templateID\":\"base\",\"volumeMounts\":[{\"name\":\"v\",\"path\":\"/v\"}]}", 400,
	    "volumeMounts" },
	/* template */
	{ "{\"templateID\":\"nope\"}", 404, "template 'nope' not found" },
	{ "{\"templateID\":\"base:nope\"}", 404, "tag 'nope' does not exist for template 'base'" },
	{ "{\"templateID\":\"nope:tag\"}", 404, "template 'nope' not found" },
	{ "{\"templateID\":\"ba se\"}", 400, "Invalid template reference: ba se" },
	{ "{\"templateID\":\"\"}", 400, "Invalid template reference" },
};

TEST(what_is_refused)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct reply p = create("/sandboxes", refused[i].body);
		const char *message = json_get_str(p.json, "message");

		if (p.status != refused[i].status || message == NULL ||
		    strstr(message, refused[i].says) == NULL)
			fail_msg("%s: %d %s", refused[i].body, p.status, p.body);
		assert_int_equal(json_get_int(p.json, "code", 0), refused[i].status);
		reply_done(&p);
	}
	assert_int_equal(cluster_calls(rig.cluster, "POST", "replicasets"), 0);
}

TEST(metadata_has_a_limit)
{
	size_t n = 64 * 1024;
	char *body = xmalloc(n + 200), *value = xmalloc(n + 1);
	struct reply p;

	memset(value, 'x', n);
	value[n] = '\0';
	snprintf(body, n + 200, "{\"templateID\":\"base\",\"metadata\":{\"k\":\"%s\"}}", value);
	p = create("/sandboxes", body);
	assert_int_equal(p.status, 400);
	assert_has(json_get_str(p.json, "message"), "metadata");
	reply_done(&p);
	xfree(body);
	xfree(value);
	assert_int_equal(cluster_calls(rig.cluster, "POST", "replicasets"), 0);
}

TEST(environment_has_a_limit)
{
	size_t n = 200 * 1024;
	char *body = xmalloc(n + 200), *value = xmalloc(n + 1);
	struct reply p;

	memset(value, 'x', n);
	value[n] = '\0';
	snprintf(body, n + 200, "{\"templateID\":\"base\",\"envVars\":{\"K\":\"%s\"}}", value);
	p = create("/sandboxes", body);
	assert_int_equal(p.status, 413);
	reply_done(&p);
	xfree(body);
	xfree(value);
}

/* The only sandbox there is, gone again. */
static void
clear(void)
{
	char path[128];
	struct reply p;

	snprintf(path, sizeof(path), "/sandboxes/%s", rig_only_id(&rig));
	p = rig_call(&rig, RIG_KEY_A, "DELETE", path, NULL);
	assert_int_equal(p.status, 204);
	assert_string_equal(p.body, "");
	reply_done(&p);
	assert_int_equal(cluster_count(rig.cluster, "replicasets"), 0);
}

static int64_t
time_of(const char *annotation)
{
	const char *text = rig_annotation(&rig, rig_only_id(&rig), annotation);
	int64_t at;

	assert_non_null(text);
	assert_int_equal(time_parse(strv_of(text), &at), 0);
	return at;
}

static void
lifetime(const char *path, const char *body, int seconds)
{
	struct reply p = create(path, body);

	assert_int_equal(p.status, 201);
	reply_done(&p);
	assert_int_equal(
	    (time_of(ANNOTATION_END) - time_of(ANNOTATION_STARTED)) / NS_PER_S, seconds);
	clear();
}

TEST(lifetimes)
{
	lifetime("/sandboxes", "{\"templateID\":\"base\"}", 15);
	lifetime("/sandboxes", "{\"templateID\":\"base\",\"timeout\":null}", 15);
	lifetime("/sandboxes", "{\"templateID\":\"base\",\"timeout\":300}", 300);
	lifetime("/sandboxes", "{\"templateID\":\"base\",\"timeout\":86400}", 86400);
	lifetime("/v2/sandboxes", "{\"templateID\":\"base\"}", 300);
}

TEST(minus_one_never_ends)
{
	struct reply p = create("/sandboxes", "{\"templateID\":\"base\",\"timeout\":-1}");

	assert_int_equal(p.status, 201);
	reply_done(&p);
	assert_string_equal(rig_annotation(&rig, rig_only_id(&rig), ANNOTATION_END), "never");
	clear();
}

TEST(what_a_create_becomes)
{
	struct reply p = create("/sandboxes",
	    "{\"templateID\":\" BASE:default\",\"timeout\":60,\"secure\":true,\"autoPause\":true,"
	    "\"autoResume\":{\"enabled\":true},\"envVars\":{\"A\":\"b c\",\"FROM\":\"me\"},"
	    "\"metadata\":{\"k\":\"v\",\"idleTimeout\":\"600\"},\"unknown\":{\"x\":1},"
	    "\"network\":{\"maskRequestHost\":\"a.example.com:${PORT}\",\"allowPublicTraffic\":"
	    "false},"
	    "\"allow_internet_access\":true,\"mcp\":{\"s\":{\"token\":\"secret\"}}}");
	const char *id = rig_only_id(&rig);
	CLEANUP(json_unrefp) json_t *data = NULL, *secrets = NULL;
	const json_t *rs = cluster_first(rig.cluster, "replicasets");
	const json_t *labels = json_get_obj(rs, "metadata.labels");
	CLEANUP(xfreep) char *text = json_text(rs);
	struct install_key key;
	struct err e;

	assert_int_equal(p.status, 201);
	assert_string_equal(json_get_str(p.json, "sandboxID"), id);
	assert_string_equal(json_get_str(p.json, "templateID"), "base");
	assert_string_equal(json_get_str(p.json, "domain"), RIG_DOMAIN);
	assert_int_equal(strlen(json_get_str(p.json, "envdAccessToken")), TOKEN_LEN);
	assert_int_equal(strlen(json_get_str(p.json, "trafficAccessToken")), TOKEN_LEN);
	reply_done(&p);

	assert_int_equal(strlen(id), SANDBOX_ID_LEN);
	assert_string_equal(json_member_str(labels, LABEL_TENANT), "alice");
	assert_string_equal(json_member_str(labels, LABEL_TEMPLATE), "base");
	assert_string_equal(json_member_str(labels, LABEL_POOL), "false");
	assert_string_equal(json_get_str(rs, "spec.selector.matchLabels.sbx-id"), id);
	assert_int_equal(json_get_int(rs, "spec.replicas", 0), 1);
	assert_string_equal(rig_annotation(&rig, id, ANNOTATION_ON_END), "pause");
	assert_string_equal(rig_annotation(&rig, id, ANNOTATION_AUTO_RESUME), "true");
	assert_string_equal(rig_annotation(&rig, id, ANNOTATION_IDLE_AFTER), "600");
	assert_string_equal(rig_annotation(&rig, id, ANNOTATION_GENERATION), "1");

	assert_ok(
	    e, json_parse(strv_of(rig_annotation(&rig, id, ANNOTATION_DATA)), 65536, &data, &e));
	assert_string_equal(json_get_str(data, "metadata.k"), "v");
	assert_string_equal(json_get_str(data, "metadata.made"), "here"); /* the template's */
	assert_true(json_get_bool(data, "secure", false));
	/* Secrets are sealed, and nowhere else. */
	assert_has_not(text, "b c");
	assert_has_not(text, "secret");
	assert_ok(e, install_key_set(&key, STRV("0123456789abcdef0123456789abcdef"), &e));
	assert_ok(e,
	    token_open(&key, strv_of(id), strv_of(rig_annotation(&rig, id, ANNOTATION_SEALED)),
	        &secrets, &e));
	assert_string_equal(json_get_str(secrets, "envVars.A"), "b c");
	assert_string_equal(json_get_str(secrets, "envVars.FROM"), "me");
	/* envd got them, with its token, before the answer. */
	assert_string_equal(json_get_str(rig.init, "envVars.A"), "b c");
	assert_int_equal(strlen(json_get_str(rig.init, "accessToken")), TOKEN_LEN);
	assert_string_equal(json_get_str(rig.init, "sandboxID"), id);
	assert_int_equal(json_get_int(rig.init, "generation", 0), 1);
	rig_turns(&rig, 50);
	assert_non_null(rig_annotation(&rig, id, ANNOTATION_READY));
	clear();
}

TEST(v1_is_open_unless_asked_and_v2_never)
{
	struct reply p = create("/sandboxes", "{\"templateID\":\"base\"}");

	assert_int_equal(p.status, 201);
	assert_null(json_object_get(p.json, "envdAccessToken"));
	assert_null(json_object_get(rig.init, "accessToken"));
	reply_done(&p);
	clear();
	p = create("/v2/sandboxes", "{\"templateID\":\"base\",\"secure\":false}");
	assert_int_equal(p.status, 201);
	assert_non_null(json_get_str(p.json, "envdAccessToken"));
	assert_non_null(json_get_str(rig.init, "accessToken"));
	reply_done(&p);
	clear();
	/* So a private ingress needs nothing more there. */
	p = create("/v2/sandboxes",
	    "{\"templateID\":\"base\",\"network\":{\"allowPublicTraffic\":false}}");
	assert_int_equal(p.status, 201);
	assert_non_null(json_get_str(p.json, "trafficAccessToken"));
	reply_done(&p);
	clear();
}

TEST(an_image_without_envd_gets_it)
{
	struct reply p = create("/sandboxes", "{\"templateID\":\"plain\"}");
	const json_t *rs = cluster_first(rig.cluster, "replicasets");
	const json_t *init =
	    json_array_get(json_get_arr(rs, "spec.template.spec.initContainers"), 0);
	char path[128];

	assert_int_equal(p.status, 201);
	reply_done(&p);
	assert_string_equal(json_get_str(init, "image"), "example.org/envd:1");
	assert_string_equal(json_get_str(rig.init, "defaultUser"), "me");
	assert_string_equal(json_get_str(rig.init, "startCmd"), "serve");
	snprintf(path, sizeof(path), "/sandboxes/%s", rig_only_id(&rig));
	p = rig_call(&rig, RIG_KEY_A, "GET", path, NULL);
	assert_int_equal(p.status, 200);
	assert_int_equal(json_get_int(p.json, "cpuCount", 0), 2); /* 1500m */
	assert_int_equal(json_get_int(p.json, "memoryMB", 0), 512);
	reply_done(&p);
	clear();
}

TEST(what_was_asked_reads_back)
{
	struct reply
	    p = create("/v2/sandboxes",
	        "{\"templateID\":\"base\",\"timeout\":100,\"metadata\":{\"a\":\"1\"},\"autoPause\":"
	        "true,"
	        "\"network\":{\"maskRequestHost\":\"h.example\"},\"allow_internet_access\":true}"),
	    again;
	char path[128];

	assert_int_equal(p.status, 201);
	snprintf(path, sizeof(path), "/sandboxes/%s-%s", json_get_str(p.json, "sandboxID"),
	    json_get_str(p.json, "clientID"));
	again = rig_call(&rig, RIG_KEY_A, "GET", path, NULL);
	assert_int_equal(again.status, 200);
	assert_string_equal(
	    json_get_str(again.json, "envdAccessToken"), json_get_str(p.json, "envdAccessToken"));
	assert_string_equal(json_get_str(again.json, "network.maskRequestHost"), "h.example");
	assert_true(json_is_true(json_object_get(again.json, "allowInternetAccess")));
	assert_string_equal(json_get_str(again.json, "lifecycle.onTimeout"), "pause");
	assert_string_equal(json_get_str(again.json, "metadata.a"), "1");
	assert_string_equal(json_get_str(again.json, "state"), "running");
	reply_done(&p);
	reply_done(&again);
	clear();
}

TEST(idle_timeouts_that_are_none)
{
	static const char *const values[] = { "", "0", "-1", "ten", "1e3", "600s" };
	char body[256];

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct reply p;

		snprintf(body, sizeof(body),
		    "{\"templateID\":\"base\",\"metadata\":{\"idleTimeout\":\"%s\"}}", values[i]);
		p = create("/sandboxes", body);
		assert_int_equal(p.status, 201);
		reply_done(&p);
		assert_null(rig_annotation(&rig, rig_only_id(&rig), ANNOTATION_IDLE_AFTER));
		clear();
	}
}

TEST(ids_are_never_the_same)
{
	char first[SANDBOX_ID_MAX + 1];
	struct reply p = create("/sandboxes", "{\"templateID\":\"base\"}");

	snprintf(first, sizeof(first), "%s", json_get_str(p.json, "sandboxID"));
	reply_done(&p);
	p = create("/sandboxes", "{\"templateID\":\"base\"}");
	assert_string_not_equal(first, json_get_str(p.json, "sandboxID"));
	assert_true(sandbox_id_valid(strv_of(first)));
	reply_done(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_refused),
		T(metadata_has_a_limit),
		T(environment_has_a_limit),
		T(lifetimes),
		T(minus_one_never_ends),
		T(what_a_create_becomes),
		T(v1_is_open_unless_asked_and_v2_never),
		T(an_image_without_envd_gets_it),
		T(what_was_asked_reads_back),
		T(idle_timeouts_that_are_none),
		T(ids_are_never_the_same),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
