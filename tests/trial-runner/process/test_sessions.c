/* What sessions use, by the files of /proc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "trial-runner/process/sessions.h"

static char root[64];
static struct as_err err;

static void begin(void)
{
    (void)snprintf(root, sizeof root, "/tmp/assay-sessions-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void finish(void)
{
    ck_ok(file_remove_tree(root, &err), err);
}

static void put_stat(const char *pid, const char *text)
{
    char at[300];
    (void)snprintf(at, sizeof at, "%s/proc/%s", root, pid);
    ck_ok(file_mkdirs(at, 0700, &err), err);
    (void)snprintf(at, sizeof at, "%s/proc/%s/stat", root, pid);
    ck_ok(file_replace(at, text, strlen(text), 0600, &err), err);
}

START_TEST(processes_of_a_session_are_added)
{
    long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    struct session_use v[] = {{.session = 70}, {.session = 90}, {.session = 91}};
    /* pid (name) state parent group session tty tpgid flags minflt cminflt majflt cmajflt utime
     * stime cutime cstime priority nice threads itrealvalue starttime vsize rss */
    put_stat("70", "70 (sh) S 1 70 70 0 -1 0 1 2 3 4 100 20 3 4 20 0 1 0 5 6 7 0 0");
    put_stat("71", "71 (a) R (x) R 70 70 70 0 -1 0 1 2 3 4 50 0 0 0 20 0 1 0 5 6 10 0 0");
    put_stat("90", "90 (other) R 1 90 90 0 -1 0 1 2 3 4 9 0 0 0 20 0 1 0 5 6 2 0 0");
    put_stat("92", "92 (stranger) R 1 92 92 0 -1 0 1 2 3 4 900 0 0 0 20 0 1 0 5 6 99 0 0");
    put_stat("93", "no line of a process");
    put_stat("self", "70 (sh) S 1 70 70 0 -1 0 1 2 3 4 100 20 3 4 20 0 1 0 5 6 7 0 0");
    sessions_read(root, v, 3);
    ck_assert_int_eq(v[0].processes, 2);
    ck_assert_int_eq(v[0].cpu_ms, 127 * 1000 / tick + 50 * 1000 / tick);
    ck_assert_int_eq(v[0].memory_bytes, 17 * page);
    ck_assert_int_eq(v[1].processes, 1);
    ck_assert_int_eq(v[1].memory_bytes, 2 * page);
    ck_assert_int_eq(v[2].processes, 0);
    ck_assert_int_eq(v[2].cpu_ms, 0);
}
END_TEST

/* What left the session by setsid() belongs to its nearest ancestor's; what nobody's child is, to
 * none; and a circle of parents, which a listing of processes that change may have, ends. */
START_TEST(descendants_in_sessions_of_their_own)
{
    struct session_use v[] = {{.session = 70}, {.session = 90}};
    put_stat("70", "70 (sh) S 1 70 70 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    put_stat("60", "60 (apart) S 70 60 60 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    put_stat("600", "600 (below it) S 60 600 600 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    put_stat("90", "90 (other trial) S 600 90 90 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    put_stat("901", "901 (its own) S 90 901 901 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    put_stat("902", "902 (orphan) S 1 902 902 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    put_stat("80", "80 (circle) S 81 80 80 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    put_stat("81", "81 (circle) S 80 81 81 0 -1 0 1 2 3 4 1 0 0 0 20 0 1 0 5 6 7 0 0");
    sessions_read(root, v, 2);
    ck_assert_int_eq(v[0].processes, 3);
    ck_assert_int_eq(v[1].processes, 2);
}
END_TEST

START_TEST(this_session)
{
    struct session_use v = {.session = getsid(0), .cpu_ms = 77};
    sessions_read("", &v, 1);
    ck_assert_int_ge(v.processes, 1);
    ck_assert_int_gt(v.memory_bytes, 100000);
}
END_TEST

START_TEST(without_files)
{
    struct session_use v = {.session = 1, .cpu_ms = 5, .processes = 3};
    sessions_read(root, &v, 1);
    ck_assert_int_eq(v.processes, 0);
    ck_assert_int_eq(v.cpu_ms, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("sessions");
    TCase *t = tcase_create("sessions");
    tcase_add_checked_fixture(t, begin, finish);
    tcase_add_test(t, processes_of_a_session_are_added);
    tcase_add_test(t, descendants_in_sessions_of_their_own);
    tcase_add_test(t, this_session);
    tcase_add_test(t, without_files);
    suite_add_tcase(s, t);
    return s;
}
