/*
 * The functions that templates may call, and what truth, text and order of a value are. Stateless;
 * the table is the whole list.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "domain/gotemplate_int.h"

static int
fail(const struct gotemplate_call *c, const char *what)
{
	return gotemplate_fail(c->x->t, c->at, c->x->e, "%s", what);
}

bool
gotemplate_is_struct(const json_t *v)
{
	return json_object_get(v, GOTEMPLATE_STRUCT) != NULL;
}

bool
gotemplate_truth(const struct gotemplate_val *v)
{
	switch (json_typeof(v->j)) {
	case JSON_OBJECT:
		return json_object_size(v->j) > 0;
	case JSON_ARRAY:
		return json_array_size(v->j) > 0;
	case JSON_STRING:
		return v->quoted || json_string_length(v->j) > 0;
	case JSON_INTEGER:
		return json_integer_value(v->j) != 0;
	case JSON_REAL:
		return json_real_value(v->j) != 0;
	case JSON_TRUE:
		return true;
	case JSON_FALSE:
	case JSON_NULL:
		break;
	}
	return false;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t
gotemplate_keys(const json_t *object, const char ***ret)
{
	json_t *o = (json_t *)(uintptr_t)object; /* iteration does not change it */
	size_t n = 0;

	*ret = xcalloc(json_object_size(object) + 1, sizeof(**ret));
	for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
		if (strcmp(json_object_iter_key(it), GOTEMPLATE_STRUCT) != 0)
			(*ret)[n++] = json_object_iter_key(it);
	}
	qsort(*ret, n, sizeof(**ret), by_bytes);
	return n;
}

static void add_json(struct strbuf *b, const json_t *v);

/* [a b] and map[k:v], as Go prints them. */
static void
add_collection(struct strbuf *b, const json_t *v)
{
	const char **keys;
	size_t n;

	if (json_is_array(v)) {
		strbuf_addc(b, '[');
		for (size_t i = 0; i < json_array_size(v) && !b->failed; i++) {
			if (i > 0)
				strbuf_addc(b, ' ');
			add_json(b, json_array_get(v, i));
		}
		strbuf_addc(b, ']');
		return;
	}
	n = gotemplate_keys(v, &keys);
	strbuf_adds(b, "map[");
	for (size_t i = 0; i < n && !b->failed; i++) {
		if (i > 0)
			strbuf_addc(b, ' ');
		strbuf_adds(b, keys[i]);
		strbuf_addc(b, ':');
		add_json(b, json_object_get(v, keys[i]));
	}
	strbuf_addc(b, ']');
	xfree(keys);
}

