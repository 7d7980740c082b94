/*
 * References as text: E2B template references and container image references. Grammar only.
 */
#include <ctype.h>

#include "base/rand.h"
#include "domain/template.h"

#define IMAGE_REF_MAX 255
#define IMAGE_TAG_MAX 128

static bool
lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool
upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool
hex_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* --- template references --- */

/* Lower-cases text into to (TEMPLATE_NAME_MAX + 1); false unless it is one or more of [a-z0-9_-],
 * with dots too. */
static bool
take_part(struct strv text, bool dots, char *to)
{
	if (text.n == 0 || text.n > TEMPLATE_NAME_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (upper(c))
			c = (char)(c + ('a' - 'A'));
		if (!lower_alnum(c) && c != '_' && c != '-' && !(dots && c == '.'))
			return false;
		to[i] = c;
	}
	to[text.n] = '\0';
	return true;
}

static bool
is_uuid(const char *s)
{
	if (strlen(s) != UUID_TEXT - 1)
		return false;
	for (size_t i = 0; s[i] != '\0'; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' : !hex_digit(s[i]))
			return false;
	}
	return true;
}

static struct strv
trim_space(struct strv s)
{
	while (s.n > 0 && isspace((unsigned char)s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && isspace((unsigned char)s.p[s.n - 1]))
		s.n--;
	return s;
}

int
template_ref_parse(struct strv text, struct template_ref *ret, struct err *e)
{
	struct strv whole = trim_space(text), ns, name, tag;
	ptrdiff_t slash = strv_chr(whole, '/'), colon;
	struct template_ref ref = { 0 };

	name = whole;
	if (slash >= 0) {
		ns = strv_cut(whole, '/', &name);
		if (!take_part(ns, false, ref.ns))
			goto invalid;
	}
	colon = strv_chr(name, ':');
	name = strv_cut(name, ':', &tag);
	if (!take_part(name, false, ref.name))
		goto invalid;
	if (colon >= 0 && (!take_part(tag, true, ref.tag) || is_uuid(ref.tag)))
		goto invalid;
	if (strcmp(ref.tag, "default") == 0)
		ref.tag[0] = '\0';
	*ret = ref;
	return 0;
invalid:
	return err_set(e, ERR_INVALID, "Invalid template reference: " STRV_FMT,
	    (int)(whole.n < 128 ? whole.n : 128), whole.p ? whole.p : "");
}

/* --- image references --- */

/* alnum+ ( ("." | "_" | "__" | "-"+) alnum+ )* */
static bool
path_part_valid(struct strv s)
{
	size_t i = 0;

	if (s.n == 0)
		return false;
	for (;;) {
		size_t start = i, dashes;

		while (i < s.n && lower_alnum(s.p[i]))
			i++;
		if (i == start)
			return false;
		if (i == s.n)
			return true;
		dashes = i;
		while (i < s.n && s.p[i] == '-')
			i++;
		if (i > dashes)
			continue;
		if (s.p[i] == '.') {
			i++;
		} else if (s.p[i] == '_') {
			i++;
			i += i < s.n && s.p[i] == '_';
		} else {
			return false;
		}
	}
}

/* host or host:port; upper case is allowed in a host, [::1] is not. */
static bool
registry_valid(struct strv s)
{
	struct strv port, host = strv_cut(s, ':', &port);
	uint64_t n;

	if (host.n == 0 || (host.n < s.n && strv_u64(port, 65535, &n) == -1))
		return false;
	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];
		bool edge = i == 0 || i == host.n - 1;

		if (!lower_alnum(c) && !upper(c) && (edge || (c != '.' && c != '-')))
			return false;
	}
	return true;
}

static bool
tag_valid(struct strv s)
{
	if (s.n == 0 || s.n > IMAGE_TAG_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!lower_alnum(c) && !upper(c) && c != '_' && (i == 0 || (c != '.' && c != '-')))
			return false;
	}
	return true;
}

/* sha256:<64 hex>, or another algorithm with at least 32 digits. */
static bool
digest_valid(struct strv s)
{
	struct strv hex, name = strv_cut(s, ':', &hex);

	if (name.n == 0 || hex.n < 32 || (strv_is(name, "sha256") && hex.n != 64))
		return false;
	for (size_t i = 0; i < name.n; i++) {
		if (!lower_alnum(name.p[i]))
			return false;
	}
	for (size_t i = 0; i < hex.n; i++) {
		if (!hex_digit(hex.p[i]))
			return false;
	}
	return true;
}

/* Is the part before the first slash a registry, as image tools decide it? */
static bool
is_registry(struct strv first)
{
	if (strv_is(first, "localhost") || strv_chr(first, '.') >= 0 || strv_chr(first, ':') >= 0)
		return true;
	for (size_t i = 0; i < first.n; i++) {
		if (upper(first.p[i]))
			return true;
	}
	return false;
}

bool
image_ref_valid(struct strv image)
{
	struct strv rest, digest, tag, path, part;

	if (image.n == 0 || image.n > IMAGE_REF_MAX)
		return false;
	path = strv_cut(image, '@', &digest);
	if (path.n < image.n && !digest_valid(digest))
		return false;
	part = strv_cut(path, '/', &rest);
	if (part.n < path.n && is_registry(part)) {
		if (!registry_valid(part))
			return false;
		path = rest;
	}
	rest = path;
	path = strv_cut(rest, ':', &tag);
	if (path.n < rest.n && !tag_valid(tag))
		return false;
	do {
		size_t all = path.n;

		part = strv_cut(path, '/', &rest);
		if (!path_part_valid(part))
			return false;
		/* "a/" ends in an empty part. */
		if (part.n < all && rest.n == 0)
			return false;
		path = rest;
	} while (path.n > 0);
	return true;
}
