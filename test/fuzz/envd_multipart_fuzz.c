/*
 * Multipart bodies: the first byte says how the rest is cut into pieces. Whatever the cut, the
 * parser must say the same; and what it says must fit its rules. The part's header goes through
 * the disposition parser, too.
 */
#include <stdint.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "envd/media.h"
#include "envd/multipart.h"

#define LOG_MAX (1 << 20)

struct log {
	struct strbuf text;
	bool in_part;
};

static int
on_part(void *arg, struct strv d, struct err *e)
{
	struct log *l = arg;
	char *name = media_param(d, "name"), *file = media_param(d, "filename");

	BUG_ON(l->in_part);
	l->in_part = true;
	strbuf_addf(
	    &l->text, "[" STRV_FMT "|%s|%s]", STRV_ARG(d), name ? name : "-", file ? file : "-");
	xfree(name);
	xfree(file);
	if (d.n > 2 && d.p[0] == '!')
		return err_set(e, ERR_INVALID, "refused");
	return 0;
}

static int
on_data(void *arg, const char *p, size_t n, struct err *e UNUSED)
{
	struct log *l = arg;

	BUG_ON(!l->in_part || n == 0);
	strbuf_add(&l->text, p, n);
	return 0;
}

static int
on_part_end(void *arg, struct err *e UNUSED)
{
	struct log *l = arg;

	BUG_ON(!l->in_part);
	l->in_part = false;
	strbuf_adds(&l->text, "]\n");
	return 0;
}

static void
run(const uint8_t *p, size_t n, size_t step, struct log *l)
{
	static const struct multipart_cb cb = { on_part, on_data, on_part_end };
	struct multipart *m = multipart_new(STRV("AB"), &cb, l);
	struct err e = { 0 };
	int r = 0;

	strbuf_init(&l->text, LOG_MAX);
	l->in_part = false;
	for (size_t i = 0; i < n && r == 0; i += step) {
		/* a copy of its own size, so that reading beyond it is seen */
		size_t part = n - i < step ? n - i : step;
		char *copy = xmalloc(part);

		memcpy(copy, p + i, part);
		r = multipart_feed(m, copy, part, &e);
		xfree(copy);
	}
	if (r == 0)
		r = multipart_finish(m, &e);
	BUG_ON(r == -1 && e.msg[0] == '\0');
	strbuf_adds(&l->text, r == 0 ? "good" : "bad");
	multipart_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log whole, pieces;

	if (size < 2 || size > 65536)
		return 0;
	run(data + 1, size - 1, size, &whole);
	run(data + 1, size - 1, (size_t)data[0] % 17 + 1, &pieces);
	BUG_ON(!strv_eq(strbuf_view(&whole.text), strbuf_view(&pieces.text)));
	strbuf_done(&whole.text);
	strbuf_done(&pieces.text);
	return 0;
}
