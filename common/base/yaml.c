/*
 * YAML events to JSON trees. Owns the typing of plain scalars; knows no document's shape. What
 * makes YAML dangerous or ambiguous (aliases, anchors, tags, duplicate keys) is refused.
 */
#include "yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <yaml.h>

#include "json.h"

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the one at hand, if have */
	bool have;
	yaml_scalar_fn fn;
	void *arg;
	struct err *e;
	int depth;
};

static int
fail_at(struct reader *r, const yaml_mark_t *mark, const char *what)
{
	return err_set(
	    r->e, ERR_INVALID, "line %zu, column %zu: %s", mark->line + 1, mark->column + 1, what);
}

static int
fail(struct reader *r, const char *what)
{
	return fail_at(r, &r->event.start_mark, what);
}

/* Reads the next event into r->event. */
static int
next(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;

	if (r->have)
		yaml_event_delete(&r->event);
	r->have = yaml_parser_parse(&r->parser, &r->event) == 1;
	if (r->have)
		return 0;
	if (p->error == YAML_READER_ERROR)
		return err_set(r->e, ERR_INVALID, "invalid YAML at byte %zu: %s", p->problem_offset,
		    p->problem ? p->problem : "not readable");
	return fail_at(r, &p->problem_mark, p->problem ? p->problem : "invalid YAML");
}

static bool
any_of(const char *s, const char *const *words)
{
	for (; *words; words++) {
		if (strcmp(s, *words) == 0)
			return true;
	}
	return false;
}

static size_t
digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* [-+]? ( "." d+ | d+ ( "." d* )? ) ( [eE] [-+]? d+ )?; *real: it has a dot or an exponent. */
static bool
number_shape(const char *s, bool *real)
{
	size_t whole, fraction = 0;

	*real = false;
	s += *s == '-' || *s == '+';
	whole = digits(s);
	s += whole;
	if (*s == '.') {
		*real = true;
		fraction = digits(++s);
		s += fraction;
	}
	if (whole + fraction == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		size_t n;

		*real = true;
		s++;
		s += *s == '-' || *s == '+';
		n = digits(s);
		if (n == 0)
			return false;
		s += n;
	}
	return *s == '\0';
}

static int
parse_based(struct reader *r, const char *s, int base, bool negative, json_t **ret)
{
	unsigned long long v;

	errno = 0;
	v = strtoull(s, NULL, base);
	if (errno != 0 || v > INT64_MAX)
		return fail(r, "number is out of range");
	*ret = json_integer(negative ? -(json_int_t)v : (json_int_t)v);
	return 0;
}

/* s has the shape of a number without dot and exponent. */
static int
parse_int(struct reader *r, const char *s, json_t **ret)
{
	const char *at = s + (*s == '-' || *s == '+');
	int64_t v;

	/* YAML 1.2 says decimal, YAML 1.1 and with it kubectl say octal (defaultMode: 0644). */
	if (at[0] == '0' && at[1] != '\0') {
		if (strspn(at, "01234567") != strlen(at))
			return fail(r, "number with a leading zero that is not octal: quote it");
		return parse_based(r, at, 8, *s == '-', ret);
	}
	if (strv_i64(strv_of(*s == '+' ? at : s), INT64_MIN, INT64_MAX, &v) == -1)
		return fail(r, "number is out of range");
	*ret = json_integer(v);
	return 0;
}

static int
parse_real(struct reader *r, const char *s, json_t **ret)
{
	double v = strtod(s, NULL);

	if (!isfinite(v))
		return fail(r, "number is out of range");
	*ret = json_real(v);
	return 0;
}

/* 0x and 0o numbers: *s is moved behind the prefix. */
static int
number_base(const char **s)
{
	if (strncmp(*s, "0x", 2) == 0 && (*s)[2] != '\0' &&
	    strspn(*s + 2, "0123456789abcdefABCDEF") == strlen(*s + 2)) {
		*s += 2;
		return 16;
	}
	if (strncmp(*s, "0o", 2) == 0 && (*s)[2] != '\0' &&
	    strspn(*s + 2, "01234567") == strlen(*s + 2)) {
		*s += 2;
		return 8;
	}
	return 0;
}

static int
type_plain(struct reader *r, const char *s, json_t **ret)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	static const char *const not_finite[] = { ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF",
		"-.inf", "-.Inf", "-.INF", "+.inf", "+.Inf", "+.INF", NULL };
	int base;
	bool real;

	if (any_of(s, nulls))
		*ret = json_null();
	else if (any_of(s, trues))
		*ret = json_true();
	else if (any_of(s, falses))
		*ret = json_false();
	else if (any_of(s, not_finite))
		return fail(r, "JSON has no such number");
	else if ((base = number_base(&s)) != 0)
		return parse_based(r, s, base, false, ret);
	else if (number_shape(s, &real))
		return real ? parse_real(r, s, ret) : parse_int(r, s, ret);
	else
		*ret = json_string(s);
	return 0;
}

/* The scalar at hand as its text; also refuses what no scalar may have. */
static int
scalar_text(struct reader *r, struct strv *ret, bool *quoted)
{
	if (r->event.data.scalar.anchor)
		return fail(r, "anchors are not supported");
	if (r->event.data.scalar.tag)
		return fail(r, "tags are not supported");
	*ret =
	    (struct strv){ (const char *)r->event.data.scalar.value, r->event.data.scalar.length };
	if (memchr(ret->p, '\0', ret->n))
		return fail(r, "text with a zero byte");
	*quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return 0;
}

