/*
 * Clocks and time texts. Calendar arithmetic is done here (proleptic Gregorian, UTC) and knows
 * neither time zones of the machine nor locales.
 */
#include "clock.h"

#include <stdio.h>
#include <time.h>

#define DAYS_TO_1970 719468 /* from 0000-03-01 */

static struct {
	bool on;
	int64_t mono, wall;
} fake;

static int64_t
read_clock(clockid_t id)
{
	struct timespec ts;

	BUG_ON(clock_gettime(id, &ts) == -1);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t
clock_mono(void)
{
	return fake.on ? fake.mono : read_clock(CLOCK_MONOTONIC);
}

int64_t
clock_wall(void)
{
	return fake.on ? fake.wall : read_clock(CLOCK_REALTIME);
}

void
clock_fake_start(int64_t mono, int64_t wall)
{
	fake.on = true;
	fake.mono = mono;
	fake.wall = wall;
}

void
clock_fake_advance(int64_t ns)
{
	BUG_ON(!fake.on || ns < 0);
	fake.mono += ns;
	fake.wall += ns;
}

void
clock_fake_end(void)
{
	fake.on = false;
}

bool
clock_is_fake(void)
{
	return fake.on;
}

struct civil {
	int year, month, day, hour, minute, second;
	int weekday; /* 0 = Sunday */
	int64_t ns;
};

/* Years begin in March here, so that the leap day is the last one. */
static int64_t
days_from_civil(int64_t y, int month, int day)
{
	int64_t era, year_of_era, day_of_year;

	if (month <= 2)
		y--;
	era = (y >= 0 ? y : y - 399) / 400;
	year_of_era = y - era * 400;
	day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	    day_of_year - DAYS_TO_1970;
}

static void
civil_from_wall(int64_t wall, struct civil *c)
{
	int64_t ns = wall % NS_PER_S, s = wall / NS_PER_S, days, era, doe, yoe, doy, mp;

	if (ns < 0) {
		ns += NS_PER_S;
		s--;
	}
	days = s / 86400;
	s %= 86400;
	if (s < 0) {
		s += 86400;
		days--;
	}
	c->ns = ns;
	c->hour = (int)(s / 3600);
	c->minute = (int)(s / 60 % 60);
	c->second = (int)(s % 60);
	c->weekday = (int)(((days + 4) % 7 + 7) % 7);
	days += DAYS_TO_1970;
	era = (days >= 0 ? days : days - 146096) / 146097;
	doe = days - era * 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	c->day = (int)(doy - (153 * mp + 2) / 5 + 1);
	c->month = (int)(mp < 10 ? mp + 3 : mp - 9);
	c->year = (int)(yoe + era * 400 + (c->month <= 2));
}

void
time_format(int64_t wall, int digits, char out[TIME_TEXT_MAX])
{
	struct civil c;
	int64_t fraction;
	int n;

	BUG_ON(digits != 0 && digits != 3 && digits != 6 && digits != 9);
	civil_from_wall(wall, &c);
	n = snprintf(out, TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", c.year, c.month, c.day,
	    c.hour, c.minute, c.second);
	fraction = c.ns;
	for (int i = digits; i < 9; i++)
		fraction /= 10;
	if (digits > 0)
		n += snprintf(
		    out + n, TIME_TEXT_MAX - (size_t)n, ".%0*lld", digits, (long long)fraction);
	snprintf(out + n, TIME_TEXT_MAX - (size_t)n, "Z");
}

void
time_http_date(int64_t wall, char out[TIME_TEXT_MAX])
{
	static const char days[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug",
		"Sep", "Oct", "Nov", "Dec" };
	struct civil c;

	civil_from_wall(wall, &c);
	snprintf(out, TIME_TEXT_MAX, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[c.weekday], c.day,
	    months[c.month - 1], c.year, c.hour, c.minute, c.second);
}

/* Takes exactly n digits off the front of *s. */
static bool
take_digits(struct strv *s, size_t n, int *ret)
{
	uint64_t v;

	if (s->n < n || strv_u64((struct strv){ s->p, n }, 9999, &v) == -1)
		return false;
	*ret = (int)v;
	s->p += n;
	s->n -= n;
	return true;
}

static bool
take_char(struct strv *s, const char *any)
{
	if (s->n == 0 || s->p[0] == '\0' || strchr(any, s->p[0]) == NULL)
		return false;
	s->p++;
	s->n--;
	return true;
}

/* ".123456789": 1 to 9 digits, in ns. No dot at all is fine too. */
static bool
take_fraction(struct strv *s, int64_t *ns)
{
	int64_t unit = NS_PER_S / 10;
	size_t n = 0;

	*ns = 0;
	if (!take_char(s, "."))
		return true;
	for (; s->n > 0 && s->p[0] >= '0' && s->p[0] <= '9'; n++) {
		*ns += (s->p[0] - '0') * unit;
		unit /= 10;
		s->p++;
		s->n--;
	}
	return n >= 1 && n <= 9;
}

/* 'Z' or +hh:mm, in seconds. */
static bool
take_offset(struct strv *s, int *seconds)
{
	int hour, minute, sign;

	*seconds = 0;
	if (take_char(s, "Zz"))
		return true;
	sign = s->n > 0 && s->p[0] == '-' ? -1 : 1;
	if (!take_char(s, "+-") || !take_digits(s, 2, &hour) || !take_char(s, ":") ||
	    !take_digits(s, 2, &minute) || hour > 23 || minute > 59)
		return false;
	*seconds = sign * (hour * 3600 + minute * 60);
	return true;
}

static bool
date_valid(const struct civil *c)
{
	static const int lengths[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (c->year % 4 == 0 && c->year % 100 != 0) || c->year % 400 == 0;

	if (c->month < 1 || c->month > 12 || c->day < 1)
		return false;
	return c->day <= lengths[c->month - 1] + (c->month == 2 && leap);
}

int
time_parse(struct strv s, int64_t *ret)
{
	struct civil c;
	int64_t ns, v;
	int offset;

	if (!take_digits(&s, 4, &c.year) || !take_char(&s, "-") || !take_digits(&s, 2, &c.month) ||
	    !take_char(&s, "-") || !take_digits(&s, 2, &c.day) || !take_char(&s, "Tt") ||
	    !take_digits(&s, 2, &c.hour) || !take_char(&s, ":") || !take_digits(&s, 2, &c.minute) ||
	    !take_char(&s, ":") || !take_digits(&s, 2, &c.second) || !take_fraction(&s, &ns) ||
	    !take_offset(&s, &offset) || s.n > 0)
		return -1;
	/* Second 60 is a leap second: it becomes the first of the next minute. */
	if (!date_valid(&c) || c.hour > 23 || c.minute > 59 || c.second > 60)
		return -1;
	v = days_from_civil(c.year, c.month, c.day) * 86400 + INT64_C(3600) * c.hour +
	    INT64_C(60) * c.minute + c.second - offset;
	/* int64 nanoseconds reach from 1677 to 2262. */
	if (__builtin_mul_overflow(v, NS_PER_S, &v) || __builtin_add_overflow(v, ns, &v))
		return -1;
	*ret = v;
	return 0;
}
