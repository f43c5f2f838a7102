/* Runs the folds of a trial, and reports what they measure.
 *
 * A fold is a job of its own with its own folder: everything that a training does, such as
 * checkpoints, patience and errors, is that of any other training. A file `done` in the folder
 * says that the fold is over. Its report and its artifacts are read again to be put together, also
 * those of the folds that an earlier attempt finished: the results do not depend on where a trial
 * was interrupted. */
#include "trial-runner/train/folds_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "trial-runner/train/artifacts.h"
#include "trial-runner/train/boost.h"
#include "trial-runner/train/fold_rounds.h"
#include "trial-runner/train/member.h"
#include "trial-runner/train/refit.h"

static size_t n_trainings(const struct folds *f)
{
    return f->k + f->refit;
}

static void folds_done(struct folds *f)
{
    for (size_t i = 0; f->fold && i < n_trainings(f); i++) {
        free(f->fold[i].dir);
        json_decref(f->fold[i].report);
        free(f->fold[i].model);
    }
    free(f->fold);
    free(f->root);
    json_decref(f->refit_train);
    json_decref(f->values);
    stack_rows_done(&f->stacked);
    report_file_done(&f->report);
}

size_t folds_of(const struct job *job)
{
    const json_t *train = job->group || job->n_members != 1 ? NULL : job->members[0].train;
    const json_t *folds = json_object_get(json_object_get(train, "validation"), "folds");
    json_int_t k = json_integer_value(folds);
    return k >= 2 && k <= TRAIN_MAX_FOLDS ? (size_t)k : 0; /* the parser refuses others */
}

static as_status create_folds(struct folds *f, struct as_err *err)
{
    const struct control_member *m = f->member;
    const char *base = m->checkpoints ? m->checkpoints : m->artifacts;
    if (!base)
        return as_fail(err, AS_E_INVAL,
                       "validation.folds needs a folder: set ASSAY_CHECKPOINTS or ASSAY_ARTIFACTS");
    f->root = file_join(base, "folds");
    f->fold = as_calloc(n_trainings(f), sizeof *f->fold);
    if (!f->root || !f->fold)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n_trainings(f); i++) {
        char name[24] = "all";
        if (i < f->k)
            (void)snprintf(name, sizeof name, "%zu", i);
        f->fold[i].dir = file_join(f->root, name);
        f->fold[i].model = f->fold[i].dir ? file_join(f->fold[i].dir, "model.safetensors") : NULL;
        if (!f->fold[i].model)
            return as_fail_nomem(err);
        as_status st = file_mkdirs(f->fold[i].dir, 0777, err);
        if (st != AS_OK)
            return st;
    }
    if (m->artifacts) {
        as_status st = file_mkdirs(m->artifacts, 0777, err);
        if (st != AS_OK)
            return st;
    }
    return report_file_init(&f->report, m->report, err);
}

/* ---- one fold ---- */

/* Run the job of a fold. A stage of boosting goes on from the fold's own part of the model before:
 * no other part was trained without the rows that the fold holds out. */
static int run_fold(const struct folds *f, size_t i, struct job *job, struct channel *channel,
                    const struct group_opts *opts, struct as_err *err)
{
    if (!boost_is_stage(job) || !job->base)
        return boost_is_stage(job) ? boost_run(job, channel, opts) : group_run(job, channel, opts);
    AS_AUTO(as_freep) char *base = file_join(f->fold[i].dir, "before.safetensors");
    as_status st = base ? model_file_write_part(base, job->base, i, f->k, err) : as_fail_nomem(err);
    if (st != AS_OK)
        return st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED;
    job->base = base;
    return boost_run(job, channel, opts);
}

