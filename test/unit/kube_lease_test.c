#include "t.h"

#include "base/json.h"
#include "kube/kube_lease.h"

#include "../fake/script.h"

/* One Lease in memory, as an API server keeps it: conditional writes, a version that grows. */
struct store {
	struct json_t *lease; /* NULL: none */
	int version;
	int gets, puts, posts;
	bool silent; /* answers nothing any more */
	int status;  /* answers this to everything; 0: works */
};

struct side {
	int gained, lost, released;
};

struct world {
	struct loop *loop;
	struct fake *fake;
	struct kube *kube;
	struct store store;
	struct side a, b;
	struct kube_lease *la, *lb;
};

static void
store_put(struct store *s, json_t *lease)
{
	char version[16];

	snprintf(version, sizeof(version), "%d", ++s->version);
	json_object_set_new(
	    json_object_get(lease, "metadata"), "resourceVersion", json_string(version));
	json_decref(s->lease);
	s->lease = lease;
}

static void
answer_lease(struct store *s, struct fake_conn *c)
{
	CLEANUP(xfreep) char *text = json_text(s->lease);

	fake_reply(c, 200, "", text);
}

static void
handler(const struct fake_req *r, void *arg)
{
	struct store *s = &((struct world *)arg)->store;
	json_t *body = NULL;
	const char *sent, *have;
	struct err e;

	if (r->body.n > 0)
		assert_ok(e, json_parse(r->body, 65536, &body, &e));
	if (s->silent || s->status != 0) {
		json_decref(body);
		if (!s->silent)
			fake_reply(r->c, s->status, "", "{}");
		return;
	}
	if (strcmp(r->method, "GET") == 0) {
		s->gets++;
		if (s->lease == NULL)
			fake_reply(r->c, 404, "", "{\"reason\":\"NotFound\"}");
		else
			answer_lease(s, r->c);
		return;
	}
	if (strcmp(r->method, "POST") == 0) {
		s->posts++;
		assert_null(s->lease);
		store_put(s, body);
		answer_lease(s, r->c);
		return;
	}
	assert_string_equal(r->method, "PUT");
	s->puts++;
	sent = json_get_str(body, "metadata.resourceVersion");
	have = json_get_str(s->lease, "metadata.resourceVersion");
	assert_non_null(sent);
	if (have == NULL || strcmp(sent, have) != 0) {
		json_decref(body);
		fake_reply(r->c, have == NULL ? 404 : 409, "", "{\"reason\":\"Conflict\"}");
		return;
	}
	store_put(s, body);
	answer_lease(s, r->c);
}

/* Someone else writes. */
static void
steal(struct store *s, const char *holder)
{
	json_t *lease = json_deep_copy(s->lease);

	json_object_set_new(json_object_get(lease, "spec"), "holderIdentity", json_string(holder));
	store_put(s, lease);
}

static const char *
stored(struct world *w, const char *path)
{
	const char *v = json_get_str(w->store.lease, path);

	return v != NULL ? v : "";
}

static void
on_gained(void *arg)
{
	((struct side *)arg)->gained++;
}
static void
on_lost(void *arg)
{
	((struct side *)arg)->lost++;
}
static void
on_released(void *arg)
{
	((struct side *)arg)->released++;
}

static struct kube_lease *
join(struct world *w, const char *identity, struct side *side)
{
	struct kube_lease_conf conf = {
		.ns = "n",
		.name = "lead",
		.identity = identity,
		.on_gained = on_gained,
		.on_lost = on_lost,
		.arg = side,
	};
	struct kube_lease *l = kube_lease_new(w->kube, &conf);

	assert_int_equal(side->gained, 0);
	fake_settle(w->loop);
	return l;
}

static int
setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	clock_fake_start(SECONDS(1000), SECONDS(2000));
	w->loop = loop_new();
	w->fake = fake_new(w->loop, handler, w);
	w->kube = fake_client(w->fake);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kube_lease_free(w->la);
	kube_lease_free(w->lb);
	kube_free(w->kube);
	fake_free(w->fake);
	loop_free(w->loop);
	json_decref(w->store.lease);
	xfree(w);
	clock_fake_end();
	return 0;
}

