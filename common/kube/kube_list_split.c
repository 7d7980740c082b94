/*
 * Splits a List document that arrives in pieces. It checks the outer object strictly and inside
 * values only follows strings and brackets: whoever gets an item parses it strictly anyway. Must
 * not know what the items are.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "kube/kube_cache.h"

#define ITEM_MAX ((size_t)16 * 1024 * 1024)
#define METADATA_MAX ((size_t)64 * 1024)
#define KEY_MAX 64
#define CONTINUE_MAX ((size_t)8 * 1024) /* it becomes part of an URL */

enum state {
	ST_START = 0,    /* before '{' */
	ST_KEY_OR_END,   /* after '{' */
	ST_KEY_OR_COMMA, /* after a value */
	ST_KEY_NEXT,     /* after ',' */
	ST_KEY,          /* inside a key */
	ST_COLON,
	ST_VALUE,        /* before a value */
	ST_SKIP,         /* inside a value of no interest */
	ST_METADATA,     /* inside metadata */
	ST_ITEM_OR_END,  /* after '[' of items */
	ST_ITEM_OR_NEXT, /* after an item */
	ST_ITEM_NEXT,    /* after ',' in items */
	ST_ITEM,         /* inside an item */
	ST_END,          /* after '}' */
};

/* Where one value ends. */
struct scan {
	unsigned depth;
	bool string, escape, scalar;
};

struct kube_list_split {
	void (*on_item)(struct strv item, void *arg);
	void *arg;
	enum state state;
	struct scan scan;
	struct strbuf key, metadata, item;
	char *resource_version, *continue_token; /* "" until metadata was seen */
	struct err failed;                       /* code set: refuses everything from then on */
};

struct kube_list_split *
kube_list_split_new(void (*on_item)(struct strv item, void *arg), void *arg)
{
	struct kube_list_split *s = xcalloc(1, sizeof(*s));

	s->on_item = on_item;
	s->arg = arg;
	strbuf_init(&s->key, KEY_MAX);
	strbuf_init(&s->metadata, METADATA_MAX);
	strbuf_init(&s->item, ITEM_MAX);
	s->resource_version = xstrdup("");
	s->continue_token = xstrdup("");
	return s;
}