static int train_fold(const struct folds *f, size_t i, struct channel *channel,
                      const struct group_opts *opts, struct as_err *err)
{
    const char *dir = f->fold[i].dir;
    AS_AUTO(as_freep) char *done = file_join(dir, "done");
    AS_AUTO(as_freep) char *report = file_join(dir, "report");
    struct control_member member = *f->member;
    struct job job = *f->job;
    if (!done || !report) {
        (void)as_fail_nomem(err);
        return EXIT_FAILED;
    }
    if (access(done, F_OK) == 0)
        return EXIT_DONE;
    member.report = report;
    member.checkpoints = member.artifacts = dir;
    job.members = &member;
    job.test_rows = 0; /* the model of all folds predicts them, at the end */
    job.fold = i;
    job.rounds = f->fold[i].rounds;
    if (stack_rows_wanted(f->job)) {
        job.info = f->stacked.info;
        job.stacked = &f->stacked;
    }
    if (job.rounds > 0)
        (void)printf("fold %zu of %zu: %zu rounds, as the others\n", i + 1, f->k, job.rounds);
    else if (i < f->k)
        (void)printf("fold %zu of %zu\n", i + 1, f->k);
    else
        (void)printf("all rows\n");
    if (i == f->k)
        member.train = f->refit_train;
    int exit = run_fold(f, i, &job, channel, opts, err); /* a training has written its errors */
    if (exit == EXIT_DONE && file_replace(done, "1\n", 2, 0644, err) != AS_OK)
        return EXIT_TRY_AGAIN;
    return exit;
}

/* Read the last line of its report, and the shape of its predictions. */
static as_status read_fold(struct fold *fold, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(fold->dir, "report");
    AS_AUTO(as_freep) char *text = NULL;
    AS_AUTO(npy_freep) struct npy *p = NULL;
    size_t len = 0;
    as_status st = path ? file_read(path, FOLD_MAX_TEXT, &text, &len, err) : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = 0;
    const char *last = strrchr(text, '\n');
    last = last ? last + 1 : text;
    st = json_parse(last, strlen(last), &fold->report, err);
    if (st == AS_OK)
        st = fold_array_open(fold->dir, "predictions.npy", &p, err);
    if (st != AS_OK)
        return st;
    fold->n = npy_header_of(p)->shape[0];
    fold->width = npy_header_of(p)->shape[1];
    return AS_OK;
}

/* ---- rounds that the other folds choose ---- */

/* After how many rounds each fold was best; false: its report does not say so. */
static bool find_best(const struct folds *f, double best[TRAIN_MAX_FOLDS])
{
    for (size_t i = 0; i < f->k; i++)
        if (!json_number_get(json_object_get(f->fold[i].report, "best_step"), &best[i]))
            return false;
    return true;
}

/* Give the fold a folder for its second training, with the trees of its first one. Where they
 * cannot be linked there, they are trained again. */
static as_status move_on(struct fold *fold, size_t rounds, struct as_err *err)
{
    AS_AUTO(as_freep) char *dir = file_join(fold->dir, "others");
    AS_AUTO(as_freep) char *model = dir ? file_join(dir, "model.safetensors") : NULL;
    AS_AUTO(as_freep) char *from = file_join(fold->dir, CHECKPOINT_NAME);
    AS_AUTO(as_freep) char *to = dir ? file_join(dir, CHECKPOINT_NAME) : NULL;
    if (!model || !from || !to)
        return as_fail_nomem(err);
    as_status st = file_mkdirs(dir, 0777, err);
    if (st != AS_OK)
        return st;
    (void)link(from, to);
    free(fold->dir);
    free(fold->model);
    json_decref(as_steal(fold->report));
    fold->dir = as_steal(dir);
    fold->model = as_steal(model);
    fold->rounds = rounds;
    return AS_OK;
}

/* Train each fold again, now to the rounds that were best in the others. Returns the exit code of
 * the process. */
static int train_again(struct folds *f, struct channel *channel, const struct group_opts *opts,
                       struct as_err *err)
{
    double best[TRAIN_MAX_FOLDS];
    if (!fold_rounds_chosen(f->member->train) || !find_best(f, best))
        return EXIT_DONE;
    for (size_t i = 0; i < f->k; i++) {
        as_status st = move_on(&f->fold[i], fold_rounds_of(best, f->k, i), err);
        int exit = st == AS_OK     ? train_fold(f, i, channel, opts, err)
                   : st == AS_E_IO ? EXIT_TRY_AGAIN
                                   : EXIT_FAILED;
        if (exit == EXIT_DONE && read_fold(&f->fold[i], err) != AS_OK)
            exit = EXIT_FAILED;
        if (exit != EXIT_DONE)
            return exit;
    }
    return EXIT_DONE;
}

/* ---- reports ---- */

/* The mean of a value over the first n folds, weighted by rows, and its deviation over the folds.
 * NaN if one of them has none. */
