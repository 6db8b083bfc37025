/* What a machine says of its memory and processor, on small trees that stand for machines. */
#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/cpu.h"

static char root[64];

/* Writes root/path, folders included. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_msg(file != NULL, "%s", full);
    fputs(text, file);
    fclose(file);
}

static void setup(void)
{
    snprintf(root, sizeof root, "/tmp/hbp_cpu_memory_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void expect(int64_t free_want, int64_t total_want)
{
    int64_t free_bytes, total_bytes;
    ex_cpu_memory(root, &free_bytes, &total_bytes);
    ck_assert_int_eq(free_bytes, free_want);
    ck_assert_int_eq(total_bytes, total_want);
}

static const char meminfo[] = "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    600 kB\n";

START_TEST(a_machine_alone)
{
    put("/proc/meminfo", meminfo);
    expect(600 * 1024, 1000 * 1024);
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "max\n");
    put("/sys/fs/cgroup/memory.current", "5000\n");
    expect(600 * 1024, 1000 * 1024);
}
END_TEST

START_TEST(a_group_of_version_2)
{
    put("/proc/meminfo", meminfo);
    put("/proc/self/cgroup", "0::/job/step\n");
    put("/sys/fs/cgroup/job/step/memory.max", "max\n");
    put("/sys/fs/cgroup/job/step/memory.current", "20000\n");
    put("/sys/fs/cgroup/job/memory.max", "500000\n");
    put("/sys/fs/cgroup/job/memory.current", "300000\n");
    expect(200000, 500000);
    /* What was read from files and not used of late can be had back. */
    put("/sys/fs/cgroup/job/memory.stat", "anon 200000\ninactive_file 50000\nactive_file 7\n");
    expect(250000, 500000);
    put("/sys/fs/cgroup/job/step/memory.max", "30000\n");
    expect(10000, 30000);
    put("/sys/fs/cgroup/job/step/memory.current", "40000\n"); /* over its limit */
    expect(0, 30000);
}
END_TEST

START_TEST(a_group_of_version_1)
{
    put("/proc/meminfo", meminfo);
    put("/proc/self/cgroup", "5:devices:/x\n4:memory:/box/one\n1:cpu,cpuacct:/\n0::/\n");
    put("/sys/fs/cgroup/memory/box/one/memory.limit_in_bytes", "400000\n");
    put("/sys/fs/cgroup/memory/box/one/memory.usage_in_bytes", "100000\n");
    put("/sys/fs/cgroup/memory/box/one/memory.stat", "inactive_file 1\ntotal_inactive_file 10000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "800000\n");
    expect(310000, 400000);
}
END_TEST

/* In a container the path is the host's, and only the mount's own files are there. */
START_TEST(a_group_seen_from_inside)
{
    put("/proc/meminfo", meminfo);
    put("/proc/self/cgroup", "0::/../../host/container\n");
    put("/sys/fs/cgroup/memory.max", "70000\n");
    put("/sys/fs/cgroup/memory.current", "20000\n");
    expect(50000, 70000);
}
END_TEST

START_TEST(limits_above_the_machine)
{
    put("/proc/meminfo", meminfo);
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "99999999\n");
    put("/sys/fs/cgroup/memory.current", "0\n");
    expect(600 * 1024, 1000 * 1024);
}
END_TEST

START_TEST(nothing_is_said)
{
    int64_t free_bytes, total_bytes;
    ex_cpu_memory(root, &free_bytes, &total_bytes);
    ck_assert_int_gt(free_bytes, 0);
    ck_assert_int_ge(total_bytes, free_bytes);
    put("/proc/self/cgroup", "nonsense\n\n7\n:\n");
    ex_cpu_memory(root, &free_bytes, &total_bytes);
    ck_assert_int_gt(free_bytes, 0);
}
END_TEST

START_TEST(this_machine)
{
    int64_t free_bytes, total_bytes;
    ex_cpu_memory("", &free_bytes, &total_bytes);
    ck_assert(free_bytes > 1 << 20 && free_bytes <= total_bytes);
}
END_TEST

START_TEST(names)
{
    char name[128], cut[8];
    put("/proc/cpuinfo",
        "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Processor\nmodel name\t: B\n");
    ex_cpu_name(root, name, sizeof name);
    ck_assert_str_eq(name, "Intel(R) Xeon(R) Processor");
    ex_cpu_name(root, cut, sizeof cut);
    ck_assert_str_eq(cut, "Intel(R");
    put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
    ex_cpu_name(root, name, sizeof name);
    ck_assert_msg(strlen(name) > strlen(" processor") && strstr(name, " processor"), "%s", name);
}
END_TEST

TEST_MAIN_WITH("cpu_memory", setup, teardown, a_machine_alone, a_group_of_version_2, a_group_of_version_1,
               a_group_seen_from_inside, limits_above_the_machine, nothing_is_said, this_machine, names)
