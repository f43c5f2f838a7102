/* assay-train JOB.json: the built-in trainer, a child of the runner like any other program.
 *
 * Exit 0: trained, artifacts written. 75: SIGTERM (or SIGINT), a checkpoint is written where there
 * is a folder for it. 2: wrong usage. 1: anything else; the last line of stderr says what. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/opt.h"
#include "trial-runner/train/artifacts.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/job.h"
#include "trial-runner/train/report.h"

enum { EXIT_USAGE = 2, EXIT_TRY_AGAIN = 75 };

static volatile sig_atomic_t stop_asked;

static void on_stop(int sig)
{
    (void)sig;
    stop_asked = 1;
}

static void catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    (void)sigaction(SIGTERM, &sa, NULL);
    (void)sigaction(SIGINT, &sa, NULL);
}

/* A run from reading the data to its end; everything that it owns. */
struct run {
    struct job job;
    struct train_data data;
    struct backend *be;
    struct loop *loop;
    char *checkpoint; /* path, or NULL */
};

static void run_done(struct run *r)
{
    loop_free(r->loop);
    backend_free(r->be);
    train_data_done(&r->data);
    job_done(&r->job);
    free(r->checkpoint);
}

static as_status load_data(struct run *r, struct as_err *err)
{
    struct dataset set = {0};
    struct dataset_paths paths = job_paths(&r->job);
    as_status st = dataset_load(&paths, &r->job.info, &set, err);
    if (st < 0)
        return as_err_prefix(err, st, "data set '%s'", r->job.spec.dataset);
    return train_data_prepare(&set, &r->job.info, &r->job.spec, &r->data, err);
}

static as_status make_folders(struct run *r, struct as_err *err)
{
    as_status st = AS_OK;
    if (r->job.artifacts)
        st = file_mkdirs(r->job.artifacts, 0777, err);
    if (st == AS_OK && r->job.checkpoints) {
        st = file_mkdirs(r->job.checkpoints, 0777, err);
        r->checkpoint = file_join(r->job.checkpoints, CHECKPOINT_NAME);
        if (st == AS_OK && !r->checkpoint)
            st = as_fail(err, AS_E_NOMEM, "out of memory");
    }
    return st;
}

/* Take up the checkpoint when there is one. Its last report is repeated: the attempt that wrote it
 * may have died before the runner passed that line on. */
static as_status resume(struct run *r, struct as_err *err)
{
    bool found = false;
    if (!r->checkpoint)
        return AS_OK;
    as_status st = checkpoint_read(r->loop, r->checkpoint, &found, err);
    if (st < 0 || !found)
        return st;
    (void)printf("resumed at epoch %lld, step %lld\n", (long long)r->loop->epoch,
                 (long long)r->loop->step);
    return report_append(r->job.report, &r->loop->last_report[0], err);
}

static as_status prepare(struct run *r, const char *path, int64_t checkpoint_ms, struct as_err *err)
{
    as_status st = job_read(path, &r->job, err);
    if (st == AS_OK)
        st = make_folders(r, err);
    if (st == AS_OK)
        st = load_data(r, err);
    if (st == AS_OK)
        st = backend_open(NULL, NULL, &r->be, err);
    if (st < 0)
        return st;
    struct loop_member member = {&r->job.spec, r->job.seed, r->job.report};
    struct loop_opts opts = {r->checkpoint, r->job.fingerprint, checkpoint_ms * NS_PER_MS};
    st = loop_create(r->be, &r->data, &member, 1, &opts, &r->loop, err);
    if (st < 0)
        return st;
    free(as_steal(r->data.set.x)); /* it is in the back end's buffer now */
    (void)printf("%s: %zu rows to train on, %zu held out, %zu parameters, %s\n",
                 r->job.spec.dataset, r->data.n_train, r->data.n_val,
                 r->loop->model->shape.n_params, backend_device(r->be));
    return resume(r, err);
}

static int fail(const struct as_err *err)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "assay-train: %s\n", err->msg);
    return EXIT_FAILURE;
}

/* Trouble with files while training is the machine's, such as a full disk: another try, perhaps
 * elsewhere, may do better. */
static int fail_training(as_status st, const struct as_err *err)
{
    int code = fail(err);
    return st == AS_E_IO ? EXIT_TRY_AGAIN : code;
}

static int train(struct run *r)
{
    struct as_err err;
    loop_end end = LOOP_DONE;
    as_status st = loop_run(r->loop, &stop_asked, &end, &err);
    if (st < 0)
        return fail_training(st, &err);
    if (end == LOOP_STOPPED) {
        (void)printf("stopped at epoch %lld, step %lld\n", (long long)r->loop->epoch,
                     (long long)r->loop->step);
        return EXIT_TRY_AGAIN;
    }
    (void)printf("%s", str_cstr(&r->loop->last_report[0]));
    if (end == LOOP_DIVERGED) {
        (void)as_fail(&err, AS_E_NUMERIC, "diverged: the loss is not finite after epoch %lld",
                      (long long)r->loop->epoch);
        return fail(&err);
    }
    if (r->job.artifacts)
        st = artifacts_write(r->job.artifacts, &r->job, r->loop, 0, &err);
    return st < 0 ? fail_training(st, &err) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    bool help = false;
    int64_t checkpoint_ms = 2000;
    struct opt table[] = {
        {"checkpoint-every", 0, OPT_DURATION, &checkpoint_ms, "TIME", NULL,
         "least time between checkpoints at the end of epochs (2s)"},
        {"help", 'h', OPT_FLAG, &help, NULL, NULL, "show this"},
        {0},
    };
    struct as_err err;
    int n_args = 0;
    if (opt_parse(table, argc, argv, &n_args, &err) < 0) {
        (void)fail(&err);
        return EXIT_USAGE;
    }
    if (help || n_args != 1) {
        (void)fprintf(
            help ? stdout : stderr,
            "usage: assay-train [OPTIONS] JOB.json\n"
            "Train one trial. The runner writes JOB.json and sets ASSAY_SEED,\n"
            "ASSAY_REPORT, ASSAY_CHECKPOINTS and ASSAY_ARTIFACTS; each may be missing.\n");
        opt_help(table, help ? stdout : stderr);
        return help ? EXIT_SUCCESS : EXIT_USAGE;
    }
    catch_signals();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    AS_AUTO(run_done) struct run r = {0};
    if (prepare(&r, argv[1], checkpoint_ms, &err) < 0)
        return fail(&err);
    return train(&r);
}