/* Recursion is bounded by JSON_DEPTH_MAX: data was parsed or built by us. */
static void
add_json(struct strbuf *b, const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		add_collection(b, v);
		break;
	case JSON_STRING:
		strbuf_add(b, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		strbuf_addf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		strbuf_addf(b, "%.15g", json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		strbuf_adds(b, json_is_true(v) ? "true" : "false");
		break;
	case JSON_NULL:
		break;
	}
}

void
gotemplate_add_text(struct strbuf *b, const struct gotemplate_val *v)
{
	if (v->quoted)
		strbuf_add_json(
		    b, (struct strv){ json_string_value(v->j), json_string_length(v->j) });
	else
		add_json(b, v->j);
}

/* Text costs: making it again and again must come to an end. */
static int
charge(const struct gotemplate_call *c, size_t n)
{
	c->x->work += n;
	if (c->x->work > GOTEMPLATE_WORK_MAX)
		return fail(c, "the template makes too much text");
	return 0;
}

static void
set(struct gotemplate_val *ret, json_t *j)
{
	*ret = (struct gotemplate_val){ .j = j };
}

/* --- index, len --- */

/* One step into a collection: *ret is borrowed. */
static int
step(const struct gotemplate_call *c, const json_t *in, const json_t *key, json_t **ret)
{
	json_int_t i;

	if (json_is_null(in)) {
		*ret = json_null();
		return 0;
	}
	if (json_is_object(in)) {
		if (!json_is_string(key))
			return fail(c, "index of a map must be a text");
		*ret = json_object_get(in, json_string_value(key));
		if (*ret == NULL)
			*ret = json_null();
		return 0;
	}
	if (!json_is_array(in))
		return fail(c, "index needs a map or a list");
	i = json_integer_value(key);
	if (!json_is_integer(key) || i < 0 || (size_t)i >= json_array_size(in))
		return fail(c, "index is out of the list's range");
	*ret = json_array_get(in, (size_t)i);
	return 0;
}

static int
fn_index(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	json_t *v = c->args[0].j;

	for (size_t i = 1; i < c->n; i++) {
		if (step(c, v, c->args[i].j, &v) == -1)
			return -1;
	}
	set(ret, json_incref(v));
	return 0;
}

static int
fn_len(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	const json_t *v = c->args[0].j;
	size_t n = 0;

	if (json_is_string(v))
		n = json_string_length(v);
	else if (json_is_array(v))
		n = json_array_size(v);
	else if (json_is_object(v))
		n = json_object_size(v);
	else if (!json_is_null(v))
		return fail(c, "len needs a text, a list or a map");
	set(ret, json_integer((json_int_t)n));
	return 0;
}

/* --- comparisons --- */

static bool
is_number(const json_t *v)
{
	return json_is_integer(v) || json_is_real(v);
}

/* <0, 0, >0 in *ret. Absent counts as empty text, as in Go's map of texts. */
static int
compare(const struct gotemplate_call *c, const struct gotemplate_val *a,
    const struct gotemplate_val *b, int *ret)
{
	struct strbuf ta CLEANUP(strbuf_done) = { 0 }, tb CLEANUP(strbuf_done) = { 0 };

	if (json_is_integer(a->j) && json_is_integer(b->j)) {
		json_int_t x = json_integer_value(a->j), y = json_integer_value(b->j);

		*ret = (x > y) - (x < y);
		return 0;
	}
	if (is_number(a->j) && is_number(b->j)) {
		double x = json_number_value(a->j), y = json_number_value(b->j);

		*ret = (x > y) - (x < y);
		return 0;
	}
	if (json_is_boolean(a->j) && json_is_boolean(b->j)) {
		*ret = json_is_true(a->j) - json_is_true(b->j);
		return 0;
	}
	if ((!json_is_string(a->j) && !json_is_null(a->j)) ||
	    (!json_is_string(b->j) && !json_is_null(b->j)))
		return fail(c, "values of different types cannot be compared");
	strbuf_init(&ta, GOTEMPLATE_WORK_MAX);
	strbuf_init(&tb, GOTEMPLATE_WORK_MAX);
	gotemplate_add_text(&ta, a);
	gotemplate_add_text(&tb, b);
	*ret = strcmp(ta.n ? ta.p : "", tb.n ? tb.p : "");
	return charge(c, ta.n + tb.n);
}

static int
fn_eq(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	bool equal = false;
	int order = 0;

	for (size_t i = 1; i < c->n && !equal; i++) {
		if (compare(c, &c->args[0], &c->args[i], &order) == -1)
			return -1;
		equal = order == 0;
	}
	set(ret, json_boolean(equal));
	return 0;
}

static int
fn_ne(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	int order = 0;

	if (compare(c, &c->args[0], &c->args[1], &order) == -1)
		return -1;
	set(ret, json_boolean(order != 0));
	return 0;
}

/* Order of two numbers or two texts. */
static int
ordered(const struct gotemplate_call *c, int *order)
{
	if (json_is_boolean(c->args[0].j) || json_is_boolean(c->args[1].j))
		return fail(c, "true and false have no order");
	return compare(c, &c->args[0], &c->args[1], order);
}

static int
fn_lt(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	int order = 0;

	if (ordered(c, &order) == -1)
		return -1;
	set(ret, json_boolean(order < 0));
	return 0;
}

static int
fn_le(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	int order = 0;

	if (ordered(c, &order) == -1)
		return -1;
	set(ret, json_boolean(order <= 0));
	return 0;
}

static int
fn_gt(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	int order = 0;

	if (ordered(c, &order) == -1)
		return -1;
	set(ret, json_boolean(order > 0));
	return 0;
}

static int
fn_ge(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	int order = 0;

	if (ordered(c, &order) == -1)
		return -1;
	set(ret, json_boolean(order >= 0));
	return 0;
}

static int
fn_not(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	set(ret, json_boolean(!gotemplate_truth(&c->args[0])));
	return 0;
}

/* --- text --- */

static int
fn_quote(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };
	struct gotemplate_val v = c->args[0];

	if (v.quoted || !json_is_string(v.j)) {
		strbuf_init(&b, GOTEMPLATE_OUTPUT_MAX);
		gotemplate_add_text(&b, &v);
		if (b.failed)
			return fail(c, "text is too long");
		*ret = (struct gotemplate_val){ json_stringn(b.n ? b.p : "", b.n), true };
	} else {
		*ret = (struct gotemplate_val){ json_incref(v.j), true };
	}
	return charge(c, json_string_length(ret->j));
}