static double mean_over(const struct folds *f, size_t n, const char *name, double *ret_std)
{
    double sum = 0, squares = 0, rows = 0;
    for (size_t i = 0; i < n; i++) {
        double v = NAN;
        (void)json_number_get(json_object_get(f->fold[i].report, name), &v);
        sum += v * (double)f->fold[i].n;
        rows += (double)f->fold[i].n;
    }
    for (size_t i = 0; i < n; i++) {
        double v = NAN;
        (void)json_number_get(json_object_get(f->fold[i].report, name), &v);
        squares += (v - sum / rows) * (v - sum / rows) * (double)f->fold[i].n;
    }
    *ret_std = sqrt(squares / rows);
    return sum / rows;
}

/* Report the first n folds. */
static as_status report_folds(struct folds *f, size_t n, struct as_err *err)
{
    AS_AUTO(str_done) struct str line = {0};
    struct report_value values[2 * (TRAIN_MAX_EXTRA_METRICS + 16)];
    char names[TRAIN_MAX_EXTRA_METRICS + 16][64];
    size_t n_values = 0, n_names = 0;
    const char *name;
    json_t *value;
    json_object_foreach(f->fold[0].report, name, value)
    {
        double std = 0;
        if (as_streq(name, "step") || as_streq(name, "best_step") || n_names == AS_ARRAY_LEN(names))
            continue;
        values[n_values++] = (struct report_value){name, mean_over(f, n, name, &std)};
        if (strncmp(name, "val_", 4) != 0)
            continue;
        (void)snprintf(names[n_names], sizeof names[n_names], "%s_std", name);
        values[n_values++] = (struct report_value){names[n_names++], std};
    }
    as_status st = report_format((int64_t)n, values, n_values, &line, err);
    if (st != AS_OK)
        return st;
    json_decref(as_steal(f->values));
    st = json_parse(str_cstr(&line), line.len, &f->values, err);
    return st == AS_OK ? report_file_append(&f->report, &line, err) : st;
}

/* ---- all of it ---- */

static int fail(as_status st, const struct as_err *err)
{
    (void)fprintf(stderr, "assay-train: %s\n", err->msg);
    return st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED;
}

/* Train a fold, or all rows, and read what it leaves. Returns the exit code of the process. */
static int do_training(struct folds *f, size_t i, struct channel *channel,
                       const struct group_opts *opts, struct as_err *err)
{
    int exit = train_fold(f, i, channel, opts, err);
    if (exit != EXIT_DONE || i >= f->k)
        return exit;
    as_status st = read_fold(&f->fold[i], err);
    if (st != AS_OK)
        return st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED;
    return i + 1 == f->k ? train_again(f, channel, opts, err) : EXIT_DONE;
}

/* What a fold leaves goes into the report; after the last one the document of the training on all
 * rows is known. */
static as_status take_fold(struct folds *f, size_t i, struct as_err *err)
{
    double std;
    as_status st = report_folds(f, i + 1, err);
    if (st != AS_OK || !f->refit || i + 1 < f->k)
        return st;
    return refit_document(f->member->train, mean_over(f, f->k, "best_step", &std), &f->refit_train,
                          err);
}

int folds_run(const struct job *job, struct channel *channel, const struct group_opts *opts)
{
    struct as_err err = {0};
    const json_t *validation = json_object_get(job->members[0].train, "validation");
    AS_AUTO(folds_done)
    struct folds f = {.job = job,
                      .member = &job->members[0],
                      .k = folds_of(job),
                      .refit = json_is_true(json_object_get(validation, "refit")),
                      .report = {.fd = -1}};
    as_status st = create_folds(&f, &err);
    if (st == AS_OK && stack_rows_wanted(job))
        st = stack_rows_read(job, &f.stacked, &err);
    if (st != AS_OK)
        return fail(st, &err);
    for (size_t i = 0; i < n_trainings(&f); i++) {
        int exit = do_training(&f, i, channel, opts, &err);
        if (exit != EXIT_DONE) {
            if (err.code != AS_OK)
                (void)fprintf(stderr, "assay-train: %s\n", err.msg);
            return exit;
        }
        st = i < f.k ? take_fold(&f, i, &err) : AS_OK;
        if (st != AS_OK)
            return fail(st, &err);
    }
    st = folds_write_files(&f, opts->threads, &err);
    return st == AS_OK ? EXIT_DONE : fail(st, &err);
}
