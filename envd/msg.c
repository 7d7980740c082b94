/* See msg.h. */
#include "envd/msg.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

#define NAME_MAX_SNAKE 64

static void
snake(const char *camel, char out[NAME_MAX_SNAKE])
{
	size_t n = 0;

	for (; *camel && n < NAME_MAX_SNAKE - 2; camel++) {
		bool upper = *camel >= 'A' && *camel <= 'Z';

		if (upper)
			out[n++] = '_';
		out[n++] = (char)(upper ? *camel - 'A' + 'a' : *camel);
	}
	out[n] = '\0';
}

const json_t *
msg_field(const json_t *m, const char *name)
{
	const json_t *v = json_object_get(m, name);
	char other[NAME_MAX_SNAKE];

	if (v == NULL) {
		snake(name, other);
		v = json_object_get(m, other);
	}
	return json_is_null(v) ? NULL : v;
}

static int
wrong(const char *name, const char *type, struct err *e)
{
	return err_set(e, ERR_INVALID, "unmarshal message: field %s is not %s", name, type);
}

int
msg_text(const json_t *m, const char *name, const char **ret, struct err *e)
{
	const json_t *v = msg_field(m, name);

	if (v && !json_is_string(v))
		return wrong(name, "a string", e);
	*ret = json_string_value(v);
	return 0;
}

int
msg_message(const json_t *m, const char *name, const json_t **ret, struct err *e)
{
	const json_t *v = msg_field(m, name);

	if (v && !json_is_object(v))
		return wrong(name, "a message", e);
	*ret = v;
	return 0;
}

int
msg_list(const json_t *m, const char *name, const json_t **ret, struct err *e)
{
	const json_t *v = msg_field(m, name);

	if (v && !json_is_array(v))
		return wrong(name, "a list", e);
	*ret = v;
	return 0;
}

int
msg_bool(const json_t *m, const char *name, bool dflt, bool *ret, struct err *e)
{
	const json_t *v = msg_field(m, name);

	if (v && !json_is_boolean(v))
		return wrong(name, "a boolean", e);
	*ret = v ? json_is_true(v) : dflt;
	return 0;
}

int
msg_u32(const json_t *m, const char *name, uint32_t *ret, struct err *e)
{
	const json_t *v = msg_field(m, name);
	uint64_t n = 0;

	if (json_is_string(v)) {
		struct strv s = { json_string_value(v), json_string_length(v) };

		if (strv_u64(s, UINT32_MAX, &n) == -1)
			return wrong(name, "an unsigned number", e);
	} else if (json_is_real(v)) {
		double d = json_real_value(v);

		if (!(d >= 0 && d <= UINT32_MAX) || d != (double)(uint32_t)d)
			return wrong(name, "an unsigned number", e);
		n = (uint32_t)d;
	} else if (v) {
		json_int_t i = json_integer_value(v);

		if (!json_is_integer(v) || i < 0 || i > UINT32_MAX)
			return wrong(name, "an unsigned number", e);
		n = (uint64_t)i;
	}
	*ret = (uint32_t)n;
	return 0;
}

int
msg_bytes(const json_t *m, const char *name, unsigned char **ret, size_t *n, struct err *e)
{
	const json_t *v = msg_field(m, name);
	unsigned char *out;
	ptrdiff_t len;
	size_t in;

	*ret = NULL;
	*n = 0;
	if (v == NULL)
		return 0;
	if (!json_is_string(v))
		return wrong(name, "bytes", e);
	in = json_string_length(v);
	out = xmalloc(in * 3 / 4 + 3);
	len = base64_decode((struct strv){ json_string_value(v), in }, out);
	if (len == -1) {
		xfree(out);
		return wrong(name, "base64", e);
	}
	*ret = out;
	*n = (size_t)len;
	return 0;
}

int
msg_all_text(const json_t *list, const char *name, struct err *e)
{
	const char *key;
	json_t *v;
	size_t i;

	json_array_foreach (list, i, v) {
		if (!json_is_string(v))
			return wrong(name, "a list of strings", e);
	}
	/* jansson's iterators take a tree that may be changed; this one is only read */
	json_object_foreach ((json_t *)(uintptr_t)list, key, v) {
		if (!json_is_string(v))
			return wrong(name, "a map of strings", e);
	}
	return 0;
}

void
msg_put_text(json_t *m, const char *name, const char *v)
{
	if (v && v[0] != '\0')
		json_set_str(m, name, v);
}

void
msg_put_int(json_t *m, const char *name, int64_t v)
{
	if (v != 0)
		json_set_int(m, name, v);
}

void
msg_put_i64(json_t *m, const char *name, int64_t v)
{
	char text[24];

	if (v == 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64, v);
	json_set_str(m, name, text);
}

void
msg_put_bool(json_t *m, const char *name, bool v)
{
	if (v)
		json_set_bool(m, name, v);
}

json_t *
msg_wrap(const char *name, json_t *value)
{
	json_t *m = json_object();

	json_set(m, name, value);
	return m;
}
