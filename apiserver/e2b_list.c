/*
 * E2B: lists of sandboxes, filtered, ordered by start and paged by a keyset cursor, so that
 * deletions between pages skip nothing.
 */
#include <stdlib.h>

#include "apiserver/e2b.h"
#include "apiserver/e2b_json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/template.h"

#define FILTER_PAIRS_MAX 32
#define TOKEN_TEXT_MAX 256

struct pair {
	char *key, *value;
};

struct filter {
	bool running, paused, ascending;
	struct pair pair[FILTER_PAIRS_MAX];
	size_t pairs;
	int64_t started_after; /* µs; INT64_MIN: none */
	char template[TEMPLATE_NAME_MAX + 1];
	int64_t limit;
	bool have_cursor;
	int64_t cursor_started; /* ns */
	char cursor_id[SANDBOX_ID_MAX + 1];
};

struct row {
	struct sandbox_entry entry;
};

struct collect {
	const struct api_call *call;
	const struct filter *filter;
	struct row *rows;
	size_t n, cap, running;
};

static void
filter_done(struct filter *f)
{
	for (size_t i = 0; i < f->pairs; i++) {
		xfree(f->pair[i].key);
		xfree(f->pair[i].value);
	}
}

/* --- reading the query --- */

/* Decodes once more, as form text; NULL on a bad escape, or a NUL, which no text of ours holds. */
static char *
decode(struct strv v)
{
	struct strbuf b;
	char *text = NULL;

	strbuf_init(&b, v.n + 1);
	if (url_decode(v, true, &b) == 0 && strv_chr(strbuf_view(&b), '\0') == -1 &&
	    strbuf_take(&b, &text, NULL) == -1)
		text = NULL;
	strbuf_done(&b);
	return text;
}

/* One parameter that is a query string of its own, whose keys and values are encoded once more. */
static int
read_metadata(struct filter *f, struct strv param, struct err *e)
{
	CLEANUP(xfreep) char *inner = decode(param);
	struct strv rest = strv_of(inner);

	if (inner == NULL)
		return err_set(e, ERR_INVALID, "Error parsing metadata");
	while (rest.n > 0) {
		struct strv part = strv_cut(rest, '&', &rest), value;
		struct strv key = strv_cut(part, '=', &value);
		struct pair *p = &f->pair[f->pairs];

		if (value.p == NULL || key.n == part.n || strv_chr(value, '=') != -1)
			return err_set(e, ERR_INVALID, "Error parsing metadata");
		if (f->pairs == FILTER_PAIRS_MAX)
			return err_set(e, ERR_INVALID, "metadata filter has more than %d pairs",
			    FILTER_PAIRS_MAX);
		f->pairs++;
		p->key = decode(key);
		p->value = decode(value);
		if (p->key == NULL || p->value == NULL)
			return err_set(e, ERR_INVALID, "Error parsing metadata");
	}
	return 0;
}

static int
read_states(struct filter *f, struct strv text, struct err *e)
{
	f->running = f->paused = false;
	while (text.n > 0) {
		struct strv one = strv_trim(strv_cut(text, ',', &text));

		if (strv_is(one, "running"))
			f->running = true;
		else if (strv_is(one, "paused"))
			f->paused = true;
		else
			return err_set(
			    e, ERR_INVALID, "Invalid state: '" STRV_FMT "'", STRV_ARG(one));
	}
	return 0;
}

