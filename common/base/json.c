/*
 * Strict JSON on jansson. Owns the hookup of jansson to our allocator; knows no document's shape.
 */
#include "json.h"

#include "alloc.h"

/* Before main, so that no tree can come from another allocator. */
__attribute__((constructor)) static void
use_our_allocator(void)
{
	json_set_alloc_funcs(xmalloc, xfree);
}

/* jansson recurses, so nesting is bounded before it sees the text. Finds the place where it gets
 * too deep; strings are skipped, everything else is left to the parser. */
static bool
too_deep(struct strv text, int *line, int *column)
{
	bool in_string = false;
	int depth = 0;
	size_t start = 0;

	*line = 1;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '\n') {
			++*line;
			start = i + 1;
		} else if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '[' || c == '{') {
			depth++;
		} else if (c == ']' || c == '}') {
			depth--;
		}
		if (depth > JSON_DEPTH_MAX) {
			*column = (int)(i - start + 1);
			return true;
		}
	}
	return false;
}

int
json_parse(struct strv text, size_t max, json_t **ret, struct err *e)
{
	json_error_t je;
	int line, column;
	struct strv why;
	json_t *v;

	if (text.n > max)
		return err_set(e, ERR_TOO_LARGE, "JSON text is longer than %zu bytes", max);
	if (too_deep(text, &line, &column))
		return err_set(e, ERR_INVALID,
		    "line %d, column %d: JSON is nested deeper than %d levels", line, column,
		    JSON_DEPTH_MAX);
	v = json_loadb(text.n ? text.p : "", text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
	if (v == NULL) {
		/* jansson quotes the text "near" the error: it may be a secret. */
		const char *near = strstr(je.text, " near '");

		why = (struct strv){ je.text, near ? (size_t)(near - je.text) : strlen(je.text) };
		return err_set(e, ERR_INVALID, "line %d, column %d: invalid JSON: " STRV_FMT,
		    je.line, je.column, STRV_ARG(why));
	}
	*ret = v;
	return 0;
}

const json_t *
json_get(const json_t *tree, const char *path)
{
	struct strv rest = strv_of(path);
	const json_t *v = tree;

	while (v && rest.n > 0) {
		struct strv key = strv_cut(rest, '.', &rest);

		v = json_object_getn(v, key.p, key.n);
	}
	return json_is_null(v) ? NULL : v;
}

const char *
json_get_str(const json_t *tree, const char *path)
{
	return json_string_value(json_get(tree, path));
}

int64_t
json_get_int(const json_t *tree, const char *path, int64_t dflt)
{
	const json_t *v = json_get(tree, path);

	return json_is_integer(v) ? json_integer_value(v) : dflt;
}

bool
json_get_bool(const json_t *tree, const char *path, bool dflt)
{
	const json_t *v = json_get(tree, path);

	return json_is_boolean(v) ? json_is_true(v) : dflt;
}

const json_t *
json_get_obj(const json_t *tree, const char *path)
{
	const json_t *v = json_get(tree, path);

	return json_is_object(v) ? v : NULL;
}

const json_t *
json_get_arr(const json_t *tree, const char *path)
{
	const json_t *v = json_get(tree, path);

	return json_is_array(v) ? v : NULL;
}

const char *
json_member_str(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Valid UTF-8 made of any text; the caller frees. */
static char *
clean_utf8(const char *s)
{
	struct strbuf b;
	char *ret;

	strbuf_init(&b, SIZE_MAX);
	strbuf_add_utf8(&b, strv_of(s));
	BUG_ON(strbuf_take(&b, &ret, NULL) == -1);
	return ret;
}

void
json_set(json_t *object, const char *key, json_t *value)
{
	BUG_ON(!json_is_object(object));
	if (value == NULL)
		return;
	if (utf8_valid(strv_of(key))) {
		BUG_ON(json_object_set_new(object, key, value) == -1);
	} else {
		CLEANUP(xfreep) char *clean = clean_utf8(key);

		BUG_ON(json_object_set_new(object, clean, value) == -1);
	}
}

void
json_set_str(json_t *object, const char *key, const char *v)
{
	json_t *text;

	if (v == NULL)
		return;
	text = json_string(v);
	if (text == NULL) {
		CLEANUP(xfreep) char *clean = clean_utf8(v);

		text = json_string(clean);
	}
	json_set(object, key, text);
}

void
json_set_int(json_t *object, const char *key, int64_t v)
{
	json_set(object, key, json_integer(v));
}

void
json_set_bool(json_t *object, const char *key, bool v)
{
	json_set(object, key, json_boolean(v));
}

char *
json_text(const json_t *v)
{
	char *text;

	if (v == NULL)
		return xstrdup("null");
	text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	BUG_ON(text == NULL); /* only a tree with a loop cannot be written */
	return text;
}

void
json_unrefp(json_t **v)
{
	json_decref(*v);
	*v = NULL;
}
