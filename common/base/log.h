/*
 * Structured logs: one JSON line on stderr per entry: time, level, msg, then keys. msg is constant
 * text. Text from outside is escaped; secrets never get here.
 *
 *	log_info("sandbox created", log_s("sandbox", id), log_i("ms", ms));
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "bug.h"
#include "err.h"
#include "str.h"

enum log_level { LOG_DEBUG = 0, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_kv {
	const char *key;
	enum { LOG_KV_TEXT = 0, LOG_KV_INT, LOG_KV_BOOL } type;
	struct strv text;
	int64_t num;
};

static inline struct log_kv
log_v(const char *key, struct strv v)
{
	return (struct log_kv){ .key = key, .type = LOG_KV_TEXT, .text = v };
}
static inline struct log_kv
log_s(const char *key, const char *v)
{
	return log_v(key, strv_of(v));
}
static inline struct log_kv
log_i(const char *key, int64_t v)
{
	return (struct log_kv){ .key = key, .type = LOG_KV_INT, .num = v };
}
static inline struct log_kv
log_b(const char *key, bool v)
{
	return (struct log_kv){ .key = key, .type = LOG_KV_BOOL, .num = v };
}
static inline struct log_kv
log_err(const struct err *e)
{
	return log_v("err", strv_of(e->msg));
}

void log_set_level(enum log_level level);
int log_level_parse(struct strv s, enum log_level *ret) MUST_USE; /* debug info warn error */
bool log_on(enum log_level level);
/* Writes one line with one write(2), at most 8 KiB (longer values are cut). Empty texts are left
 * out. */
void log_write(enum log_level level, const char *msg, const struct log_kv *kv, size_t n);

#define log_at(level, msg, ...)                                                                    \
	do {                                                                                       \
		if (log_on(level)) {                                                               \
			const struct log_kv kv_[] = { __VA_ARGS__ };                               \
			log_write(level, msg, kv_, ARRAY_LEN(kv_));                                \
		}                                                                                  \
	} while (0)
#define log_debug(msg, ...) log_at(LOG_DEBUG, msg, __VA_ARGS__)
#define log_info(msg, ...) log_at(LOG_INFO, msg, __VA_ARGS__)
#define log_warn(msg, ...) log_at(LOG_WARN, msg, __VA_ARGS__)
#define log_error(msg, ...) log_at(LOG_ERROR, msg, __VA_ARGS__)

#endif
