/* The parts of `assay up` that need no database: back-off, sizes, supervision of real processes,
 * the lock of the data folder, rotation of logs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/files/running_server.h"
#include "cli/up/cluster.h"
#include "cli/up/folder.h"
#include "cli/up/leftover.h"
#include "cli/up/postgres.h"
#include "cli/up/supervise.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

START_TEST(numbers)
{
    ck_assert_int_eq(supervisor_backoff_ms(1), 200);
    ck_assert_int_eq(supervisor_backoff_ms(2), 400);
    ck_assert_int_eq(supervisor_backoff_ms(6), 6400);
    ck_assert_int_eq(supervisor_backoff_ms(7), 10000);
    ck_assert_int_eq(supervisor_backoff_ms(4000000000U), 10000);
    ck_assert_int_eq(up_cluster_buffers_mb(256), 32);
    ck_assert_int_eq(up_cluster_buffers_mb(4096), 256);
    ck_assert_int_eq(up_cluster_buffers_mb(1 << 20), 512);
    ck_assert(!up_disk_is_full("/proc")); /* of no size */
    ck_assert(!up_disk_is_full("/nowhere"));
}
END_TEST

START_TEST(folder)
{
    struct as_err err = {0};
    struct up_folder f, second;
    ck_ok(up_folder_open(&f, dir, &err), err);
    up_folder_publish(&f, "http://127.0.0.1:1");
    ck_fails(up_folder_open(&second, dir, &err), AS_E_CONFLICT, err, "http://127.0.0.1:1");
    char pid[32];
    (void)snprintf(pid, sizeof pid, "pid %d", (int)getpid());
    ck_assert_ptr_nonnull(strstr(err.msg, pid));
    up_folder_close(&second);
    for (int i = 0; i < 6; i++) {
        char text[8];
        AS_AUTO(as_freep) char *log = up_folder_new_log(&f, "x");
        ck_assert_int_ne(access(log, F_OK), 0);
        (void)snprintf(text, sizeof text, "%d", i);
        ck_ok(file_replace(log, text, 1, 0600, &err), err);
    }
    AS_AUTO(as_freep) char *oldest = file_join(f.logs, "x.log.3");
    AS_AUTO(as_freep) char *gone = file_join(f.logs, "x.log.4");
    AS_AUTO(as_freep) char *text = supervisor_log_end(oldest);
    ck_assert_str_eq(text, "2");
    ck_assert_int_ne(access(gone, F_OK), 0);
    up_folder_close(&f);
    ck_ok(up_folder_open(&f, dir, &err), err); /* free again */
    up_folder_close(&f);
}
END_TEST

/* A child that dies is started again; one that ignores SIGTERM is killed. */
START_TEST(supervision)
{
    struct as_err err = {0};
    char notes[100], log[100], marks[100];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    (void)snprintf(log, sizeof log, "%s/log", dir);
    (void)snprintf(marks, sizeof marks, "%s/marks", dir);
    AS_AUTO(supervisor_freep) struct supervisor *s = supervisor_create(notes);
    ck_assert_ptr_nonnull(s);
    const char *const dies[] = {"/bin/sh", "-c", "echo x >> \"$MARKS\"; exit 3", NULL};
    const char *const stubborn[] = {"/bin/sh", "-c",
                                    "trap '' TERM; echo up; while :; do sleep 1; done", NULL};
    static const struct stop_step stop[] = {{SIGTERM, 100}, {0, 0}};
    struct up_child_spec spec = {
        .argv = dies, .log_path = log, .death_signal = SIGKILL, .set_env = {{"MARKS", marks}}};
    int a, b;
    ck_ok(supervisor_add(s, "dies", &spec, stop, &a, &err), err);
    spec.argv = stubborn;
    ck_ok(supervisor_add(s, "stubborn", &spec, stop, &b, &err), err);
    ck_ok(supervisor_start(s, a, &err), err);
    ck_ok(supervisor_start(s, b, &err), err);
    while (supervisor_deaths(s, a) < 2)
        ck_assert(supervisor_wait(s, PATIENCE_MS));
    ck_assert_int_eq(WEXITSTATUS(supervisor_last_status(s, a)), 3);
    ck_assert(supervisor_running(s, b));
    for (AS_AUTO(as_freep) char *text = NULL; !text || !strstr(text, "up");) {
        free(text);
        text = supervisor_log_end(log);
        ck_assert(supervisor_wait(s, 10));
    }
    supervisor_stop(s, a, b);
    ck_assert(!supervisor_running(s, a));
    ck_assert(!supervisor_running(s, b));
    ck_assert_int_eq(WTERMSIG(supervisor_last_status(s, b)), SIGKILL);
    ck_assert(!supervisor_wait(s, 0));
}
END_TEST

START_TEST(commands)
{
    struct as_err err = {0};
    char notes[100], log[100];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    (void)snprintf(log, sizeof log, "%s/log", dir);
    AS_AUTO(supervisor_freep) struct supervisor *s = supervisor_create(notes);
    const char *const good[] = {"/bin/cat", NULL};
    const char *const bad[] = {"/bin/sh", "-c", "echo went wrong; exit 4", NULL};
    const char *const none[] = {"/nowhere/x", NULL};
    const char *const slow[] = {"/bin/sleep", "100", NULL};
    struct up_child_spec spec = {
        .argv = good, .log_path = log, .input = "hello\n", .death_signal = SIGKILL};
    ck_ok(supervisor_run(s, "cat", &spec, PATIENCE_MS, &err), err);
    AS_AUTO(as_freep) char *text = supervisor_log_end(log);
    ck_assert_str_eq(text, "hello");
    spec.argv = bad;
    ck_fails(supervisor_run(s, "bad", &spec, PATIENCE_MS, &err), AS_E_IO, err, "code 4");
    spec.argv = none;
    ck_fails(supervisor_run(s, "none", &spec, PATIENCE_MS, &err), AS_E_IO, err, "code 127");
    spec.argv = slow;
    ck_fails(supervisor_run(s, "slow", &spec, 50, &err), AS_E_TIMEOUT, err, "slow");
}
END_TEST

