/* Real processes: exit codes, signals, what they inherit, and that nothing of them stays. */
#include "tests/support/check_main.h"
#include "tests/support/pipe_end.h"
#include "tests/support/roots.h"
#include "tests/support/temp_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "trial-runner/process/child.h"

static const char *const no_base[] = {"PATH=/usr/bin:/bin", NULL};

static as_status spawn(const char *const *argv, const char *dir, const char *const *env, pid_t *pid,
                       int *fd, struct as_err *err)
{
    struct child_spec s = {.argv = (char **)argv, .directory = (char *)dir};
    as_status st = child_env_init(&s.env, (char *const *)no_base, err);
    for (; st == AS_OK && env && env[0]; env += 2)
        st = child_env_set(&s.env, env[0], env[1], err);
    if (st == AS_OK)
        st = child_spawn(&s, pid, fd, err);
    child_env_done(&s.env);
    return st;
}

/* Run `sh -c script` to its end; returns the wait status. */
static int run_sh(const char *script, struct str *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct as_err err = {0};
    int fd = -1, status = 0;
    pid_t pid = 0;
    ck_ok(spawn(argv, NULL, NULL, &pid, &fd, &err), err);
    read_to_end(fd, out);
    close(fd);
    child_take_end(pid, NULL, "/nowhere", &status);
    return status;
}

START_TEST(output_and_exit_codes)
{
    AS_AUTO(str_done) struct str out = {0};
    int status = run_sh("echo out; echo err >&2; exit 3", &out);
    ck_assert_str_eq(str_cstr(&out), "out\nerr\n");
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    status = run_sh("kill -SEGV $$", &out);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
END_TEST

START_TEST(a_clean_start)
{
    AS_AUTO(str_done) struct str out = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL); /* as the runner does */
    int extra = dup(1);
    run_sh("read line && echo stdin; ls /proc/self/fd | tr '\\n' ' ';"
           " grep -E 'Sig(Blk|Ign)' /proc/$$/status | cut -c 8- | tr -d ' \\t\\n';"
           " [ \"$(ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat)\" -eq $$ ]"
           " && echo \" leader\"",
           &out);
    close(extra);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    /* 3 is the folder that ls reads */
    ck_assert_msg(strstr(str_cstr(&out), "0 1 2 3 ") == out.s, "%s", str_cstr(&out));
    ck_assert_ptr_nonnull(strstr(out.s, "00000000000000000000000000000000"));
    ck_assert_ptr_nonnull(strstr(out.s, " leader"));
}
END_TEST

static const struct {
    const char *program, *dir, *want;
    as_status status;
} bad[] = {
    {"no-such-program-anywhere", NULL,
     "cannot run 'no-such-program-anywhere': No such file or directory", AS_E_NOT_FOUND},
    {"/etc/passwd", NULL, "cannot run '/etc/passwd': Permission denied", AS_E_INVAL},
    {"/tmp", NULL, "cannot run '/tmp': Permission denied", AS_E_INVAL},
    {"", NULL, "cannot run '': No such file", AS_E_NOT_FOUND},
    {"true", "/no/such/dir", "cannot enter the directory '/no/such/dir'", AS_E_NOT_FOUND},
};

START_TEST(what_cannot_run_is_named)
{
    const char *argv[] = {bad[_i].program, NULL};
    struct as_err err = {0};
    int fd = -1;
    pid_t pid = 0;
    ck_fails(spawn(argv, bad[_i].dir, NULL, &pid, &fd, &err), bad[_i].status, err, bad[_i].want);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
}
END_TEST

START_TEST(arguments_are_not_a_shell_s)
{
    AS_AUTO(str_done) struct str out = {0};
    const char *argv[] = {"printf", "%s|", "a b", "$HOME", "`id`", "", NULL};
    struct as_err err = {0};
    int fd = -1, status = 0;
    pid_t pid = 0;
    ck_ok(spawn(argv, "/", NULL, &pid, &fd, &err), err);
    read_to_end(fd, &out);
    close(fd);
    child_take_end(pid, NULL, "/nowhere", &status);
    ck_assert_str_eq(str_cstr(&out), "a b|$HOME|`id`||");
}
END_TEST

/* Is the process gone, or a zombie that somebody else has to reap? */
static bool is_gone(pid_t pid)
{
    char path[64];
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (file_read(path, 4096, &text, &len, NULL) < 0)
        return true;
    const char *paren = strrchr(text, ')');
    return paren && (paren[2] == 'Z' || paren[2] == 'X');
}

static void wait_gone(pid_t pid)
{
    for (int i = 0; !is_gone(pid); i++) { /* somebody else's child: nothing to wait on */
        waitpid(pid, NULL, WNOHANG);
        ck_assert_msg(i < PATIENCE_MS / 5, "process %d is still there", (int)pid);
        usleep(5000);
    }
}

