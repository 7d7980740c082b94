/*
 * Works on the text alone. In JSON an unescaped quote behind '{' or ',' outside of a string begins
 * a key; inside of a string it cannot stand unescaped. So the needle below, behind one of those
 * bytes, is always a real key. Text that is no JSON may come out as other text that is none, or as
 * JSON without the damaged array: both are fine for what we do with it.
 */
#include "kube/kube_strip.h"

#include <string.h>

/* The position behind the bracket that closes the array at p[0], or NULL. */
static const char *
skip_array(const char *p, const char *end)
{
	unsigned depth = 0;

	for (; p < end; p++) {
		if (*p == '"') {
			for (p++; p < end && *p != '"'; p++) {
				if (*p == '\\')
					p++;
			}
		} else if (*p == '[' || *p == '{') {
			depth++;
		} else if ((*p == ']' || *p == '}') && --depth == 0) {
			return p + 1;
		}
	}
	return NULL;
}

struct strv
kube_strip(struct strv text, struct strbuf *scratch)
{
	static const char needle[] = "\"managedFields\":[";
	const char *end = text.p + text.n, *from = text.p, *to;
	const char *at = memmem(text.p, text.n, needle, sizeof(needle) - 1);

	if (at == NULL || at == text.p || (at[-1] != ',' && at[-1] != '{'))
		return text;
	to = skip_array(at + sizeof(needle) - 2, end);
	if (to == NULL)
		return text;
	/* One of the commas around it goes too. */
	if (at[-1] == ',')
		at--;
	else if (to < end && *to == ',')
		to++;
	strbuf_reset(scratch);
	strbuf_add(scratch, from, (size_t)(at - from));
	strbuf_add(scratch, to, (size_t)(end - to));
	return scratch->failed ? text : strbuf_view(scratch);
}
