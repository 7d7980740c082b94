#include "t.h"

#include "base/json.h"
#include "envd/codec.h"
#include "envd/msg.h"

static json_t *
parse(const char *text)
{
	json_t *m;
	struct err e;

	assert_ok(e, json_parse(strv_of(text), 100000, &m, &e));
	return m;
}

TEST(names_in_both_spellings)
{
	json_t *m = parse("{\"include_entry\":true,\"watcherId\":\"a\",\"x\":null}");
	const char *text;
	bool b = false;
	struct err e;

	assert_ok(e, msg_bool(m, "includeEntry", false, &b, &e));
	assert_true(b);
	assert_ok(e, msg_text(m, "watcherId", &text, &e));
	assert_string_equal(text, "a");
	assert_null(msg_field(m, "x"));
	assert_null(msg_field(NULL, "x"));
	assert_ok(e, msg_bool(m, "other", true, &b, &e));
	assert_true(b);
	json_decref(m);
}

static void
u32(const char *json, bool good, uint32_t want)
{
	json_t *m = parse(json);
	uint32_t v = 77;
	struct err e = { 0 };

	if (good) {
		assert_ok(e, msg_u32(m, "n", &v, &e));
		assert_int_equal(v, want);
	} else {
		assert_fails(e, ERR_INVALID, msg_u32(m, "n", &v, &e));
		assert_int_equal(v, 77);
	}
	json_decref(m);
}

TEST(numbers)
{
	u32("{\"n\":5}", true, 5);
	u32("{\"n\":\"5\"}", true, 5);
	u32("{\"n\":5.0}", true, 5);
	u32("{\"n\":4294967295}", true, UINT32_MAX);
	u32("{}", true, 0);
	u32("{\"n\":null}", true, 0);
	u32("{\"n\":4294967296}", false, 0);
	u32("{\"n\":-1}", false, 0);
	u32("{\"n\":1.5}", false, 0);
	u32("{\"n\":1e300}", false, 0);
	u32("{\"n\":\"x\"}", false, 0);
	u32("{\"n\":true}", false, 0);
	u32("{\"n\":[]}", false, 0);
}

static void
bytes(const char *json, const char *want)
{
	json_t *m = parse(json);
	unsigned char *p;
	size_t n;
	struct err e;

	if (want == NULL) {
		assert_fails(e, ERR_INVALID, msg_bytes(m, "b", &p, &n, &e));
	} else {
		assert_ok(e, msg_bytes(m, "b", &p, &n, &e));
		assert_non_null(p);
		assert_int_equal(n, strlen(want));
		assert_memory_equal(p, want, n);
		xfree(p);
	}
	json_decref(m);
}

TEST(base64)
{
	bytes("{\"b\":\"aGk=\"}", "hi");
	bytes("{\"b\":\"aGk\"}", "hi");
	bytes("{\"b\":\"\"}", "");
	bytes("{\"b\":\"_-8\"}", "\xff\xef");
	bytes("{\"b\":\"/+8=\"}", "\xff\xef");
	bytes("{\"b\":\"a\"}", NULL);
	bytes("{\"b\":\"a!==\"}", NULL);
	bytes("{\"b\":5}", NULL);
}

TEST(wrong_types)
{
	json_t *m =
	    parse("{\"s\":1,\"m\":[],\"l\":{},\"b\":\"x\",\"ls\":[\"a\",1],\"ms\":{\"a\":1}}");
	const json_t *v;
	const char *s;
	bool b;
	struct err e;

	assert_fails(e, ERR_INVALID, msg_text(m, "s", &s, &e));
	assert_fails(e, ERR_INVALID, msg_message(m, "m", &v, &e));
	assert_fails(e, ERR_INVALID, msg_list(m, "l", &v, &e));
	assert_fails(e, ERR_INVALID, msg_bool(m, "b", false, &b, &e));
	assert_ok(e, msg_list(m, "ls", &v, &e));
	assert_fails(e, ERR_INVALID, msg_all_text(v, "ls", &e));
	assert_ok(e, msg_message(m, "ms", &v, &e));
	assert_fails(e, ERR_INVALID, msg_all_text(v, "ms", &e));
	assert_ok(e, msg_all_text(NULL, "none", &e));
	json_decref(m);
}