/* Time passes in half seconds. */
static void
pass(struct world *w, int64_t ns)
{
	for (; ns > 0; ns -= MILLIS(500)) {
		clock_fake_advance(MILLIS(500));
		for (int i = 0; i < 12; i++) {
			loop_once(w->loop, false);
			usleep(100);
		}
	}
}

#define WTEST(name)                                                                                \
	static void name##_(struct world *w);                                                      \
	static void name(void **state)                                                             \
	{                                                                                          \
		name##_(*state);                                                                   \
	}                                                                                          \
	static void name##_(struct world *w)
#define W(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

WTEST(the_first_makes_it_and_keeps_it)
{
	w->la = join(w, "a", &w->a);
	assert_int_equal(w->a.gained, 1);
	assert_true(kube_lease_held(w->la));
	assert_string_equal(stored(w, "spec.holderIdentity"), "a");
	assert_string_equal(stored(w, "spec.acquireTime"), "1970-01-01T00:33:20.000000Z");
	assert_int_equal(json_get_int(w->store.lease, "spec.leaseDurationSeconds", 0), 15);
	assert_int_equal(json_get_int(w->store.lease, "spec.leaseTransitions", -1), 0);
	pass(w, SECONDS(60));
	assert_true(kube_lease_held(w->la));
	assert_true(w->a.gained == 1 && w->a.lost == 0);
	assert_in_range(w->store.puts, 20, 31); /* every two seconds, without asking first */
	assert_int_equal(w->store.gets, 1);
	assert_string_equal(stored(w, "spec.acquireTime"), "1970-01-01T00:33:20.000000Z");
	assert_string_not_equal(stored(w, "spec.renewTime"), "1970-01-01T00:33:20.000000Z");
}

WTEST(a_second_waits_and_takes_over_by_its_own_clock)
{
	w->la = join(w, "a", &w->a);
	w->lb = join(w, "b", &w->b);
	pass(w, SECONDS(40));
	assert_false(kube_lease_held(w->lb));
	assert_string_equal(kube_lease_holder(w->lb), "a");
	kube_lease_free(w->la); /* dies without a word */
	w->la = NULL;
	pass(w, SECONDS(14));
	assert_int_equal(w->b.gained, 0);
	pass(w, SECONDS(8));
	assert_int_equal(w->b.gained, 1);
	assert_int_equal(json_get_int(w->store.lease, "spec.leaseTransitions", -1), 1);
}

WTEST(timestamps_inside_do_not_count)
{
	/* A lease whose renewTime is long past: its holder's clock may be wrong. */
	json_t *old = json_pack("{s:{s:s}, s:{s:s, s:i, s:s}}", "metadata", "name", "lead", "spec",
	    "holderIdentity", "x", "leaseDurationSeconds", 15, "renewTime",
	    "1970-01-01T00:00:00.000000Z");

	store_put(&w->store, old);
	w->la = join(w, "a", &w->a);
	pass(w, SECONDS(13));
	assert_int_equal(w->a.gained, 0);
	pass(w, SECONDS(8));
	assert_int_equal(w->a.gained, 1);
}

WTEST(a_stolen_lease_is_lost_at_once)
{
	w->la = join(w, "a", &w->a);
	steal(&w->store, "thief");
	pass(w, SECONDS(3));
	assert_int_equal(w->a.lost, 1);
	assert_false(kube_lease_held(w->la));
	assert_string_equal(kube_lease_holder(w->la), "thief");
	assert_string_equal(stored(w, "spec.holderIdentity"), "thief");
	/* and comes back when the thief is silent */
	pass(w, SECONDS(25));
	assert_int_equal(w->a.gained, 2);
}

