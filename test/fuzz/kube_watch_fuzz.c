/* A watch stream in two ways of cutting it: the same events, the same last version. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/loop.h"
#include "kube/kube_obj.h"
#include "kube/kube_watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct strbuf log;
	bool down; /* after the first failure the watch would connect again: stop comparing */
};

static void
on_open(void *arg UNUSED)
{
}

static void
on_down(void *arg)
{
	((struct seen *)arg)->down = true;
}

static void
on_event(enum kube_change what, const json_t *obj, void *arg)
{
	struct seen *s = arg;
	const char *name = kube_obj_name(obj);

	strbuf_addf(&s->log, "%d %s\n", (int)what, name != NULL ? name : "");
}

static void
on_version(uint64_t version, void *arg)
{
	strbuf_addf(&((struct seen *)arg)->log, "v%llu\n", (unsigned long long)version);
}

static void
on_expired(const struct err *e, void *arg)
{
	BUG_ON(e->code == ERR_NONE);
	((struct seen *)arg)->down = true;
}

static const struct kube_watch_ops ops = { on_open, on_down, on_event, on_version, on_expired };

static void
run(struct kube *k, const char *p, size_t n, size_t step, struct seen *s)
{
	struct kube_watch *w = kube_watch_new(k, "/w", "1", &kube_watch_defaults, &ops, s);

	strbuf_init(&s->log, 1 << 24);
	while (n > 0 && !s->down) {
		size_t piece = n < step ? n : step;
		char *copy = xmalloc(piece);

		memcpy(copy, p, piece);
		kube_watch_feed(w, copy, piece);
		xfree(copy);
		p += piece;
		n -= piece;
	}
	kube_watch_free(w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = { .down = false }, parts = { .down = false };
	static struct loop *loop;
	static struct kube *kube;
	struct err e;

	if (loop == NULL) {
		struct kube_config *config = xcalloc(1, sizeof(*config));

		clock_fake_start(SECONDS(1), SECONDS(1));
		loop = loop_new();
		config->server = xstrdup("http://127.0.0.1:1");
		BUG_ON(kube_new(loop, config, &kube, &e) == -1);
	}
	if (size < 2)
		return 0;
	run(kube, (const char *)data + 1, size - 1, size, &whole);
	run(kube, (const char *)data + 1, size - 1, 1 + data[0] % 17, &parts);
	BUG_ON(whole.down != parts.down);
	BUG_ON(!strv_eq(strbuf_view(&whole.log), strbuf_view(&parts.log)));
	strbuf_done(&whole.log);
	strbuf_done(&parts.log);
	loop_once(loop, false); /* takes the cancelled streams away */
	return 0;
}
