#include "t.h"

#include "base/json.h"
#include "base/log.h"
#include "kube/kube_cache.h"
#include "kube/kube_watch.h"

#include "../fake/script.h"

/*
 * Every test scripts the server step by step: it waits for a request, looks at it, answers. The
 * clock is a fake one, so that pauses take no time and nothing happens before its time.
 */
struct world {
	struct loop *loop;
	struct fake *fake;
	struct kube *kube;
	struct kube_cache *cache;
	/* requests that wait for an answer, oldest first */
	struct {
		struct fake_conn *c;
		char target[1024];
	} asked[8];
	size_t n_asked;
	struct fake_conn *watch; /* the open watch */
	/* what the cache said: "+name=value ~name=old>new -name=value …" */
	struct strbuf log;
	int synced;
	int released;
	/* Inside on_change, when the cache says `when`: forget an object, put another in. */
	const char *when, *forget, *apply;
};

static void
handler(const struct fake_req *r, void *arg)
{
	struct world *w = arg;

	assert_true(w->n_asked < ARRAY_LEN(w->asked));
	assert_string_equal(r->method, "GET");
	w->asked[w->n_asked].c = r->c;
	snprintf(w->asked[w->n_asked].target, 1024, "%s", r->target);
	w->n_asked++;
}

/* An object: "name=value". */
static void *
decode(const json_t *obj, struct err *e, void *arg UNUSED)
{
	const char *name = json_get_str(obj, "metadata.name");
	const char *v = json_get_str(obj, "v");
	struct strbuf b;
	char *ret;

	if (v == NULL) {
		err_set(e, ERR_INVALID, "no v");
		return NULL;
	}
	strbuf_init(&b, 1024);
	strbuf_addf(&b, "%s=%s", name, v);
	return strbuf_take(&b, &ret, e) == 0 ? ret : NULL;
}

static struct world *release_world;

static void
release(void *obj)
{
	release_world->released++;
	xfree(obj);
}

static void
apply(struct world *w, const char *text)
{
	CLEANUP(json_unrefp) json_t *o = NULL;
	struct err e;

	assert_ok(e, json_parse(strv_of(text), 4096, &o, &e));
	kube_cache_apply(w->cache, o);
}

static void
on_change(enum kube_change what, void *old, void *obj, void *arg)
{
	struct world *w = arg;
	const char *when = w->when;

	if (w->log.n > 0)
		strbuf_addc(&w->log, ' ');
	assert_true((old != NULL) == (what == KUBE_MODIFIED));
	strbuf_addf(&w->log, "%c%s", "+~-"[what], (const char *)obj);
	if (when == NULL || when[0] != "+~-"[what] || strcmp(when + 1, obj) != 0)
		return;
	w->when = NULL;
	if (w->forget != NULL)
		kube_cache_forget(w->cache, strv_of(w->forget));
	if (w->apply != NULL)
		apply(w, w->apply);
	if (old != NULL)
		assert_int_equal(((const char *)old)[1], '='); /* still lent */
	assert_int_equal(((const char *)obj)[1], '=');
}

static void
on_synced(void *arg)
{
	((struct world *)arg)->synced++;
}

static int
setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	struct kube_cache_conf conf = {
		.res = &KUBE_PODS,
		.ns = "n",
		.label_selector = "a in (b,c)",
		.decode = decode,
		.release = release,
		.on_change = on_change,
		.on_synced = on_synced,
		.arg = w,
	};

	clock_fake_start(SECONDS(1000), SECONDS(1000));
	log_set_level(LOG_ERROR);
	release_world = w;
	strbuf_init(&w->log, 64 * 1024);
	w->loop = loop_new();
	w->fake = fake_new(w->loop, handler, w);
	w->kube = fake_client(w->fake);
	w->cache = kube_cache_new(w->kube, &conf);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kube_cache_free(w->cache);
	kube_free(w->kube);
	fake_free(w->fake);
	loop_free(w->loop);
	strbuf_done(&w->log);
	xfree(w);
	clock_fake_end();
	return 0;
}