TEST(defaults_are_left_out)
{
	json_t *m = json_object();
	char *text;

	msg_put_text(m, "a", "");
	msg_put_text(m, "b", NULL);
	msg_put_int(m, "c", 0);
	msg_put_i64(m, "d", 0);
	msg_put_bool(m, "e", false);
	msg_put_i64(m, "size", 12345678901);
	msg_put_int(m, "code", -1);
	msg_put_bool(m, "exited", true);
	text = json_text(m);
	assert_string_equal(text, "{\"size\":\"12345678901\",\"code\":-1,\"exited\":true}");
	xfree(text);
	json_decref(m);
}

TEST(codecs_by_content_type)
{
	bool stream = true;
	const struct codec *c = codec_find(STRV("application/json; charset=utf-8"), &stream);

	assert_non_null(c);
	assert_false(stream);
	assert_ptr_equal(codec_find(STRV("Application/Connect+JSON"), &stream), c);
	assert_true(stream);
	assert_null(codec_find(STRV("text/plain"), &stream));
	assert_null(codec_find(STRV_NONE, &stream));
	assert_null(codec_find(STRV("application/jsonx"), &stream));
}

TEST(bytes_inside_of_others)
{
	static const char *const path[] = { "event", "data", "pty", NULL };
	bool stream;
	const struct codec *c = codec_find(STRV("application/json"), &stream);
	static unsigned char big[10000], back[10004];
	struct strbuf b;
	json_t *m;
	struct err e;

	strbuf_init(&b, 100000);
	c->bytes(path, "t", "hi", 2, &b);
	assert_strv(strbuf_view(&b), "{\"event\":{\"data\":{\"pty\":\"aGk=\"}}}");
	strbuf_reset(&b);
	c->bytes(path, "t", "", 0, &b);
	assert_strv(strbuf_view(&b), "{\"event\":{\"data\":{\"pty\":\"\"}}}");
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (unsigned char)(i * 7);
	strbuf_reset(&b);
	c->bytes(path, "t", big, sizeof(big), &b);
	assert_ok(e, json_parse(strbuf_view(&b), 100000, &m, &e));
	assert_int_equal(
	    base64_decode(strv_of(json_get_str(m, "event.data.pty")), back), sizeof(big));
	assert_memory_equal(big, back, sizeof(big));
	json_decref(m);
	strbuf_done(&b);
}

TEST(lists_and_bad_messages)
{
	bool stream;
	const struct codec *c = codec_find(STRV("application/json"), &stream);
	json_t *m = parse("{\"a\":1}");
	struct strbuf b;
	struct err e;

	strbuf_init(&b, 1000);
	c->list_end("t", 0, &b);
	assert_strv(strbuf_view(&b), "{}");
	strbuf_reset(&b);
	c->list_item(m, "t", "x", 0, &b);
	c->list_item(m, "t", "x", 1, &b);
	c->list_end("t", 2, &b);
	assert_strv(strbuf_view(&b), "{\"x\":[{\"a\":1},{\"a\":1}]}");
	strbuf_done(&b);
	json_decref(m);
	assert_fails(e, ERR_INVALID, c->decode(STRV(""), "t", 100, &m, &e));
	assert_fails(e, ERR_INVALID, c->decode(STRV("[]"), "t", 100, &m, &e));
	assert_fails(e, ERR_INVALID, c->decode(STRV("{"), "t", 100, &m, &e));
	assert_fails(e, ERR_INVALID, c->decode(STRV("{\"a\":\"\xff\"}"), "t", 100, &m, &e));
}

T_MAIN(T(names_in_both_spellings), T(numbers), T(base64), T(wrong_types), T(defaults_are_left_out),
    T(codecs_by_content_type), T(bytes_inside_of_others), T(lists_and_bad_messages))
