/*
 * What the sandbox uses: CPU and memory of its cgroup (v1 or v2), the machine's figures where there
 * is no cgroup, and its root file system.
 */
#ifndef ENVD_USAGE_H
#define ENVD_USAGE_H

#include <stdint.h>

struct usage;

struct usage_sample {
	double cpu_used_pct; /* 100 = one core, since the sample before */
	unsigned cpu_count;
	uint64_t mem_total, mem_used, mem_cache; /* bytes; used is without cache */
	uint64_t disk_used, disk_total;
};

/* Paths are borrowed for ever; tests give others than "/sys/fs/cgroup" and "/proc". */
struct usage *usage_new(const char *cgroup, const char *proc);
void usage_free(struct usage *u);
void usage_read(struct usage *u, struct usage_sample *s);

#endif
