/* See media.h. */
#include "envd/media.h"

#include <string.h>

#include "base/alloc.h"

#define VALUE_MAX ((size_t)16 * 1024)

struct strv
media_type(struct strv value)
{
	struct strv rest;

	return strv_trim(strv_cut(value, ';', &rest));
}

static bool
is_special(char c)
{
	return c != '\0' && strchr("()<>@,;:\\\"/[]?=", c) != NULL;
}

/* A quoted string from behind its first quote; *s is moved behind the last one. A backslash only
 * escapes what needs it: old browsers send Windows paths as they are. */
static void
take_quoted(struct strv *s, struct strbuf *out)
{
	size_t i = 0;

	while (i < s->n && s->p[i] != '"') {
		if (s->p[i] == '\\' && i + 1 < s->n && is_special(s->p[i + 1]))
			i++;
		strbuf_addc(out, s->p[i++]);
	}
	if (i < s->n)
		i++;
	*s = (struct strv){ s->p + i, s->n - i };
}

/* Takes `name = value` up to the next ';'. False at the end. */
static bool
take_param(struct strv *s, struct strv *name, struct strbuf *value)
{
	size_t i = 0;

	while (s->n > 0 && (s->p[0] == ';' || s->p[0] == ' ' || s->p[0] == '\t'))
		*s = (struct strv){ s->p + 1, s->n - 1 };
	if (s->n == 0)
		return false;
	while (i < s->n && s->p[i] != '=' && s->p[i] != ';')
		i++;
	*name = strv_trim((struct strv){ s->p, i });
	*s = (struct strv){ s->p + i, s->n - i };
	strbuf_reset(value);
	if (s->n == 0 || s->p[0] == ';')
		return true;
	*s = strv_trim((struct strv){ s->p + 1, s->n - 1 });
	if (s->n > 0 && s->p[0] == '"') {
		*s = (struct strv){ s->p + 1, s->n - 1 };
		take_quoted(s, value);
		return true;
	}
	for (i = 0; i < s->n && s->p[i] != ';';)
		i++;
	strbuf_addv(value, strv_trim((struct strv){ s->p, i }));
	*s = (struct strv){ s->p + i, s->n - i };
	return true;
}

/* charset'language'percent-encoded; UTF-8 and its subset only. */
static char *
decode_extended(struct strv v)
{
	struct strv rest, charset = strv_cut(v, '\'', &rest);
	struct strbuf b;
	char *text = NULL;

	if (!strv_caseis(charset, "utf-8") && !strv_caseis(charset, "us-ascii"))
		return NULL;
	strv_cut(rest, '\'', &rest);
	strbuf_init(&b, VALUE_MAX);
	if (url_decode(rest, false, &b) == -1 || memchr(b.p ? b.p : "", '\0', b.n) != NULL) {
		strbuf_done(&b);
		return NULL;
	}
	return strbuf_take(&b, &text, NULL) == 0 ? text : NULL;
}

char *
media_param(struct strv value, const char *name)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };
	char *plain = NULL, *extended = NULL;
	struct strv rest, key;

	strbuf_init(&b, VALUE_MAX);
	strv_cut(value, ';', &rest);
	while (take_param(&rest, &key, &b)) {
		bool star = key.n > 0 && key.p[key.n - 1] == '*';

		if (star)
			key.n--;
		if (!strv_caseis(key, name) || b.failed)
			continue;
		if (star && extended == NULL)
			extended = decode_extended(strbuf_view(&b));
		else if (!star && plain == NULL && !memchr(b.p ? b.p : "", '\0', b.n))
			plain = xmemdup0(b.p ? b.p : "", b.n);
	}
	if (extended == NULL)
		return plain;
	xfree(plain);
	return extended;
}