/* Three kinds of grandchildren are killed when the trial has ended: one in the process group, one
 * that left it by setsid, and one that left it below another process of the group. */
#define LEAVE "echo $$; : >$ASSAY_REPORT; exec sleep 600 >/dev/null 2>&1"
#define UNTIL_IT_LEFT "while [ ! -e $ASSAY_REPORT ]; do sleep 0.01; done"
static const char *const leavers[] = {
    "sleep 600 >/dev/null 2>&1 & echo $!",
    "setsid sh -c '" LEAVE "' & " UNTIL_IT_LEFT,
    "(setsid sh -c '" LEAVE "' & sleep 600 >/dev/null 2>&1) & " UNTIL_IT_LEFT,
};

START_TEST(grandchildren_are_swept)
{
    const char *argv[] = {"sh", "-c", leavers[_i], NULL};
    char dir[TEMP_FOLDER_SIZE], report[64];
    struct as_err err = {0};
    AS_AUTO(str_done) struct str out = {0};
    int fd = -1, status = 0;
    pid_t pid = 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    temp_folder_make(dir);
    snprintf(report, sizeof report, "%s/report.jsonl", dir);
    const char *env[] = {"ASSAY_REPORT", report, NULL};
    ck_ok(spawn(argv, NULL, env, &pid, &fd, &err), err);
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0)
        ;
    child_take_end(pid, NULL, dir, &status);
    read_to_end(fd, &out);
    close(fd);
    pid_t grandchild = (pid_t)strtol(str_cstr(&out), NULL, 10);
    ck_assert_int_gt(grandchild, 1);
    wait_gone(grandchild);
    temp_folder_remove(dir);
}
END_TEST

