/*
 * What a client may send as a Connect stream: envelopes cut at any place, JSON messages in them,
 * and the accessors that handlers use on those. The first byte is the size of the pieces.
 */
#include <stdint.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/json.h"
#include "envd/codec.h"
#include "envd/connect.h"
#include "envd/msg.h"

#define MESSAGE_MAX 4096

static void
use_message(const json_t *m)
{
	static const char *const names[] = { "process", "input", "pty", "size", "stdin", "cols",
		"pid", "tag", "data", "includeEntry" };
	const json_t *inner = m, *v;
	unsigned char *bytes;
	const char *text;
	struct err e;
	uint32_t n;
	size_t len;
	bool b;

	for (size_t i = 0; i < ARRAY_LEN(names) && inner; i++) {
		(void)!msg_text(inner, names[i], &text, &e);
		(void)!msg_u32(inner, names[i], &n, &e);
		(void)!msg_bool(inner, names[i], false, &b, &e);
		if (msg_list(inner, names[i], &v, &e) == 0)
			(void)!msg_all_text(v, names[i], &e);
		if (msg_bytes(inner, names[i], &bytes, &len, &e) == 0)
			xfree(bytes);
		if (msg_message(inner, names[i], &v, &e) == 0 && v) {
			(void)!msg_all_text(v, names[i], &e);
			inner = v;
		}
	}
}

/* What decodes must survive being encoded and decoded again. */
static void
use_payload(struct strv payload)
{
	bool stream;
	const struct codec *c = codec_find(STRV("application/json"), &stream);
	struct strbuf b;
	json_t *m, *again;
	struct err e = { 0 };

	if (c->decode(payload, "x", MESSAGE_MAX, &m, &e) == -1) {
		BUG_ON(e.code == ERR_NONE || e.msg[0] == '\0');
		return;
	}
	use_message(m);
	strbuf_init(&b, MESSAGE_MAX * 16);
	c->encode(m, "x", &b);
	if (!b.failed && b.n <= MESSAGE_MAX) {
		BUG_ON(c->decode(strbuf_view(&b), "x", MESSAGE_MAX, &again, &e) == -1);
		BUG_ON(!json_equal(m, again));
		json_decref(again);
	}
	strbuf_done(&b);
	json_decref(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct connect_reader r = { .max = MESSAGE_MAX };
	size_t step = size > 0 ? (size_t)data[0] + 1 : 1;
	enum connect_event ev = CONNECT_MORE;
	struct strv payload;
	unsigned flags;
	struct err e;

	for (size_t i = 1; i < size && ev != CONNECT_BAD; i += step) {
		size_t n = size - i < step ? size - i : step;
		char *copy = xmalloc(n);
		struct strv in = { copy, n };

		memcpy(copy, data + i, n);
		while (
		    (ev = connect_reader_next(&r, &in, &flags, &payload, &e)) == CONNECT_MESSAGE) {
			BUG_ON(payload.n > MESSAGE_MAX || payload.p[payload.n] != '\0');
			use_payload(payload);
		}
		BUG_ON(ev == CONNECT_MORE && in.n != 0);
		xfree(copy);
	}
	connect_reader_done(&r);
	return 0;
}
