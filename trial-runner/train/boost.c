/* Runs a stage of boosting, and puts it together with the stages before.
 *
 * The model of the stages before comes as a file (job.base). Everything about the rows is taken
 * from the document as it is: which rows are held out, what they weigh, what is true. Then the
 * training of the stage gets other targets for the same rows (boost_targets). The sum is written by
 * model/file and predicts through model/predict, so the recorded predictions are those that any
 * other program computes with the file. */
#include "trial-runner/train/boost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "data/preprocess/holdout.h"
#include "model/combine/combine.h"
#include "model/file/model_file.h"
#include "model/predict/predictor.h"
#include "model/prepare/prepare_rule.h"
#include "trial-runner/train/artifacts.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/row_roles.h"
#include "trial-runner/train/run.h"
#include "trial-runner/train/stage_targets.h"
#include "trial-runner/train/test_rows.h"
#include "trial-runner/train/tree_metrics.h"

#define NEWTON_STEPS 40
#define MOST_STEP 1e6 /* of the line search */
#define LEAST_STEP 1e-6

struct boost {
    const struct job *job;
    struct member *member;           /* the trial's: document, report, artifacts */
    char *dir, *stage_model, *draft; /* folder and paths below it */
    size_t n_rows, outputs;
    struct row_roles roles;
    struct train_data data;      /* as the document says: the split, the weights, what is true */
    struct lockstep_setup setup; /* of these; without a back end */
    float *x;                    /* [n_rows, n_features] as a predictor takes them */
    float *targets;              /* [n_rows, outputs] of numbers; NULL of classes */
    float *weights;              /* [n_rows] of rows and classes; NULL: all 1 */
    float *before;               /* [n_rows, outputs] predictions of the stages before */
    float *misses;               /* [n_rows, outputs] what the stage learns */
    unsigned char *part;         /* [n_rows] */
};

static void boost_done(struct boost *b)
{
    member_free(b->member);
    free(b->dir);
    free(b->stage_model);
    free(b->draft);
    row_roles_done(&b->roles);
    train_data_done(&b->data);
    free(b->x);
    free(b->targets);
    free(b->weights);
    free(b->before);
    free(b->misses);
    free(b->part);
}

bool boost_is_stage(const struct job *job)
{
    const json_t *train = job->group || job->n_members != 1 ? NULL : job->members[0].train;
    const json_t *boost = json_object_get(train, "boost");
    return json_integer_value(json_object_get(boost, "stage")) > 0;
}

static as_status make_folders(struct boost *b, struct as_err *err)
{
    const struct control_member *m = &b->job->members[0];
    if (!m->artifacts)
        return as_fail(err, AS_E_INVAL, "boost needs a folder: set ASSAY_ARTIFACTS");
    b->dir = file_join(m->checkpoints ? m->checkpoints : m->artifacts, "stage");
    b->stage_model = b->dir ? file_join(b->dir, "model.safetensors") : NULL;
    b->draft = b->dir ? file_join(b->dir, "sum.safetensors") : NULL;
    if (!b->stage_model || !b->draft)
        return as_fail_nomem(err);
    return file_mkdirs(b->dir, 0777, err);
}

/* ---- the rows ---- */

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = as_calloc(n, size);
    if (to)
        memcpy(to, from, n * size);
    return to;
}

static as_status set_parts(struct boost *b, struct as_err *err)
{
    const struct train_data *d = &b->data;
    b->part = as_calloc(b->n_rows, 1);
    if (!b->part)
        return as_fail_nomem(err);
    memset(b->part, HOLDOUT_UNUSED, b->n_rows);
    for (size_t i = 0; i < d->n_train; i++)
        b->part[d->train_rows[i]] = HOLDOUT_TRAIN;
    for (size_t i = 0; i < d->n_val; i++)
        b->part[d->val_rows[i]] = HOLDOUT_HELD;
    return AS_OK;
}

/* Weights of all rows, with those of their classes. */
static as_status set_weights(struct boost *b, struct as_err *err)
{
    AS_AUTO(as_freep) int32_t *all = as_calloc(b->n_rows, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n_rows; i++)
        all[i] = (int32_t)i;
    return tree_row_weights(&b->setup, b->member, all, b->n_rows, &b->weights, err);
}

