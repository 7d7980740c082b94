/*
 * Tokens of one action, {{ … }}. Knows the spelling of Go's templates, not their grammar.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "domain/gotemplate_int.h"

#define NUMBER_MAX 40
#define LITERAL_MAX (16 * 1024)

int
gotemplate_fail(const struct gotemplate *t, size_t at, struct err *e, const char *fmt, ...)
{
	size_t line = 1, start = 0;
	char what[160];
	va_list ap;

	for (size_t i = 0; i < at && i < t->text.n; i++) {
		if (t->text.p[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_INVALID, "line %zu, column %zu: %s", line, at - start + 1, what);
}

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
word_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t
word_end(struct strv text, size_t at)
{
	while (at < text.n && (word_start(text.p[at]) || digit(text.p[at])))
		at++;
	return at;
}

static char
peek(const struct gotemplate *t, size_t at)
{
	return at < t->text.n ? t->text.p[at] : '\0';
}

static json_t *
keep(struct gotemplate *t, json_t *literal)
{
	if (literal != NULL)
		json_array_append_new(t->literals, literal);
	return literal;
}

/* Adds the code point as UTF-8. */
static bool
add_rune(struct strbuf *b, unsigned long c)
{
	if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return false;
	if (c < 0x80) {
		strbuf_addc(b, (char)c);
	} else if (c < 0x800) {
		strbuf_addc(b, (char)(0xC0 | c >> 6));
		strbuf_addc(b, (char)(0x80 | (c & 0x3F)));
	} else if (c < 0x10000) {
		strbuf_addc(b, (char)(0xE0 | c >> 12));
		strbuf_addc(b, (char)(0x80 | (c >> 6 & 0x3F)));
		strbuf_addc(b, (char)(0x80 | (c & 0x3F)));
	} else {
		strbuf_addc(b, (char)(0xF0 | c >> 18));
		strbuf_addc(b, (char)(0x80 | (c >> 12 & 0x3F)));
		strbuf_addc(b, (char)(0x80 | (c >> 6 & 0x3F)));
		strbuf_addc(b, (char)(0x80 | (c & 0x3F)));
	}
	return true;
}

/* What follows a backslash; *at is moved behind it. */
static bool
add_escape(const struct gotemplate *t, size_t *at, struct strbuf *b)
{
	static const char plain[] = "abfnrtv\\\"'", means[] = "\a\b\f\n\r\t\v\\\"'";
	char c = peek(t, *at), hex[9] = "", *end;
	const char *known = c ? strchr(plain, c) : NULL;
	size_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
	unsigned long rune;

	++*at;
	if (known != NULL) {
		strbuf_addc(b, means[known - plain]);
		return true;
	}
	if (n == 0 || t->text.n - *at < n)
		return false;
	memcpy(hex, t->text.p + *at, n);
	*at += n;
	for (size_t i = 0; i < n; i++) {
		if (strchr("0123456789abcdefABCDEF", hex[i]) == NULL || hex[i] == '\0')
			return false;
	}
	rune = strtoul(hex, &end, 16);
	/* \x80 and up would be bytes, not characters. */
	return (n > 2 || rune < 0x80) && add_rune(b, rune);
}

/* "…" or `…`; *at is at the opening quote. */
static int
lex_text(struct gotemplate *t, size_t *at, struct gotemplate_tok *ret, struct err *e)
{
	struct strbuf b CLEANUP(strbuf_done) = { 0 };
	char quote = t->text.p[(*at)++];

	strbuf_init(&b, LITERAL_MAX);
	for (;;) {
		char c = peek(t, *at);

		if (*at >= t->text.n || (c == '\n' && quote == '"'))
			return gotemplate_fail(t, ret->at, e, "text without its closing quote");
		++*at;
		if (c == quote)
			break;
		if (c != '\\' || quote == '`')
			strbuf_addc(&b, c);
		else if (!add_escape(t, at, &b))
			return gotemplate_fail(t, *at - 1, e, "unknown escape in a text");
	}
	if (b.failed)
		return gotemplate_fail(t, ret->at, e, "text longer than %d bytes", LITERAL_MAX);
	ret->type = GT_LITERAL;
	ret->literal = keep(t, json_stringn(b.n ? b.p : "", b.n));
	if (ret->literal == NULL)
		return gotemplate_fail(t, ret->at, e, "text is not UTF-8");
	return 0;
}