START_TEST(leftovers)
{
    struct as_err err = {0};
    char notes[100], line[100];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    ck_ok(up_leftover_stop(notes, &err), err); /* none */
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none; /* without Check's fork, other tests have blocked signals */
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)signal(SIGTERM, SIG_DFL);
        (void)pause();
        _exit(0);
    }
    unsigned long long start = up_process_start(pid);
    ck_assert_uint_gt(start, 0);
    /* Another start time: another process that got the same pid. It is left alone. */
    int n = snprintf(line, sizeof line, "x %d %llu\nnonsense\n", (int)pid, start + 1);
    ck_ok(file_replace(notes, line, (size_t)n, 0600, &err), err);
    ck_ok(up_leftover_stop(notes, &err), err);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    n = snprintf(line, sizeof line, "x %d %llu\n", (int)pid, start);
    ck_ok(file_replace(notes, line, (size_t)n, 0600, &err), err);
    ck_ok(up_leftover_stop(notes, &err), err);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WTERMSIG(status), SIGTERM);
    ck_assert_uint_eq(up_process_start(pid), 0);
    /* A postmaster.pid that names a process which is no postgres. */
    (void)snprintf(line, sizeof line, "%s/postmaster.pid", dir);
    char self[32];
    n = snprintf(self, sizeof self, "%d\n", (int)getpid());
    ck_ok(file_replace(line, self, (size_t)n, 0600, &err), err);
    ck_ok(up_leftover_stop_postmaster(dir, &err), err);
}
END_TEST

/* A process that, asked to end, waits until its neighbour was asked too. */
static pid_t start_waiting_for(const char *mine, const char *other)
{
    char script[400];
    (void)snprintf(script, sizeof script,
                   "cd %s; trap ': >%s.asked; while ! [ -e %s.asked ]; do sleep 0.01; done; exit 0'"
                   " TERM; : >%s.up; while :; do sleep 0.01; done",
                   dir, mine, other, mine);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(127);
    }
    char up[120];
    (void)snprintf(up, sizeof up, "%s/%s.up", dir, mine);
    while (access(up, F_OK) != 0)
        clock_sleep_ms(5);
    return pid;
}

START_TEST(leftovers_end_together)
{
    struct as_err err = {0};
    char notes[100], lines[200];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    pid_t pids[] = {start_waiting_for("a", "b"), start_waiting_for("b", "a")};
    int n = snprintf(lines, sizeof lines, "runner-1 %d %llu\nrunner-2 %d %llu\n", (int)pids[0],
                     up_process_start(pids[0]), (int)pids[1], up_process_start(pids[1]));
    ck_ok(file_replace(notes, lines, (size_t)n, 0600, &err), err);
    ck_ok(up_leftover_stop(notes, &err), err);
    for (size_t i = 0; i < 2; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
END_TEST

/* The newest live one counts; notes of the dead disappear. */
START_TEST(notes)
{
    struct as_err err = {0};
    struct current c = {0};
    char path[100];
    ck_assert_int_eq(setenv("XDG_STATE_HOME", dir, 1), 0);
    ck_fails(current_read(NULL, &c, &err), AS_E_NOT_FOUND, err, "assay up");
    ck_ok(current_write("http://127.0.0.1:7", "/t/admin.token", &err), err);
    ck_ok(current_read(NULL, &c, &err), err);
    ck_assert_str_eq(c.url, "http://127.0.0.1:7");
    ck_assert_str_eq(c.token_file, "/t/admin.token");
    current_done(&c);
    ck_fails(current_read("http://127.0.0.1:8", &c, &err), AS_E_NOT_FOUND, err, "assay up");
    ck_ok(current_read("http://127.0.0.1:7", &c, &err), err);
    current_done(&c);
    (void)snprintf(path, sizeof path, "%s/assay/up/1.json", dir);
    static const char dead[] = "{\"url\": \"http://x\", \"token_file\": \"t\", \"pid\": 1, "
                               "\"start\": 999999999999, \"since\": 99999999999999}";
    ck_ok(file_replace(path, dead, strlen(dead), 0600, &err), err);
    ck_ok(current_read(NULL, &c, &err), err);
    ck_assert_str_eq(c.url, "http://127.0.0.1:7");
    ck_assert_int_ne(access(path, F_OK), 0);
    current_done(&c);
    current_remove();
    ck_fails(current_read(NULL, &c, &err), AS_E_NOT_FOUND, err, "assay up");
}
END_TEST

START_TEST(unknown_version)
{
    struct as_err err = {0};
    char path[100], *bin = NULL;
    (void)snprintf(path, sizeof path, "%s/PG_VERSION", dir);
    ck_ok(file_replace(path, "9\n", 2, 0600, &err), err);
    ck_fails(up_postgres_find(dir, &bin, &err), AS_E_NOT_FOUND, err, "PostgreSQL 9");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("up");
    TCase *t = tcase_create("up");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, numbers);
    tcase_add_test(t, folder);
    tcase_add_test(t, supervision);
    tcase_add_test(t, commands);
    tcase_add_test(t, leftovers);
    tcase_add_test(t, leftovers_end_together);
    tcase_add_test(t, notes);
    tcase_add_test(t, unknown_version);
    suite_add_tcase(s, t);
    return s;
}
