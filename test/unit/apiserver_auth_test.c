/* Credentials of a request → tenant. */
#include "apiserver/auth.h"
#include "base/crypto.h"
#include "t.h"

#define KEY "testuser-aef134ef-7aa1-945e-9399-7df9a4ad0c3f"

static struct keyring *ring;

static int
setup(void **state UNUSED)
{
	struct err e;

	assert_ok(e, keyring_parse(STRV_NONE, "system-token-of-16+", KEY, &ring, &e));
	return 0;
}

static int
teardown(void **state UNUSED)
{
	keyring_free(ring);
	return 0;
}

static int
check(const char *name, const char *value, struct tenant *t, struct err *e)
{
	struct http_head h = { .n = value != NULL ? 1 : 0 };

	if (value != NULL)
		h.field[0] = (struct http_field){ strv_of(name), strv_of(value) };
	memset(t, 0, sizeof(*t));
	return auth_check(ring, &h, t, e);
}

TEST(key_in_its_header_however_written)
{
	static const char *const names[] = { "X-API-KEY", "x-api-key", "X-Api-Key" };
	struct tenant t;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_ok(e, check(names[i], KEY, &t, &e));
		assert_string_equal(t.name, "testuser");
		assert_int_equal(t.role, ROLE_USER);
	}
	assert_ok(e, check("X-API-KEY", " " KEY "\t", &t, &e));
	assert_ok(e, check("X-API-KEY", "system-token-of-16+", &t, &e));
	assert_int_equal(t.role, ROLE_SYSTEM);
}

TEST(bearer_is_as_good)
{
	struct tenant t;
	struct err e;

	assert_ok(e, check("Authorization", "Bearer " KEY, &t, &e));
	assert_string_equal(t.name, "testuser");
	assert_ok(e, check("authorization", "bearer   " KEY, &t, &e));
	assert_fails(e, ERR_UNAUTHORIZED, check("Authorization", "Basic " KEY, &t, &e));
	assert_fails(e, ERR_UNAUTHORIZED, check("Authorization", "Bearer", &t, &e));
	assert_fails(e, ERR_UNAUTHORIZED, check("Authorization", "Bearer ", &t, &e));
	assert_fails(e, ERR_UNAUTHORIZED, check("Authorization", "Bearer" KEY, &t, &e));
}

TEST(api_key_goes_before_bearer)
{
	struct http_head h = { .n = 2,
		.field = { { STRV("Authorization"), STRV("Bearer " KEY) },
		    { STRV("X-API-KEY"), STRV("not-the-right-key") } } };
	struct tenant t;
	struct err e;

	assert_fails(e, ERR_UNAUTHORIZED, auth_check(ring, &h, &t, &e));
}

TEST(missing_and_unknown_say_so)
{
	struct tenant t;
	struct err e;

	assert_fails(e, ERR_UNAUTHORIZED, check("X-API-KEY", NULL, &t, &e));
	assert_string_equal(e.msg, "authorization header is missing");
	assert_fails(e, ERR_UNAUTHORIZED, check("X-API-KEY", "", &t, &e));
	assert_string_equal(e.msg, "authorization header is missing");
	assert_fails(e, ERR_UNAUTHORIZED, check("X-API-KEY", KEY "0", &t, &e));
	assert_has(e.msg, "invalid API key");
	assert_has_not(e.msg, "testuser");
}

TEST(keys_not_loaded_yet_is_no_refusal)
{
	struct http_head h = { .n = 1, .field = { { STRV("X-API-KEY"), STRV(KEY) } } };
	struct tenant t;
	struct err e;

	assert_fails(e, ERR_UNAVAILABLE, auth_check(NULL, &h, &t, &e));
	h.n = 0;
	assert_fails(e, ERR_UNAUTHORIZED, auth_check(NULL, &h, &t, &e));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(key_in_its_header_however_written),
		T(bearer_is_as_good),
		T(api_key_goes_before_bearer),
		T(missing_and_unknown_say_so),
		T(keys_not_loaded_yet_is_no_refusal),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
