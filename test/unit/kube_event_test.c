#include "t.h"

#include "base/json.h"
#include "kube/kube_event.h"

#include "../fake/script.h"

struct world {
	struct loop *loop;
	struct fake *fake;
	struct kube *kube;
	struct kube_recorder *rec;
	int posts, patches, status;
	struct fake_conn *held;
	bool hold;
	json_t *last;
	char target[256];
};

static const struct kube_ref on = { &KUBE_REPLICASETS, "n", "sbx-1", "uid-1" };

static void
handler(const struct fake_req *r, void *arg)
{
	struct world *w = arg;
	struct err e;

	json_decref(w->last);
	assert_ok(e, json_parse(r->body, 65536, &w->last, &e));
	snprintf(w->target, sizeof(w->target), "%s", r->target);
	if (strcmp(r->method, "POST") == 0)
		w->posts++;
	else
		w->patches++;
	if (w->hold)
		w->held = r->c;
	else
		fake_reply(r->c, w->status, "", "{}");
}

static int
setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	clock_fake_start(SECONDS(1000), SECONDS(2000));
	w->status = 201;
	w->loop = loop_new();
	w->fake = fake_new(w->loop, handler, w);
	w->kube = fake_client(w->fake);
	w->rec = kube_recorder_new(w->kube, "controller", "pod-1");
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kube_recorder_free(w->rec);
	kube_free(w->kube);
	fake_free(w->fake);
	loop_free(w->loop);
	json_decref(w->last);
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

static const char *
sent(struct world *w, const char *path)
{
	const char *v = json_get_str(w->last, path);

	return v != NULL ? v : "";
}

WTEST(an_event_has_what_kubectl_shows)
{
	kube_event(w->rec, &on, true, "Died", "exit code %d", 137);
	assert_int_equal(w->posts, 0);
	fake_settle(w->loop);
	assert_string_equal(w->target, "/api/v1/namespaces/n/events");
	assert_string_equal(sent(w, "type"), "Warning");
	assert_string_equal(sent(w, "reason"), "Died");
	assert_string_equal(sent(w, "message"), "exit code 137");
	assert_string_equal(sent(w, "involvedObject.kind"), "ReplicaSet");
	assert_string_equal(sent(w, "involvedObject.apiVersion"), "apps/v1");
	assert_string_equal(sent(w, "involvedObject.name"), "sbx-1");
	assert_string_equal(sent(w, "involvedObject.uid"), "uid-1");
	assert_string_equal(sent(w, "source.component"), "controller");
	assert_string_equal(sent(w, "reportingComponent"), "controller");
	assert_string_equal(sent(w, "reportingInstance"), "pod-1");
	assert_string_equal(sent(w, "firstTimestamp"), "1970-01-01T00:33:20Z");
	assert_true(strncmp(sent(w, "metadata.name"), "sbx-1.", 6) == 0);
	assert_int_equal(json_get_int(w->last, "count", 0), 1);
}

WTEST(a_repeat_is_a_count)
{
	char name[128];

	kube_event(w->rec, &on, false, "Paused", "idle");
	fake_settle(w->loop);
	snprintf(name, sizeof(name), "/api/v1/namespaces/n/events/%s", sent(w, "metadata.name"));
	clock_fake_advance(SECONDS(599));
	kube_event(w->rec, &on, false, "Paused", "idle");
	fake_settle(w->loop);
	assert_true(w->posts == 1 && w->patches == 1);
	assert_string_equal(w->target, name);
	assert_int_equal(json_get_int(w->last, "count", 0), 2);
	assert_string_equal(sent(w, "lastTimestamp"), "1970-01-01T00:43:19Z");
	/* another text, type or object is another event */
	kube_event(w->rec, &on, false, "Paused", "asked for");
	kube_event(w->rec, &on, true, "Paused", "idle");
	fake_settle(w->loop);
	assert_true(w->posts == 3 && w->patches == 1);
	/* after ten minutes of quiet it is said anew */
	clock_fake_advance(SECONDS(601));
	kube_event(w->rec, &on, false, "Paused", "idle");
	fake_settle(w->loop);
	assert_int_equal(w->posts, 4);
	assert_int_equal(json_get_int(w->last, "count", 0), 1);
}