/* base64("<RFC 3339 ns>__<id>[__asc]"), URL-safe. */
static int
read_cursor(struct filter *f, struct strv text, struct err *e)
{
	unsigned char raw[TOKEN_TEXT_MAX];
	struct strv rest, when, id;
	ptrdiff_t n;

	if (text.n == 0)
		return 0;
	if (text.n >= TOKEN_TEXT_MAX || (n = base64_decode(text, raw)) < 0)
		return err_set(e, ERR_INVALID, "Invalid next token");
	rest = (struct strv){ (const char *)raw, (size_t)n };
	when = strv_cut(rest, '_', &rest);
	if (rest.n > 0 && rest.p[0] == '_')
		rest = (struct strv){ rest.p + 1, rest.n - 1 };
	id = strv_cut(rest, '_', &rest);
	if (time_parse(when, &f->cursor_started) == -1 || !sandbox_id_valid(id) ||
	    strv_is(rest, "_asc") != f->ascending || (!f->ascending && rest.n > 0))
		return err_set(e, ERR_INVALID, "Invalid next token");
	memcpy(f->cursor_id, id.p, id.n);
	f->cursor_id[id.n] = '\0';
	f->have_cursor = true;
	return 0;
}

static int
read_template(struct filter *f, struct strv text, struct err *e)
{
	struct template_ref ref;

	if (template_ref_parse(text, &ref, e) == -1 || strv_chr(text, ':') != -1)
		return err_set(e, ERR_INVALID, "Invalid template: '" STRV_FMT "'", STRV_ARG(text));
	memcpy(f->template, ref.name, sizeof(f->template));
	return 0;
}

static int
read_limit(struct filter *f, struct strv text, struct err *e)
{
	if (strv_i64(text, 1, E2B_LIST_MAX, &f->limit) == -1)
		return err_set(e, ERR_INVALID, "'limit' must be between 1 and %d", E2B_LIST_MAX);
	return 0;
}

static int
read_order(struct filter *f, struct strv text, struct err *e)
{
	f->ascending = strv_is(text, "asc");
	if (!f->ascending && !strv_is(text, "desc"))
		return err_set(e, ERR_INVALID, "'order' must be asc or desc");
	return 0;
}

static int
read_started_after(struct filter *f, struct strv text, struct err *e)
{
	int64_t at;

	if (time_parse(text, &at) == -1)
		return err_set(e, ERR_INVALID, "'startedAfter' is no RFC 3339 time");
	f->started_after = at / NS_PER_US; /* Python cuts what it read at microseconds */
	return 0;
}

/* In this order: the cursor must fit the order. */
static const struct {
	const char *name;
	int (*read)(struct filter *f, struct strv text, struct err *e);
	bool v1;
} params[] = {
	{ "metadata", read_metadata, true },
	{ "state", read_states, false },
	{ "order", read_order, false },
	{ "limit", read_limit, false },
	{ "startedAfter", read_started_after, false },
	{ "template", read_template, false },
	{ "nextToken", read_cursor, false },
};

/* false: the call was failed. */
static bool
read_filter(struct api_call *c, bool v1, struct filter *f)
{
	struct strbuf value;
	struct err e;

	*f = (struct filter){ .running = true,
		.paused = !v1,
		.limit = v1 ? INT64_MAX : E2B_LIST_MAX,
		.started_after = INT64_MIN };
	for (size_t i = 0; i < ARRAY_LEN(params); i++) {
		int there, rc;

		if (v1 && !params[i].v1)
			continue;
		there = api_query(c, params[i].name, &value);
		if (there == -1)
			return false;
		if (there == 0)
			continue;
		rc = value.n > 0 ? params[i].read(f, strbuf_view(&value), &e) : 0;
		strbuf_done(&value);
		if (rc == -1) {
			api_fail(c, &e);
			return false;
		}
	}
	return true;
}

/* --- picking --- */

static const char *
metadata_get(const struct sandbox *s, const char *key)
{
	for (size_t i = 0; i < s->metadata_n; i++)
		if (strcmp(s->metadata[i].key, key) == 0)
			return s->metadata[i].value;
	return NULL;
}

static bool
fits(const struct filter *f, const struct sandbox_entry *e)
{
	const struct sandbox *s = e->sandbox;
	bool paused = e2b_is_paused(e);

	if (paused ? !f->paused : !f->running)
		return false;
	if (f->started_after != INT64_MIN && s->started / NS_PER_US < f->started_after)
		return false;
	if (f->template[0] != '\0' && strcmp(f->template, s->template_id) != 0)
		return false;
	for (size_t i = 0; i < f->pairs; i++) {
		const char *v = metadata_get(s, f->pair[i].key);

		if (v == NULL || strcmp(v, f->pair[i].value) != 0)
			return false;
	}
	return true;
}

