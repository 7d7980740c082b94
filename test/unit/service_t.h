/*
 * For tests of the service: the rig, a tenant, and operations that are begun and waited for.
 */
#ifndef TEST_SERVICE_T_H
#define TEST_SERVICE_T_H

#include "t.h"

#include "base/json.h"
#include "fake/rig_api.h"

static struct rig rig;

static inline int
setup(void **state UNUSED)
{
	rig_start(&rig);
	return 0;
}

static inline int
teardown(void **state UNUSED)
{
	rig_stop(&rig);
	return 0;
}

static const struct tenant alice = { .name = "alice" };

/* How an operation ended. */
struct result {
	unsigned n; /* calls back */
	int code, retry_after;
	char msg[240], id[SANDBOX_ID_MAX + 1];
	enum sandbox_state state;
	bool resumed;
	struct service_op *op;
};

static inline void
done(const struct sandbox_entry *entry, const struct err *e, void *arg)
{
	struct result *r = arg;

	r->n++;
	r->resumed = service_op_resumed(r->op);
	r->code = e != NULL ? (int)e->code : 0;
	if (e != NULL) {
		r->retry_after = e->retry_after;
		snprintf(r->msg, sizeof(r->msg), "%s", e->msg);
	}
	if (entry != NULL) {
		snprintf(r->id, sizeof(r->id), "%s", entry->sandbox->id);
		r->state = entry->state;
	}
}

static inline void
begin(struct result *r, struct service_op *op)
{
	r->op = op;
	assert_int_equal(r->n, 0); /* never inside the function that starts it */
}

#define S rig.app->service
#define START(r, call)                                                                             \
	do {                                                                                       \
		memset(&(r), 0, sizeof(r));                                                        \
		begin(&(r), call);                                                                 \
	} while (0)
/* The operation ends with this code (0 = well). */
#define ENDS(r, want)                                                                              \
	do {                                                                                       \
		rig_until(&rig, &(r).n, 1);                                                        \
		if ((r).code != (int)(want))                                                       \
			fail_msg("%s, not %s: %s",                                                 \
			    (r).code ? err_name((enum err_code)(r).code) : "ok",                   \
			    (want) ? err_name(want) : "ok", (r).msg);                              \
	} while (0)
#define DOES(r, want, call)                                                                        \
	do {                                                                                       \
		START(r, call);                                                                    \
		ENDS(r, want);                                                                     \
	} while (0)

#endif