#define WTEST(name)                                                                                \
	static void name##_(struct world *w);                                                      \
	static void name(void **state)                                                             \
	{                                                                                          \
		name##_(*state);                                                                   \
	}                                                                                          \
	static void name##_(struct world *w)
#define W(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* --- steps --- */

static bool
has_asked(void *arg)
{
	return ((struct world *)arg)->n_asked > 0;
}

/* Waits for a request whose target holds `part`; its connection is what is answered on. */
#define EXPECT(w, part)                                                                            \
	({                                                                                         \
		fake_until((w)->loop, has_asked, w);                                               \
		assert_has((w)->asked[0].target, part);                                            \
		take(w);                                                                           \
	})

static struct fake_conn *
take(struct world *w)
{
	struct fake_conn *c = w->asked[0].c;

	memmove(w->asked, w->asked + 1, sizeof(w->asked) - sizeof(w->asked[0]));
	w->n_asked--;
	return c;
}

/* Nothing is asked for as long as the clock stands. */
#define QUIET(w)                                                                                   \
	do {                                                                                       \
		fake_settle((w)->loop);                                                            \
		assert_int_equal((w)->n_asked, 0);                                                 \
	} while (0)

static void
pass(struct world *w, int64_t ns)
{
	clock_fake_advance(ns);
	fake_settle(w->loop);
}

#define UID(c)                                                                                     \
#c #c #c #c #c #c #c #c "-" #c #c #c #c "-" #c #c #c #c "-" #c #c #c #c                    \
	                        "-" #c #c #c #c #c #c #c #c #c #c #c #c
#define OBJ(name, uid, version, v)                                                                 \
	"{\"metadata\":{\"name\":\"" name                                                          \
	"\",\"uid\":\"" UID(uid) "\",\"resourceVersion\":\"" version "\"},\"v\":\"" v "\"}"