/* Newest first, ties by id upwards. */
static int
order(int64_t a_started, const char *a_id, int64_t b_started, const char *b_id)
{
	int64_t a = a_started / NS_PER_US, b = b_started / NS_PER_US;

	if (a != b)
		return a > b ? -1 : 1;
	return strcmp(a_id, b_id);
}

static int
compare_rows(const void *a, const void *b)
{
	const struct sandbox *x = ((const struct row *)a)->entry.sandbox;
	const struct sandbox *y = ((const struct row *)b)->entry.sandbox;

	return order(x->started, x->id, y->started, y->id);
}

static int
compare_rows_up(const void *a, const void *b)
{
	return compare_rows(b, a);
}

static bool
behind_cursor(const struct filter *f, const struct sandbox *s)
{
	int o = order(s->started, s->id, f->cursor_started, f->cursor_id);

	return !f->have_cursor || (f->ascending ? o < 0 : o > 0);
}

static bool
collect_one(const struct sandbox_entry *entry, void *arg)
{
	struct collect *k = arg;

	if (!service_visible(k->call->app->service, &k->call->tenant, entry) ||
	    !fits(k->filter, entry))
		return true;
	if (!e2b_is_paused(entry))
		k->running++;
	if (!behind_cursor(k->filter, entry->sandbox))
		return true;
	if (k->n == k->cap) {
		k->cap = k->cap > 0 ? k->cap * 2 : 64;
		k->rows = xrealloc(k->rows, k->cap * sizeof(*k->rows));
	}
	k->rows[k->n++].entry = *entry;
	return true;
}

/* --- answering --- */

static void
next_token(const struct filter *f, const struct sandbox *last, char *out, size_t n)
{
	char when[TIME_TEXT_MAX], raw[TOKEN_TEXT_MAX / 2];
	int len;

	time_format(last->started, 9, when);
	len = snprintf(raw, sizeof(raw), "%s__%s%s", when, last->id, f->ascending ? "__asc" : "");
	BUG_ON(len < 0 || (size_t)len >= sizeof(raw) || BASE64_LEN((size_t)len) >= n);
	base64_encode(raw, (size_t)len, out);
	for (char *p = out; *p != '\0'; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
}

static void
list(struct api_call *c, bool v1)
{
	struct filter f;
	struct collect k = { .call = c, .filter = &f };
	struct http_field extra[2];
	char token[TOKEN_TEXT_MAX], total[24];
	json_t *body;
	size_t n = 0, shown;

	if (!read_filter(c, v1, &f)) {
		filter_done(&f);
		return;
	}
	sandbox_view_each(c->app->view, collect_one, &k);
	if (k.n > 1)
		qsort(k.rows, k.n, sizeof(*k.rows), f.ascending ? compare_rows_up : compare_rows);
	shown = k.n < (size_t)f.limit ? k.n : (size_t)f.limit;
	body = json_array();
	for (size_t i = 0; i < shown; i++)
		json_array_append_new(body, e2b_json_listed(&k.rows[i].entry));
	if (shown < k.n) {
		next_token(&f, k.rows[shown - 1].entry.sandbox, token, sizeof(token));
		extra[n++] = (struct http_field){ STRV("X-Next-Token"), strv_of(token) };
	}
	if (!v1 && f.running) {
		(void)snprintf(total, sizeof(total), "%zu", k.running);
		extra[n++] = (struct http_field){ STRV("X-Total-Running"), strv_of(total) };
	}
	xfree(k.rows);
	filter_done(&f);
	api_json_with(c, 200, extra, n, body);
}

void
e2b_list(struct api_call *c)
{
	list(c, true);
}

void
e2b_list_v2(struct api_call *c)
{
	list(c, false);
}