static as_status load_rows(struct boost *b, struct as_err *err)
{
    const struct train_spec *spec = &b->member->spec;
    const struct dataset_paths paths = job_paths(b->job);
    AS_AUTO(dataset_done) struct dataset set = {0};
    as_status st = dataset_load(&paths, &b->job->info, &set, err);
    if (st == AS_OK)
        st = row_roles_read(b->job, spec, &set, &b->roles, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "data set '%s'", spec->dataset);
    b->n_rows = set.n_rows;
    b->outputs = set.n_outputs;
    b->x = copy_of(set.x, set.n_rows * set.n_features, sizeof *set.x);
    b->targets =
        set.targets ? copy_of(set.targets, set.n_rows * set.n_outputs, sizeof *set.targets) : NULL;
    if (!b->x || (set.targets && !b->targets))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", set.n_rows);
    struct preprocess_opts opts = prepare_rule_opts(spec, b->job->info.task, set.n_rows);
    opts.part = b->roles.part;
    opts.weights = b->roles.weights;
    st = train_data_prepare(&set, &b->roles.info, &opts, &b->data, err);
    if (st != AS_OK)
        return st;
    b->setup = (struct lockstep_setup){.job = b->job,
                                       .info = &b->roles.info,
                                       .data = &b->data,
                                       .loss = train_spec_loss(spec, b->job->info.task)};
    st = evaluate_check(&b->setup, b->member, err);
    if (st == AS_OK)
        st = set_parts(b, err);
    return st == AS_OK ? set_weights(b, err) : st;
}

/* ---- what the stages before miss ---- */

/* The model that the stage goes on from must be the sum of all stages before. */
static as_status check_base(const struct boost *b, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    int64_t stage = b->member->spec.boost.stage;
    as_status st = model_file_read(b->job->base, MODEL_FILE_MAX_BYTES, &f, err);
    if (st != AS_OK)
        return st;
    size_t n = model_file_n_members(f);
    if ((int64_t)n != stage || (n > 1 && model_file_combine(f)->kind != MODEL_SUM))
        return as_fail(
            err, AS_E_INVAL,
            "/train/boost/stage: found %lld, but the trial before is %zu %s: a grid over "
            "`stage`, one trial at a time, has them in order",
            (long long)stage, n, n > 1 ? "models" : "model");
    return AS_OK;
}

/* Predict rows of the data set with a model file; rows NULL: all of them. *ret: [n, outputs], owned
 * by the caller. */
static as_status predict(const struct boost *b, const char *path, const int32_t *rows, size_t n,
                         float **ret, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    as_status st = model_file_read(path, MODEL_FILE_MAX_BYTES, &f, err);
    if (st == AS_OK)
        st = predictor_create(f, 0, &p, err);
    if (st != AS_OK)
        return st;
    size_t width = predictor_inputs(p);
    if (width != b->roles.info.n_features || predictor_outputs(p) != b->outputs)
        return as_fail(err, AS_E_INVAL, "%.200s: a model of other columns or outputs", path);
    AS_AUTO(as_freep) float *x = rows ? as_calloc(n * width, sizeof *x) : NULL;
    AS_AUTO(as_freep) float *values = as_calloc(n * b->outputs, sizeof *values);
    if (!values || (rows && !x))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", n);
    for (size_t i = 0; rows && i < n; i++)
        memcpy(x + i * width, b->x + (size_t)rows[i] * width, width * sizeof *x);
    st = predictor_run(p, rows ? x : b->x, n, values, err);
    if (st == AS_OK)
        *ret = as_steal(values);
    return st;
}

/* The share of class c in what is true of a row: label smoothing gives some to each. */
static double true_share(const struct boost *b, size_t row, size_t c)
{
    double s = b->member->spec.label_smoothing;
    return (1 - s) * ((size_t)b->data.set.labels[row] == c) + s / (double)b->outputs;
}

/* Residuals, or the negative gradient of the (class-weighted) log loss on the scores. The weights
 * of rows are those of the training. */
static as_status find_misses(struct boost *b, struct as_err *err)
{
    const struct train_data *d = &b->data;
    size_t C = b->outputs;
    as_status st = check_base(b, err);
    if (st == AS_OK)
        st = predict(b, b->job->base, NULL, b->n_rows, &b->before, err);
    if (st != AS_OK)
        return st;
    b->misses = as_calloc(b->n_rows * C, sizeof *b->misses);
    if (!b->misses)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu targets", b->n_rows * C);
    for (size_t i = 0; i < b->n_rows; i++)
        for (size_t c = 0; c < C; c++) {
            float own = d->weights && d->weights[i] > 0 ? d->weights[i] : 1;
            float weight = b->weights && d->set.labels ? b->weights[i] / own : 1;
            float truth = d->set.labels ? (float)true_share(b, i, c) : b->targets[i * C + c];
            b->misses[i * C + c] = weight * (truth - b->before[i * C + c]);
        }
    return AS_OK;
}

/* ---- the training of the stage ---- */

