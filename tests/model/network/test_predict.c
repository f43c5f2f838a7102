/* Text without the trainer: assay-train, in a process of its own, trains a transformer and reports
 * the share of tokens that it predicts right; here model/network alone runs the stored model on the
 * same windows. (tests/model/predict does the same for rows, through model/predict.) This program
 * does not link the trainer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "data/dataset_read.h"
#include "data/preprocess/train_data.h"
#include "model/file/model_file.h"
#include "model/network/network.h"
#include "model/plan/plan.h"
#include "tests/support/check_main.h"
#include "tests/support/trained.h"

static struct as_err err;
static struct child child;

static void setup(void)
{
    child_setup(&child);
}

static void teardown(void)
{
    child_teardown(&child);
}

/* ---- the stored model ---- */

struct stored {
    struct model_file *file;
    const struct train_spec *spec;
    struct net_plan *plan;
};

static void stored_read(struct stored *s)
{
    *s = (struct stored){0};
    AS_AUTO(as_freep) char *path = child_path(&child, "artifacts/model.safetensors");
    ck_ok(model_file_read(path, 1 << 26, &s->file, &err), err);
    s->spec = model_file_member(s->file, 0)->spec;
    struct net_data data = net_data_of(model_file_data(s->file), s->spec);
    ck_ok(net_plan_create(s->spec, &data, "/train", &s->plan, &err), err);
}

static void stored_done(struct stored *s)
{
    model_file_free(s->file);
    net_plan_free(s->plan);
}

static struct network *network_of(const struct stored *s, struct backend *be)
{
    const struct net_plan *p = s->plan;
    struct network *net = NULL;
    AS_AUTO(as_freep) float *params = as_calloc(p->n_params, sizeof *params);
    ck_assert_ptr_nonnull(params);
    for (size_t i = 0; i < p->n_tensors; i++)
        ck_ok(model_file_tensor(s->file, 0, p->tensors[i].name, SAFETENSORS_F32,
                                p->tensors[i].count, params + p->tensors[i].offset, &err),
              err);
    ck_ok(network_create_forward(be, p, 1, p->buffer_rows, &net, &err), err);
    ck_ok(network_write(net, network_params(net), 0, p, params, &err), err);
    return net;
}

/* ---- the windows held out ---- */

struct windows {
    size_t n, context;
    int32_t *codes; /* [n, context] */
    int32_t *next;  /* [n, context]: the tokens to predict */
};

static void windows_done(struct windows *w)
{
    free(w->codes);
    free(w->next);
}

static void held_windows(const struct stored *s, const struct dataset_paths *paths,
                         struct windows *ret)
{
    AS_AUTO(train_data_done) struct train_data d = {0};
    const struct dataset_info *info = model_file_data(s->file);
    struct dataset set;
    const struct preprocess_opts opts = {
        .split_seed = (uint64_t)s->spec->validation_seed,
        .n_validation = train_spec_validation_rows(s->spec, info->n_rows),
        .context = (size_t)s->spec->model.context,
    };
    ck_ok(dataset_load(paths, info, &set, &err), err);
    ck_ok(train_data_prepare(&set, info, &opts, &d, &err), err);
    *ret = (struct windows){.n = d.n_val, .context = d.context};
    ret->codes = as_calloc(ret->n * d.context, sizeof *ret->codes);
    ret->next = as_calloc(ret->n * d.context, sizeof *ret->next);
    ck_assert(ret->n > 0 && ret->codes && ret->next);
    for (size_t i = 0; i < ret->n; i++) {
        const int32_t *tokens = d.set.tokens + d.val_rows[i];
        memcpy(ret->codes + i * d.context, tokens, d.context * sizeof *tokens);
        memcpy(ret->next + i * d.context, tokens + 1, d.context * sizeof *tokens);
    }
}

/* ---- predicting ---- */

/* Windows [at, at + n) through the network: outputs [n * context, outputs]. */
static void forward(struct network *net, struct backend *be, const struct stored *s,
                    const struct windows *w, size_t at, size_t n, float *ret)
{
    struct buf *codes = NULL;
    struct network_pass pass = {.rows = n};
    ck_ok(buf_create(be, BUF_I32, n * w->context, &codes, &err), err);
    ck_ok(buf_upload(codes, 0, w->codes + at * w->context, n * w->context, &err), err);
    pass.codes = tensor_at(codes, 0, 0);
    ck_ok(network_forward(net, be, 0, 1, &pass, &err), err);
    struct tensor out = network_outputs(net, 0);
    ck_ok(buf_download(out.buf, out.offset, ret, n * s->plan->tokens * s->plan->outputs, &err),
          err);
    buf_free(codes);
}

/* Outputs of all windows, in passes of as many as the trainer's. */
static float *outputs_of(const struct stored *s, const struct windows *w)
{
    struct backend *be = NULL;
    const struct backend_opts opts = {.threads = 1};
    size_t most = s->plan->buffer_rows, row = s->plan->tokens * s->plan->outputs;
    float *out = as_calloc(w->n * row, sizeof *out);
    ck_assert_ptr_nonnull(out);
    ck_ok(backend_open("cpu", &opts, &be, &err), err);
    struct network *net = network_of(s, be);
    for (size_t at = 0; at < w->n; at += most) {
        size_t n = w->n - at < most ? w->n - at : most;
        forward(net, be, s, w, at, n, out + at * row);
    }
    network_free(net);
    backend_free(be);
    return out;
}

/* The share of tokens that were predicted right is a quotient of counts, so it must be the reported
 * one exactly. */
static double accuracy(const struct stored *s, const struct windows *w)
{
    size_t outputs = s->plan->outputs, places = w->n * w->context, right = 0;
    AS_AUTO(as_freep) float *z = outputs_of(s, w);
    for (size_t i = 0; i < places; i++) {
        size_t best = 0;
        for (size_t o = 1; o < outputs; o++)
            best = z[i * outputs + o] > z[i * outputs + best] ? o : best;
        right += best == (size_t)w->next[i];
    }
    return (double)right / (double)places;
}

START_TEST(transformer)
{
    AS_AUTO(stored_done) struct stored s = {0};
    AS_AUTO(windows_done) struct windows windows = {0};
    static char text[3000];
    char last_report[512];
    struct rng r;
    rng_init(&r, 1, 7);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox. "[i % 21];
    for (size_t i = 0; i < 100; i++)
        text[rng_below(&r, sizeof text)] = '?';
    child_write(&child, "t.txt", text, sizeof text);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.txt");
    const struct dataset_paths paths = {.table = path};
    trained_model(&child, &paths, DATASET_TEXT, NULL, DATASET_TASK_AUTO,
                  "\"epochs\":4,\"batch_size\":8,\"optimizer\":{\"lr\":0.01},\"model\":{"
                  "\"kind\":\"transformer\",\"depth\":2,\"width\":16,\"heads\":2,\"context\":12}",
                  last_report, sizeof last_report);
    stored_read(&s);
    held_windows(&s, &paths, &windows);
    JSON_AUTO report = NULL;
    double recorded_accuracy = 0;
    ck_ok(json_parse(last_report, strlen(last_report), &report, &err), err);
    ck_assert(json_number_get(json_object_get(report, "val_accuracy"), &recorded_accuracy));
    ck_assert_double_gt(recorded_accuracy, 0.2);
    ck_assert_double_eq(accuracy(&s, &windows), recorded_accuracy);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("predict");
    TCase *t = tcase_create("predict");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, transformer);
    suite_add_tcase(s, t);
    return s;
}
