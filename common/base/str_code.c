/*
 * Encodings of text: JSON strings, URLs, HTML, UTF-8, hex, base64. Part of str.h; knows nothing but
 * bytes.
 */
#include "str.h"

static const char hex_digits[] = "0123456789abcdef";

/* -1 when c is no hex digit. */
static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

size_t
utf8_seq(struct strv s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t want;

	if (s.n == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	/* C0, C1 and F5.. never occur; E0, ED, F0 and F4 narrow the second byte (overlong forms,
	 * surrogates, beyond U+10FFFF). */
	if (p[0] < 0xC2 || p[0] > 0xF4)
		return 0;
	want = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
	if (s.n < want)
		return 0;
	for (size_t i = 1; i < want; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
	    (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
		return 0;
	return want;
}

bool
utf8_valid(struct strv s)
{
	while (s.n > 0) {
		size_t k = utf8_seq(s);

		if (k == 0)
			return false;
		s.p += k;
		s.n -= k;
	}
	return true;
}

/* Length of the longest start of s that needs no change inside a JSON string. */
static size_t
json_plain(struct strv s)
{
	size_t i = 0;

	while (i < s.n) {
		unsigned char c = (unsigned char)s.p[i];
		size_t k = 1;

		if (c < 0x20 || c == '"' || c == '\\')
			break;
		if (c >= 0x80)
			k = utf8_seq((struct strv){ s.p + i, s.n - i });
		if (k == 0)
			break;
		i += k;
	}
	return i;
}

static void
add_json_escape(struct strbuf *b, unsigned char c)
{
	static const char names[0x20] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
	};
	char esc[6] = { '\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15] };

	if (c >= 0x80) {
		strbuf_adds(b, "\xEF\xBF\xBD");
		return;
	}
	if (c == '"' || c == '\\')
		esc[1] = (char)c;
	else if (names[c & 0x1F])
		esc[1] = names[c & 0x1F];
	strbuf_add(b, esc, esc[1] == 'u' ? 6 : 2);
}

void
strbuf_add_json(struct strbuf *b, struct strv v)
{
	strbuf_addc(b, '"');
	while (v.n > 0 && !b->failed) {
		size_t k = json_plain(v);

		strbuf_add(b, v.p, k);
		v.p += k;
		v.n -= k;
		if (v.n > 0) {
			add_json_escape(b, (unsigned char)v.p[0]);
			v.p++;
			v.n--;
		}
	}
	strbuf_addc(b, '"');
}

void
strbuf_add_utf8(struct strbuf *b, struct strv v)
{
	while (v.n > 0 && !b->failed) {
		size_t k = utf8_seq(v);

		if (k > 0)
			strbuf_add(b, v.p, k);
		else
			strbuf_adds(b, "\xEF\xBF\xBD");
		v.p += k ? k : 1;
		v.n -= k ? k : 1;
	}
}

static bool
unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	    c == '-' || c == '.' || c == '_' || c == '~';
}

void
strbuf_add_url(struct strbuf *b, struct strv v)
{
	static const char upper[] = "0123456789ABCDEF"; /* RFC 3986 2.1 asks for upper case */

	for (size_t i = 0; i < v.n && !b->failed; i++) {
		unsigned char c = (unsigned char)v.p[i];
		char esc[3] = { '%', upper[c >> 4], upper[c & 15] };

		if (unreserved(v.p[i]))
			strbuf_addc(b, v.p[i]);
		else
			strbuf_add(b, esc, sizeof(esc));
	}
}

void
strbuf_add_html(struct strbuf *b, struct strv v)
{
	for (size_t i = 0; i < v.n && !b->failed; i++) {
		switch (v.p[i]) {
		case '&':
			strbuf_adds(b, "&amp;");
			break;
		case '<':
			strbuf_adds(b, "&lt;");
			break;
		case '>':
			strbuf_adds(b, "&gt;");
			break;
		case '"':
			strbuf_adds(b, "&quot;");
			break;
		case '\'':
			strbuf_adds(b, "&#39;");
			break;
		default:
			strbuf_addc(b, v.p[i]);
			break;
		}
	}
}

/* Decodes one character at the front of *s and moves behind it. -1 on a bad escape. */
static int
url_next(struct strv *s, bool plus, char *c)
{
	size_t used = 1;

	*c = s->p[0];
	if (*c == '%') {
		int hi = s->n >= 3 ? hex_value(s->p[1]) : -1;
		int lo = s->n >= 3 ? hex_value(s->p[2]) : -1;

		if (hi < 0 || lo < 0)
			return -1;
		*c = (char)(hi * 16 + lo);
		used = 3;
	} else if (*c == '+' && plus) {
		*c = ' ';
	}
	s->p += used;
	s->n -= used;
	return 0;
}

int
url_decode(struct strv in, bool plus, struct strbuf *b)
{
	while (in.n > 0 && !b->failed) {
		char c;

		if (url_next(&in, plus, &c) == -1)
			return -1;
		strbuf_addc(b, c);
	}
	return 0;
}

/* Is the encoded name the same as the plain one? */
static bool
query_name_is(struct strv encoded, struct strv name)
{
	size_t i = 0;

	for (; encoded.n > 0; i++) {
		char c;

		if (i == name.n || url_next(&encoded, true, &c) == -1 || c != name.p[i])
			return false;
	}
	return i == name.n;
}

bool
query_get(struct strv query, const char *name, struct strv *raw)
{
	struct strv want = strv_of(name);

	while (query.n > 0) {
		struct strv value, pair = strv_cut(query, '&', &query);
		struct strv key = strv_cut(pair, '=', &value);

		if (pair.n > 0 && query_name_is(key, want)) {
			*raw = value;
			return true;
		}
	}
	return false;
}

void
hex_encode(const void *p, size_t n, char *out)
{
	const unsigned char *in = p;

	for (size_t i = 0; i < n; i++) {
		*out++ = hex_digits[in[i] >> 4];
		*out++ = hex_digits[in[i] & 15];
	}
	*out = '\0';
}

int
hex_decode(struct strv in, unsigned char *out, size_t n)
{
	if (in.n % 2 != 0 || in.n / 2 != n)
		return -1;
	for (size_t i = 0; i < in.n; i++) {
		if (hex_value(in.p[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(hex_value(in.p[2 * i]) * 16 + hex_value(in.p[2 * i + 1]));
	return 0;
}

size_t
base64_encode(const void *p, size_t n, char *out)
{
	static const char abc[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = p;
	size_t o = 0, i = 0;

	for (; n - i >= 3; i += 3) {
		uint32_t v = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];

		out[o++] = abc[v >> 18];
		out[o++] = abc[v >> 12 & 63];
		out[o++] = abc[v >> 6 & 63];
		out[o++] = abc[v & 63];
	}
	if (n - i > 0) {
		uint32_t v = (uint32_t)in[i] << 16 | (n - i == 2 ? (uint32_t)in[i + 1] << 8 : 0);

		out[o++] = abc[v >> 18];
		out[o++] = abc[v >> 12 & 63];
		out[o++] = n - i == 2 ? abc[v >> 6 & 63] : '=';
		out[o++] = '=';
	}
	out[o] = '\0';
	return o;
}

static int
base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	if (c == '/' || c == '_')
		return 63;
	return -1;
}

ptrdiff_t
base64_decode(struct strv in, unsigned char *out)
{
	size_t pad = 0, o = 0;
	uint32_t acc = 0;
	unsigned bits = 0;

	while (pad < 2 && in.n > pad && in.p[in.n - 1 - pad] == '=')
		pad++;
	if (pad > 0 && in.n % 4 != 0)
		return -1;
	in.n -= pad;
	if (in.n % 4 == 1 || (pad > 0 && (4 - in.n % 4) % 4 != pad))
		return -1;
	for (size_t i = 0; i < in.n; i++) {
		int v = base64_value(in.p[i]);

		if (v < 0)
			return -1;
		acc = (acc << 6 | (uint32_t)v) & 0xFFFFFF;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[o++] = (unsigned char)(acc >> bits);
		}
	}
	/* Left-over bits must be zero: one text for one value. */
	if ((acc & ((1u << bits) - 1)) != 0)
		return -1;
	return (ptrdiff_t)o;
}