/* The document without what only the first stage can have: the stage predicts numbers. */
static json_t *stage_document(const struct boost *b, const json_t *train)
{
    static const char *const of_classes[] = {"loss", "label_smoothing", "class_weights"};
    JSON_AUTO doc = json_deep_copy(train);
    json_t *model = json_object_get(doc, "model");
    (void)json_object_del(doc, "boost");
    (void)json_object_del(doc, "metrics");
    (void)json_object_del(doc, "buckets");
    for (size_t i = 0; b->data.set.labels && i < AS_ARRAY_LEN(of_classes); i++)
        (void)json_object_del(doc, of_classes[i]);
    if (as_streq(json_string_value(json_object_get(model, "kind")), "logistic"))
        (void)json_object_set_new(model, "kind", json_string("linear"));
    return as_steal(doc);
}

/* The digest of the data set and of what the stage learns: the identity of its checkpoints. */
static as_status digest_of(const struct boost *b, char ret[SHA256_HEX_SIZE], struct as_err *err)
{
    return sha256_of(b->misses, b->n_rows * b->outputs * sizeof *b->misses, ret, err);
}

static int train_stage(struct boost *b, struct channel *channel, const struct group_opts *opts,
                       struct as_err *err)
{
    char digest[SHA256_HEX_SIZE];
    struct job job = *b->job;
    struct control_member member = b->job->members[0];
    AS_AUTO(dataset_info_done) struct dataset_info residual = {0};
    AS_AUTO(as_freep) char *done = file_join(b->dir, "done");
    AS_AUTO(as_freep) char *report = file_join(b->dir, "report");
    JSON_AUTO doc = stage_document(b, member.train);
    const struct stage_targets targets = {&b->job->info, b->misses, b->part};
    if (!done || !report || !doc || model_residual_info(&b->job->info, &residual, err) != AS_OK ||
        digest_of(b, digest, err) != AS_OK) {
        (void)as_fail_nomem(err);
        return EXIT_FAILED;
    }
    if (access(done, F_OK) == 0)
        return EXIT_DONE;
    member.train = doc;
    member.report = report;
    member.checkpoints = member.artifacts = b->dir;
    job.members = &member;
    job.info = residual;
    job.digest = digest;
    job.metric = NULL;
    job.test_rows = 0; /* they measure the sum */
    job.boost = &targets;
    (void)printf("stage %lld\n", (long long)b->member->spec.boost.stage);
    int exit = group_run(&job, channel, opts); /* it has written its errors */
    if (exit == EXIT_DONE && file_replace(done, "1\n", 2, 0644, err) != AS_OK)
        return EXIT_TRY_AGAIN;
    return exit;
}

/* ---- the step ---- */

/* The first and second derivative of the loss of the training rows by the step. scores, h: [n,
 * C]. */
static void derivatives(const struct boost *b, const float *h, double step, double *ret_first,
                        double *ret_second)
{
    const struct train_data *d = &b->data;
    size_t C = b->outputs;
    *ret_first = *ret_second = 0;
    for (size_t i = 0; i < d->n_train; i++) {
        size_t row = (size_t)d->train_rows[i];
        const float *p = b->before + row * C, *g = h + i * C;
        double most = -INFINITY, total = 0, mean = 0, square = 0, truth = 0;
        double w = b->weights ? (double)b->weights[row] : 1;
        for (size_t c = 0; c < C; c++)
            most = fmax(most, combine_log((double)p[c]) + step * (double)g[c]);
        for (size_t c = 0; c < C; c++) {
            double z = combine_log((double)p[c]) + step * (double)g[c];
            double q = exp(z - most), v = (double)g[c];
            total += q;
            mean += q * v;
            square += q * v * v;
            truth += true_share(b, row, c) * v;
        }
        mean /= total;
        *ret_first += w * (mean - truth);
        *ret_second += w * (square / total - mean * mean);
    }
}

/* The step along h that lowers the log loss most: Newton's method on a convex function, which is
 * cut to at most twice the step before plus 1. */
static double best_step(const struct boost *b, const float *h)
{
    double step = 0;
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double first, second;
        derivatives(b, h, step, &first, &second);
        if (!(second > 0) || !isfinite(first))
            break;
        double next = step - first / second, most = 2 * step + 1;
        next = next > most ? most : next < step / 2 ? step / 2 : next;
        if (fabs(next - step) <= 1e-9 * (1 + fabs(step)))
            break;
        step = next;
    }
    return step < LEAST_STEP ? LEAST_STEP : step > MOST_STEP ? MOST_STEP : step;
}

static as_status find_weight(const struct boost *b, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) float *h = NULL;
    double rate = b->member->spec.boost.rate;
    *ret = rate;
    if (!b->data.set.labels)
        return AS_OK; /* the squared loss was minimised: the step is 1 */
    as_status st = predict(b, b->stage_model, b->data.train_rows, b->data.n_train, &h, err);
    if (st == AS_OK)
        *ret = rate * best_step(b, h);
    return st;
}