START_TEST(strays_of_a_dead_runner_are_found)
{
    char report[64];
    const char *env[] = {"ASSAY_REPORT", report, NULL};
    const char *argv[] = {"sleep", "600", NULL};
    struct as_err err = {0};
    int fd = -1, status = 0;
    pid_t pid = 0;
    snprintf(report, sizeof report, "/tmp/assay-strays-%d/a/1/1/report.jsonl", (int)getpid());
    ck_ok(spawn(argv, NULL, env, &pid, &fd, &err), err);
    char dir[64], other[64];
    snprintf(dir, sizeof dir, "/tmp/assay-strays-%d", (int)getpid());
    snprintf(other, sizeof other, "/tmp/assay-strays-%d/a/1/10", (int)getpid());
    ck_assert_uint_eq(child_kill_strays(other), 0); /* another attempt's folder */
    ck_assert_uint_eq(child_kill_strays(dir), 1);
    waitpid(pid, &status, 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(fd);
}
END_TEST

START_TEST(dies_with_the_thread_that_started_it)
{
    int pipe_fd[2];
    pid_t child = 0;
    ck_assert_int_eq(pipe(pipe_fd), 0);
    pid_t runner = fork();
    if (runner == 0) {
        const char *argv[] = {"sleep", "600", NULL};
        pid_t pid = 0;
        int fd = -1;
        if (spawn(argv, NULL, NULL, &pid, &fd, NULL) < 0)
            _exit(1);
        ssize_t n = write(pipe_fd[1], &pid, sizeof pid);
        _exit(n == (ssize_t)sizeof pid ? 0 : 1);
    }
    ck_assert_int_eq(read(pipe_fd[0], &child, sizeof child), (int)sizeof child);
    waitpid(runner, NULL, 0);
    wait_gone(child);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}
END_TEST

/* What comes on the socket goes back on it; its end ends the program. */
START_TEST(stdin_may_be_a_socket)
{
    const char *argv[] = {"sh", "-c", "read line; echo \"got $line\" >&0; cat", NULL};
    struct child_spec s = {.argv = (char **)argv};
    struct as_err err = {0};
    AS_AUTO(str_done) struct str said = {0};
    int out = -1, fd = -1, status = -1;
    pid_t pid = 0;
    char buf[32] = "";
    ck_ok(child_env_init(&s.env, (char *const *)no_base, &err), err);
    ck_ok(child_spawn_on_socket(&s, &pid, &out, &fd, &err), err);
    ck_assert(!s.stdin_fd);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    ck_assert_int_eq(send(fd, "a line\n", 7, MSG_NOSIGNAL), 7);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
    ck_assert_int_eq(recv(fd, buf, sizeof buf - 1, 0), 11);
    ck_assert_str_eq(buf, "got a line\n");
    close(fd);
    read_to_end(out, &said);
    ck_assert_uint_eq(said.len, 0);
    close(out);
    child_take_end(pid, NULL, "/nowhere", &status);
    ck_assert_int_eq(status, 0);
    s.argv = (char *[]){"/no/such/program", NULL};
    out = fd = -7;
    ck_fails(child_spawn_on_socket(&s, &pid, &out, &fd, &err), AS_E_NOT_FOUND, err, "cannot run");
    ck_assert(out == -7 && fd == -7);
    child_env_done(&s.env);
}
END_TEST

START_TEST(environment_is_scrubbed)
{
    const char *const base[] = {"PATH=/bin",
                                "SLURM_JOB_ID=1",
                                "PMI_RANK=0",
                                "OMPI_COMM=1",
                                "RANK=3",
                                "RANKING=1",
                                "WORLD_SIZE=8",
                                "MASTER_PORT=1",
                                "ASSAY_TOKEN=secret",
                                "ASSAY_TOKEN_FILE=/x",
                                "ASSAY_DATABASE=postgresql://u:pw@h/d",
                                "ASSAY_SERVER=http://h",
                                "ASSAY_RUNNER_WORK=/w",
                                "ASSAY_OF_A_LATER_VERSION=secret",
                                "ASSAY_PARAM_x=another trial's",
                                "PGPASSWORD=secret",
                                "PGPASSFILE=/x",
                                "PGSERVICEFILE=/x",
                                "PG_COLOR=auto",
                                "I_MPI_HYDRA_HOST_FILE=/x",
                                "SRUN_DEBUG=3",
                                "MPI_LOCALRANKID=1",
                                "JAX_PROCESS_ID=1",
                                "CREDENTIALS_DIRECTORY=/run/credentials/x",
                                "AWS_SECRET_ACCESS_KEY=secret",
                                "AWS_ACCESS_KEY_ID=k",
                                "AWS_SESSION_TOKEN=secret",
                                "AWS_REGION=r",
                                "S3_SECRET_KEY=secret",
                                "ASSAY_BACKEND=cpu",
                                "ASSAY_PLUGIN_DIR=/p",
                                "CUDA_VISIBLE_DEVICES=7",
                                "NOTIFY_SOCKET=/run/x",
                                "nonsense",
                                "OMP_NUM_THREADS=4",
                                NULL};
    static const char *const gone[] = {"SLURM_JOB_ID",
                                       "PMI_RANK",
                                       "OMPI_COMM",
                                       "RANK",
                                       "WORLD_SIZE",
                                       "MASTER_PORT",
                                       "ASSAY_TOKEN",
                                       "ASSAY_TOKEN_FILE",
                                       "CUDA_VISIBLE_DEVICES",
                                       "NOTIFY_SOCKET",
                                       "ASSAY_DATABASE",
                                       "ASSAY_SERVER",
                                       "ASSAY_RUNNER_WORK",
                                       "ASSAY_OF_A_LATER_VERSION",
                                       "ASSAY_PARAM_x",
                                       "PGPASSWORD",
                                       "PGPASSFILE",
                                       "PGSERVICEFILE",
                                       "PG_COLOR",
                                       "I_MPI_HYDRA_HOST_FILE",
                                       "SRUN_DEBUG",
                                       "MPI_LOCALRANKID",
                                       "JAX_PROCESS_ID",
                                       "AWS_SECRET_ACCESS_KEY",
                                       "AWS_ACCESS_KEY_ID",
                                       "AWS_SESSION_TOKEN",
                                       "AWS_REGION",
                                       "S3_SECRET_KEY",
                                       "CREDENTIALS_DIRECTORY"};
    AS_AUTO(child_env_done) struct child_env e = {0};
    struct as_err err = {0};
    ck_ok(child_env_init(&e, (char *const *)base, &err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(gone); i++)
        ck_assert_msg(!child_env_get(&e, gone[i]), "%s is there", gone[i]);
    ck_assert_str_eq(child_env_get(&e, "PATH"), "/bin");
    ck_assert_str_eq(child_env_get(&e, "RANKING"), "1");
    ck_assert_str_eq(child_env_get(&e, "ASSAY_BACKEND"), "cpu");
    ck_assert_str_eq(child_env_get(&e, "ASSAY_PLUGIN_DIR"), "/p");
    ck_assert_str_eq(child_env_get(&e, "OMP_NUM_THREADS"), "4");
    ck_assert_ptr_null(child_env_get(&e, "OPENBLAS_NUM_THREADS"));
    ck_assert_str_eq(child_env_get(&e, "PYTHONUNBUFFERED"), "1");
    ck_ok(child_env_set(&e, "PATH", "/usr/bin", &err), err);
    ck_assert_str_eq(child_env_get(&e, "PATH"), "/usr/bin");
    ck_fails(child_env_set(&e, "A=B", "x", &err), AS_E_INVAL, err, "A=B");
    ck_assert_ptr_null(e.v[e.n]);
}
END_TEST

static bool is_of_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* No variable that the page about running the service names reaches a trial: none that it names
 * today, and none that will be added. */
START_TEST(no_documented_variable_of_the_service)
{
    struct as_err err = {0};
    AS_AUTO(as_freep) char *path = file_join(source_root(), "docs/operations.md");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0, n = 0;
    ck_ok(file_read(path, 1 << 20, &text, &len, &err), err);
    for (char *at = text; *at;) {
        size_t word = 0, bars = 0;
        while (is_of_name(at[word]))
            bars += at[word++] == '_';
        if (bars > 0 && *at >= 'A' && *at != '_') { /* nor a number such as 1234_7 */
            char pair[200];
            (void)snprintf(pair, sizeof pair, "%.*s=leak", (int)word, at);
            const char *const base[] = {"HOME=/h", pair, NULL};
            AS_AUTO(child_env_done) struct child_env e = {0};
            ck_ok(child_env_init(&e, (char *const *)base, &err), err);
            pair[word] = '\0';
            ck_assert_msg(!child_env_get(&e, pair), "a trial sees %s", pair);
            ck_assert_str_eq(child_env_get(&e, "HOME"), "/h");
            n++;
        }
        at += word > 0 ? word : 1;
    }
    ck_assert_uint_ge(n, 15); /* they were found */
}
END_TEST

/* A program is looked up in the PATH that the trial has, not in the runner's. */
START_TEST(path_of_the_trial)
{
    char dir[TEMP_FOLDER_SIZE];
    struct as_err err = {0};
    struct str out = {0};
    int fd = -1, status = 0;
    pid_t pid = 0;
    const char *argv[] = {"own-program", NULL}, *env[] = {"PATH", dir, NULL};
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *program = file_join(dir, "own-program");
    ck_ok(file_replace(program, "#!/bin/sh\necho found\n", 21, 0755, &err), err);
    ck_ok(spawn(argv, NULL, env, &pid, &fd, &err), err);
    read_to_end(fd, &out);
    close(fd);
    child_take_end(pid, NULL, "/nowhere", &status);
    ck_assert_str_eq(str_cstr(&out), "found\n");
    ck_assert_int_eq(spawn(argv, NULL, NULL, &pid, &fd, &err), AS_E_NOT_FOUND);
    str_done(&out);
    temp_folder_remove(dir);
}
END_TEST

/* Threads follow from the cores of the trial; what somebody set stays. */
START_TEST(threads_follow_from_cores)
{
    static const char *const base[] = {"OMP_NUM_THREADS=4", NULL}, *const none[] = {NULL};
    AS_AUTO(child_env_done) struct child_env with = {0};
    AS_AUTO(child_env_done) struct child_env without = {0};
    struct as_err err = {0};
    ck_ok(child_env_init(&with, (char *const *)base, &err), err);
    ck_ok(child_env_set(&with, "MKL_NUM_THREADS", "2", &err), err); /* as trial.env does */
    ck_ok(child_env_set_threads(&with, 3, 8, &err), err);
    ck_assert_str_eq(child_env_get(&with, "OMP_NUM_THREADS"), "4");
    ck_assert_str_eq(child_env_get(&with, "MKL_NUM_THREADS"), "2");
    ck_assert_str_eq(child_env_get(&with, "OPENBLAS_NUM_THREADS"), "3");
    ck_assert_str_eq(child_env_get(&with, "NUMEXPR_NUM_THREADS"), "3");
    ck_assert_str_eq(child_env_get(&with, "ASSAY_THREADS"), "3");
    ck_ok(child_env_init(&without, (char *const *)none, &err), err);
    ck_ok(child_env_set_threads(&without, 0, 100000, &err), err);
    ck_assert_str_eq(child_env_get(&without, "OMP_NUM_THREADS"), "1");
    ck_assert_str_eq(child_env_get(&without, "NUMEXPR_NUM_THREADS"), "1");
    ck_assert_str_eq(child_env_get(&without, "ASSAY_THREADS"), "1");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("child");
    TCase *t = tcase_create("child");
    tcase_add_test(t, output_and_exit_codes);
    tcase_add_test(t, a_clean_start);
    tcase_add_test(t, threads_follow_from_cores);
    tcase_add_loop_test(t, what_cannot_run_is_named, 0, (int)AS_ARRAY_LEN(bad));
    tcase_add_test(t, arguments_are_not_a_shell_s);
    tcase_add_loop_test(t, grandchildren_are_swept, 0, (int)AS_ARRAY_LEN(leavers));
    tcase_add_test(t, strays_of_a_dead_runner_are_found);
    tcase_add_test(t, dies_with_the_thread_that_started_it);
    tcase_add_test(t, stdin_may_be_a_socket);
    tcase_add_test(t, environment_is_scrubbed);
    tcase_add_test(t, no_documented_variable_of_the_service);
    tcase_add_test(t, path_of_the_trial);
    suite_add_tcase(s, t);
    return s;
}
