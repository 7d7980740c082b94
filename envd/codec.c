/* See codec.h. */
#include "envd/codec.h"

#include "base/alloc.h"
#include "base/json.h"

static int
json_decode(struct strv in, const char *type UNUSED, size_t max, json_t **ret, struct err *e)
{
	json_t *m;

	if (in.n == 0)
		return err_set(e, ERR_INVALID,
		    "unmarshal message: zero-length payload is not a valid JSON object");
	if (json_parse(in, max, &m, e) == -1) {
		e->code = e->code == ERR_TOO_LARGE ? ERR_TOO_LARGE : ERR_INVALID;
		return err_wrap(e, "unmarshal message");
	}
	if (!json_is_object(m)) {
		json_decref(m);
		return err_set(e, ERR_INVALID, "unmarshal message: not a JSON object");
	}
	*ret = m;
	return 0;
}

static void
json_encode(const json_t *m, const char *type UNUSED, struct strbuf *out)
{
	char *text = json_text(m);

	strbuf_adds(out, text);
	xfree(text);
}

#define BASE64_BLOCK 3072 /* a multiple of 3: no padding but at the end */

static void
json_bytes(
    const char *const *path, const char *type UNUSED, const void *p, size_t n, struct strbuf *out)
{
	char text[BASE64_LEN(BASE64_BLOCK) + 1];
	size_t depth = 0;

	for (; path[depth]; depth++)
		strbuf_addf(out, "{\"%s\":", path[depth]);
	strbuf_addc(out, '"');
	for (size_t i = 0; i < n; i += BASE64_BLOCK) {
		size_t part = n - i < BASE64_BLOCK ? n - i : BASE64_BLOCK;

		strbuf_add(out, text, base64_encode((const char *)p + i, part, text));
	}
	strbuf_addc(out, '"');
	while (depth-- > 0)
		strbuf_addc(out, '}');
}

static void
json_list_item(
    const json_t *item, const char *type UNUSED, const char *field, size_t i, struct strbuf *out)
{
	if (i == 0)
		strbuf_addf(out, "{\"%s\":[", field);
	else
		strbuf_addc(out, ',');
	json_encode(item, NULL, out);
}

static void
json_list_end(const char *type UNUSED, size_t n, struct strbuf *out)
{
	strbuf_adds(out, n > 0 ? "]}" : "{}");
}

static const struct codec codecs[] = {
	{
	    .unary_type = "application/json",
	    .stream_type = "application/connect+json",
	    .decode = json_decode,
	    .encode = json_encode,
	    .bytes = json_bytes,
	    .list_item = json_list_item,
	    .list_end = json_list_end,
	},
};

const struct codec *
codec_find(struct strv content_type, bool *stream)
{
	struct strv type = strv_trim(strv_cut(content_type, ';', &(struct strv){ 0 }));

	for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
		*stream = strv_caseis(type, codecs[i].stream_type);
		if (*stream || strv_caseis(type, codecs[i].unary_type))
			return &codecs[i];
	}
	return NULL;
}
