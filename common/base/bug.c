/* What a failed BUG_ON does: one line on stderr, then abort. Must not allocate. */
#include "bug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
bug_fail(const char *file, int line, const char *cond)
{
	char text[512], shown[256];
	size_t i = 0;
	int n;

	/* cond is source text: quotes in it must not break the JSON line. */
	for (; cond[i] != '\0' && i + 1 < sizeof(shown); i++)
		shown[i] = strchr("\"\\", cond[i]) ? '\'' : cond[i];
	shown[i] = '\0';
	n = snprintf(text, sizeof(text),
	    "{\"level\":\"error\",\"msg\":\"bug\",\"at\":\"%s:%d\",\"cond\":\"%s\"}\n", file, line,
	    shown);
	if (n > 0) {
		size_t len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
		ssize_t r = write(STDERR_FILENO, text, len);

		(void)r;
	}
	abort();
}