/* One verb of printf with its argument. */
static int
format_verb(
    const struct gotemplate_call *c, char verb, const struct gotemplate_val *v, struct strbuf *b)
{
	struct gotemplate_val text = *v;

	switch (verb) {
	case 'd':
		if (!json_is_integer(v->j))
			return fail(c, "%d needs a whole number");
		break;
	case 't':
		if (!json_is_boolean(v->j))
			return fail(c, "%t needs true or false");
		break;
	case 'q':
		if (!json_is_string(v->j) && !json_is_null(v->j))
			return fail(c, "%q needs a text");
		if (json_is_string(v->j) && !v->quoted)
			text.quoted = true;
		else if (json_is_null(v->j))
			strbuf_adds(b, "\"\"");
		break;
	case 's':
	case 'v':
		break;
	default:
		return fail(c, "printf knows %s %v %q %d %t and %% only");
	}
	gotemplate_add_text(b, &text);
	return 0;
}

static int
format(const struct gotemplate_call *c, struct strbuf *b)
{
	struct strv f = { json_string_value(c->args[0].j), json_string_length(c->args[0].j) };
	size_t used = 1;

	for (size_t i = 0; i < f.n; i++) {
		if (f.p[i] != '%') {
			strbuf_addc(b, f.p[i]);
			continue;
		}
		if (++i < f.n && f.p[i] == '%') {
			strbuf_addc(b, '%');
			continue;
		}
		if (used >= c->n)
			return fail(c, "printf has too few arguments");
		if (format_verb(c, i < f.n ? f.p[i] : '\0', &c->args[used++], b) == -1)
			return -1;
	}
	if (used < c->n)
		return fail(c, "printf has too many arguments");
	return 0;
}

static int
fn_printf(const struct gotemplate_call *c, struct gotemplate_val *ret)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };
	const json_t *f = c->args[0].j;

	if (!json_is_string(f) || c->args[0].quoted)
		return fail(c, "printf needs a format");
	/* The one format whose quotes can be undone later. */
	if (c->n == 2 && strcmp(json_string_value(f), "%q") == 0 && !c->args[1].quoted &&
	    (json_is_string(c->args[1].j) || json_is_null(c->args[1].j)))
		return fn_quote(&(struct gotemplate_call){ c->x, c->at, c->args + 1, 1 }, ret);
	strbuf_init(&b, GOTEMPLATE_OUTPUT_MAX);
	if (format(c, &b) == -1)
		return -1;
	if (b.failed)
		return fail(c, "text is too long");
	if (charge(c, b.n) == -1)
		return -1;
	set(ret, json_stringn(b.n ? b.p : "", b.n));
	BUG_ON(ret->j == NULL); /* pieces of UTF-8 at their borders */
	return 0;
}

static const struct gotemplate_function functions[] = {
	{ "index", 1, GOTEMPLATE_ARGS_MAX, false, fn_index },
	{ "len", 1, 1, false, fn_len },
	{ "not", 1, 1, false, fn_not },
	{ "and", 1, GOTEMPLATE_ARGS_MAX, true, NULL },
	{ "or", 1, GOTEMPLATE_ARGS_MAX, true, NULL },
	{ "eq", 2, GOTEMPLATE_ARGS_MAX, false, fn_eq },
	{ "ne", 2, 2, false, fn_ne },
	{ "lt", 2, 2, false, fn_lt },
	{ "le", 2, 2, false, fn_le },
	{ "gt", 2, 2, false, fn_gt },
	{ "ge", 2, 2, false, fn_ge },
	{ "printf", 1, GOTEMPLATE_ARGS_MAX, false, fn_printf },
	{ "quote", 1, 1, false, fn_quote },
};

const struct gotemplate_function *
gotemplate_function_find(struct strv name)
{
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		if (strv_is(name, functions[i].name))
			return &functions[i];
	}
	return NULL;
}