static int
lex_number(struct gotemplate *t, size_t *at, struct gotemplate_tok *ret, struct err *e)
{
	char text[NUMBER_MAX + 1], *end;
	size_t n = 0;
	bool real = false;
	int64_t whole;
	double v;

	while (n < NUMBER_MAX) {
		char c = peek(t, *at + n);

		if (c == '.' || c == 'e' || c == 'E')
			real = true;
		else if (!word_start(c) && !digit(c) && !((c == '-' || c == '+') && n == 0))
			break;
		text[n++] = c;
	}
	text[n] = '\0';
	*at += n;
	ret->type = GT_LITERAL;
	if (!real) {
		const char *digits = text[0] == '+' ? text + 1 : text;

		if (strv_i64(strv_of(digits), INT64_MIN, INT64_MAX, &whole) == -1)
			return gotemplate_fail(t, ret->at, e, "'%s' is not a number", text);
		ret->literal = keep(t, json_integer(whole));
		return 0;
	}
	errno = 0;
	v = strtod(text, &end);
	if (*end != '\0' || errno != 0 || !isfinite(v) || strpbrk(text, "xXpPnN") != NULL)
		return gotemplate_fail(t, ret->at, e, "'%s' is not a number", text);
	ret->literal = keep(t, json_real(v));
	return 0;
}

/* Names, fields, variables; false when it is none of them. */
static bool
lex_name(const struct gotemplate *t, size_t *at, struct gotemplate_tok *ret)
{
	char c = peek(t, *at), after = peek(t, *at + 1);
	size_t start = *at + (c == '.' || c == '$');

	if (c == '.') {
		if (digit(after))
			return false;
		ret->type = word_start(after) ? GT_FIELD : GT_DOT;
	} else if (c == '$') {
		ret->type = GT_VARIABLE;
	} else if (word_start(c)) {
		ret->type = GT_WORD;
	} else {
		return false;
	}
	*at = word_end(t->text, start);
	ret->text = (struct strv){ t->text.p + start, *at - start };
	return true;
}

static bool
lex_sign(const struct gotemplate *t, size_t *at, struct gotemplate_tok *ret)
{
	switch (peek(t, *at)) {
	case '|':
		ret->type = GT_PIPE;
		break;
	case '(':
		ret->type = GT_OPEN;
		break;
	case ')':
		ret->type = GT_CLOSE;
		break;
	case ',':
		ret->type = GT_COMMA;
		break;
	case '=':
		ret->type = GT_ASSIGN;
		break;
	case ':':
		if (peek(t, *at + 1) != '=')
			return false;
		ret->type = GT_DECLARE;
		++*at;
		break;
	default:
		return false;
	}
	++*at;
	return true;
}

int
gotemplate_lex(
    struct gotemplate *t, size_t *at, struct gotemplate_tok *ret, bool *trim, struct err *e)
{
	size_t start = *at;
	char c;

	while (*at < t->text.n && blank(t->text.p[*at]))
		++*at;
	*ret = (struct gotemplate_tok){ .type = GT_END, .at = *at, .space = *at > start };
	c = peek(t, *at);
	*trim = c == '-' && ret->space && peek(t, *at + 1) == '}' && peek(t, *at + 2) == '}';
	if (*trim || (c == '}' && peek(t, *at + 1) == '}')) {
		*at += *trim ? 3 : 2;
		return 0;
	}
	if (*at >= t->text.n)
		return gotemplate_fail(t, *at, e, "action without its closing }}");
	if (c == '"' || c == '`')
		return lex_text(t, at, ret, e);
	if (lex_name(t, at, ret) || lex_sign(t, at, ret))
		return 0;
	if (digit(c) || c == '-' || c == '+' || c == '.')
		return lex_number(t, at, ret, e);
	if ((unsigned char)c < 0x20 || (unsigned char)c > 0x7E)
		return gotemplate_fail(t, *at, e, "unexpected byte 0x%02x", (unsigned char)c);
	return gotemplate_fail(t, *at, e, "unexpected '%c'", c);
}
