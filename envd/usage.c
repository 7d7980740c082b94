/* See usage.h. In a container the cgroup's own folder is what is mounted at /sys/fs/cgroup; where
 * the host's whole tree is mounted, /proc/self/cgroup says where we are in it. */
#include "envd/usage.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fsutil.h"
#include "base/str.h"

#define FILE_MAX ((size_t)256 * 1024)
#define V1_UNLIMITED (UINT64_C(1) << 60) /* what v1 says for "no limit" is near 2^63 */

struct usage {
	const char *root, *proc;
	char v2[PATH_MAX], cpu1[PATH_MAX], mem1[PATH_MAX]; /* folders; "" if there is none */
	uint64_t last_cpu;                                 /* ns */
	int64_t last_at;
};

/* A file of at most 256 KiB, "" if it cannot be read; caller frees. */
static char *
slurp(const char *dir, const char *name)
{
	char path[PATH_MAX], *text;

	if (dir[0] == '\0' || snprintf(path, sizeof(path), "%s/%s", dir, name) >= PATH_MAX ||
	    file_read(path, FILE_MAX, &text, NULL, NULL) == -1)
		return xstrdup("");
	return text;
}

static bool
read_u64(const char *dir, const char *name, uint64_t *ret)
{
	char *text CLEANUP(xfreep) = slurp(dir, name);
	struct strv rest;

	return strv_u64(strv_trim(strv_cut(strv_of(text), '\n', &rest)), UINT64_MAX, ret) == 0;
}

/* The number behind `key ` at the start of a line; 0 if absent. `kB` behind it is ignored. */
static uint64_t
keyed(const char *text, const char *key)
{
	struct strv rest = strv_of(text);
	uint64_t v;

	while (rest.n > 0) {
		struct strv value, line = strv_cut(rest, '\n', &rest);
		struct strv name = strv_cut(line, ' ', &value);

		if (strv_is(name, key)) {
			value = strv_cut(strv_trim(value), ' ', &(struct strv){ 0 });
			return strv_u64(value, UINT64_MAX, &v) == 0 ? v : 0;
		}
	}
	return 0;
}

static bool
has_file(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < PATH_MAX &&
	    access(path, R_OK) == 0;
}

/* The folder under base, below the path that /proc/self/cgroup tells, that has the file. */
static void
choose(char out[PATH_MAX], const char *base, struct strv path, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s" STRV_FMT, base, STRV_ARG(path));

	if (n < PATH_MAX && has_file(out, name))
		return;
	snprintf(out, PATH_MAX, "%s", base);
	if (!has_file(out, name))
		out[0] = '\0';
}

/* Is the controller in a list like "cpu,cpuacct"? */
static bool
lists(struct strv controllers, const char *name)
{
	while (controllers.n > 0) {
		if (strv_is(strv_cut(controllers, ',', &controllers), name))
			return true;
	}
	return false;
}

static void
find_cgroup(struct usage *u)
{
	char *text CLEANUP(xfreep) = slurp(u->proc, "self/cgroup");
	struct strv rest = strv_of(text), v2 = STRV_NONE, cpu = STRV_NONE, mem = STRV_NONE;
	char base[PATH_MAX];

	while (rest.n > 0) {
		struct strv path, line = strv_cut(rest, '\n', &rest);
		struct strv controllers;

		strv_cut(line, ':', &path);
		controllers = strv_cut(path, ':', &path);
		if (controllers.n == 0)
			v2 = path;
		if (lists(controllers, "cpuacct"))
			cpu = path;
		if (lists(controllers, "memory"))
			mem = path;
	}
	choose(u->v2, u->root, v2, "memory.current");
	snprintf(base, sizeof(base), "%s/cpuacct", u->root);
	choose(u->cpu1, base, cpu, "cpuacct.usage");
	snprintf(base, sizeof(base), "%s/memory", u->root);
	choose(u->mem1, base, mem, "memory.usage_in_bytes");
}

/* --- CPU --- */

static unsigned
cpus_allowed(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == -1)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

/* Quota and period as CPUs, rounded up; 0 without a quota. */
static unsigned
cpus_by_quota(const struct usage *u)
{
	char *max CLEANUP(xfreep) = slurp(u->v2, "cpu.max");
	struct strv period, quota = strv_cut(strv_trim(strv_of(max)), ' ', &period);
	uint64_t q = 0, p = 0;

	period = strv_cut(period, '\n', &(struct strv){ 0 });
	if (strv_u64(quota, UINT64_MAX, &q) == -1 || strv_u64(period, UINT64_MAX, &p) == -1) {
		if (!read_u64(u->cpu1, "cpu.cfs_quota_us", &q) ||
		    !read_u64(u->cpu1, "cpu.cfs_period_us", &p))
			return 0;
	}
	return p == 0 ? 0 : (unsigned)((q + p - 1) / p);
}