WTEST(a_conflict_that_leaves_us_holder_is_survived)
{
	w->la = join(w, "a", &w->a);
	steal(&w->store, "a"); /* a label was set, say */
	pass(w, SECONDS(10));
	assert_true(w->a.lost == 0 && w->a.gained == 1);
	assert_true(kube_lease_held(w->la));
}

WTEST(a_deleted_lease_is_made_again)
{
	w->la = join(w, "a", &w->a);
	json_decref(w->store.lease);
	w->store.lease = NULL;
	pass(w, SECONDS(5));
	assert_int_equal(w->store.posts, 2);
	assert_true(w->a.lost == 0 && kube_lease_held(w->la));
}

WTEST(a_silent_server_costs_the_lease_in_time)
{
	w->la = join(w, "a", &w->a);
	pass(w, SECONDS(20));
	w->store.silent = true;
	pass(w, SECONDS(7));
	assert_int_equal(w->a.lost, 0);
	pass(w, SECONDS(4)); /* 10 s from the last success at the latest */
	assert_int_equal(w->a.lost, 1);
	assert_false(kube_lease_held(w->la));
	w->store.silent = false;
	pass(w, SECONDS(10));
	assert_int_equal(w->a.gained, 2);
}

WTEST(errors_of_the_server_cost_the_lease_in_time)
{
	w->la = join(w, "a", &w->a);
	w->store.status = 500;
	pass(w, SECONDS(8));
	assert_int_equal(w->a.lost, 0);
	assert_true(kube_lease_held(w->la));
	pass(w, SECONDS(3));
	assert_int_equal(w->a.lost, 1);
}

WTEST(a_process_that_slept_does_not_think_it_leads)
{
	w->la = join(w, "a", &w->a);
	assert_true(kube_lease_held(w->la));
	clock_fake_advance(SECONDS(60));
	assert_false(kube_lease_held(w->la)); /* before any timer ran */
	pass(w, MILLIS(500));
	assert_int_equal(w->a.lost, 1);
}

WTEST(released_means_taken_over_at_once)
{
	w->la = join(w, "a", &w->a);
	w->lb = join(w, "b", &w->b);
	pass(w, SECONDS(10));
	kube_lease_release(w->la, on_released, &w->a);
	assert_int_equal(w->a.released, 0);
	assert_false(kube_lease_held(w->la));
	pass(w, SECONDS(5)); /* the next look of b */
	assert_int_equal(w->a.released, 1);
	assert_int_equal(w->b.gained, 1);
	assert_int_equal(w->a.lost, 0);
	pass(w, SECONDS(60));
	assert_int_equal(w->a.gained, 1); /* does not come back */
	/* One that does not hold it is done at once. */
	kube_lease_release(w->la, on_released, &w->a);
	loop_once(w->loop, false);
	assert_int_equal(w->a.released, 2);
}

WTEST(release_does_not_take_it_from_another)
{
	w->la = join(w, "a", &w->a);
	steal(&w->store, "thief");
	kube_lease_release(w->la, on_released, &w->a);
	fake_settle(w->loop);
	assert_int_equal(w->a.released, 1);
	assert_string_equal(stored(w, "spec.holderIdentity"), "thief");
}

WTEST(released_while_the_server_is_broken)
{
	w->la = join(w, "a", &w->a);
	w->store.status = 503;
	kube_lease_release(w->la, on_released, &w->a);
	fake_settle(w->loop);
	assert_int_equal(w->a.released, 1);
}

T_MAIN(W(the_first_makes_it_and_keeps_it), W(a_second_waits_and_takes_over_by_its_own_clock),
    W(timestamps_inside_do_not_count), W(a_stolen_lease_is_lost_at_once),
    W(a_conflict_that_leaves_us_holder_is_survived), W(a_deleted_lease_is_made_again),
    W(a_silent_server_costs_the_lease_in_time), W(errors_of_the_server_cost_the_lease_in_time),
    W(a_process_that_slept_does_not_think_it_leads), W(released_means_taken_over_at_once),
    W(release_does_not_take_it_from_another), W(released_while_the_server_is_broken))
