/* assay-train JOB.json: the built-in trainer, a child of the runner like any other program.
 *
 * Exit 0: trained, artifacts written. 75: SIGTERM or SIGINT, checkpoints written if there is a
 * folder for them; or the GPU cannot be used (fault.h). 2: wrong usage. 1: any other error; the
 * last line of stderr is its message. */
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/opt.h"
#include "kernels/backend.h"
#include "trial-runner/train/boost.h"
#include "trial-runner/train/folds.h"
#include "trial-runner/train/group.h"

#define MAX_THREADS 1024
enum { EXIT_USAGE = 2 };

static atomic_bool stop_asked; /* lock-free, so that a signal handler may set it */

static void on_stop(int sig)
{
    (void)sig;
    atomic_store(&stop_asked, true);
}

static void catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    (void)sigaction(SIGTERM, &sa, NULL);
    (void)sigaction(SIGINT, &sa, NULL);
}

static int fail_with(const struct as_err *err)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "assay-train: %s\n", err->msg);
    return EXIT_FAILURE;
}

/* A whole number from the environment; *ret stays when the variable is not set. */
static as_status read_number(const char *name, uint64_t min, uint64_t max, size_t *ret,
                             struct as_err *err)
{
    const char *s = getenv(name);
    char *end = NULL;
    if (!s || !*s)
        return AS_OK;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (errno || *end || s[strspn(s, "0123456789")] || v < min || v > max)
        return as_fail(err, AS_E_INVAL,
                       "%s: found '%.40s', expected a whole number from %llu to %llu", name, s,
                       (unsigned long long)min, (unsigned long long)max);
    *ret = (size_t)v;
    return AS_OK;
}

/* The CPUs that this process may use. */
static size_t n_cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : (size_t)n;
}

static int run_job(const char *path, int64_t checkpoint_ms, const struct team_opts *ranks)
{
    struct as_err err;
    AS_AUTO(job_done) struct job job = {0};
    AS_AUTO(channel_done) struct channel channel;
    struct group_opts opts = {.stop = &stop_asked,
                              .checkpoint_ns = checkpoint_ms * NS_PER_MS,
                              .threads = n_cpus(),
                              .ranks = *ranks};
    channel_init(&channel, -1);
    as_status st = read_number("ASSAY_THREADS", 1, MAX_THREADS, &opts.threads, &err);
    if (st != AS_OK)
        return fail_with(&err);
    st = read_number("ASSAY_MEMORY_BYTES", 1, SIZE_MAX, &opts.memory_bytes, &err);
    if (st != AS_OK)
        return fail_with(&err);
    st = job_read(path, &job, &err);
    if (st == AS_OK)
        st = job_hold_test(&job, &err);
    if (st != AS_OK)
        return fail_with(&err);
    if (job.group) {
        channel_done(&channel);
        channel_init(&channel, 0);
    }
    return folds_of(&job) > 0     ? folds_run(&job, &channel, &opts)
           : boost_is_stage(&job) ? boost_run(&job, &channel, &opts)
                                  : group_run(&job, &channel, &opts);
}

/* For a runner on a machine without NVML: it must not open devices itself. */
static int list_devices(void)
{
    struct backend_gpu gpus[64];
    struct as_err err;
    size_t n = 0;
    if (backend_gpus(gpus, AS_ARRAY_LEN(gpus), &n, &err) != AS_OK)
        return fail_with(&err);
    for (size_t i = 0; i < n; i++)
        (void)printf("gpu %s %zu\n", gpus[i].id, gpus[i].memory_bytes);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    (void)mallopt(M_ARENA_MAX, 1); /* arenas of other threads grow by many system calls */
    bool help = false, list = false;
    int64_t checkpoint_ms = 2000;
    struct team_opts ranks = {0};
    struct opt table[] = {
        {"checkpoint-every", 0, OPT_DURATION, &checkpoint_ms, "TIME", NULL,
         "least time between checkpoints at the end of epochs (2s)"},
        {"silence", 0, OPT_DURATION, &ranks.silence_ms, "TIME", NULL,
         "a rank of a large trial that shows no life so long is lost (5s)"},
        {"join", 0, OPT_DURATION, &ranks.join_ms, "TIME", NULL,
         "a rank that has not connected so long after a change of the ranks is lost (10s)"},
        {"list-devices", 0, OPT_FLAG, &list, NULL, NULL,
         "print the GPUs that can be used, a line \"gpu ID BYTES\" for each, and end"},
        {"help", 'h', OPT_FLAG, &help, NULL, NULL, "show this"},
        {0},
    };
    struct as_err err;
    int n_args = 0;
    if (opt_parse(table, argc, argv, &n_args, &err) < 0) {
        (void)fail_with(&err);
        return EXIT_USAGE;
    }
    if (list && !help && n_args == 0)
        return list_devices();
    if (help || list || n_args != 1) {
        (void)fprintf(help ? stdout : stderr, "usage: assay-train [OPTIONS] JOB.json\n"
                                              "Train one trial, or a group of trials of one shape. "
                                              "The runner writes JOB.json and sets,\n"
                                              "for one trial, ASSAY_SEED, ASSAY_REPORT, "
                                              "ASSAY_CHECKPOINTS and ASSAY_ARTIFACTS; each may\n"
                                              "be missing.\n");
        opt_help(table, help ? stdout : stderr);
        return help ? EXIT_SUCCESS : EXIT_USAGE;
    }
    catch_signals();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    return run_job(argv[1], checkpoint_ms, &ranks);
}
