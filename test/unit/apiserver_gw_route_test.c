/* Which requests are sandbox traffic, for whom, and which paths on envd's port are not. */
#include "t.h"

#include "apiserver/gw_route.h"

#define ID "i0123456789abcdefghij"

/* The head is shared and points into text; both live until the next call. */
static const struct http_head *
parse(const char *text)
{
	static struct http1 *p;
	struct strv in = strv_of(text), body;

	http1_free(p);
	p = http1_new(false);
	assert_int_equal(http1_next(p, &in, &body), HTTP1_HEAD);
	return http1_head(p);
}

/* "by|fail|id|port|path|tail|prefix", fail and later ones only as far as they are set. */
static void
check(const char *target, const char *host, const char *fields, const char *want)
{
	static const char *const ways[] = { "nothing", "label", "headers", "shared", "path",
		"name" };
	char text[4096], got[1024];
	struct gw_route r;

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, host, fields);
	gw_route_find(STRV("my.domain"), parse(text), &r);
	if (r.how == GW_BY_NOTHING)
		snprintf(got, sizeof(got), "nothing");
	else if (r.fail != GW_FAIL_NONE)
		snprintf(got, sizeof(got), "%s %d", ways[r.how], gw_fail_status(r.fail));
	else
		snprintf(got, sizeof(got), "%s " STRV_FMT ":%d " STRV_FMT STRV_FMT "%s",
		    ways[r.how], STRV_ARG(r.id), r.port, STRV_ARG(r.path), STRV_ARG(r.tail),
		    r.drop_port_param ? " drop" : "");
	if (strcmp(got, want) != 0)
		fail_msg("%s at %s [%s]: got '%s', want '%s'", target, host, fields, got, want);
}

#define BOTH "E2b-Sandbox-Id: iabc\r\nE2b-Sandbox-Port: 8000\r\n"
#define ENVD "E2b-Sandbox-Id: iabc\r\nE2b-Sandbox-Port: 49983\r\n"

TEST(label)
{
	check("/a?b=c", "8000-iabc.my.domain", "", "label iabc:8000 /a?b=c");
	check("/a?", "8000-iabc.my.domain:8443", "", "label iabc:8000 /a?");
	check("/", "49983-iabc-00000000.my.domain", "", "label iabc:49983 /");
	check("/", "49983-iabc-1-2-3.sandbox.other.org", "", "label iabc:49983 /");
	check("http://8000-iabc.x/y?z", "ignored", "", "label iabc:8000 /y?z");
	check("http://8000-iabc.x", "ignored", "", "label iabc:8000 /");
	check("http://8000-iabc.x?q", "ignored", "", "label iabc:8000 /?q");
	/* The label wins over headers and path. */
	check("/", "8000-iabc.my.domain", "E2b-Sandbox-Id: iother\r\nE2b-Sandbox-Port: 1\r\n",
	    "label iabc:8000 /");
	check("/sandboxes/router/ix/1/", "8000-iabc.my.domain", "",
	    "label iabc:8000 /sandboxes/router/ix/1/");
	check("/e2b/v1/sandboxes", "8000-iabc.my.domain", "", "label iabc:8000 /e2b/v1/sandboxes");
}

TEST(bad_label)
{
	check("/", "49983-AB_c.my.domain", "", "label 400");
	check("/", "49983-.my.domain", "", "label 400");
	check("/", "0-iabc.my.domain", "", "label 400");
	check("/", "65536-iabc.my.domain", "", "label 400");
	check("/", "4998399999999999999999-iabc.my.domain", "", "label 400");
	check("/", "49983.my.domain", "", "label 400");
	check("/", "49983-iabc", "", "label 400");
	/* What looks like one of our ids can mean nothing else. */
	check("/health", "abc-" ID ".my.domain", "", "label 400");
	check("/health", "-" ID ".my.domain", "", "label 400");
	check("/health", "0x50-" ID ".my.domain", "", "label 400");
	check("/health", "-1-" ID ".my.domain", "", "label 400");
}

TEST(not_ours)
{
	check("/", "api.my.domain", "", "nothing");
	check("/health", "my.domain", "", "nothing");
	check("/", "agent-sandbox.my.domain", "", "nothing");
	check("/", "foo", "", "nothing");
	check("/", "127.0.0.1:10000", "", "nothing");
	check("/", "127.0.0.1", "", "nothing");
	check("/", "[::1]:10000", "", "nothing");
	check("/", "123.other.org", "", "nothing");
	check("/sandboxes/iabc/timeout", "api.my.domain", "", "nothing");
	check("/sandbox/", "api.my.domain", "", "nothing");
	check("/sandboxes/routers", "api.my.domain", "", "nothing");
}

