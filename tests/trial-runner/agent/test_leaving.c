/* A runner that belongs to a job: what it says about it, how it leaves before its time ends, and
 * how it waits for the runner before it. */
#include "tests/trial-runner/agent/runner_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#define KEEPS_STATE                                                                                \
    "trap 'echo state > $ASSAY_CHECKPOINTS/c; exit 0' TERM; echo ready; while :; do sleep 0.05; "  \
    "done"

static const char *said(const char *name)
{
    fx_lock();
    const char *s = json_string_value(json_object_get(fx.registration, name));
    fx_unlock();
    return s;
}

static int await_end(pid_t pid)
{
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

/* The time is given, the trial has a longer grace period: it leaves after half of the time. */
START_TEST(a_trial_is_handed_back_before_the_time_ends)
{
    int64_t began_ns = clock_mono_ns();
    struct trial *t = offer_sh(0, KEEPS_STATE);
    start_runner("--until", "3s");
    AWAIT(log_has(t, "ready"));
    int status = await_end(fx.runner);
    fx.runner = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_ge(clock_mono_ns() - began_ns, 1500 * NS_PER_MS);
    ck_assert_str_eq(outcome_of(t), "released");
    ck_assert_uint_eq(json_array_size(t->checkpoints), 1);
    AWAIT(fx.leaves == 1);
}
END_TEST

/* Slurm says when the job ends, in seconds of its own clock. */
START_TEST(the_end_of_the_job_is_that_of_the_runner)
{
    char end[32];
    int64_t end_s = clock_wall_ms() / 1000 + 2;
    (void)snprintf(end, sizeof end, "%lld", (long long)end_s);
    (void)setenv("SLURM_JOB_END_TIME", end, 1);
    (void)setenv("SLURM_ARRAY_JOB_ID", "70", 1);
    (void)setenv("SLURM_ARRAY_TASK_ID", "3", 1);
    (void)setenv("SLURM_CPUS_PER_TASK", "1", 1);
    start_runner("--fleet", "lab");
    int status = await_end(fx.runner);
    fx.runner = 0;
    (void)unsetenv("SLURM_JOB_END_TIME");
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_str_eq(said("job"), "slurm/70_3");
    ck_assert_str_eq(said("fleet"), "lab");
    ck_assert_int_eq(json_integer_value(json_object_get(fx.registration, "cpus")), 1);
    ck_assert(json_is_false(json_object_get(fx.registration, "shares_machine")));
}
END_TEST

START_TEST(a_signal_of_the_batch_system_is_as_sigterm)
{
    struct trial *t = offer_sh(0, KEEPS_STATE);
    start_runner(NULL, NULL);
    AWAIT(log_has(t, "ready"));
    int status = end_runner(_i ? SIGUSR2 : SIGUSR1);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_str_eq(outcome_of(t), "released");
}
END_TEST

/* Slurm signals the tasks of a job, and srun passes the signal on: both come at once. */
START_TEST(two_signals_at_once_are_one)
{
    struct trial *t = offer_sh(0, "trap 'sleep 0.3; echo state > $ASSAY_CHECKPOINTS/c; exit 0' "
                                  "TERM; echo ready; while :; do sleep 0.05; done");
    start_runner(NULL, NULL);
    AWAIT(log_has(t, "ready"));
    ck_assert_int_eq(kill(fx.runner, SIGUSR1), 0); /* another one, so that the kernel keeps both */
    int status = end_runner(SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_str_eq(outcome_of(t), "released");
    ck_assert_uint_eq(json_array_size(t->checkpoints), 1);
}
END_TEST

/* Does it read its signals already? One that comes before that ends the process as any other. */
static bool reads_signals(pid_t pid)
{
    char path[40];
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (file_read(path, 1 << 16, &text, &len, NULL) < 0)
        return false;
    const char *line = strstr(text, "SigBlk:");
    return line && strtoull(line + strlen("SigBlk:"), NULL, 16) != 0;
}

/* Both have one name and one work folder. */
START_TEST(the_second_runner_waits_for_the_first)
{
    start_runner(NULL, NULL);
    AWAIT(fx.registrations == 1);
    pid_t first = fx.runner;
    start_runner(NULL, NULL);
    pid_t second = fx.runner;
    start_runner(NULL, NULL); /* a third one, which is asked to leave while it waits */
    AWAIT(reads_signals(second) && reads_signals(fx.runner));
    int status = end_runner(SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(waitpid(second, &status, WNOHANG), 0);
    LOCKED(ck_assert_int_eq(fx.registrations, 1));
    ck_assert_int_eq(kill(first, SIGTERM), 0);
    ck_assert_int_eq(await_end(first), 0);
    fx.runner = second;
    AWAIT(fx.registrations == 2);
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* The next message to the service manager. */
static const char *heard(int fd)
{
    static char text[100];
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    ck_assert_msg(n > 0, "nothing was said");
    text[n] = '\0';
    return text;
}

/* It reports to systemd, also while its server is away, and as long as its main loop goes round. */
START_TEST(the_service_manager_hears_of_it)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/notify", fx.dir);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    (void)setenv("NOTIFY_SOCKET", at.sun_path, 1);
    (void)setenv("WATCHDOG_USEC", "100000", 1);
    LOCKED(fx.down = true);
    start_runner(NULL, NULL);
    ck_assert_str_eq(heard(fd), "READY=1");
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(heard(fd), "WATCHDOG=1");
    LOCKED(fx.down = false);
    AWAIT(fx.registrations == 1);
    ck_assert_int_eq(kill(fx.runner, SIGTERM), 0);
    const char *said_last = heard(fd);
    while (strcmp(said_last, "WATCHDOG=1") == 0)
        said_last = heard(fd);
    ck_assert_str_eq(said_last, "STOPPING=1");
    int status = await_end(fx.runner);
    fx.runner = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(fd);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("agent_leaving");
    TCase *t = tcase_create("leaving");
    tcase_add_checked_fixture(t, fx_setup, fx_teardown);
    tcase_set_timeout(t, PATIENCE_MS / 1000.0 * 2);
    tcase_add_test(t, a_trial_is_handed_back_before_the_time_ends);
    tcase_add_test(t, the_service_manager_hears_of_it);
    tcase_add_test(t, the_end_of_the_job_is_that_of_the_runner);
    tcase_add_loop_test(t, a_signal_of_the_batch_system_is_as_sigterm, 0, 2);
    tcase_add_test(t, two_signals_at_once_are_one);
    tcase_add_test(t, the_second_runner_waits_for_the_first);
    suite_add_tcase(s, t);
    return s;
}
