/* Readers for metadata and quantities. Must not know what the objects mean. */
#include "kube/kube_obj.h"

#include <stdio.h>

#include "base/json.h"

static const json_t *
metadata(const json_t *obj)
{
	return json_object_get(obj, "metadata");
}

const char *
kube_obj_name(const json_t *obj)
{
	return json_member_str(metadata(obj), "name");
}

const char *
kube_obj_uid(const json_t *obj)
{
	return json_member_str(metadata(obj), "uid");
}

const char *
kube_obj_version(const json_t *obj)
{
	return json_member_str(metadata(obj), "resourceVersion");
}

uint64_t
kube_obj_version_u64(const json_t *obj)
{
	uint64_t v = 0;

	if (strv_u64(strv_of(kube_obj_version(obj)), UINT64_MAX, &v) == -1)
		return 0;
	return v;
}

void
kube_obj_api_version(const struct kube_res *res, char out[KUBE_API_VERSION_MAX])
{
	snprintf(out, KUBE_API_VERSION_MAX, "%s%s%s", res->group, res->group[0] != '\0' ? "/" : "",
	    res->version);
}

/* --- quantities --- */

/* A positive number as mantissa × 10^exp10 × 2^exp2. */
struct quantity {
	uint64_t mantissa;
	int exp10, exp2;
};

/* Reads digits with at most one point; stops at the first other byte. More digits than a mantissa
 * holds are refused unless they are zeros behind the point. */
static int
read_number(struct strv *s, struct quantity *q)
{
	bool point = false, digit = false;

	for (; s->n > 0; s->p++, s->n--) {
		char c = *s->p;

		if (c == '.' && !point) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		digit = true;
		if (q->mantissa > (UINT64_MAX - 9) / 10) {
			if (!point || c != '0')
				return -1;
			continue;
		}
		q->mantissa = q->mantissa * 10 + (uint64_t)(c - '0');
		if (point)
			q->exp10--;
	}
	return digit ? 0 : -1;
}

static int
read_suffix(struct strv s, struct quantity *q)
{
	static const struct {
		const char *text;
		int exp10, exp2;
	} suffixes[] = {
		{ "", 0, 0 },
		{ "n", -9, 0 },
		{ "u", -6, 0 },
		{ "m", -3, 0 },
		{ "k", 3, 0 },
		{ "M", 6, 0 },
		{ "G", 9, 0 },
		{ "T", 12, 0 },
		{ "P", 15, 0 },
		{ "E", 18, 0 },
		{ "Ki", 0, 10 },
		{ "Mi", 0, 20 },
		{ "Gi", 0, 30 },
		{ "Ti", 0, 40 },
		{ "Pi", 0, 50 },
		{ "Ei", 0, 60 },
	};
	int64_t e;

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		if (strv_is(s, suffixes[i].text)) {
			q->exp10 += suffixes[i].exp10;
			q->exp2 = suffixes[i].exp2;
			return 0;
		}
	}
	if (s.n < 2 || (*s.p != 'e' && *s.p != 'E'))
		return -1;
	s = (struct strv){ s.p + 1, s.n - 1 };
	if (*s.p == '+')
		s = (struct strv){ s.p + 1, s.n - 1 };
	if (strv_i64(s, -64, 64, &e) == -1)
		return -1;
	q->exp10 += (int)e;
	return 0;
}

/* Multiplies out, rounding up. */
static int
quantity_value(struct quantity q, int64_t *ret)
{
	unsigned __int128 v = q.mantissa;
	bool rest = false;

	if (v != 0) {
		/* mantissa < 2^64 and 2^60 more still fit in 128 bits */
		v <<= q.exp2;
		for (; q.exp10 > 0; q.exp10--) {
			if (v > INT64_MAX)
				return -1;
			v *= 10;
		}
		for (; q.exp10 < 0 && v > 0; q.exp10++) {
			rest |= v % 10 != 0;
			v /= 10;
		}
		if (rest)
			v++;
	}
	if (v > INT64_MAX)
		return -1;
	*ret = (int64_t)v;
	return 0;
}

static int
quantity_parse(struct strv s, int scale10, int64_t *ret)
{
	struct quantity q = { .exp10 = scale10 };

	if (s.n > 0 && *s.p == '+')
		s = (struct strv){ s.p + 1, s.n - 1 };
	if (read_number(&s, &q) == -1 || read_suffix(s, &q) == -1)
		return -1;
	return quantity_value(q, ret);
}

int
kube_obj_milli(struct strv quantity, int64_t *ret)
{
	return quantity_parse(quantity, 3, ret);
}

int
kube_obj_units(struct strv quantity, int64_t *ret)
{
	return quantity_parse(quantity, 0, ret);
}