TEST(headers)
{
	check("/health", "localhost:10000", BOTH, "headers iabc:8000 /health");
	check("/health", "127.0.0.1", ENVD, "headers iabc:49983 /health");
	check("/health", "[::1]:10000", ENVD, "headers iabc:49983 /health");
	check("/health", "api.my.domain", ENVD, "headers iabc:49983 /health");
	check("/health", "sandbox.my.domain", ENVD, "shared iabc:49983 /health");
	check("/health", "SANDBOX.e2b.app:444", ENVD, "shared iabc:49983 /health");
	check("/files?x", "gw", ENVD, "headers iabc:49983 /files?x");
	check("/", "localhost", "E2b-Sandbox-Id: iabc\r\n", "headers 400");
	check("/", "sandbox.my.domain", "E2b-Sandbox-Port: 1\r\n", "shared 400");
	check("/", "localhost", "E2b-Sandbox-Port:\r\nE2b-Sandbox-Id:\r\n", "nothing");
	check("/", "localhost", "E2b-Sandbox-Id: i-x\r\nE2b-Sandbox-Port: 1\r\n", "headers 400");
	check("/", "localhost", "E2b-Sandbox-Id: ix\r\nE2b-Sandbox-Port: +1\r\n", "headers 400");
}

/* The pinned Python SDK sends the routing headers with its control plane call `connect` as well. */
TEST(api_paths_beat_headers)
{
	check("/e2b/v1/sandboxes/iabc/connect", "localhost:10000", ENVD, "nothing");
	check("//e2b/v1/sandboxes/iabc/connect", "localhost:10000", ENVD, "nothing");
	check("/sandboxes/iabc/connect", "api.my.domain", ENVD, "nothing");
	check("/sandboxes/iabc/connect", "localhost:3000", ENVD, "nothing");
	check("/v2/sandboxes/iabc/connect", "api.my.domain", ENVD, "nothing");
	check("/api/v1/sandbox", "localhost", BOTH, "nothing");
	check("/ui/", "localhost", BOTH, "nothing");
	check("/mcp", "localhost", BOTH, "nothing");
	check("/uix", "localhost", BOTH, "headers iabc:8000 /uix");
	/* A user's own server may have such a path. */
	check("/sandboxes/x", "localhost", BOTH, "headers iabc:8000 /sandboxes/x");
}

TEST(paths)
{
	check("/sandboxes/router/iabc/8000/x/y?z=1", "any", "", "path iabc:8000 /x/y?z=1");
	check("/sandboxes/router/iabc/8000", "127.0.0.1", "", "path iabc:8000 /");
	check("/sandboxes/router/iabc/8000//x", "any", "", "path iabc:8000 //x");
	check("/sandboxes/router/iabc", "any", "", "path 400");
	check("/sandboxes/router/iabc/", "any", "", "path 400");
	check("/sandboxes/router/iabc/x/", "any", "", "path 400");
	check("/sandboxes/router/I/8000/", "any", "", "path 400");
	check("/sandboxes/router/", "any", "", "path 400");
	check("/sandbox/my-box/a?b", "any", "", "name my-box:0 /a?b");
	check("/sandbox/my-box", "any", "", "name my-box:0 /");
	check("/sandbox/my-box/a?x=1&port=3000&y", "any", "",
	    "name my-box:3000 /a?x=1&port=3000&y drop");
	check("/sandbox/my-box/a?port=0", "any", "", "name 400");
	check("/sandbox/My_box/", "any", "", "name 400");
	check("/sandbox/%2e/", "any", "", "name 400");
}

static int
reserved(const char *path, const char *want_clean)
{
	struct strbuf clean;
	int r;

	strbuf_init(&clean, 4096);
	r = gw_route_reserved(strv_of(path), &clean);
	if (want_clean)
		assert_strv(strbuf_view(&clean), want_clean);
	strbuf_done(&clean);
	return r;
}

TEST(reserved_paths)
{
	static const char *const yes[] = { "/init", "//init", "/init/", "/./init", "/files/../init",
		"/%69nit", "///init//", "/a/b/../../init", "/%2e/init", "/files/%2e%2e/init",
		"/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade",
		"//freeze/", "/%2e%2e/init", "/x/%2e./init", "/init/." };
	static const char *const no[] = { "/", "/health", "/initial", "/init/x", "/files",
		"/process.Process/Start", "/Init", "/files?path=/init", "//", "/x/init" };

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (reserved(yes[i], NULL) != 1)
			fail_msg("%s passes", yes[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(no); i++) {
		if (reserved(no[i], NULL) != 0)
			fail_msg("%s does not pass", no[i]);
	}
	assert_int_equal(reserved("/init", "/init"), 1);
	assert_int_equal(reserved("//%69nit/", "/init"), 1);
	assert_int_equal(reserved("/%zz", NULL), -1);
	assert_int_equal(reserved("/%00init", NULL), -1);
}

T_MAIN(T(label), T(bad_label), T(not_ours), T(headers), T(api_paths_beat_headers), T(paths),
    T(reserved_paths))