#define LIST(version, items)                                                                       \
	"{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define PAGE(version, token, items)                                                                \
	"{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" token                 \
	"\"},\"items\":[" items "]}"
#define EVENT(type, obj) "{\"type\":\"" type "\",\"object\":" obj "}\n"
#define BOOKMARK(version) EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")

#define THREE LIST("10", OBJ("a", 1, "3", "x") "," OBJ("b", 2, "4", "y") "," OBJ("c", 3, "5", "z"))

static void
said(struct world *w, const char *text)
{
	fake_settle(w->loop);
	assert_strv(strbuf_view(&w->log), text);
	strbuf_reset(&w->log);
}

/* Answers the first list and opens the watch. */
static void
begin(struct world *w, const char *list)
{
	fake_reply(
	    EXPECT(w, "/api/v1/namespaces/n/pods?labelSelector=a%20in%20%28b%2Cc%29&limit=500"),
	    200, "", list);
	w->watch = EXPECT(w, "&watch=1&allowWatchBookmarks=true&timeoutSeconds=");
	fake_stream(w->watch);
	fake_settle(w->loop);
	assert_true(kube_cache_connected(w->cache));
}

static void
event(struct world *w, const char *text)
{
	fake_piece(w->watch, text);
	fake_settle(w->loop);
}

static const char *
value(struct world *w, const char *name)
{
	const char *v = kube_cache_get(w->cache, strv_of(name));

	return v != NULL ? v : "";
}

static bool
count_one(void *obj UNUSED, void *arg)
{
	++*(int *)arg;
	return true;
}

static int
objects_in(struct kube_cache *c)
{
	int n = 0;

	kube_cache_each(c, count_one, &n);
	return n;
}

/* --- lists --- */

WTEST(list_then_watch)
{
	assert_false(kube_cache_synced(w->cache));
	begin(w, LIST("10", OBJ("a", 1, "3", "x") "," OBJ("b", 2, "4", "y")));
	said(w, "+a=x +b=y");
	assert_int_equal(w->synced, 1);
	assert_true(kube_cache_synced(w->cache));
	assert_int_equal(objects_in(w->cache), 2);
	event(w, EVENT("ADDED", OBJ("c", 3, "11", "z")) EVENT("MODIFIED", OBJ("a", 1, "12", "x2")));
	event(w, EVENT("DELETED", OBJ("b", 2, "13", "y")));
	said(w, "+c=z ~a=x2 -b=y");
	assert_string_equal(value(w, "a"), "a=x2");
	assert_string_equal(value(w, "b"), "");
	assert_int_equal(objects_in(w->cache), 2);
	QUIET(w);
}

WTEST(the_first_list_has_no_version)
{
	fake_until(w->loop, has_asked, w);
	assert_has_not(w->asked[0].target, "resourceVersion");
	begin(w, LIST("10", ""));
}

WTEST(the_next_page_is_asked_for_before_the_first_is_complete)
{
	struct fake_conn *one, *two;

	one = EXPECT(w, "limit=500");
	fake_stream(one);
	fake_piece(
	    one, "{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"t=2\"},\"items\":[");
	two = EXPECT(w, "&continue=t%3D2");
	fake_reply(two, 200, "", PAGE("10", "t3", OBJ("b", 2, "2", "b")));
	fake_reply(EXPECT(w, "&continue=t3"), 200, "", LIST("10", OBJ("c", 3, "3", "c")));
	QUIET(w); /* not complete yet */
	assert_int_equal(w->synced, 0);
	fake_piece(one, OBJ("a", 1, "1", "a") "]}");
	fake_end(one);
	EXPECT(w, "resourceVersion=10");
	said(w, "+b=b +c=c +a=a");
	assert_int_equal(w->synced, 1);
}

WTEST(a_page_that_is_cut_is_asked_for_again)
{
	struct fake_conn *two;

	fake_reply(EXPECT(w, "limit"), 200, "", PAGE("10", "t2", OBJ("a", 1, "1", "a")));
	two = EXPECT(w, "continue=t2");
	fake_stream(two);
	fake_piece(two,
	    "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" OBJ(
	        "b", 2, "2", "b") ",{\"metadata\":");
	fake_settle(w->loop);
	fake_cut(two);
	QUIET(w);
	pass(w, SECONDS(2));
	fake_reply(EXPECT(w, "continue=t2"), 200, "",
	    LIST("10", OBJ("b", 2, "2", "b") "," OBJ("c", 3, "3", "c")));
	EXPECT(w, "resourceVersion=10");
	said(w, "+a=a +b=b +c=c");
}

WTEST(a_token_that_is_too_old_starts_the_list_anew)
{
	fake_reply(EXPECT(w, "limit"), 200, "", PAGE("10", "t2", OBJ("a", 1, "1", "a")));
	fake_reply(EXPECT(w, "continue=t2"), 410, "", "{\"reason\":\"Expired\",\"code\":410}");
	QUIET(w);
	pass(w, SECONDS(2));
	assert_has_not(w->asked[0].target, "continue");
	begin(w, LIST("20", OBJ("b", 2, "15", "b")));
	said(w, "+a=a +b=b -a=a");
}

WTEST(a_refused_list_waits_as_told)
{
	fake_reply(EXPECT(w, "limit"), 429, "Retry-After: 20\r\n", "{}");
	QUIET(w);
	pass(w, SECONDS(19));
	QUIET(w);
	pass(w, SECONDS(11)); /* at most half more */
	begin(w, LIST("10", ""));
}

WTEST(a_list_that_fails_backs_off_further_and_further)
{
	int64_t waited = 0;

	for (int i = 0; i < 12; i++) {
		fake_reply(EXPECT(w, "limit"), 403, "", "{\"message\":\"no right\"}");
		fake_settle(w->loop);
		for (waited = 0; w->n_asked == 0; waited += MILLIS(200))
			pass(w, MILLIS(200));
	}
	assert_in_range(waited, SECONDS(29), SECONDS(46));
	begin(w, LIST("10", ""));
}

WTEST(a_silent_list_is_given_up)
{
	struct fake_conn *c = EXPECT(w, "limit");

	fake_stream(c);
	pass(w, SECONDS(29));
	fake_piece(c, "{\"metadata\":{\"resourceVersion\":\"1\"},");
	fake_settle(w->loop);
	pass(w, SECONDS(29));
	QUIET(w);
	pass(w, SECONDS(2));
	assert_int_equal(c->fd, -1);
	pass(w, SECONDS(2));
	begin(w, LIST("10", ""));
}

WTEST(a_malformed_list_is_not_taken_for_complete)
{
	fake_reply(EXPECT(w, "limit"), 200, "", "{\"items\":[" OBJ("a", 1, "1", "a") "");
	QUIET(w);
	assert_int_equal(w->synced, 0);
	pass(w, SECONDS(2));
	begin(w, LIST("10", OBJ("a", 1, "1", "a")));
	said(w, "+a=a");
}

WTEST(a_list_with_a_malformed_item_deletes_nothing)
{
	begin(w, THREE);
	said(w, "+a=x +b=y +c=z");
	pass(w, SECONDS(60));
	event(w, EVENT("ERROR", "{\"code\":410}"));
	fake_reply(EXPECT(w, "limit"), 200, "", LIST("20", OBJ("a", 1, "3", "x") ",{\"b\":[}}"));
	QUIET(w);
	said(w, "");
	pass(w, SECONDS(3));
	fake_reply(EXPECT(w, "limit"), 200, "", LIST("20", "{\"metadata\":{}}"));
	QUIET(w);
	said(w, "");
}

/* --- watches --- */

WTEST(a_line_that_is_cut_is_delivered_once_and_whole)
{
	begin(w, LIST("10", ""));
	event(w, EVENT("ADDED", OBJ("a", 1, "11", "x")) "{\"type\":\"ADDED\",\"obj");
	said(w, "+a=x");
	fake_cut(w->watch);
	fake_settle(w->loop);
	/* It had delivered something, so it is asked for again at once, from there. */
	w->watch = EXPECT(w, "resourceVersion=11");
	assert_false(kube_cache_connected(w->cache));
	fake_stream(w->watch);
	event(w, EVENT("ADDED", OBJ("b", 2, "12", "y")));
	said(w, "+b=y");
	assert_true(kube_cache_connected(w->cache));
}

WTEST(lines_in_any_pieces)
{
	static const char text[] = EVENT("ADDED", OBJ("a", 1, "11", "x")) "\n" EVENT("MODIFIED",
	    OBJ("a", 1, "12", "y")) BOOKMARK("20") EVENT("DELETED", OBJ("a", 1, "21", "y"));
	char one[2] = "";

	begin(w, LIST("10", ""));
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		one[0] = text[i];
		fake_piece(w->watch, one);
		if (i % 20 == 0)
			fake_settle(w->loop);
	}
	said(w, "+a=x ~a=y -a=y");
}

