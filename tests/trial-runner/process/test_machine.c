/* What a machine has, by the files of /proc and of control groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "trial-runner/process/machine.h"

static char root[] = "/tmp/assay-machine-XXXXXX";
static struct as_err err;

static void begin(void)
{
    (void)snprintf(root, sizeof root, "/tmp/assay-machine-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void finish(void)
{
    ck_ok(file_remove_tree(root, &err), err);
}

static void put(const char *path, const char *text)
{
    char at[300];
    (void)snprintf(at, sizeof at, "%s%s", root, path);
    *strrchr(at, '/') = '\0';
    ck_ok(file_mkdirs(at, 0700, &err), err);
    at[strlen(at)] = '/';
    ck_ok(file_replace(at, text, strlen(text), 0600, &err), err);
}

/* Quotas can only lower what the CPU mask of this test allows, so tests compare with one core. */
START_TEST(groups_of_version_2)
{
    struct machine m;
    put("/proc/self/cgroup", "0::/jobs/one\n");
    put("/proc/meminfo", "MemTotal:       16 kB\nMemFree: 1 kB\n");
    put("/proc/sys/kernel/random/boot_id", "7f3c\n");
    put("/sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
    machine_read(root, &m);
    ck_assert_int_eq(m.cpus, (int64_t)m.cores.n);
    ck_assert_int_eq(m.memory_bytes, 16384);
    ck_assert_str_eq(m.id, "7f3c");
    put("/sys/fs/cgroup/jobs/cpu.max", "150000 100000\n"); /* of the group above */
    put("/sys/fs/cgroup/jobs/memory.max", "9000\n");
    machine_read(root, &m);
    ck_assert_int_eq(m.cpus, 1);
    ck_assert_int_eq(m.memory_bytes, 9000);
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/memory.max", "8000\n");
    machine_read(root, &m);
    ck_assert_int_eq(m.cpus, 1);
    ck_assert_int_eq(m.memory_bytes, 8000);
}
END_TEST

START_TEST(groups_of_version_1)
{
    struct machine m;
    put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/box\n1:cpu,cpuacct:/box\n0::/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "7000\n");
    machine_read(root, &m);
    ck_assert_int_eq(m.cpus, (int64_t)m.cores.n);
    ck_assert_int_eq(m.memory_bytes, 7000);
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    machine_read(root, &m);
    ck_assert_int_eq(m.cpus, 1);
}
END_TEST

START_TEST(without_files)
{
    struct machine m;
    machine_read(root, &m);
    ck_assert_int_ge(m.cpus, 1);
    ck_assert_int_eq(m.memory_bytes, 0);
    ck_assert_str_eq(m.id, "");
    put("/proc/self/cgroup", "no line\n0\n::\n0::\n\n1:cpu\n");
    put("/proc/meminfo", "MemTotal: -3 kB\n");
    machine_read(root, &m);
    ck_assert_int_eq(m.memory_bytes, 0);
    machine_read("", &m); /* this machine */
    ck_assert_int_ge(m.cpus, 1);
    ck_assert_int_gt(m.memory_bytes, 1 << 20);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("machine");
    TCase *t = tcase_create("machine");
    tcase_add_checked_fixture(t, begin, finish);
    tcase_add_test(t, groups_of_version_2);
    tcase_add_test(t, groups_of_version_1);
    tcase_add_test(t, without_files);
    suite_add_tcase(s, t);
    return s;
}
