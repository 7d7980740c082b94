/* The router and the frame of every call: paths, methods, keys, bodies, errors, by raw sockets. */
#include "t.h"

#include <sys/socket.h>

#include "apiserver/api_error.h"
#include "base/json.h"
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

/* Every error has the same form: code = status, a message, JSON. */
#define assert_error(p, want)                                                                      \
	do {                                                                                       \
		assert_int_equal((p).status, want);                                                \
		assert_string_equal(                                                               \
		    reply_field(&(p), "Content-Type"), "application/json; charset=utf-8");         \
		assert_int_equal(json_get_int((p).json, "code", 0), want);                         \
		assert_non_null(json_get_str((p).json, "message"));                                \
		assert_true(json_get_str((p).json, "message")[0] != '\0');                         \
	} while (0)

static struct reply
get(const char *path)
{
	return rig_call(&rig, RIG_KEY_A, "GET", path, NULL);
}

static void
status_of(const char *method, const char *path, int want)
{
	struct reply p = rig_call(&rig, RIG_KEY_A, method, path, NULL);

	if (p.status != want)
		fail_msg("%s %s: %d, not %d", method, path, p.status, want);
	reply_done(&p);
}

TEST(paths_with_prefix_and_slashes)
{
	status_of("GET", "/v2/sandboxes", 200);
	status_of("GET", "/e2b/v1/v2/sandboxes", 200);
	status_of("GET", "/e2b/v1//v2/sandboxes", 200);
	status_of("GET", "//v2//sandboxes", 200);
	status_of("GET", "//e2b/v1/v2/sandboxes", 200);
	status_of("GET", "/v2/sandboxes/", 200);
	status_of("GET", "/v2/sandboxes?limit=1", 200);
	status_of("GET", "/sandboxes", 200);
}

TEST(paths_that_are_not_there)
{
	static const char *const paths[] = { "/", "/e2b/v1", "/e2b/v12/sandboxes",
		"/e2b/v1sandboxes", "/sandboxes/i0/nope", "/V2/sandboxes", "/v2",
		"/v2/sandboxes/x/y/z", "/api/e2b/v1/sandboxes" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct reply p = get(paths[i]);

		assert_error(p, 404);
		reply_done(&p);
	}
}

TEST(wrong_method_is_405)
{
	struct reply p = rig_call(&rig, RIG_KEY_A, "DELETE", "/v2/sandboxes", NULL);

	assert_error(p, 405);
	reply_done(&p);
	p = rig_call(&rig, RIG_KEY_A, "GET", "/sandboxes/iabc/connect", NULL);
	assert_error(p, 405);
	reply_done(&p);
	p = rig_call(&rig, RIG_KEY_A, "BREW", "/sandboxes", NULL);
	assert_true(p.status == 405 || p.status == 400 || p.status == 501);
	reply_done(&p);
}

TEST(head_is_get_without_a_body)
{
	struct reply p = rig_call(&rig, RIG_KEY_A, "HEAD", "/v2/sandboxes", NULL);

	assert_int_equal(p.status, 200);
	assert_string_equal(reply_field(&p, "Content-Length"), "2");
	assert_string_equal(p.body, "");
	reply_done(&p);
	p = rig_call(&rig, RIG_KEY_A, "HEAD", "/sandboxes/nonexisting", NULL);
	assert_int_equal(p.status, 404);
	reply_done(&p);
}

TEST(keys_are_asked_for)
{
	struct reply p = rig_call(&rig, "", "GET", "/v2/sandboxes", NULL);

	assert_error(p, 401);
	assert_string_equal(json_get_str(p.json, "message"), "authorization header is missing");
	reply_done(&p);
	p = rig_call(&rig, "e2b_00", "POST", "/sandboxes", "{\"templateID\":\"base\"}");
	assert_error(p, 401);
	reply_done(&p);
	assert_int_equal(cluster_count(rig.cluster, "replicasets"), 0);
	/* The path is looked at first, so nobody learns from 401 what is not there. */
	p = rig_call(&rig, "", "GET", "/nothing", NULL);
	assert_error(p, 404);
	reply_done(&p);
}

