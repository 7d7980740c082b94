#include "t.h"

#include "base/clock.h"
#include "base/json.h"
#include "kube/kube_obj.h"

TEST(metadata)
{
	CLEANUP(json_unrefp) json_t *o = NULL;
	CLEANUP(json_unrefp) json_t *none = json_object();
	struct err e;

	assert_ok(e,
	    json_parse(
	        STRV("{\"metadata\":{\"name\":\"n\",\"namespace\":\"ns\",\"uid\":\"u\","
	             "\"resourceVersion\":\"18446744073709551615\",\"labels\":{\"a.b/c\":\"1\"},"
	             "\"annotations\":{\"x\":\"2\"},\"creationTimestamp\":\"1970-01-01T00:00:02Z\","
	             "\"deletionTimestamp\":\"2020-01-01T00:00:00Z\",\"ownerReferences\":["
	             "{\"uid\":\"no\"},{\"uid\":\"yes\",\"controller\":true}]},"
	             "\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\"},"
	             "{\"type\":\"Ready\",\"status\":\"True\"}]}}"),
	        4096, &o, &e));
	assert_string_equal(kube_obj_name(o), "n");
	assert_string_equal(kube_obj_ns(o), "ns");
	assert_string_equal(kube_obj_uid(o), "u");
	assert_true(kube_obj_version_u64(o) == UINT64_MAX);
	assert_string_equal(kube_obj_label(o, "a.b/c"), "1");
	assert_null(kube_obj_label(o, "a"));
	assert_string_equal(kube_obj_annotation(o, "x"), "2");
	assert_true(kube_obj_deleting(o));
	assert_int_equal(kube_obj_created(o), SECONDS(2));
	assert_string_equal(json_get_str(kube_obj_controller(o), "uid"), "yes");
	assert_true(kube_obj_condition_true(o, "Ready"));
	assert_false(kube_obj_condition_true(o, "A"));
	assert_null(kube_obj_condition(o, "B"));

	assert_null(kube_obj_name(none));
	assert_null(kube_obj_name(NULL));
	assert_null(kube_obj_label(none, "x"));
	assert_false(kube_obj_deleting(none));
	assert_int_equal(kube_obj_created(none), 0);
	assert_null(kube_obj_controller(none));
	assert_false(kube_obj_condition_true(none, "Ready"));
	assert_true(kube_obj_version_u64(none) == 0);
}

TEST(owner_reference)
{
	CLEANUP(json_unrefp) json_t *ref = kube_obj_owner_ref(&KUBE_REPLICASETS, "n", "u", true);
	CLEANUP(json_unrefp) json_t *pod = kube_obj_owner_ref(&KUBE_PODS, "n", "u", false);
	CLEANUP(xfreep) char *a = json_text(ref), *b = json_text(pod);

	assert_string_equal(a,
	    "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"n\",\"uid\":\"u\","
	    "\"controller\":true}");
	assert_string_equal(
	    b, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"n\",\"uid\":\"u\"}");
}

TEST(quantities)
{
	static const struct {
		const char *text;
		int64_t milli, units; /* -1: refused */
	} cases[] = {
		{ "0", 0, 0 },
		{ "1", 1000, 1 },
		{ "+1", 1000, 1 },
		{ "250m", 250, 1 },
		{ "1.5", 1500, 2 },
		{ ".5", 500, 1 },
		{ "5.", 5000, 5 },
		{ "0.0001", 1, 1 },
		{ "100u", 1, 1 },
		{ "1n", 1, 1 },
		{ "2k", 2000000, 2000 },
		{ "1Ki", 1024000, 1024 },
		{ "1.5Gi", 1610612736000, 1610612736 },
		{ "512Mi", 536870912000, 536870912 },
		{ "2e3", 2000000, 2000 },
		{ "2E3", 2000000, 2000 },
		{ "2e+3", 2000000, 2000 },
		{ "25e-1", 2500, 3 },
		{ "1E", -1, 1000000000000000000LL },
		{ "7Ei", -1, 8070450532247928832LL },
		{ "8Ei", -1, -1 },
		{ "9223372036854775807", -1, INT64_MAX },
		{ "9223372036854775808", -1, -1 },
		{ "99999999999999999999", -1, -1 },
		{ "1.00000000000000000000000000", 1000, 1 },
		{ "0e64", 0, 0 },
		{ "1e64", -1, -1 },
		{ "1e-64", 1, 1 },
		{ "", -1, -1 },
		{ ".", -1, -1 },
		{ "-1", -1, -1 },
		{ "1 ", -1, -1 },
		{ " 1", -1, -1 },
		{ "1K", -1, -1 },
		{ "1ki", -1, -1 },
		{ "1MiB", -1, -1 },
		{ "1..2", -1, -1 },
		{ "1e", -1, -1 },
		{ "1e99", -1, -1 },
		{ "0x10", -1, -1 },
		{ "m", -1, -1 },
		{ "++1", -1, -1 },
		{ "1e++3", -1, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t milli = -1, units = -1;
		int a = kube_obj_milli(strv_of(cases[i].text), &milli);
		int b = kube_obj_units(strv_of(cases[i].text), &units);

		if (milli != cases[i].milli || units != cases[i].units)
			fail_msg(
			    "%s: %lld %lld", cases[i].text, (long long)milli, (long long)units);
		assert_int_equal(a, cases[i].milli == -1 ? -1 : 0);
		assert_int_equal(b, cases[i].units == -1 ? -1 : 0);
	}
}

T_MAIN(T(metadata), T(owner_reference), T(quantities))
