/*
 * See template_pattern.h. No JIT: its code knows no depth limit, and a match costs microseconds
 * anyway.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "domain/template_pattern.h"

#include <pcre2.h>

#include "base/alloc.h"

#define IMAGE_MAX 512
#define GROUP_NAME_MAX 32 /* PCRE2's own */

struct template_pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
};

int
template_pattern_compile(struct strv text, struct template_pattern **ret, struct err *e)
{
	const uint32_t options =
	    PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY;
	struct template_pattern *p;
	PCRE2_UCHAR why[160] = "";
	pcre2_code *code;
	PCRE2_SIZE at = 0;
	int number = 0;

	if (text.n == 0 || text.n > PATTERN_TEXT_MAX)
		return err_set(e, ERR_INVALID, "must have 1 to %d bytes", PATTERN_TEXT_MAX);
	code = pcre2_compile((PCRE2_SPTR)text.p, text.n, options, &number, &at, NULL);
	if (code == NULL) {
		pcre2_get_error_message(number, why, sizeof(why));
		return err_set(e, ERR_INVALID, "at character %zu: %s", at + 1, (const char *)why);
	}
	p = xcalloc(1, sizeof(*p));
	p->code = code;
	p->limits = pcre2_match_context_create(NULL);
	BUG_ON(p->limits == NULL);
	pcre2_set_match_limit(p->limits, PATTERN_STEPS_MAX);
	pcre2_set_depth_limit(p->limits, PATTERN_DEPTH_MAX);
	pcre2_set_heap_limit(p->limits, PATTERN_HEAP_MAX);
	*ret = p;
	return 0;
}

void
template_pattern_free(struct template_pattern *p)
{
	if (p == NULL)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_code_free(p->code);
	xfree(p);
}

/* Cuts the image at its next "<name>": returns what is before it and sets *group; the rest is left
 * in *image. Without a further group: all of it, and *group is empty. */
static struct strv
next_group(struct strv *image, struct strv *group)
{
	struct strv head, rest, name, behind;

	head = strv_cut(*image, '<', &rest);
	name = strv_cut(rest, '>', &behind);
	if (head.n == image->n || name.n == rest.n || name.n == 0) {
		head = *image;
		*group = STRV_NONE;
		*image = STRV_NONE;
		return head;
	}
	*group = name;
	*image = behind;
	return head;
}

/* The number of a named group, or -1. */
static int
group_number(const struct template_pattern *p, struct strv name)
{
	char text[GROUP_NAME_MAX + 1];
	int n;

	if (name.n > GROUP_NAME_MAX)
		return -1;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	n = pcre2_substring_number_from_name(p->code, (PCRE2_SPTR)text);
	return n > 0 ? n : -1;
}

int
template_pattern_check(const struct template_pattern *p, struct strv image, struct err *e)
{
	while (image.n > 0) {
		struct strv group;

		next_group(&image, &group);
		if (group.n > 0 && group_number(p, group) == -1)
			return err_set(e, ERR_INVALID, "<" STRV_FMT "> is no group of the pattern",
			    STRV_ARG(group));
	}
	return 0;
}

static void
fill(const struct template_pattern *p, pcre2_match_data *match, struct strv subject,
    struct strv image, struct strbuf *out)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(match);
	uint32_t n = pcre2_get_ovector_count(match);

	while (image.n > 0) {
		struct strv group;
		int number;
		size_t i;

		strbuf_addv(out, next_group(&image, &group));
		if (group.n == 0)
			continue;
		number = group_number(p, group);
		i = number > 0 ? (size_t)number : n;
		/* A group that took no part in the match is empty. */
		if (i >= n || at[2 * i] == PCRE2_UNSET || at[2 * i + 1] < at[2 * i])
			continue;
		strbuf_add(out, subject.p + at[2 * i], at[2 * i + 1] - at[2 * i]);
	}
}

int
template_pattern_expand(const struct template_pattern *p, struct strv subject, struct strv image,
    char **ret, struct err *e)
{
	pcre2_match_data *match = pcre2_match_data_create_from_pattern(p->code, NULL);
	struct strbuf out;
	int r;

	BUG_ON(match == NULL);
	r = pcre2_match(
	    p->code, (PCRE2_SPTR)(subject.p ? subject.p : ""), subject.n, 0, 0, match, p->limits);
	if (r == PCRE2_ERROR_NOMATCH) {
		pcre2_match_data_free(match);
		return 0;
	}
	if (r < 0) {
		pcre2_match_data_free(match);
		return err_set(e, ERR_INVALID, "the pattern needs too much time or memory (%d)", r);
	}
	strbuf_init(&out, IMAGE_MAX);
	fill(p, match, subject, image, &out);
	pcre2_match_data_free(match);
	return strbuf_take(&out, ret, e) == -1 ? -1 : 1;
}