/* CPU time in ns of the cgroup, else of the machine. */
static uint64_t
cpu_time(const struct usage *u)
{
	char *stat CLEANUP(xfreep) = slurp(u->v2, "cpu.stat");
	char *all CLEANUP(xfreep) = NULL;
	struct strv rest;
	uint64_t v = keyed(stat, "usage_usec"), sum = 0;

	if (v > 0)
		return v * 1000;
	if (read_u64(u->cpu1, "cpuacct.usage", &v))
		return v;
	/* "cpu  user nice system idle iowait irq softirq …" in 1/100 s */
	all = slurp(u->proc, "stat");
	rest = strv_cut(strv_of(all), '\n', &(struct strv){ 0 });
	strv_cut(rest, ' ', &rest);
	rest = strv_trim(rest);
	for (int i = 0; i < 8 && rest.n > 0; i++) {
		if (strv_u64(strv_cut(rest, ' ', &rest), UINT64_MAX, &v) == 0 && i != 3 && i != 4)
			sum += v;
	}
	return sum * 10 * (uint64_t)NS_PER_MS;
}

static void
sample_cpu(struct usage *u, struct usage_sample *s)
{
	uint64_t cpu = cpu_time(u);
	int64_t now = clock_mono();
	unsigned quota = cpus_by_quota(u);

	s->cpu_count = cpus_allowed();
	if (quota > 0 && quota < s->cpu_count)
		s->cpu_count = quota;
	s->cpu_used_pct = 0;
	if (now > u->last_at && cpu >= u->last_cpu)
		s->cpu_used_pct = 100.0 * (double)(cpu - u->last_cpu) / (double)(now - u->last_at);
	u->last_cpu = cpu;
	u->last_at = now;
}

/* --- memory --- */

static uint64_t
less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void
sample_memory(const struct usage *u, struct usage_sample *s)
{
	char *info CLEANUP(xfreep) = slurp(u->proc, "meminfo");
	char *stat CLEANUP(xfreep) = NULL;
	uint64_t total = keyed(info, "MemTotal:") * 1024, now = 0, limit = 0, shmem;

	s->mem_total = total;
	if (read_u64(u->v2, "memory.current", &now)) {
		stat = slurp(u->v2, "memory.stat");
		s->mem_cache = keyed(stat, "file");
		shmem = keyed(stat, "shmem");
		if (!read_u64(u->v2, "memory.max", &limit))
			limit = 0;
	} else if (read_u64(u->mem1, "memory.usage_in_bytes", &now)) {
		stat = slurp(u->mem1, "memory.stat");
		s->mem_cache = keyed(stat, "total_cache");
		shmem = keyed(stat, "total_shmem");
		if (!read_u64(u->mem1, "memory.limit_in_bytes", &limit) || limit > V1_UNLIMITED)
			limit = 0;
	} else {
		s->mem_cache = (keyed(info, "Cached:") + keyed(info, "Buffers:")) * 1024;
		shmem = keyed(info, "Shmem:") * 1024;
		now = less(total, keyed(info, "MemFree:") * 1024);
	}
	/* memory files in RAM are counted as cache, but cannot be given up */
	s->mem_cache = less(s->mem_cache, shmem);
	s->mem_used = less(now, s->mem_cache);
	if (limit > 0 && (total == 0 || limit < total))
		s->mem_total = limit;
}

struct usage *
usage_new(const char *cgroup, const char *proc)
{
	struct usage *u = xcalloc(1, sizeof(*u));

	u->root = cgroup;
	u->proc = proc;
	find_cgroup(u);
	u->last_cpu = cpu_time(u);
	u->last_at = clock_mono();
	return u;
}

void
usage_free(struct usage *u)
{
	xfree(u);
}

void
usage_read(struct usage *u, struct usage_sample *s)
{
	struct statvfs fs;

	*s = (struct usage_sample){ 0 };
	sample_cpu(u, s);
	sample_memory(u, s);
	if (statvfs("/", &fs) == 0) {
		s->disk_total = (uint64_t)fs.f_blocks * fs.f_frsize;
		s->disk_used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	}
}