void
kube_list_split_free(struct kube_list_split *s)
{
	if (s == NULL)
		return;
	strbuf_done(&s->key);
	strbuf_done(&s->metadata);
	strbuf_done(&s->item);
	xfree(s->resource_version);
	xfree(s->continue_token);
	xfree(s);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Goes on inside a string; returns the position behind its closing quote or n. */
static size_t
scan_string(struct scan *sc, const char *p, size_t i, size_t n)
{
	for (; i < n; i++) {
		if (sc->escape) {
			sc->escape = false;
		} else if (p[i] == '\\') {
			sc->escape = true;
		} else if (p[i] == '"') {
			sc->string = false;
			return i + 1;
		}
	}
	return i;
}

/* Consumes bytes of a value whose first byte was seen already or is p[0]. Returns the count that
 * belongs to the value; *done when it is complete. */
static size_t
scan_value(struct scan *sc, const char *p, size_t n, bool *done)
{
	size_t i = 0;

	*done = false;
	while (i < n) {
		char c;

		if (sc->string) {
			i = scan_string(sc, p, i, n);
			*done = !sc->string && sc->depth == 0;
			if (*done)
				return i;
			continue;
		}
		c = p[i];
		if (sc->scalar && (c == ',' || c == '}' || c == ']' || is_blank(c))) {
			*done = true;
			return i;
		}
		i++;
		if (c == '"') {
			sc->string = true;
		} else if (c == '{' || c == '[') {
			sc->depth++;
		} else if ((c == '}' || c == ']') && --sc->depth == 0) {
			*done = true;
			return i;
		}
	}
	return i;
}

static int
fail(struct kube_list_split *s, const char *why)
{
	return err_set(&s->failed, ERR_UNAVAILABLE, "the list is malformed: %s", why);
}

static int
take_metadata(struct kube_list_split *s)
{
	CLEANUP(json_unrefp) json_t *tree = NULL;
	const char *version, *token;

	if (s->metadata.failed)
		return err_set(&s->failed, ERR_TOO_LARGE, "the list's metadata is too long");
	if (json_parse(strbuf_view(&s->metadata), METADATA_MAX, &tree, &s->failed) == -1)
		return err_wrap(&s->failed, "list metadata");
	version = json_get_str(tree, "resourceVersion");
	token = json_get_str(tree, "continue");
	if (token != NULL && strlen(token) > CONTINUE_MAX)
		return err_set(&s->failed, ERR_TOO_LARGE, "the list's continue token is too long");
	xfree(s->resource_version);
	xfree(s->continue_token);
	s->resource_version = xstrdup(version != NULL ? version : "");
	s->continue_token = xstrdup(token != NULL ? token : "");
	return 0;
}

/* The first byte of a value after the colon: what to do with it depends on the key. Returns how
 * many bytes were consumed or -1. */
static int
begin_value(struct kube_list_split *s, char c)
{
	bool open = c == '{' || c == '[';

	if (c == ',' || c == '}' || c == ']' || c == ':')
		return fail(s, "a value is missing");
	s->scan = (struct scan){ .scalar = !open && c != '"' };
	if (!s->key.failed && strv_is(strbuf_view(&s->key), "items") && c == '[') {
		s->state = ST_ITEM_OR_END;
		return 1;
	}
	if (!s->key.failed && strv_is(strbuf_view(&s->key), "metadata") && c == '{') {
		strbuf_reset(&s->metadata);
		s->state = ST_METADATA;
	} else {
		s->state = ST_SKIP;
	}
	return 0;
}

/* States that look at one byte between values. Returns bytes consumed (0 or 1) or -1. */
static int
step_outer(struct kube_list_split *s, char c)
{
	switch (s->state) {
	case ST_START:
		s->state = ST_KEY_OR_END;
		return c == '{' ? 1 : fail(s, "it is no object");
	case ST_KEY_OR_END:
	case ST_KEY_OR_COMMA:
		if (c == '}') {
			s->state = ST_END;
			return 1;
		}
		if (c == ',' && s->state == ST_KEY_OR_COMMA) {
			s->state = ST_KEY_NEXT;
			return 1;
		}
		if (s->state == ST_KEY_OR_COMMA)
			return fail(s, "a comma is missing");
		s->state = ST_KEY_NEXT;
		return 0;
	case ST_KEY_NEXT:
		if (c != '"')
			return fail(s, "a key is missing");
		strbuf_reset(&s->key);
		s->scan = (struct scan){ .string = true };
		s->state = ST_KEY;
		return 1;
	case ST_COLON:
		s->state = ST_VALUE;
		return c == ':' ? 1 : fail(s, "a colon is missing");
	case ST_VALUE:
		return begin_value(s, c);
	case ST_KEY:
	case ST_SKIP:
	case ST_METADATA:
	case ST_ITEM_OR_END:
	case ST_ITEM_OR_NEXT:
	case ST_ITEM_NEXT:
	case ST_ITEM:
	case ST_END:
		break;
	}
	return fail(s, "text behind its end");
}

/* The same inside the items array. */
static int
step_items(struct kube_list_split *s, char c)
{
	if (c == ']' && s->state != ST_ITEM_NEXT) {
		s->state = ST_KEY_OR_COMMA;
		return 1;
	}
	if (s->state == ST_ITEM_OR_NEXT) {
		s->state = ST_ITEM_NEXT;
		return c == ',' ? 1 : fail(s, "a comma is missing between items");
	}
	if (c != '{')
		return fail(s, "an item is no object");
	strbuf_reset(&s->item);
	s->scan = (struct scan){ 0 };
	s->state = ST_ITEM;
	return 0;
}

static size_t
take_key(struct kube_list_split *s, const char *p, size_t n)
{
	size_t used = scan_string(&s->scan, p, 0, n);
	bool done = !s->scan.string;

	strbuf_add(&s->key, p, done ? used - 1 : used);
	if (done)
		s->state = ST_COLON;
	return used;
}

/* An item that lies in one piece is handed out where it is; only split ones are copied. */
static ptrdiff_t
take_item(struct kube_list_split *s, const char *p, size_t n)
{
	bool done;
	size_t used = scan_value(&s->scan, p, n, &done);
	struct strv whole = { p, used };

	if (!done || s->item.n > 0) {
		strbuf_add(&s->item, p, used);
		if (s->item.failed)
			return err_set(
			    &s->failed, ERR_TOO_LARGE, "an item of the list is too long");
		whole = strbuf_view(&s->item);
	}
	if (done) {
		s->state = ST_ITEM_OR_NEXT;
		s->on_item(whole, s->arg);
		strbuf_reset(&s->item);
	}
	return (ptrdiff_t)used;
}

static ptrdiff_t
take_value(struct kube_list_split *s, const char *p, size_t n)
{
	bool done;
	size_t used = scan_value(&s->scan, p, n, &done);

	if (s->state == ST_METADATA)
		strbuf_add(&s->metadata, p, used);
	if (!done)
		return (ptrdiff_t)used;
	if (s->state == ST_METADATA && take_metadata(s) == -1)
		return -1;
	s->state = ST_KEY_OR_COMMA;
	return (ptrdiff_t)used;
}

/* One step; returns bytes consumed or -1. Every state makes progress within two steps. */
static ptrdiff_t
step(struct kube_list_split *s, const char *p, size_t n)
{
	switch (s->state) {
	case ST_KEY:
		return (ptrdiff_t)take_key(s, p, n);
	case ST_SKIP:
	case ST_METADATA:
		return take_value(s, p, n);
	case ST_ITEM:
		return take_item(s, p, n);
	case ST_ITEM_OR_END:
	case ST_ITEM_OR_NEXT:
	case ST_ITEM_NEXT:
		return is_blank(*p) ? 1 : step_items(s, *p);
	case ST_START:
	case ST_KEY_OR_END:
	case ST_KEY_OR_COMMA:
	case ST_KEY_NEXT:
	case ST_COLON:
	case ST_VALUE:
	case ST_END:
		break;
	}
	return is_blank(*p) ? 1 : step_outer(s, *p);
}

int
kube_list_split_feed(struct kube_list_split *s, const char *p, size_t n, struct err *e)
{
	while (n > 0 && s->failed.code == ERR_NONE) {
		ptrdiff_t used = step(s, p, n);

		if (used == -1)
			break;
		p += used;
		n -= (size_t)used;
	}
	if (s->failed.code == ERR_NONE)
		return 0;
	if (e != NULL)
		*e = s->failed;
	return -1;
}

const char *
kube_list_split_continue(const struct kube_list_split *s)
{
	return s->continue_token;
}

int
kube_list_split_end(struct kube_list_split *s, const char **resource_version,
    const char **continue_token, struct err *e)
{
	if (s->failed.code == ERR_NONE && s->state != ST_END)
		fail(s, "it ends too early");
	if (s->failed.code != ERR_NONE) {
		if (e != NULL)
			*e = s->failed;
		return -1;
	}
	*resource_version = s->resource_version;
	*continue_token = s->continue_token;
	return 0;
}