TEST(probes_need_no_key)
{
	struct reply p = rig_call(&rig, "", "GET", "/health", NULL);

	assert_int_equal(p.status, 200);
	assert_string_equal(p.body, "Health check successful");
	reply_done(&p);
	p = rig_call(&rig, "", "GET", "/healthz", NULL);
	assert_int_equal(p.status, 200);
	assert_string_equal(json_get_str(p.json, "status"), "ok");
	reply_done(&p);
	p = rig_call(&rig, "", "GET", "/readyz", NULL);
	assert_int_equal(p.status, 200);
	reply_done(&p);
}

TEST(every_answer_has_an_id_and_cors)
{
	struct reply p = get("/v2/sandboxes");

	assert_non_null(reply_field(&p, "X-Request-Id"));
	assert_string_equal(reply_field(&p, "Access-Control-Allow-Origin"), "*");
	assert_has(reply_field(&p, "Access-Control-Expose-Headers"), "X-Next-Token");
	reply_done(&p);
	p = get("/nothing");
	assert_non_null(reply_field(&p, "X-Request-Id"));
	assert_string_equal(reply_field(&p, "Access-Control-Allow-Origin"), "*");
	reply_done(&p);
	p = rig_call(&rig, "", "OPTIONS", "/v2/sandboxes", NULL);
	assert_int_equal(p.status, 204);
	assert_has(reply_field(&p, "Access-Control-Allow-Headers"), "X-API-Key");
	assert_has(reply_field(&p, "Access-Control-Allow-Methods"), "DELETE");
	reply_done(&p);
}

TEST(bodies_that_are_no_object)
{
	static const char *const bodies[] = { "", "{", "[]", "null", "1", "{\"a\":1}x",
		"{\"templateID\":\"base\",\"templateID\":\"base\"}", "\xff\xfe", "{'a':1}" };

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct reply p = rig_call(&rig, RIG_KEY_A, "POST", "/sandboxes", bodies[i]);

		assert_error(p, 400);
		reply_done(&p);
	}
	assert_int_equal(cluster_count(rig.cluster, "replicasets"), 0);
}

TEST(body_too_deep_is_refused)
{
	char body[256];
	int n = snprintf(body, sizeof(body), "{\"templateID\":\"base\",\"mcp\":");
	struct reply p;

	memset(body + n, '[', 200);
	body[n + 200] = '\0';
	p = rig_call(&rig, RIG_KEY_A, "POST", "/sandboxes", body);
	assert_error(p, 400);
	reply_done(&p);
}

TEST(body_too_large_is_413)
{
	size_t n = 1024 * 1024 + 100;
	char *body = xmalloc(n + 1);
	struct reply p;

	memset(body, ' ', n);
	body[n] = '\0';
	p = rig_call(&rig, RIG_KEY_A, "POST", "/sandboxes", body);
	assert_error(p, 413);
	reply_done(&p);
	xfree(body);
	/* Announced only: refused without waiting for it. */
	p = rig_receive(&rig,
	    rig_send(&rig, RIG_KEY_A, "POST", "/sandboxes",
	        "Content-Length: 999999999\r\nExpect: 100-continue\r\n", NULL),
	    false);
	assert_error(p, 413);
	reply_done(&p);
}

TEST(chunked_body_is_read)
{
	int fd = rig_send_raw(&rig,
	    "POST /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: " RIG_KEY_A
	    "\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"timeou\r\n5\r\nt\":1}\r\n0\r\n\r\n");
	struct reply p = rig_receive(&rig, fd, false);

	assert_error(p, 400);
	assert_has(json_get_str(p.json, "message"), "templateID");
	reply_done(&p);
}

TEST(requests_that_are_no_http_get_the_same_form)
{
	int fd = rig_send_raw(&rig,
	    "GET /v2/sandboxes HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-API-Key: " RIG_KEY_A "\r\n\r\n");
	struct reply p = rig_receive(&rig, fd, false);

	assert_error(p, 400);
	reply_done(&p);
}

TEST(queries_that_do_not_decode)
{
	struct reply p = get("/v2/sandboxes?limit=%zz");

	assert_error(p, 400);
	assert_has(json_get_str(p.json, "message"), "limit");
	reply_done(&p);
}

TEST(long_paths_are_refused)
{
	char path[4000] = "/sandboxes/";
	struct reply p;

	memset(path + 11, 'a', 3000);
	path[3011] = '\0';
	p = get(path);
	assert_error(p, 400);
	reply_done(&p);
}

