/* See range.h (RFC 9110 sections 12.5.3, 13 and 14). We have no entity tags: If-Match with one
 * never matches, If-None-Match never does either. */
#include "envd/range.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
int64_t
range_date(struct strv s)
{
	uint64_t day, year, hour, min, sec;
	char text[TIME_TEXT_MAX];
	int64_t wall;
	size_t month = 0;

	s = strv_trim(s);
	if (s.n != 29 || memcmp(s.p + 25, " GMT", 4) != 0)
		return -1;
	while (month < 12 && memcmp(s.p + 8, months + 3 * month, 3) != 0)
		month++;
	if (month == 12 || strv_u64((struct strv){ s.p + 5, 2 }, 31, &day) == -1 ||
	    strv_u64((struct strv){ s.p + 12, 4 }, 9999, &year) == -1 ||
	    strv_u64((struct strv){ s.p + 17, 2 }, 23, &hour) == -1 ||
	    strv_u64((struct strv){ s.p + 20, 2 }, 59, &min) == -1 ||
	    strv_u64((struct strv){ s.p + 23, 2 }, 60, &sec) == -1)
		return -1;
	snprintf(text, sizeof(text), "%04u-%02u-%02uT%02u:%02u:%02uZ", (unsigned)year,
	    (unsigned)month + 1, (unsigned)day, (unsigned)hour, (unsigned)min, (unsigned)sec);
	return time_parse(strv_of(text), &wall) == -1 ? -1 : wall / NS_PER_S;
}

static int
conditions(const struct http_head *h, int64_t mtime)
{
	const struct strv *match = http_head_get(h, "If-Match");
	const struct strv *none = http_head_get(h, "If-None-Match");
	const struct strv *unmodified = http_head_get(h, "If-Unmodified-Since");
	const struct strv *modified = http_head_get(h, "If-Modified-Since");
	int64_t at;

	if (match) {
		if (!strv_is(strv_trim(*match), "*"))
			return 412;
	} else if (unmodified && (at = range_date(*unmodified)) != -1 && mtime > at) {
		return 412;
	}
	if (none)
		return strv_is(strv_trim(*none), "*") ? 304 : 200;
	if (modified && (at = range_date(*modified)) != -1 && mtime <= at)
		return 304;
	return 200;
}

/* One range of bytes: 206, 416, or 200 for what is not one. */
static int
parse_range(struct strv s, int64_t size, int64_t *first, int64_t *last)
{
	struct strv from, to;
	uint64_t a, b;

	s = strv_trim(s);
	if (!strv_caseeq((struct strv){ s.p, s.n < 6 ? s.n : 6 }, STRV("bytes=")) ||
	    strv_chr(s, ',') != -1 || strv_chr(s, '-') == -1)
		return 200;
	s = (struct strv){ s.p + 6, s.n - 6 };
	from = strv_trim(strv_cut(s, '-', &to));
	to = strv_trim(to);
	if (from.n == 0) { /* the last b bytes */
		if (strv_u64(to, INT64_MAX, &b) == -1)
			return 200;
		if (b == 0)
			return 416;
		*first = b >= (uint64_t)size ? 0 : size - (int64_t)b;
		*last = size - 1;
		return size == 0 ? 416 : 206;
	}
	if (strv_u64(from, INT64_MAX, &a) == -1)
		return 200;
	b = INT64_MAX;
	if (to.n > 0 && (strv_u64(to, INT64_MAX, &b) == -1 || b < a))
		return 200;
	if (a >= (uint64_t)size)
		return 416;
	*first = (int64_t)a;
	*last = b >= (uint64_t)size ? size - 1 : (int64_t)b;
	return 206;
}

int
range_decide(const struct http_head *h, int64_t size, int64_t mtime, int64_t *first, int64_t *last)
{
	const struct strv *range = http_head_get(h, "Range");
	const struct strv *if_range = http_head_get(h, "If-Range");
	int status = conditions(h, mtime);

	if (status != 200 || range == NULL)
		return status;
	if (if_range && range_date(*if_range) != mtime)
		return 200;
	return parse_range(*range, size, first, last);
}

/* "0", "0.", "0.0", "0.00", "0.000" */
static bool
is_zero(struct strv q)
{
	if (q.n == 0 || q.p[0] != '0' || q.n > 5)
		return false;
	for (size_t i = 1; i < q.n; i++) {
		if (q.p[i] != (i == 1 ? '.' : '0'))
			return false;
	}
	return true;
}

bool
range_identity_ok(const struct http_head *h)
{
	const struct strv *v = http_head_get(h, "Accept-Encoding");
	struct strv rest = v ? *v : STRV_NONE;
	bool named = false, ok = true;

	while (rest.n > 0) {
		struct strv params, item = strv_cut(rest, ',', &rest), q;
		struct strv coding = strv_trim(strv_cut(item, ';', &params));
		bool zero;

		params = strv_trim(params);
		q = strv_prefix(params, STRV("q=")) ? (struct strv){ params.p + 2, params.n - 2 }
		                                    : STRV_NONE;
		zero = is_zero(strv_trim(q));
		if (strv_caseis(coding, "identity")) {
			named = true;
			ok = !zero;
		} else if (strv_is(coding, "*") && !named) {
			ok = !zero;
		}
	}
	return ok;
}