/* ---- the sum ---- */

static as_status write_sum(const struct boost *b, const char *path, double weight,
                           const json_t *about, struct as_err *err)
{
    char seed[24];
    JSON_AUTO combine = json_pack("{s:s}", "kind", "sum");
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)b->member->seed);
    const struct model_source sources[] = {
        {.path = b->job->base, .weight = 1},
        {.path = b->stage_model, .weight = weight, .seed = seed},
    };
    return combine ? model_file_write(path, sources, 2, combine, about, err) : as_fail_nomem(err);
}

/* The loss of the training rows, as it is reported. */
static as_status training_loss(const struct boost *b, double *ret, struct as_err *err)
{
    const struct train_data *d = &b->data;
    AS_AUTO(as_freep) float *values = NULL;
    AS_AUTO(as_freep) float *weights = NULL;
    as_status st = predict(b, b->draft, d->train_rows, d->n_train, &values, err);
    if (st == AS_OK)
        st = tree_row_weights(&b->setup, b->member, d->train_rows, d->n_train, &weights, err);
    return st == AS_OK ? tree_loss_own(&b->setup, b->member, values, d->train_rows, d->n_train,
                                       weights, ret, err)
                       : st;
}

static as_status report_sum(const struct boost *b, const float *values, struct as_err *err)
{
    struct member *m = b->member;
    struct evaluation e;
    double loss = NAN;
    AS_AUTO(as_freep) float *weights = NULL;
    as_status st = training_loss(b, &loss, err);
    if (st == AS_OK)
        st = tree_row_weights(&b->setup, m, b->data.val_rows, b->data.n_val, &weights, err);
    if (st == AS_OK)
        st = tree_evaluate_own(&b->setup, m, values, weights, &e, err);
    return st == AS_OK ? run_report(m, 1, loss, m->spec.boost.rate, &e, 0, err) : st;
}

static as_status about_sum(const struct boost *b, json_t **ret, struct as_err *err)
{
    JSON_AUTO metrics = artifacts_last_metrics(b->member);
    *ret = metrics ? json_pack("{s:O, s:s}", "metrics", metrics, "measured_on", "held-out rows")
                   : NULL;
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status write_all(const struct boost *b, size_t threads, struct as_err *err)
{
    const char *folder = b->member->artifacts;
    AS_AUTO(as_freep) char *path = file_join(folder, "model.safetensors");
    AS_AUTO(as_freep) float *values = NULL;
    JSON_AUTO about = NULL;
    double weight = 0;
    as_status st = path ? find_weight(b, &weight, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = write_sum(b, b->draft, weight, NULL, err);
    if (st == AS_OK)
        st = predict(b, b->draft, b->data.val_rows, b->data.n_val, &values, err);
    if (st == AS_OK)
        st = report_sum(b, values, err);
    if (st == AS_OK)
        st = about_sum(b, &about, err);
    if (st == AS_OK)
        st = write_sum(b, path, weight, about, err);
    if (st == AS_OK)
        st = artifacts_write_held(folder, &b->setup, b->member, values, err);
    if (st == AS_OK)
        st = artifacts_write_preprocessing(folder, &b->setup, err);
    if (st == AS_OK)
        st = test_rows_write(folder, b->job, threads, err);
    /* what is in the checkpoint folder is the runner's to remove */
    if (st == AS_OK && !b->job->members[0].checkpoints)
        st = file_remove_tree(b->dir, err);
    return st;
}

/* ---- all of it ---- */

static int fail(as_status st, const struct as_err *err)
{
    (void)fprintf(stderr, "assay-train: %s\n", err->msg);
    return st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED;
}

int boost_run(const struct job *job, struct channel *channel, const struct group_opts *opts)
{
    struct as_err err = {0};
    AS_AUTO(boost_done) struct boost b = {.job = job};
    if (!job->base)
        return fail(as_fail(&err, AS_E_INVAL,
                            "/base: a stage after the first needs the model of the one before"),
                    &err);
    as_status st = make_folders(&b, &err);
    if (st == AS_OK)
        st = member_create(job, &job->members[0], &b.member, &err);
    if (st == AS_OK)
        st = load_rows(&b, &err);
    if (st == AS_OK)
        st = find_misses(&b, &err);
    if (st != AS_OK)
        return fail(st, &err);
    int exit = train_stage(&b, channel, opts, &err);
    if (exit != EXIT_DONE) {
        if (err.code != AS_OK)
            (void)fail(err.code, &err);
        return exit;
    }
    st = write_all(&b, opts->threads, &err);
    return st == AS_OK ? EXIT_DONE : fail(st, &err);
}