WTEST(bookmarks_move_the_version)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	event(w, BOOKMARK("500"));
	pass(w, SECONDS(2));
	fake_end(w->watch);
	EXPECT(w, "resourceVersion=500");
	said(w, "+a=x");
}

WTEST(an_end_without_anything_backs_off)
{
	begin(w, LIST("10", ""));
	fake_end(w->watch);
	QUIET(w);
	pass(w, MILLIS(700));
	QUIET(w);
	pass(w, SECONDS(1));
	EXPECT(w, "resourceVersion=10");
}

static void
expired(struct world *w)
{
	fake_reply(EXPECT(w, "limit=500"), 200, "",
	    LIST("50",
	        OBJ("a", 1, "3", "x") "," OBJ("b", 2, "40", "new") "," OBJ("d", 4, "41", "d")));
	EXPECT(w, "resourceVersion=50");
	/* a is the same; b changed; c went; d came */
	said(w, "~b=new +d=d -c=z");
	assert_int_equal(w->synced, 1);
	assert_int_equal(objects_in(w->cache), 3);
}

WTEST(a_410_as_status_lists_and_compares)
{
	begin(w, THREE);
	said(w, "+a=x +b=y +c=z");
	pass(w, SECONDS(60));
	fake_end(w->watch);
	fake_reply(EXPECT(w, "resourceVersion=10"), 410, "", "{\"reason\":\"Expired\"}");
	expired(w);
}

WTEST(a_410_as_event_lists_and_compares)
{
	begin(w, THREE);
	said(w, "+a=x +b=y +c=z");
	pass(w, SECONDS(60));
	event(w,
	    EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}")
	        EVENT("ADDED", OBJ("late", 9, "99", "never")));
	expired(w);
}

