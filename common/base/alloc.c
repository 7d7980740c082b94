/*
 * The only file that calls malloc and friends. Running out of memory ends the process: all state
 * that matters lives in Kubernetes, and a restart is safer than half-done work.
 */
#include "alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bug.h"

/* No stdio and no logger here: both may allocate. */
NORETURN static void
out_of_memory(void)
{
	static const char text[] = "{\"level\":\"error\",\"msg\":\"out of memory\"}\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
	abort();
}

void *
xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (p == NULL)
		out_of_memory();
	return p;
}

void *
xcalloc(size_t n, size_t size)
{
	void *p = n == 0 || size == 0 ? calloc(1, 1) : calloc(n, size);

	if (p == NULL)
		out_of_memory();
	return p;
}

void *
xrealloc(void *p, size_t n)
{
	void *q = realloc(p, n ? n : 1);

	if (q == NULL)
		out_of_memory();
	return q;
}

char *
xstrdup(const char *s)
{
	return s ? xmemdup0(s, strlen(s)) : NULL;
}

char *
xmemdup0(const void *p, size_t n)
{
	char *q;

	if (n == SIZE_MAX)
		out_of_memory();
	q = xmalloc(n + 1);
	if (n > 0)
		memcpy(q, p, n);
	q[n] = '\0';
	return q;
}

void
xfree(void *p)
{
	free(p);
}

void
xfreep(void *pp)
{
	void *p;

	/* pp is the address of any pointer variable: read it bytewise, whatever its type. */
	memcpy(&p, pp, sizeof(p));
	xfree(p);
	p = NULL;
	memcpy(pp, &p, sizeof(p));
}
