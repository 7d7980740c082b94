/* Failure answers: exact bodies, and who gets a page. */
#include "t.h"

#include "apiserver/gw_errors.h"

#define CHROME "Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0 Safari/537.36"

static void
body_is(const struct gw_fail *f, bool page, int status, const char *type, const char *want)
{
	struct strbuf b;

	strbuf_init(&b, 8192);
	assert_int_equal(gw_fail_status(f->kind), status);
	assert_string_equal(gw_fail_body(f, page, &b), type);
	assert_strv(strbuf_view(&b), want);
	strbuf_done(&b);
}

static void
json_is(struct gw_fail f, int status, const char *want)
{
	f.id = STRV("iabc");
	body_is(&f, false, status, "application/json; charset=utf-8", want);
}

TEST(json)
{
#define ID "{\"sandboxId\":\"iabc\",\"message\":\""
	json_is((struct gw_fail){ .kind = GW_FAIL_NOT_FOUND }, 502,
	    ID "The sandbox was not found\",\"code\":502}");
	json_is((struct gw_fail){ .kind = GW_FAIL_PORT_CLOSED, .port = 8080 }, 502,
	    ID "The sandbox is running but port is not open\",\"port\":8080,\"code\":502}");
	json_is((struct gw_fail){ .kind = GW_FAIL_TOKEN_MISSING }, 403,
	    ID "Sandbox is secured with traffic access token. Token header "
	       "'e2b-traffic-access-token' is missing\",\"code\":403}");
	json_is((struct gw_fail){ .kind = GW_FAIL_TOKEN_WRONG }, 403,
	    ID "Sandbox is secured with traffic access token. Provided token in header "
	       "'e2b-traffic-access-token' is invalid\",\"code\":403}");
	json_is((struct gw_fail){ .kind = GW_FAIL_RESUME_DENIED }, 403,
	    ID "This sandbox can't be resumed with the credentials provided. Check your access "
	       "token and try again.\",\"code\":403}");
	json_is((struct gw_fail){ .kind = GW_FAIL_TRANSITION }, 409,
	    ID "The sandbox is still transitioning. Try again in a moment.\",\"code\":409}");
	json_is((struct gw_fail){ .kind = GW_FAIL_LIMIT }, 429,
	    ID "Sandbox limit reached\",\"code\":429}");
	json_is((struct gw_fail){ .kind = GW_FAIL_LIMIT, .message = STRV("20 are \"enough\"") },
	    429, ID "20 are \\\"enough\\\"\",\"code\":429}");
	json_is((struct gw_fail){ .kind = GW_FAIL_CONNECTIONS, .limit = 7 }, 429,
	    ID "The sandbox has too many concurrent incoming connections (limit: 7)\","
	       "\"code\":429,\"connectionLimit\":7}");
	json_is((struct gw_fail){ .kind = GW_FAIL_RESERVED, .path = STRV("/init") }, 404,
	    "{\"message\":\"This endpoint is reserved for the E2B control plane and is not "
	    "reachable through the sandbox URL\",\"path\":\"/init\",\"code\":404}");
}

TEST(text)
{
	static const struct {
		enum gw_fail_kind kind;
		int status;
		const char *text;
	} cases[] = {
		{ GW_FAIL_BAD_HOST, 400, "Invalid host" },
		{ GW_FAIL_BAD_ID, 400, "Invalid sandbox ID" },
		{ GW_FAIL_MISSING_HEADER, 400, "missing header" },
		{ GW_FAIL_BAD_PORT, 400, "Invalid sandbox port" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct gw_fail f = { .kind = cases[i].kind };

		body_is(&f, true, cases[i].status, "text/plain; charset=utf-8", cases[i].text);
	}
}

TEST(every_kind_has_an_answer)
{
	for (int i = 0; i < GW_FAIL_COUNT; i++) {
		enum gw_fail_kind kind = (enum gw_fail_kind)i;

		assert_in_range(gw_fail_status(kind), 400, 599);
		assert_non_null(gw_fail_label(kind));
	}
}

static char *
page(struct gw_fail f)
{
	struct strbuf b;
	char *text;

	strbuf_init(&b, 8192);
	assert_string_equal(gw_fail_body(&f, true, &b), "text/html; charset=utf-8");
	assert_int_equal(strbuf_take(&b, &text, NULL), 0);
	assert_memory_equal(text, "<html", 5);
	assert_string_equal(text + strlen(text) - 7, "</html>");
	return text;
}

TEST(pages)
{
	char *p = page((struct gw_fail){ .kind = GW_FAIL_NOT_FOUND, .id = STRV("iabc") });

	assert_has(p, "Sandbox Not Found");
	assert_has(p, "iabc");
	xfree(p);
	p = page((struct gw_fail){ .kind = GW_FAIL_PORT_CLOSED, .id = STRV("i<b>"), .port = 9998 });
	assert_has(p, "no service running on port 9998");
	assert_has(p, "Closed Port Error");
	assert_has_not(p, "<b>");
	xfree(p);
	p = page((struct gw_fail){ .kind = GW_FAIL_TOKEN_MISSING });
	assert_has(p, "Missing Traffic Access Token");
	xfree(p);
	p = page((struct gw_fail){ .kind = GW_FAIL_TOKEN_WRONG });
	assert_has(p, "Invalid Traffic Access Token");
	xfree(p);
}

TEST(who_gets_a_page)
{
	static const struct {
		const char *accept, *mode, *with, *agent;
		bool page;
	} cases[] = {
		{ "", "", "", CHROME, true },
		{ "*/*", "", "", "curl/8", false },
		{ "", "", "", "", false },
		{ "", "", "", "e2b-python-sdk/2.21.1", false },
		{ "application/json", "", "", CHROME, false },
		{ "text/html,application/json", "", "", CHROME, true },
		{ "text/html", "", "", "python-requests", false },
		{ "", "cors", "", CHROME, false },
		{ "", "no-cors", "", CHROME, false },
		{ "", "same-origin", "", CHROME, false },
		{ "", "websocket", "", CHROME, false },
		{ "", "navigate", "", CHROME, true },
		{ "", "", "XMLHttpRequest", CHROME, false },
		{ "", "navigate", "XMLHttpRequest", CHROME, true },
		{ "application/json", "navigate", "", CHROME, false },
		{ "", "", "", "OPERA mini", true },
	};
	char text[1024];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct gw_hints h = { strv_of(cases[i].accept), strv_of(cases[i].mode),
			strv_of(cases[i].with), strv_of(cases[i].agent) };

		assert_int_equal(gw_hints_want_page(&h), cases[i].page);
		snprintf(text, sizeof(text),
		    "GET /accept:x HTTP/1.1\r\nHost: x\r\nAccept: %s\r\nX-Accept: y\r\n"
		    "SEC-Fetch-Mode: %s\r\nx-requested-with: %s\r\nUser-Agent: %s\r\n\r\n"
		    "User-Agent: Mozilla\r\n",
		    cases[i].accept, cases[i].mode, cases[i].with, cases[i].agent);
		h = gw_hints_of_text(strv_of(text));
		assert_int_equal(gw_hints_want_page(&h), cases[i].page);
	}
}

T_MAIN(T(json), T(text), T(every_kind_has_an_answer), T(pages), T(who_gets_a_page))