WTEST(two_410_in_a_row_do_not_spin)
{
	begin(w, THREE);
	fake_end(w->watch);
	pass(w, SECONDS(2));
	fake_reply(EXPECT(w, "resourceVersion=10"), 410, "", "{}");
	QUIET(w); /* the list is two seconds old */
	pass(w, SECONDS(2));
	EXPECT(w, "limit=500");
}

WTEST(another_error_event_watches_on)
{
	begin(w, THREE);
	event(w, EVENT("ERROR", "{\"kind\":\"Status\",\"code\":500}"));
	QUIET(w);
	pass(w, SECONDS(2));
	EXPECT(w, "resourceVersion=10");
}

WTEST(a_refused_watch_waits_as_told)
{
	begin(w, THREE);
	pass(w, SECONDS(5));
	fake_end(w->watch);
	fake_reply(EXPECT(w, "resourceVersion=10"), 429, "Retry-After: 40\r\n", "{}");
	QUIET(w);
	pass(w, SECONDS(39));
	QUIET(w);
	pass(w, SECONDS(22));
	EXPECT(w, "resourceVersion=10");
}

WTEST(a_silent_watch_is_cut)
{
	struct fake_conn *old;

	begin(w, THREE);
	old = w->watch;
	pass(w, SECONDS(149));
	event(w, BOOKMARK("20"));
	pass(w, SECONDS(149));
	QUIET(w);
	pass(w, SECONDS(2));
	EXPECT(w, "resourceVersion=20");
	assert_int_equal(old->fd, -1);
}

WTEST(a_watch_that_outlives_its_timeout_is_cut)
{
	unsigned timeout = 0;

	fake_reply(EXPECT(w, "limit"), 200, "", THREE);
	fake_until(w->loop, has_asked, w);
	timeout = (unsigned)strtoul(strstr(w->asked[0].target, "timeoutSeconds=") + 15, NULL, 10);
	assert_in_range(timeout, 300, 600);
	w->watch = take(w);
	fake_stream(w->watch);
	fake_settle(w->loop);
	for (unsigned t = 0; t < timeout + 29; t++) {
		clock_fake_advance(SECONDS(1));
		loop_once(w->loop, false);
		if (t % 60 == 0)
			event(w, BOOKMARK("20"));
	}
	QUIET(w);
	pass(w, SECONDS(2));
	EXPECT(w, "resourceVersion=20");
}

WTEST(a_watch_that_is_never_answered_is_cut)
{
	fake_reply(EXPECT(w, "limit"), 200, "", THREE);
	EXPECT(w, "watch=1");
	pass(w, SECONDS(31));
	pass(w, SECONDS(2));
	EXPECT(w, "resourceVersion=10");
}

WTEST(garbage_is_not_skipped)
{
	begin(w, THREE);
	strbuf_reset(&w->log);
	for (int i = 0; i < 2; i++) {
		event(w, "{\"type\":\"MODIFIED\",\"object\":oops}\n");
		QUIET(w);
		pass(w, SECONDS(5));
		w->watch = EXPECT(w, "resourceVersion=10");
		fake_stream(w->watch);
	}
	event(w, "garbage\n");
	pass(w, SECONDS(5));
	EXPECT(w, "limit=500"); /* after three, a list says what the event would have */
	said(w, "");
}

WTEST(a_server_that_is_away_comes_back)
{
	begin(w, THREE);
	pass(w, SECONDS(5));
	strbuf_reset(&w->log);
	for (int i = 0; i < 5; i++) {
		fake_cut(w->watch);
		fake_settle(w->loop);
		while (w->n_asked == 0)
			pass(w, SECONDS(1));
		w->watch = EXPECT(w, "resourceVersion=10");
	}
	fake_stream(w->watch);
	event(w, EVENT("DELETED", OBJ("a", 1, "11", "x")));
	said(w, "-a=x");
}

/* --- overlay --- */

