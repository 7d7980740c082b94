/*
 * Tokens and the values behind them. A token is a random word of this one rendering, the value's
 * number and an end mark: nothing but letters and digits, so YAML reads it as part of a scalar
 * wherever it stands. The word does not occur in the template's text, and values are not in the
 * rendered text at all, so nobody can write a token but us.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/rand.h"
#include "domain/gotemplate_int.h"

/* The first letter is none of YAML's escapes: "\{{.X}}" in a quoted scalar is an error. */
#define WORD_FIRST 'k'
#define WORD_LEN 24
#define WORD_END 'z'

struct gotemplate_values {
	char word[WORD_LEN + 1];
	size_t n, cap;
	struct gotemplate_val *val;
};

struct gotemplate_values *
gotemplate_values_new(struct strv avoid)
{
	struct gotemplate_values *v = xcalloc(1, sizeof(*v));

	do {
		v->word[0] = WORD_FIRST;
		rand_base36(v->word + 1, WORD_LEN - 1);
	} while (avoid.n > 0 && memmem(avoid.p, avoid.n, v->word, WORD_LEN) != NULL);
	return v;
}

void
gotemplate_values_free(struct gotemplate_values *v)
{
	if (v == NULL)
		return;
	for (size_t i = 0; i < v->n; i++)
		json_decref(v->val[i].j);
	xfree(v->val);
	xfree(v);
}

void
gotemplate_values_put(
    struct gotemplate_values *v, const struct gotemplate_val *val, struct strbuf *out)
{
	if (v->n == v->cap) {
		v->cap = v->cap ? v->cap * 2 : 16;
		v->val = xrealloc(v->val, v->cap * sizeof(*v->val));
	}
	v->val[v->n] = *val;
	json_incref(val->j);
	strbuf_addf(out, "%s%zu%c", v->word, v->n, WORD_END);
	v->n++;
}

/* Finds the first token in s: its value, and where it starts and ends. */
static const struct gotemplate_val *
find(const struct gotemplate_values *v, struct strv s, size_t *start, size_t *end)
{
	const char *at = s.n > 0 ? memmem(s.p, s.n, v->word, WORD_LEN) : NULL;
	struct strv number, rest;
	uint64_t i;

	if (at == NULL)
		return NULL;
	*start = (size_t)(at - s.p);
	rest = (struct strv){ at + WORD_LEN, s.n - *start - WORD_LEN };
	number = strv_cut(rest, WORD_END, &rest);
	/* Our own text: broken only if YAML took it apart, which it cannot. */
	if (v->n == 0 || strv_u64(number, v->n - 1, &i) == -1)
		return NULL;
	*end = *start + WORD_LEN + number.n + 1;
	return &v->val[i];
}

json_t *
gotemplate_resolve(const struct gotemplate_values *v, struct strv scalar, bool quoted)
{
	size_t start, end;
	const struct gotemplate_val *val = find(v, scalar, &start, &end);
	struct strbuf b CLEANUP(strbuf_done) = { 0 };
	bool alone = val != NULL && start == 0 && end == scalar.n && !quoted;
	json_t *ret;

	if (val == NULL)
		return NULL;
	/* Alone and plain: what YAML would read; a quoted text loses its quotes. */
	if (alone && !json_is_object(val->j) && !json_is_array(val->j))
		return json_copy(val->j);
	strbuf_init(&b, SIZE_MAX);
	while (val != NULL) {
		strbuf_add(&b, scalar.p, start);
		gotemplate_add_text(&b, val);
		scalar = (struct strv){ scalar.p + end, scalar.n - end };
		val = find(v, scalar, &start, &end);
	}
	strbuf_addv(&b, scalar);
	ret = json_stringn(b.n ? b.p : "", b.n);
	BUG_ON(ret == NULL);
	return ret;
}
