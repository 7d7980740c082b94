/*
 * Builds one JSON line in a fixed buffer and writes it with one write(2): no allocation, so it can
 * be used wherever the program stands. Knows nothing of who reads the lines.
 */
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define LOG_LINE_MAX (8 * 1024)
#define LOG_VALUE_MAX 2048 /* escaped bytes of one value; the rest is cut */

static enum log_level min_level = LOG_INFO;

static const char *const level_names[] = { "debug", "info", "warn", "error" };

struct line {
	size_t n;
	char text[LOG_LINE_MAX];
};

void
log_set_level(enum log_level level)
{
	min_level = level;
}

int
log_level_parse(struct strv s, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
		if (strv_is(s, level_names[i])) {
			*ret = (enum log_level)i;
			return 0;
		}
	}
	return -1;
}

bool
log_on(enum log_level level)
{
	return level >= min_level;
}

/* Every caller has made sure that it fits. */
static void
put(struct line *l, const char *p, size_t n)
{
	memcpy(l->text + l->n, p, n);
	l->n += n;
}

/* The escaped form of what v starts with; *used is how many bytes of v that covers. */
static size_t
escape(struct strv v, char out[8], size_t *used)
{
	unsigned char c = (unsigned char)v.p[0];
	size_t k = utf8_seq(v);

	*used = k ? k : 1;
	if (k == 0)
		return (size_t)snprintf(out, 8, "\xEF\xBF\xBD");
	if (c == '"' || c == '\\')
		return (size_t)snprintf(out, 8, "\\%c", c);
	if (c == '\n')
		return (size_t)snprintf(out, 8, "\\n");
	if (c < 0x20 || c == 0x7F)
		return (size_t)snprintf(out, 8, "\\u%04x", c);
	memcpy(out, v.p, k);
	return k;
}

/* Adds v in quotes with at most `room` bytes for it all; "..." marks a cut. */
static void
put_text(struct line *l, struct strv v, size_t room)
{
	size_t end = l->n + room - 4; /* the dots and the quote */

	put(l, "\"", 1);
	while (v.n > 0) {
		char out[8];
		size_t used, n = escape(v, out, &used);

		if (l->n + n > end) {
			put(l, "...", 3);
			break;
		}
		put(l, out, n);
		v.p += used;
		v.n -= used;
	}
	put(l, "\"", 1);
}

static void
put_kv(struct line *l, const struct log_kv *kv)
{
	size_t key = strlen(kv->key), room = LOG_LINE_MAX - 2 - l->n;
	char num[32];
	int n;

	if (kv->type == LOG_KV_TEXT && kv->text.n == 0)
		return;
	/* Keys are ours and short; one that would not leave room for a value is dropped. */
	if (key > 64 || room < key + 4 + sizeof(num))
		return;
	put(l, ",\"", 2);
	put(l, kv->key, key);
	put(l, "\":", 2);
	room -= key + 4;
	switch (kv->type) {
	case LOG_KV_TEXT:
		put_text(l, kv->text, room < LOG_VALUE_MAX ? room : LOG_VALUE_MAX);
		break;
	case LOG_KV_INT:
		n = snprintf(num, sizeof(num), "%lld", (long long)kv->num);
		put(l, num, (size_t)n);
		break;
	case LOG_KV_BOOL:
		put(l, kv->num ? "true" : "false", kv->num ? 4 : 5);
		break;
	}
}

void
log_write(enum log_level level, const char *msg, const struct log_kv *kv, size_t n)
{
	char when[TIME_TEXT_MAX];
	int saved = errno;
	struct line l;
	ssize_t r;

	time_format(clock_wall(), 3, when);
	l.n = (size_t)snprintf(l.text, sizeof(l.text),
	    "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", when, level_names[level]);
	put_text(&l, strv_of(msg), LOG_VALUE_MAX);
	for (size_t i = 0; i < n; i++)
		put_kv(&l, &kv[i]);
	put(&l, "}\n", 2);
	do {
		r = write(STDERR_FILENO, l.text, l.n);
	} while (r == -1 && errno == EINTR);
	errno = saved;
}