WTEST(repeats_while_a_write_is_on_its_way)
{
	w->hold = true;
	for (int i = 0; i < 5; i++)
		kube_event(w->rec, &on, false, "Paused", "idle");
	fake_settle(w->loop);
	assert_true(w->posts == 1 && w->patches == 0);
	kube_event(w->rec, &on, false, "Paused", "idle");
	w->hold = false;
	fake_reply(w->held, 201, "", "{}");
	fake_settle(w->loop);
	assert_true(w->posts == 1 && w->patches == 1);
	assert_int_equal(json_get_int(w->last, "count", 0), 6);
}

WTEST(an_event_that_is_gone_is_made_again)
{
	kube_event(w->rec, &on, false, "Paused", "idle");
	fake_settle(w->loop);
	w->status = 404;
	kube_event(w->rec, &on, false, "Paused", "idle");
	fake_settle(w->loop);
	assert_true(w->posts == 2 && w->patches == 1);
	assert_int_equal(json_get_int(w->last, "count", 0), 2);
}

WTEST(an_object_may_say_so_much)
{
	static const struct kube_ref other = { &KUBE_REPLICASETS, "n", "sbx-2", "uid-2" };

	for (int i = 0; i < 40; i++) {
		kube_event(w->rec, &on, false, "Spam", "number %d", i);
		fake_settle(w->loop);
	}
	assert_int_equal(w->posts, 25);
	kube_event(w->rec, &other, false, "Spam", "number 0");
	fake_settle(w->loop);
	assert_int_equal(w->posts, 26);
	clock_fake_advance(SECONDS(301));
	kube_event(w->rec, &on, false, "Spam", "later");
	kube_event(w->rec, &on, false, "Spam", "too soon");
	fake_settle(w->loop);
	assert_int_equal(w->posts, 27);
}

WTEST(what_is_in_flight_is_bounded)
{
	struct kube_ref ref = { &KUBE_REPLICASETS, "n", NULL, "u" };
	char name[32];

	w->hold = true;
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "sbx-%d", i);
		ref.name = name;
		kube_event(w->rec, &ref, false, "Made", "new");
	}
	for (int i = 0; i < 10; i++)
		fake_settle(w->loop);
	assert_int_equal(w->posts, 64);
}

WTEST(memory_is_bounded)
{
	struct kube_ref ref = { &KUBE_REPLICASETS, "n", NULL, "u" };
	char name[32];

	w->status = 500; /* failures are forgotten, but budgets are not */
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "sbx-%d", i);
		ref.name = name;
		kube_event(w->rec, &ref, false, "Made", "new");
		if (i % 50 == 49)
			fake_settle(w->loop);
	}
	fake_settle(w->loop);
	assert_int_equal(w->posts, 5000);
}

WTEST(long_and_bad_text)
{
	CLEANUP(xfreep) char *text = xcalloc(1, 3000);

	memset(text, 'x', 2000);
	kube_event(w->rec, &on, false, "Long", "%s", text);
	fake_settle(w->loop);
	assert_int_equal(strlen(sent(w, "message")), 1024);
	memset(text, '\xc3', 10);
	kube_event(w->rec, &on, false, "Bad", "%.10s", text);
	fake_settle(w->loop);
	assert_int_equal(w->posts, 2);
}

T_MAIN(W(an_event_has_what_kubectl_shows), W(a_repeat_is_a_count),
    W(repeats_while_a_write_is_on_its_way), W(an_event_that_is_gone_is_made_again),
    W(an_object_may_say_so_much), W(what_is_in_flight_is_bounded), W(memory_is_bounded),
    W(long_and_bad_text))
