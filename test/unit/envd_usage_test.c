#include "t.h"

#include <sys/stat.h>

#include "envd/fs_ops.h"
#include "envd/usage.h"

static char root[64], proc[96], cgroup[96];

static void
put(const char *path, const char *text)
{
	char full[256];
	struct user u = { .uid = getuid(), .gid = getgid() };
	struct err e;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	*strrchr(full, '/') = '\0';
	assert_ok(e, fs_make_dirs(full, &u, &e));
	snprintf(full, sizeof(full), "%s/%s", root, path);
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int
setup(void **state UNUSED)
{
	struct err e;

	snprintf(root, sizeof(root), "/tmp/usage_test.%d", getpid());
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(cgroup, sizeof(cgroup), "%s/cg", root);
	assert_ok(e, fs_remove_tree(root, &e));
	put("proc/meminfo",
	    "MemTotal:       1000 kB\nMemFree:         400 kB\nBuffers:          10 kB\n"
	    "Cached:           90 kB\nShmem:            20 kB\n");
	put("proc/stat", "cpu  10 0 20 1000 5 0 0 0 0 0\ncpu0 1 2 3\n");
	put("proc/self/cgroup", "0::/\n");
	put("cg/cgroup.procs", "");
	return 0;
}

static int
teardown(void **state UNUSED)
{
	struct err e;

	return fs_remove_tree(root, &e);
}

static struct usage_sample
sample(void)
{
	struct usage *u = usage_new(cgroup, proc);
	struct usage_sample s;

	usage_read(u, &s);
	usage_free(u);
	return s;
}

static void
version_2(void **state UNUSED)
{
	struct usage *u;
	struct usage_sample s;

	put("cg/memory.current", "500000\n");
	put("cg/memory.max", "600000\n");
	put("cg/memory.stat", "anon 100000\nfile 200000\nshmem 50000\n");
	put("cg/cpu.stat", "usage_usec 1000\nuser_usec 5\n");
	put("cg/cpu.max", "100000 100000\n");
	u = usage_new(cgroup, proc);
	put("cg/cpu.stat", "usage_usec 51000\n");
	usleep(50000);
	usage_read(u, &s);
	assert_int_equal(s.mem_total, 600000);
	assert_int_equal(s.mem_cache, 150000);
	assert_int_equal(s.mem_used, 350000);
	assert_int_equal(s.cpu_count, 1);
	assert_true(s.cpu_used_pct > 1 && s.cpu_used_pct <= 101);
	assert_true(s.disk_total > 0);
	usage_read(u, &s);
	assert_true(s.cpu_used_pct == 0);
	usage_free(u);
	put("cg/memory.max", "max\n");
	assert_int_equal(sample().mem_total, 1000 * 1024);
}

static void
version_2_below_the_host_root(void **state UNUSED)
{
	put("proc/self/cgroup", "0::/kubepods/pod1\n");
	put("cg/kubepods/pod1/memory.current", "7000\n");
	put("cg/kubepods/pod1/memory.max", "9000\n");
	put("cg/kubepods/pod1/memory.stat", "file 1000\n");
	assert_int_equal(sample().mem_total, 9000);
	assert_int_equal(sample().mem_used, 6000);
}

static void
version_1(void **state UNUSED)
{
	put("proc/self/cgroup", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n0::/\n");
	put("cg/memory/memory.usage_in_bytes", "400000\n");
	put("cg/memory/memory.limit_in_bytes", "500000\n");
	put("cg/memory/memory.stat", "cache 1\ntotal_cache 100000\ntotal_shmem 0\n");
	put("cg/cpuacct/cpuacct.usage", "123\n");
	put("cg/cpuacct/cpu.cfs_quota_us", "50000\n");
	put("cg/cpuacct/cpu.cfs_period_us", "100000\n");
	assert_int_equal(sample().mem_total, 500000);
	assert_int_equal(sample().mem_cache, 100000);
	assert_int_equal(sample().mem_used, 300000);
	assert_int_equal(sample().cpu_count, 1);
	put("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(sample().mem_total, 1000 * 1024);
}

static void
no_cgroup(void **state UNUSED)
{
	struct usage_sample s = sample();

	assert_int_equal(s.mem_total, 1000 * 1024);
	assert_int_equal(s.mem_cache, 80 * 1024);
	assert_int_equal(s.mem_used, (600 - 80) * 1024);
	assert_true(s.cpu_count >= 1);
}

#define S(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
T_MAIN(S(version_2), S(version_2_below_the_host_root), S(version_1), S(no_cgroup))
