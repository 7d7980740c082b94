/*
 * See trim.h. Only mappings of files that are not writable and hold no page of our own are let go
 * of: the kernel reads those again from the page cache. A page that relocation changed is anonymous
 * and would be lost, so any mapping with one is left alone.
 */
#include "base/trim.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_MAX_LEN 4352 /* an address range and a path */

struct mapping {
	uintptr_t from, to;
	bool clean_file; /* read-only, of a file, nothing of ours in it so far */
};

/* "7f00-7f10 r-xp 00000000 fd:00 123   /path"; false: not the first line of a mapping. */
static bool
read_header(const char *line, struct mapping *m)
{
	uintptr_t from;
	char *end;

	from = strtoul(line, &end, 16);
	if (end == line || *end != '-')
		return false;
	m->from = from;
	m->to = strtoul(end + 1, &end, 16);
	m->clean_file = end[0] == ' ' && end[1] == 'r' && end[2] == '-' && end[4] == 'p' &&
	    strchr(end, '/') != NULL;
	return true;
}

/* "Anonymous:             0 kB" */
static bool
says_none(const char *line, const char *key)
{
	size_t n = strlen(key);

	return strncmp(line, key, n) == 0 &&
	    strcmp(line + n + strspn(line + n, " "), "0 kB\n") == 0;
}

size_t
trim_memory(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[LINE_MAX_LEN];
	struct mapping m = { 0 };
	size_t freed = 0;

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (read_header(line, &m) || !m.clean_file || !says_none(line, "Anonymous:"))
			continue;
		if (madvise((void *)m.from, m.to - m.from, MADV_DONTNEED) == 0)
			freed += m.to - m.from;
	}
	fclose(f);
	malloc_trim(0);
	return freed;
}