TEST(ids_of_paths)
{
	status_of("DELETE", "/sandboxes/ABC", 400);
	status_of("DELETE", "/sandboxes/a-b-c", 400);
	status_of("DELETE", "/sandboxes/a%2Fb", 400);
	status_of("DELETE", "/sandboxes/a_b", 400);
	status_of("GET", "/sandboxes/01234567890123456789012345678901234567890", 400);
	status_of("DELETE", "/sandboxes/nonexistingsandbox", 404);
	status_of("GET", "/sandboxes/abc-6532622b", 404);
}

TEST(a_connection_is_used_again)
{
	static const char one[] =
	    "GET /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: " RIG_KEY_A "\r\n\r\n";
	char text[1024], got[4096] = "";
	size_t n = 0;
	int fd, replies = 0;

	snprintf(text, sizeof(text), "%s%s%s", one, one, one);
	fd = rig_send_raw(&rig, text);
	for (int i = 0; i < 200; i++) {
		ssize_t k = recv(fd, got + n, sizeof(got) - 1 - n, MSG_DONTWAIT);

		n += k > 0 ? (size_t)k : 0;
		rig_turns(&rig, 1);
	}
	close(fd);
	for (const char *p = got; (p = strstr(p, "HTTP/1.1 200 OK\r\n")) != NULL; p++)
		replies++;
	assert_int_equal(replies, 3);
}

TEST(not_ready_is_503_but_for_probes)
{
	struct reply p;

	cluster_down(rig.cluster);
	rig_advance(&rig, SECONDS(150));
	p = rig_call(&rig, "", "GET", "/readyz", NULL);
	assert_error(p, 503);
	reply_done(&p);
	p = rig_call(&rig, "", "GET", "/healthz", NULL);
	assert_int_equal(p.status, 200);
	reply_done(&p);
	p = get("/v2/sandboxes");
	assert_error(p, 503);
	assert_true(strtol(reply_field(&p, "Retry-After"), NULL, 10) > 0);
	reply_done(&p);
	cluster_up(rig.cluster);
	rig_advance(&rig, SECONDS(60));
	p = get("/v2/sandboxes");
	assert_int_equal(p.status, 200);
	reply_done(&p);
}

TEST(errors_map_to_statuses_that_clients_know)
{
	static const int known[] = { 400, 401, 403, 404, 409, 413, 429, 500, 501, 502, 503, 504 };
	struct err e;

	for (int c = ERR_NONE + 1; c < ERR_CODE_COUNT; c++) {
		int status = api_error_status((enum err_code)c);
		bool found = false;

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			found = found || known[i] == status;
		assert_true(found);
		err_set(&e, (enum err_code)c, "x");
		/* Clients repeat 429 only with whole seconds. */
		assert_int_equal(api_error_retry_after(&e) > 0, status == 429 || status == 503);
		e.retry_after = 7;
		assert_int_equal(api_error_retry_after(&e), 7);
	}
	assert_int_equal(api_error_status(ERR_NOT_FOUND), 404);
	assert_int_equal(api_error_status(ERR_CONFLICT), 409);
	assert_int_equal(api_error_status(ERR_LIMIT), 429);
	assert_int_equal(api_error_status(ERR_UNSUPPORTED), 501);
}

TEST(error_bodies)
{
	CLEANUP(json_unrefp) json_t *body = api_error_body(404, "no \"x\" \xff");
	CLEANUP(xfreep) char *text = json_text(body);

	assert_string_equal(text, "{\"code\":404,\"message\":\"no \\\"x\\\" \xef\xbf\xbd\"}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(paths_with_prefix_and_slashes),
		T(paths_that_are_not_there),
		T(wrong_method_is_405),
		T(head_is_get_without_a_body),
		T(keys_are_asked_for),
		T(probes_need_no_key),
		T(every_answer_has_an_id_and_cors),
		T(bodies_that_are_no_object),
		T(body_too_deep_is_refused),
		T(body_too_large_is_413),
		T(chunked_body_is_read),
		T(requests_that_are_no_http_get_the_same_form),
		T(queries_that_do_not_decode),
		T(long_paths_are_refused),
		T(ids_of_paths),
		T(a_connection_is_used_again),
		T(not_ready_is_503_but_for_probes),
		T(errors_map_to_statuses_that_clients_know),
		T(error_bodies),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
