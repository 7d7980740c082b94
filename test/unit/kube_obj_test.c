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
	    json_parse(STRV("{\"metadata\":{\"name\":\"n\",\"uid\":\"u\","
	                    "\"resourceVersion\":\"18446744073709551615\"}}"),
	        4096, &o, &e));
	assert_string_equal(kube_obj_name(o), "n");
	assert_string_equal(kube_obj_uid(o), "u");
	assert_string_equal(kube_obj_version(o), "18446744073709551615");
	assert_true(kube_obj_version_u64(o) == UINT64_MAX);
	assert_null(kube_obj_name(none));
	assert_null(kube_obj_name(NULL));
	assert_null(kube_obj_uid(none));
	assert_true(kube_obj_version_u64(none) == 0);
}

TEST(api_version)
{
	char text[KUBE_API_VERSION_MAX];

	kube_obj_api_version(&KUBE_REPLICASETS, text);
	assert_string_equal(text, "apps/v1");
	kube_obj_api_version(&KUBE_PODS, text);
	assert_string_equal(text, "v1");
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

T_MAIN(T(metadata), T(api_version), T(quantities))