WTEST(an_own_write_counts_at_once_and_is_not_undone)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	said(w, "+a=x");
	apply(w, OBJ("a", 1, "15", "mine"));
	assert_string_equal(value(w, "a"), "a=mine");
	event(w, EVENT("MODIFIED", OBJ("a", 1, "12", "older")));
	event(w, EVENT("MODIFIED", OBJ("a", 1, "15", "mine")));
	said(w, "~a=mine");
	event(w, EVENT("MODIFIED", OBJ("a", 1, "16", "newer")));
	apply(w, OBJ("a", 1, "15", "mine")); /* the answer came after the event */
	said(w, "~a=newer");
}

WTEST(an_own_create_counts_at_once)
{
	begin(w, LIST("10", ""));
	apply(w, OBJ("a", 1, "11", "x"));
	said(w, "+a=x");
	event(w, EVENT("ADDED", OBJ("a", 1, "11", "x")));
	said(w, "");
	event(w, EVENT("DELETED", OBJ("a", 1, "12", "x")));
	said(w, "-a=x");
}

WTEST(an_answer_that_comes_after_the_deletion_brings_nothing_back)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	event(
	    w, EVENT("MODIFIED", OBJ("a", 1, "11", "y")) EVENT("DELETED", OBJ("a", 1, "12", "y")));
	said(w, "+a=x ~a=y -a=y");
	apply(w, OBJ("a", 1, "11", "y"));
	said(w, "");
	assert_string_equal(value(w, "a"), "");
}

WTEST(a_deletion_that_is_older_than_the_overlay)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	said(w, "+a=x");
	/* It left the selector at 11 and came back by our write at 12. */
	apply(w, OBJ("a", 1, "12", "back"));
	event(w, EVENT("DELETED", OBJ("a", 1, "11", "gone")));
	said(w, "~a=back");
	event(w, EVENT("ADDED", OBJ("a", 1, "12", "back")));
	said(w, "");
	/* A real deletion is always newer. */
	event(w, EVENT("DELETED", OBJ("a", 1, "13", "back")));
	said(w, "-a=back");
}

WTEST(deleted_and_made_again)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	said(w, "+a=x");
	/* By our own write, before the events. */
	apply(w, OBJ("a", 2, "12", "second"));
	said(w, "-a=x +a=second");
	event(w,
	    EVENT("DELETED", OBJ("a", 1, "11", "x")) EVENT("ADDED", OBJ("a", 2, "12", "second")));
	said(w, "");
	/* By events that were missed, in a list. */
	pass(w, SECONDS(60));
	event(w, EVENT("ERROR", "{\"code\":410}"));
	fake_reply(EXPECT(w, "limit"), 200, "", LIST("20", OBJ("a", 3, "18", "third")));
	EXPECT(w, "resourceVersion=20");
	said(w, "-a=second +a=third");
	assert_int_equal(objects_in(w->cache), 1);
}

WTEST(forgotten_objects_stay_away)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x") "," OBJ("b", 2, "4", "y")));
	said(w, "+a=x +b=y");
	kube_cache_forget(w->cache, STRV("a"));
	kube_cache_forget(w->cache, STRV("never"));
	said(w, "-a=x");
	event(w, EVENT("MODIFIED", OBJ("a", 1, "11", "terminating")));
	apply(w, OBJ("a", 1, "12", "late answer"));
	said(w, "");
	event(w, EVENT("ADDED", OBJ("a", 7, "14", "new one")));
	said(w, "+a=new one");
	event(w, EVENT("DELETED", OBJ("a", 1, "13", "x"))); /* of the first one */
	said(w, "");
	assert_string_equal(value(w, "a"), "a=new one");
}

WTEST(a_list_older_than_a_write)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	pass(w, SECONDS(60));
	event(w, EVENT("ERROR", "{\"code\":410}"));
	fake_until(w->loop, has_asked, w);
	apply(w, OBJ("b", 2, "25", "mine"));     /* after the list's version: stays */
	apply(w, OBJ("c", 3, "15", "was mine")); /* before it, and not in it: was deleted */
	apply(w, OBJ("a", 1, "30", "newest"));   /* newer than the list has it */
	fake_reply(EXPECT(w, "limit"), 200, "", LIST("20", OBJ("a", 1, "18", "listed")));
	EXPECT(w, "resourceVersion=20");
	said(w, "+a=x +b=mine +c=was mine ~a=newest -c=was mine");
	assert_string_equal(value(w, "b"), "b=mine");
	assert_string_equal(value(w, "a"), "a=newest");
}

