/*
 * Time. Durations and timers use the monotonic clock, in nanoseconds; the wall clock is only for
 * what is shown or stored. A test may take over both clocks.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bug.h"
#include "str.h"

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define SECONDS(n) ((int64_t)(n)*NS_PER_S)
#define MILLIS(n) ((int64_t)(n)*NS_PER_MS)

int64_t clock_mono(void); /* ns since some start */
int64_t clock_wall(void); /* ns since 1970, UTC */

/* Tests only: both clocks stand at the given values until clock_fake_advance; off again with
 * clock_fake_end. */
void clock_fake_start(int64_t mono, int64_t wall);
void clock_fake_advance(int64_t ns);
void clock_fake_end(void);
bool clock_is_fake(void);

/* RFC 3339 in UTC with exactly `digits` (0, 3, 6 or 9) fraction digits and 'Z'. */
#define TIME_TEXT_MAX 40
void time_format(int64_t wall, int digits, char out[TIME_TEXT_MAX]);
/* Any RFC 3339 form: 'Z' or offset, 0-9 fraction digits. */
int time_parse(struct strv s, int64_t *ret) MUST_USE;
/* IMF-fixdate for the HTTP Date header (RFC 9110 5.6.7). */
void time_http_date(int64_t wall, char out[TIME_TEXT_MAX]);

#endif
