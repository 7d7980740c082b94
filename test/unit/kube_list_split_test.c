#include "t.h"

#include "kube/kube_cache.h"

struct seen {
	int n;
	struct strbuf text; /* items with '|' behind each */
};

static void
on_item(struct strv item, void *arg)
{
	struct seen *s = arg;

	s->n++;
	strbuf_addv(&s->text, item);
	strbuf_addc(&s->text, '|');
}

/* Feeds text in pieces that end at `cut` and at every `step` bytes from there. */
static int
split(const char *text, size_t cut, size_t step, struct seen *s, char version[32], char token[32],
    struct err *e)
{
	struct kube_list_split *sp;
	const char *v = "", *t = "";
	size_t n = strlen(text), at = 0;
	int rc = 0;

	memset(s, 0, sizeof(*s));
	strbuf_init(&s->text, 1024 * 1024);
	sp = kube_list_split_new(on_item, s);
	while (at < n && rc == 0) {
		size_t piece = at == 0 && cut > 0 ? cut : step;

		if (piece > n - at)
			piece = n - at;
		/* A copy of exactly that size, so that reading beyond it is noticed. */
		char *copy = xmalloc(piece);

		memcpy(copy, text + at, piece);
		rc = kube_list_split_feed(sp, copy, piece, e);
		xfree(copy);
		at += piece;
	}
	if (rc == 0)
		rc = kube_list_split_end(sp, &v, &t, e);
	if (rc == 0) {
		snprintf(version, 32, "%s", v);
		snprintf(token, 32, "%s", t);
	}
	kube_list_split_free(sp);
	return rc;
}

static const char list[] =
    "{\"kind\":\"PodList\", \"apiVersion\":\"v1\",\n\t\"metadata\":{\"resourceVersion\":\"77\","
    "\"continue\":\"to\\u006ben\",\"remainingItemCount\":3},\"other\":[1,{\"items\":[{}]},\"]}\"],"
    "\"n\":-1.5e3,\"t\":true, \"items\":[{\"a\":\"}]\\\"\\\\\"},{\"b\":[{},[]]} , "
    "{}],\"z\":null}\n";
static const char items[] = "{\"a\":\"}]\\\"\\\\\"}|{\"b\":[{},[]]}|{}|";

TEST(every_split_gives_the_same)
{
	char version[32], token[32];
	struct seen s;
	struct err e;

	for (size_t step = 1; step <= sizeof(list); step++) {
		for (size_t cut = 0; cut<sizeof(list) - 1; cut += step> 3 ? 1 : 40) {
			assert_ok(e, split(list, cut, step, &s, version, token, &e));
			assert_string_equal(version, "77");
			assert_string_equal(token, "token");
			assert_int_equal(s.n, 3);
			assert_strv(strbuf_view(&s.text), items);
			strbuf_done(&s.text);
		}
	}
}

TEST(empty_and_null_items)
{
	char version[32], token[32];
	struct seen s;
	struct err e;

	assert_ok(e,
	    split("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", 0, 9, &s, version,
	        token, &e));
	assert_string_equal(version, "1");
	assert_string_equal(token, "");
	assert_int_equal(s.n, 0);
	strbuf_done(&s.text);
	assert_ok(e, split("{\"items\":null}", 0, 100, &s, version, token, &e));
	assert_int_equal(s.n, 0);
	strbuf_done(&s.text);
	assert_ok(e, split("{}", 0, 100, &s, version, token, &e));
	strbuf_done(&s.text);
}

TEST(every_cut_document_is_refused)
{
	char version[32], token[32];
	struct seen s;
	struct err e;

	for (size_t n = 0; n < sizeof(list) - 2; n++) {
		CLEANUP(xfreep) char *part = strv_dup((struct strv){ list, n });

		assert_fails(e, ERR_UNAVAILABLE, split(part, 0, 1000, &s, version, token, &e));
		strbuf_done(&s.text);
	}
}

TEST(malformed_documents_are_refused)
{
	static const char *const bad[] = { "[]", "x", "{} x", "{}{}", "{\"items\":[1]}",
		"{\"items\":[{}{}]}", "{\"items\":[{},]}", "{\"items\":[,{}]}", "{\"items\"[{}]}",
		"{\"items\":}", "{\"items\":[{}],}", "{items:[]}", "{\"a\":1 \"b\":2}", "{,}",
		"{\"metadata\":{\"x\":1,}}", "{\"items\":[[]]}", "{\"a\":]}" };
	char version[32], token[32];
	struct seen s;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		for (size_t step = 1; step < 20; step += 18) {
			memset(&e, 0, sizeof(e));
			if (split(bad[i], 0, step, &s, version, token, &e) != -1)
				fail_msg("accepted: %s", bad[i]);
			assert_true(e.code != ERR_NONE && e.msg[0] != '\0');
			strbuf_done(&s.text);
		}
	}
}

TEST(a_refused_document_stays_refused)
{
	struct seen s = { 0 };
	struct kube_list_split *sp = kube_list_split_new(on_item, &s);
	const char *v, *t;
	struct err e;

	assert_fails(e, ERR_UNAVAILABLE, kube_list_split_feed(sp, "x", 1, &e));
	assert_fails(e, ERR_UNAVAILABLE, kube_list_split_feed(sp, "{}", 2, &e));
	assert_fails(e, ERR_UNAVAILABLE, kube_list_split_end(sp, &v, &t, &e));
	kube_list_split_free(sp);
}

TEST(token_is_known_before_the_items)
{
	struct seen s = { 0 };
	struct kube_list_split *sp = kube_list_split_new(on_item, &s);
	const char *start = "{\"metadata\":{\"continue\":\"abc\"},\"items\":[";

	assert_string_equal(kube_list_split_continue(sp), "");
	assert_int_equal(kube_list_split_feed(sp, start, strlen(start), NULL), 0);
	assert_string_equal(kube_list_split_continue(sp), "abc");
	kube_list_split_free(sp);
}

TEST(limits)
{
	struct seen s = { 0 };
	struct kube_list_split *sp = kube_list_split_new(on_item, &s);
	CLEANUP(xfreep) char *block = xcalloc(1, 1024 * 1024);
	const char *start = "{\"items\":[{\"a\":\"";
	struct err e = { .code = ERR_NONE };
	int mib = 0;

	memset(block, 'a', 1024 * 1024);
	assert_int_equal(kube_list_split_feed(sp, start, strlen(start), NULL), 0);
	while (kube_list_split_feed(sp, block, 1024 * 1024, &e) == 0 && mib < 20)
		mib++;
	assert_int_equal(mib, 15);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	kube_list_split_free(sp);

	start = "{\"metadata\":{\"continue\":\"";
	sp = kube_list_split_new(on_item, &s);
	assert_int_equal(kube_list_split_feed(sp, start, strlen(start), NULL), 0);
	assert_int_equal(kube_list_split_feed(sp, block, 9000, NULL), 0);
	assert_fails(e, ERR_TOO_LARGE, kube_list_split_feed(sp, "\"}", 2, &e));
	kube_list_split_free(sp);
}

T_MAIN(T(every_split_gives_the_same), T(empty_and_null_items), T(every_cut_document_is_refused),
    T(malformed_documents_are_refused), T(a_refused_document_stays_refused),
    T(token_is_known_before_the_items), T(limits))