/* --- calls from inside on_change --- */

WTEST(forgetting_what_the_first_list_reports)
{
	w->when = "+b=y";
	w->forget = "b";
	begin(w, THREE);
	said(w, "+a=x +b=y -b=y +c=z");
	assert_string_equal(value(w, "b"), "");
	event(w, EVENT("MODIFIED", OBJ("b", 2, "11", "terminating")));
	said(w, "");
}

/* A list later than the first, after the watch was refused. */
static void
relist(struct world *w, const char *list)
{
	pass(w, SECONDS(60));
	event(w, EVENT("ERROR", "{\"code\":410}"));
	fake_reply(EXPECT(w, "limit"), 200, "", list);
	w->watch = EXPECT(w, "&watch=1");
	fake_stream(w->watch);
	fake_settle(w->loop);
}

WTEST(forgetting_what_a_later_list_reports)
{
	begin(w, THREE);
	said(w, "+a=x +b=y +c=z");
	w->when = "~b=new";
	w->forget = "b";
	relist(w, LIST("20", OBJ("a", 1, "3", "x") "," OBJ("b", 2, "15", "new")));
	said(w, "~b=new -b=new -c=z");
	w->when = "+d=d";
	w->forget = "d";
	relist(w, LIST("30", OBJ("a", 1, "3", "x") "," OBJ("d", 4, "25", "d")));
	said(w, "+d=d -d=d");
	assert_string_equal(value(w, "a"), "a=x");
}

WTEST(forgetting_what_the_watch_reports)
{
	begin(w, THREE);
	said(w, "+a=x +b=y +c=z");
	w->when = "~a=x2";
	w->forget = "a";
	event(w, EVENT("MODIFIED", OBJ("a", 1, "11", "x2")));
	said(w, "~a=x2 -a=x2");
	w->when = "-b=y";
	w->forget = "b"; /* it is not there any more: nothing happens */
	event(w, EVENT("DELETED", OBJ("b", 2, "12", "y")));
	said(w, "-b=y");
	w->when = "+d=d";
	w->forget = "d";
	apply(w, OBJ("d", 4, "13", "d"));
	said(w, "+d=d -d=d");
	event(w, EVENT("ADDED", OBJ("d", 4, "13", "d")));
	said(w, "");
}

/* a, b and c are gone; each time one of them is reported, another is forgotten. */
static void
check_sweep(struct world *w, const char *when, const char *forget, const char *want)
{
	begin(w, THREE);
	said(w, "+a=x +b=y +c=z");
	w->when = when;
	w->forget = forget;
	w->apply = OBJ("e", 5, "30", "e");
	relist(w, LIST("20", OBJ("d", 4, "15", "d")));
	said(w, want);
	assert_string_equal(value(w, "e"), "e=e");
}

WTEST(forgetting_the_next_one_during_the_sweep)
{
	check_sweep(w, "-a=x", "b", "+d=d -a=x -b=y +e=e -c=z");
}

WTEST(forgetting_the_last_one_during_the_sweep)
{
	check_sweep(w, "-a=x", "c", "+d=d -a=x -c=z +e=e -b=y");
}

WTEST(forgetting_one_that_stays_during_the_sweep)
{
	check_sweep(w, "-b=y", "d", "+d=d -a=x -b=y -d=d +e=e -c=z");
}

/* The answer of a write that is older than the list comes while its object is swept. */
WTEST(an_old_answer_during_the_sweep_brings_nothing_back)
{
	begin(w, THREE);
	said(w, "+a=x +b=y +c=z");
	w->when = "-a=x";
	w->apply = OBJ("a", 1, "14", "late");
	relist(w, LIST("20", ""));
	said(w, "-a=x -b=y -c=z");
	assert_string_equal(value(w, "a"), "");
}

