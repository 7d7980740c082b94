/* A list body in one piece and in pieces of a size that the input chooses gives the same items, the
 * same texts and the same verdict. An item begins as an object and ends with a bracket; which one
 * is for its own parser to judge. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/str.h"
#include "kube/kube_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
on_item(struct strv item, void *arg)
{
	struct strbuf *b = arg;

	BUG_ON(item.n < 2 || item.p[0] != '{' || strchr("}]", item.p[item.n - 1]) == NULL);
	strbuf_addv(b, item);
	strbuf_addc(b, '\n');
}

static int
run(const char *p, size_t n, size_t step, struct strbuf *out)
{
	struct kube_list_split *s = kube_list_split_new(on_item, out);
	const char *version, *token;
	struct err e = { .code = ERR_NONE };
	int rc = 0;

	while (n > 0 && rc == 0) {
		size_t piece = n < step ? n : step;
		char *copy = xmalloc(piece); /* reading beyond it is noticed */

		memcpy(copy, p, piece);
		rc = kube_list_split_feed(s, copy, piece, &e);
		xfree(copy);
		p += piece;
		n -= piece;
	}
	if (rc == 0)
		rc = kube_list_split_end(s, &version, &token, &e);
	if (rc == 0)
		strbuf_addf(out, "%s %s", version, token);
	else
		BUG_ON(e.code == ERR_NONE || e.msg[0] == '\0');
	kube_list_split_free(s);
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf whole, parts;
	int a, b;

	if (size < 2)
		return 0;
	strbuf_init(&whole, 1 << 24);
	strbuf_init(&parts, 1 << 24);
	a = run((const char *)data + 1, size - 1, size, &whole);
	b = run((const char *)data + 1, size - 1, 1 + data[0] % 17, &parts);
	BUG_ON(a != b);
	BUG_ON(!strv_eq(strbuf_view(&whole), strbuf_view(&parts)));
	strbuf_done(&whole);
	strbuf_done(&parts);
	return 0;
}