static int
read_scalar(struct reader *r, json_t **ret)
{
	json_t *v = NULL;
	struct strv text;
	bool quoted;

	if (scalar_text(r, &text, &quoted) == -1)
		return -1;
	if (r->fn)
		v = r->fn(text, quoted, false, r->arg);
	if (v == NULL && quoted)
		v = json_stringn(text.p, text.n);
	if (v == NULL && !quoted && type_plain(r, text.p, &v) == -1)
		return -1;
	if (v == NULL)
		return fail(r, "text is not valid UTF-8");
	*ret = v;
	return 0;
}

/* *ret is a new string. */
static int
read_key(struct reader *r, json_t **ret)
{
	json_t *v = NULL;
	struct strv text;
	bool quoted;

	if (r->event.type == YAML_ALIAS_EVENT)
		return fail(r, "aliases are not supported");
	if (r->event.type != YAML_SCALAR_EVENT)
		return fail(r, "mapping key is not a scalar");
	if (scalar_text(r, &text, &quoted) == -1)
		return -1;
	if (r->fn)
		v = r->fn(text, quoted, true, r->arg);
	if (v == NULL)
		v = json_stringn(text.p, text.n);
	if (!json_is_string(v)) {
		json_decref(v);
		return fail(r, "mapping key is not text");
	}
	*ret = v;
	return 0;
}

static int read_node(struct reader *r, json_t **ret);

static int
read_member(struct reader *r, json_t *object)
{
	CLEANUP(json_unrefp) json_t *key = NULL;
	json_t *value;

	if (read_key(r, &key) == -1)
		return -1;
	if (json_object_get(object, json_string_value(key)))
		return fail(r, "duplicate mapping key");
	if (next(r) == -1 || read_node(r, &value) == -1)
		return -1;
	json_set(object, json_string_value(key), value);
	return 0;
}

/* The start event is at hand; afterwards the end event is. */
static int
read_items(struct reader *r, json_t *v)
{
	for (;;) {
		json_t *item;

		if (next(r) == -1)
			return -1;
		if (r->event.type == YAML_MAPPING_END_EVENT ||
		    r->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (json_is_object(v)) {
			if (read_member(r, v) == -1)
				return -1;
		} else {
			if (read_node(r, &item) == -1)
				return -1;
			BUG_ON(json_array_append_new(v, item) == -1);
		}
	}
}

static int
read_collection(struct reader *r, bool mapping, json_t **ret)
{
	CLEANUP(json_unrefp) json_t *v = NULL;
	const yaml_event_t *ev = &r->event;

	if (mapping ? ev->data.mapping_start.anchor : ev->data.sequence_start.anchor)
		return fail(r, "anchors are not supported");
	if (mapping ? ev->data.mapping_start.tag : ev->data.sequence_start.tag)
		return fail(r, "tags are not supported");
	if (++r->depth > YAML_DEPTH_MAX)
		return fail(r, "nested too deep");
	v = mapping ? json_object() : json_array();
	if (read_items(r, v) == -1)
		return -1;
	r->depth--;
	*ret = json_incref(v);
	return 0;
}

/* The node whose first event is at hand; afterwards its last event is. */
static int
read_node(struct reader *r, json_t **ret)
{
	yaml_event_type_t type = r->event.type;

	if (type == YAML_SCALAR_EVENT)
		return read_scalar(r, ret);
	if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
		return read_collection(r, type == YAML_MAPPING_START_EVENT, ret);
	if (type == YAML_ALIAS_EVENT)
		return fail(r, "aliases are not supported");
	return fail(r, "unexpected event");
}

static int
read_stream(struct reader *r, json_t **ret)
{
	CLEANUP(json_unrefp) json_t *v = NULL;

	if (next(r) == -1) /* the start of the stream */
		return -1;
	if (next(r) == -1)
		return -1;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return fail(r, "there is no document");
	if (r->event.data.document_start.tag_directives.start !=
	    r->event.data.document_start.tag_directives.end)
		return fail(r, "tags are not supported");
	if (next(r) == -1 || read_node(r, &v) == -1 || next(r) == -1) /* the document's end */
		return -1;
	if (next(r) == -1)
		return -1;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return fail(r, "more than one document");
	*ret = json_incref(v);
	return 0;
}

int
yaml_parse_with(
    struct strv text, size_t max, yaml_scalar_fn fn, void *arg, json_t **ret, struct err *e)
{
	struct reader r = { .fn = fn, .arg = arg, .e = e };
	int rc;

	if (text.n > max)
		return err_set(e, ERR_TOO_LARGE, "YAML text is longer than %zu bytes", max);
	if (yaml_parser_initialize(&r.parser) != 1)
		return err_set(e, ERR_INTERNAL, "cannot start the YAML parser");
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
	    &r.parser, (const unsigned char *)(text.n ? text.p : ""), text.n);
	rc = read_stream(&r, ret);
	if (r.have)
		yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	return rc;
}

int
yaml_parse(struct strv text, size_t max, json_t **ret, struct err *e)
{
	return yaml_parse_with(text, max, NULL, NULL, ret, e);
}
