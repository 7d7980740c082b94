/* Filling of struct err. Knows nothing of logs or of how errors are shown. */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef err_set
#undef err_wrap
#undef err_errno

static const char *const names[ERR_CODE_COUNT] = {
	[ERR_NONE] = "none",
	[ERR_INVALID] = "invalid",
	[ERR_UNAUTHORIZED] = "unauthorized",
	[ERR_FORBIDDEN] = "forbidden",
	[ERR_NOT_FOUND] = "not_found",
	[ERR_CONFLICT] = "conflict",
	[ERR_EXISTS] = "exists",
	[ERR_TOO_LARGE] = "too_large",
	[ERR_LIMIT] = "limit",
	[ERR_GONE] = "gone",
	[ERR_UNSUPPORTED] = "unsupported",
	[ERR_UNAVAILABLE] = "unavailable",
	[ERR_TIMEOUT] = "timeout",
	[ERR_CANCELED] = "canceled",
	[ERR_IO] = "io",
	[ERR_INTERNAL] = "internal",
};

/* Cuts text that was truncated in the middle of a UTF-8 sequence, so that it stays valid. */
static void
trim_cut_sequence(char *s)
{
	size_t n = strlen(s), i = n;

	while (i > 0 && n - i < 4 && ((unsigned char)s[i - 1] & 0xC0) == 0x80)
		i--;
	if (i > 0 && ((unsigned char)s[i - 1] & 0xC0) == 0xC0) {
		unsigned char lead = (unsigned char)s[i - 1];
		size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;

		if (n - (i - 1) < want)
			s[i - 1] = '\0';
	}
}

/* buf is apart from e->msg, since the arguments may point into e->msg. */
static int
fill(struct err *e, enum err_code code, const char *buf, int n)
{
	BUG_ON(code <= ERR_NONE || code >= ERR_CODE_COUNT);
	e->code = code;
	e->retry_after = 0;
	snprintf(e->msg, sizeof(e->msg), "%s", n < 0 ? "(message lost)" : buf);
	if (n >= (int)sizeof(e->msg))
		trim_cut_sequence(e->msg);
	return -1;
}

int
err_vset(struct err *e, enum err_code code, const char *fmt, va_list ap)
{
	char buf[sizeof(e->msg)];

	if (e == NULL)
		return -1;
	return fill(e, code, buf, vsnprintf(buf, sizeof(buf), fmt, ap));
}

int
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)err_vset(e, code, fmt, ap);
	va_end(ap);
	return -1;
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char buf[sizeof(e->msg) * 2];
	int n, m, retry_after;
	va_list ap;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	if (n >= (int)sizeof(e->msg))
		n = (int)sizeof(e->msg) - 1;
	m = snprintf(buf + n, sizeof(buf) - (size_t)n, ": %s", e->msg);
	retry_after = e->retry_after;
	fill(e, e->code == ERR_NONE ? ERR_INTERNAL : e->code, buf, n + m);
	e->retry_after = retry_after;
	return -1;
}

int
err_errno(struct err *e, enum err_code code, const char *fmt, ...)
{
	char buf[sizeof(e->msg) * 2];
	int saved = errno, n, m;
	va_list ap;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	if (n >= (int)sizeof(e->msg))
		n = (int)sizeof(e->msg) - 1;
	errno = saved; /* for %m, the thread-safe strerror */
	m = snprintf(buf + n, sizeof(buf) - (size_t)n, ": %m");
	fill(e, code, buf, n + m);
	errno = saved;
	return -1;
}

const char *
err_name(enum err_code code)
{
	/* No lower bound test: the enum is unsigned. */
	return code < ERR_CODE_COUNT ? names[code] : "unknown";
}
