/* E2B's wire shapes, from a ReplicaSet as it is in Kubernetes. */
#include "t.h"

#include "apiserver/e2b_json.h"
#include "base/clock.h"
#include "base/json.h"

#define STARTED "2027-01-15T08:00:00.123456Z"
#define END "2027-01-15T09:00:00.654321Z"

static struct install_key key;

static int
setup(void **state UNUSED)
{
	struct err e;

	assert_ok(e, install_key_set(&key, STRV("0123456789abcdef0123456789abcdef"), &e));
	return 0;
}

struct box {
	struct sandbox_entry entry;
	struct sandbox *sandbox;
};

static void
set(json_t *annotations, const char *name, const char *value)
{
	if (value == NULL)
		json_object_del(annotations, name);
	else
		json_set_str(annotations, name, value);
}

/* A sandbox without pods; more: pairs of annotation and value (NULL takes it away), then NULL. */
static struct box
make(const char *data, ...)
{
	json_t *a = json_object();
	CLEANUP(json_unrefp) json_t *rs = NULL;
	struct box b = { 0 };
	const char *name;
	struct err e;
	va_list ap;

	set(a, ANNOTATION_DATA, data);
	set(a, ANNOTATION_DESIRED, "running");
	set(a, ANNOTATION_STARTED, STARTED);
	set(a, ANNOTATION_END, END);
	va_start(ap, data);
	while ((name = va_arg(ap, const char *)) != NULL)
		set(a, name, va_arg(ap, const char *));
	va_end(ap);
	rs = json_pack("{s:{s:s, s:s, s:{s:s, s:s, s:s}, s:o}}", "metadata", "name", "sbx-iabc",
	    "uid", "u", "labels", LABEL_ID, "iabc", LABEL_TENANT, "alice", LABEL_TEMPLATE, "base",
	    "annotations", a);
	assert_ok(e, sandbox_decode(rs, &b.sandbox, &e));
	b.entry.sandbox = b.sandbox;
	b.entry.state = sandbox_state(b.sandbox, NULL, 0);
	return b;
}

static void
assert_text(const json_t *o, const char *path, const char *want)
{
	const char *got = json_get_str(o, path);

	if (got == NULL || strcmp(got, want) != 0)
		fail_msg("%s is %s, not %s", path, got != NULL ? got : "absent", want);
}

static void
assert_absent(const json_t *o, const char *name)
{
	if (json_object_get(o, name) != NULL)
		fail_msg("%s is there", name);
}