/* The owner puts the second incarnation in when it hears of the end of the first. */
WTEST(an_own_write_while_a_first_incarnation_goes)
{
	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	said(w, "+a=x");
	w->when = "-a=x";
	w->apply = OBJ("a", 2, "13", "newer");
	event(w, EVENT("ADDED", OBJ("a", 2, "12", "second")));
	said(w, "-a=x +a=newer");
	event(w, EVENT("MODIFIED", OBJ("a", 2, "13", "newer")));
	said(w, "");
	assert_string_equal(value(w, "a"), "a=newer");
}

/* --- the rest --- */

WTEST(what_cannot_be_decoded_is_absent)
{
	static const char bad[] =
	    "{\"metadata\":{\"name\":\"a\",\"uid\":\"odd\",\"resourceVersion\":\"12\"}}";

	begin(w, LIST("10", OBJ("a", 1, "3", "x")));
	said(w, "+a=x");
	event(w,
	    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"uid\":\"" UID(
	        1) "\",\"resourceVersion\":\"11\"}}}\n");
	said(w, "-a=x");
	assert_int_equal(objects_in(w->cache), 0);
	assert_string_equal(value(w, "a"), "");
	apply(w, bad);
	said(w, "");
	event(w, EVENT("DELETED", OBJ("a", 1, "13", "x")));
	said(w, "");
	event(w, EVENT("ADDED", OBJ("a", 1, "14", "well")));
	said(w, "+a=well");
}

static bool
count_up_to_two(void *obj UNUSED, void *arg)
{
	return ++*(int *)arg < 2;
}

WTEST(each_and_borrowing)
{
	const char *a;
	int n = 0;

	begin(w, THREE);
	kube_cache_each(w->cache, count_up_to_two, &n);
	assert_int_equal(n, 2);
	a = kube_cache_get(w->cache, STRV("a"));
	apply(w, OBJ("a", 1, "20", "new"));
	assert_string_equal(a, "a=x"); /* lent until the end of the turn */
	assert_int_equal(w->released, 0);
	loop_once(w->loop, false);
	assert_int_equal(w->released, 1);
}

T_MAIN(W(list_then_watch), W(the_first_list_has_no_version),
    W(the_next_page_is_asked_for_before_the_first_is_complete),
    W(a_page_that_is_cut_is_asked_for_again), W(a_token_that_is_too_old_starts_the_list_anew),
    W(a_refused_list_waits_as_told), W(a_list_that_fails_backs_off_further_and_further),
    W(a_silent_list_is_given_up), W(a_malformed_list_is_not_taken_for_complete),
    W(a_list_with_a_malformed_item_deletes_nothing),
    W(a_line_that_is_cut_is_delivered_once_and_whole), W(lines_in_any_pieces),
    W(bookmarks_move_the_version), W(an_end_without_anything_backs_off),
    W(a_410_as_status_lists_and_compares), W(a_410_as_event_lists_and_compares),
    W(two_410_in_a_row_do_not_spin), W(another_error_event_watches_on),
    W(a_refused_watch_waits_as_told), W(a_silent_watch_is_cut),
    W(a_watch_that_outlives_its_timeout_is_cut), W(a_watch_that_is_never_answered_is_cut),
    W(garbage_is_not_skipped), W(a_server_that_is_away_comes_back),
    W(an_own_write_counts_at_once_and_is_not_undone), W(an_own_create_counts_at_once),
    W(an_answer_that_comes_after_the_deletion_brings_nothing_back),
    W(a_deletion_that_is_older_than_the_overlay), W(deleted_and_made_again),
    W(forgotten_objects_stay_away), W(a_list_older_than_a_write),
    W(forgetting_what_the_first_list_reports), W(forgetting_what_a_later_list_reports),
    W(forgetting_what_the_watch_reports), W(forgetting_the_next_one_during_the_sweep),
    W(forgetting_the_last_one_during_the_sweep), W(forgetting_one_that_stays_during_the_sweep),
    W(an_old_answer_during_the_sweep_brings_nothing_back),
    W(an_own_write_while_a_first_incarnation_goes), W(what_cannot_be_decoded_is_absent),
    W(each_and_borrowing))