TEST(create_answer_of_a_secure_one)
{
	struct box b = make("{\"template\":\"base\",\"secure\":true}", NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_sandbox(b.sandbox, &key, "x.test:8443");
	char token[TOKEN_LEN + 1];

	token_envd(&key, STRV("iabc"), token);
	assert_text(o, "sandboxID", "iabc");
	assert_text(o, "templateID", "base");
	assert_text(o, "envdAccessToken", token);
	assert_text(o, "domain", "x.test:8443");
	assert_text(o, "envdVersion", ENVD_VERSION);
	assert_non_null(json_get_str(o, "clientID"));
	assert_absent(o, "trafficAccessToken");
	sandbox_free(b.sandbox);
}

TEST(create_answer_of_an_open_one)
{
	struct box b = make("{\"template\":\"base\",\"secure\":false}", NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_sandbox(b.sandbox, &key, "");

	assert_absent(o, "envdAccessToken");
	assert_absent(o, "trafficAccessToken");
	assert_true(json_is_null(json_object_get(o, "domain")));
	sandbox_free(b.sandbox);
}

TEST(private_ingress_has_a_token_of_its_own)
{
	struct box b = make(
	    "{\"template\":\"base\",\"secure\":true,\"network\":{\"allowPublicTraffic\":false}}",
	    NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_sandbox(b.sandbox, &key, "");
	CLEANUP(json_unrefp) json_t *detail = e2b_json_detail(&b.entry, &key, "");
	char token[TOKEN_LEN + 1];

	token_traffic(&key, STRV("iabc"), token);
	assert_text(o, "trafficAccessToken", token);
	assert_string_not_equal(json_get_str(o, "envdAccessToken"), token);
	assert_absent(detail, "trafficAccessToken");
	assert_false(json_get_bool(detail, "network.allowPublicTraffic", true));
	sandbox_free(b.sandbox);
}

TEST(listed_has_all_that_is_required)
{
	struct box b = make("{\"template\":\"base\",\"metadata\":{\"k\":\"v\",\"e\":\"\"},"
	                    "\"resources\":{\"cpuLimit\":\"2500m\",\"memoryLimit\":\"512Mi\"}}",
	    NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_listed(&b.entry);

	assert_text(o, "state", "running");
	assert_text(o, "startedAt", STARTED);
	assert_text(o, "endAt", END);
	assert_text(o, "templateID", "base");
	assert_text(o, "sandboxID", "iabc");
	assert_text(o, "clientID", "agentsandbox");
	assert_text(o, "envdVersion", ENVD_VERSION);
	assert_text(o, "metadata.k", "v");
	assert_text(o, "metadata.e", "");
	assert_int_equal(json_get_int(o, "cpuCount", 0), 3);
	assert_int_equal(json_get_int(o, "memoryMB", 0), 512);
	assert_true(json_is_integer(json_object_get(o, "diskSizeMB")));
	assert_absent(o, "envdAccessToken");
	sandbox_free(b.sandbox);
}

TEST(sizes_have_sound_defaults)
{
	static const struct {
		const char *data;
		int cpu, memory;
	} cases[] = {
		{ "{}", 1, 0 },
		{ "{\"resources\":{\"cpuLimit\":\"50m\",\"memoryLimit\":\"1Gi\"}}", 1, 1024 },
		{ "{\"resources\":{\"cpuLimit\":\"2\",\"memoryLimit\":\"1500000\"}}", 2, 1 },
		{ "{\"resources\":{\"cpuLimit\":\"much\",\"memoryLimit\":\"more\"}}", 1, 0 },
		{ "no json", 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct box b = make(cases[i].data, NULL);
		CLEANUP(json_unrefp) json_t *o = e2b_json_listed(&b.entry);

		assert_int_equal(json_get_int(o, "cpuCount", -1), cases[i].cpu);
		assert_int_equal(json_get_int(o, "memoryMB", -1), cases[i].memory);
		sandbox_free(b.sandbox);
	}
}

TEST(never_ends_is_a_far_date)
{
	struct box b = make("{}", ANNOTATION_END, "never", NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_detail(&b.entry, &key, "");

	assert_text(o, "endAt", "9999-12-31T23:59:59.000000Z");
	sandbox_free(b.sandbox);
}

TEST(paused_ends_when_it_was_paused)
{
	struct box b =
	    make("{\"secure\":true}", ANNOTATION_DESIRED, "stopped", ANNOTATION_END, NULL,
	        ANNOTATION_REMAINING, "60", ANNOTATION_PAUSED, "2027-01-15T08:30:00.000001Z", NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_detail(&b.entry, &key, "");

	assert_int_equal(b.entry.state, SANDBOX_PAUSED);
	assert_true(e2b_is_paused(&b.entry));
	assert_text(o, "state", "paused");
	assert_text(o, "endAt", "2027-01-15T08:30:00.000001Z");
	assert_non_null(json_get_str(o, "envdAccessToken"));
	sandbox_free(b.sandbox);
}

TEST(two_states_for_clients)
{
	struct sandbox_entry e = { 0 };

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		e.state = (enum sandbox_state)s;
		assert_int_equal(e2b_is_paused(&e), s == SANDBOX_PAUSED || s == SANDBOX_PAUSING);
	}
}

TEST(detail_of_a_plain_one)
{
	struct box b = make("{\"template\":\"base\"}", NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_detail(&b.entry, &key, "x.test");

	assert_absent(o, "network");
	assert_absent(o, "allowInternetAccess");
	assert_text(o, "lifecycle.onTimeout", "kill");
	assert_true(json_is_false(json_get(o, "lifecycle.autoResume")));
	assert_text(o, "domain", "x.test");
	sandbox_free(b.sandbox);
}

TEST(detail_says_what_was_asked)
{
	struct box b = make("{\"network\":{\"maskRequestHost\":\"a.b\",\"allowPublicTraffic\":true,"
	                    "\"allowOut\":null},\"allowInternetAccess\":true}",
	    ANNOTATION_ON_END, "pause", ANNOTATION_AUTO_RESUME, "true", NULL);
	CLEANUP(json_unrefp) json_t *o = e2b_json_detail(&b.entry, &key, "");

	assert_text(o, "network.maskRequestHost", "a.b");
	assert_true(json_is_true(json_get(o, "allowInternetAccess")));
	assert_text(o, "lifecycle.onTimeout", "pause");
	assert_true(json_is_true(json_get(o, "lifecycle.autoResume")));
	/* null in a list's place ends Python's SDK with a TypeError. */
	assert_absent(json_get_obj(o, "network"), "allowOut");
	sandbox_free(b.sandbox);
}

TEST(the_same_moment_is_the_same_text)
{
	struct box b = make("{}", NULL);
	CLEANUP(json_unrefp) json_t *one = e2b_json_detail(&b.entry, &key, "");
	CLEANUP(json_unrefp) json_t *two = e2b_json_listed(&b.entry);

	assert_string_equal(json_get_str(one, "endAt"), json_get_str(two, "endAt"));
	assert_string_equal(json_get_str(one, "startedAt"), json_get_str(two, "startedAt"));
	sandbox_free(b.sandbox);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(create_answer_of_a_secure_one),
		T(create_answer_of_an_open_one),
		T(private_ingress_has_a_token_of_its_own),
		T(listed_has_all_that_is_required),
		T(sizes_have_sound_defaults),
		T(never_ends_is_a_far_date),
		T(paused_ends_when_it_was_paused),
		T(two_states_for_clients),
		T(detail_of_a_plain_one),
		T(detail_says_what_was_asked),
		T(the_same_moment_is_the_same_text),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
