#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/check_main.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/draw.h"
#include "trial-runner/train/loop.h"

#define ROWS 400

static struct as_err err;
static const volatile sig_atomic_t go_on = 0, stop_now = 1;
static char dir[] = "/tmp/assay-loop-XXXXXX";
static char checkpoint_path[64];

static void setup(void)
{
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(checkpoint_path, sizeof checkpoint_path, "%s/c.safetensors", dir);
}

static void teardown(void)
{
    ck_ok(file_remove_tree(dir, &err), err);
}

static struct train_spec spec_with(const char *fields)
{
    struct train_spec spec;
    AS_AUTO(str_done) struct str text = {0};
    JSON_AUTO doc = NULL;
    str_printf(&text, "{\"dataset\":\"toy\",%s}", fields);
    ck_ok(json_parse(text.s, text.len, &doc, &err), err);
    ck_ok(train_spec_parse(doc, "", &spec, &err), err);
    return spec;
}

/* Classes by the sign of x0 * x1 (no linear model can do it), or 1000 (3 x0 - 2 x1 + 7) plus noise
 * of deviation 50. */
static struct train_data toy(bool classify, const struct train_spec *spec)
{
    struct dataset set = {.n_rows = ROWS, .n_features = 2, .n_outputs = classify ? 2 : 1};
    struct rng r = draw_stream(3, DRAW_SHUFFLE, 0);
    struct train_data d = {0};
    set.x = as_calloc(ROWS * 2, sizeof *set.x);
    set.labels = classify ? as_calloc(ROWS, sizeof *set.labels) : NULL;
    set.targets = classify ? NULL : as_calloc(ROWS, sizeof *set.targets);
    for (size_t i = 0; i < ROWS; i++) {
        double a = rng_normal(&r), b = rng_normal(&r);
        set.x[i * 2] = (float)a;
        set.x[i * 2 + 1] = (float)b;
        if (classify)
            set.labels[i] = a * b > 0;
        else
            set.targets[i] = (float)(1000 * (3 * a - 2 * b + 7) + 50 * rng_normal(&r));
    }
    struct dataset_info info = {.task = classify ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
                                .n_rows = ROWS,
                                .n_features = 2,
                                .n_outputs = set.n_outputs};
    ck_ok(train_data_prepare(&set, &info, spec, &d, &err), err);
    return d;
}

struct rig {
    struct backend *be;
    struct train_data data;
    struct loop *loop;
};

static struct loop *open_loop(struct rig *r, const struct loop_member *members, size_t n,
                              const char *fingerprint)
{
    struct loop_opts opts = {checkpoint_path, fingerprint, INT64_MAX / 100};
    struct loop *l = NULL;
    ck_ok(loop_create(r->be, &r->data, members, n, &opts, &l, &err), err);
    return l;
}

static void rig_open(struct rig *r, bool classify, const struct loop_member *members, size_t n)
{
    *r = (struct rig){.data = toy(classify, members[0].spec)};
    ck_ok(backend_open("cpu", NULL, &r->be, &err), err);
    r->loop = open_loop(r, members, n, "ours");
}

static void rig_close(struct rig *r)
{
    loop_free(r->loop);
    train_data_done(&r->data);
    backend_free(r->be);
}

static loop_end run(struct rig *r)
{
    loop_end end = LOOP_STOPPED;
    ck_ok(loop_run(r->loop, &go_on, &end, &err), err);
    return end;
}

static double last_value(const struct rig *r, size_t k, const char *name)
{
    JSON_AUTO j = NULL;
    const struct str *line = &r->loop->last_report[k];
    double v = 0;
    ck_ok(json_parse(str_cstr(line), line->len, &j, &err), err);
    ck_assert_msg(json_number_get(json_object_get(j, name), &v), "%s in %s", name, line->s);
    return v;
}

static float *params_of(const struct rig *r, size_t k)
{
    size_t n = r->loop->model->shape.n_params;
    float *p = as_calloc(n, sizeof *p);
    ck_assert_ptr_nonnull(p);
    ck_ok(buf_download(r->loop->model->params, k * n, p, n, &err), err);
    return p;
}

START_TEST(learns_classes)
{
    static const char *const docs[] = {
        "\"epochs\":60,\"model\":{\"layers\":[16],\"activation\":\"tanh\"},\"optimizer\":{\"lr\":0."
        "02}",
        "\"epochs\":60,\"model\":{\"layers\":[16,16],\"activation\":\"gelu\",\"dropout\":0.05},"
        "\"optimizer\":{\"lr\":0.01},\"schedule\":{\"kind\":\"cosine\",\"warmup_epochs\":2}",
        "\"epochs\":60,\"model\":{\"layers\":[16,16]},\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.1,"
        "\"momentum\":0.9,\"nesterov\":true,\"weight_decay\":1e-4},\"schedule\":{\"kind\":"
        "\"one_cycle\"}",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(docs); i++) {
        struct train_spec spec = spec_with(docs[i]);
        struct rig r;
        rig_open(&r, true, &(struct loop_member){&spec, 1, NULL}, 1);
        ck_assert_int_eq(run(&r), LOOP_DONE);
        ck_assert_double_lt(last_value(&r, 0, "val_error"), 0.08);
        ck_assert_double_eq_tol(last_value(&r, 0, "val_error") + last_value(&r, 0, "val_accuracy"),
                                1, 1e-12);
        ck_assert_double_eq(last_value(&r, 0, "step"), 60);
        rig_close(&r);
    }
}
END_TEST

START_TEST(linear_cannot_learn_it)
{
    struct train_spec spec = spec_with("\"epochs\":40,\"model\":{\"kind\":\"linear\"}");
    struct rig r;
    rig_open(&r, true, &(struct loop_member){&spec, 1, NULL}, 1);
    ck_assert_int_eq(run(&r), LOOP_DONE);
    ck_assert_double_gt(last_value(&r, 0, "val_error"), 0.3);
    rig_close(&r);
}
END_TEST

START_TEST(regression_in_the_targets_unit)
{
    struct train_spec spec = spec_with("\"epochs\":60,\"model\":{\"kind\":\"linear\"},"
                                       "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05}");
    struct rig r;
    rig_open(&r, false, &(struct loop_member){&spec, 1, NULL}, 1);
    ck_assert_int_eq(run(&r), LOOP_DONE);
    double rmse = last_value(&r, 0, "val_rmse");
    ck_assert_double_gt(rmse, 30); /* the noise */
    ck_assert_double_lt(rmse, 80);
    ck_assert_double_eq_tol(last_value(&r, 0, "val_loss"), rmse * rmse, 1);
    ck_assert_double_gt(last_value(&r, 0, "val_r2"), 0.999);
    ck_assert_double_lt(last_value(&r, 0, "val_mae"), rmse);
    ck_assert_double_lt(sqrt(last_value(&r, 0, "train_loss")), 100);
    const float *pred = NULL;
    ck_ok(evaluator_predict(r.loop->evaluator, 0, &pred, &err), err);
    for (size_t i = 0; i < r.data.n_val; i++)
        ck_assert_double_lt(fabs((double)pred[i] - (double)r.data.val_targets[i]), 300);
    rig_close(&r);
}
END_TEST

START_TEST(infinite_predictions_are_the_worst)
{
    struct train_spec spec = spec_with("\"epochs\":1,\"model\":{\"kind\":\"linear\"}");
    struct evaluation e = {0};
    struct rig r;
    rig_open(&r, false, &(struct loop_member){&spec, 1, NULL}, 1);
    const struct model_shape *s = &r.loop->model->shape;
    ck_ok(buf_fill_f32(r.loop->model->params, s->bias_at[0], 1, INFINITY, &err), err);
    ck_ok(evaluator_run(r.loop->evaluator, &e, &err), err);
    ck_assert_double_eq(e.loss, INFINITY);
    ck_assert_double_eq(e.rmse, INFINITY);
    ck_assert_double_eq(e.mae, INFINITY);
    ck_assert_double_eq(e.r2, -INFINITY);
    rig_close(&r);
}
END_TEST

START_TEST(same_seed_same_bits)
{
    struct train_spec spec = spec_with("\"epochs\":5,\"model\":{\"dropout\":0.2}");
    struct rig r[3];
    AS_AUTO(as_freep) float *p[3] = {0};
    for (int i = 0; i < 3; i++) {
        rig_open(&r[i], true, &(struct loop_member){&spec, i == 2 ? 9 : 4, NULL}, 1);
        ck_assert_int_eq(run(&r[i]), LOOP_DONE);
        p[i] = params_of(&r[i], 0);
    }
    size_t bytes = r[0].loop->model->shape.n_params * sizeof(float);
    ck_assert_mem_eq(p[0], p[1], bytes);
    ck_assert_mem_ne(p[0], p[2], bytes);
    ck_assert_str_eq(r[0].loop->last_report[0].s, r[1].loop->last_report[0].s);
    for (int i = 0; i < 3; i++)
        rig_close(&r[i]);
    free(as_steal(p[1]));
    free(as_steal(p[2]));
}
END_TEST

START_TEST(members_train_as_if_alone)
{
    struct train_spec specs[3] = {
        spec_with("\"epochs\":6,\"model\":{\"dropout\":0.2},\"optimizer\":{\"lr\":0.01}"),
        spec_with("\"epochs\":6,\"model\":{\"dropout\":0.1},\"optimizer\":{\"lr\":0.003,"
                  "\"weight_decay\":0.1},\"schedule\":{\"kind\":\"cosine\"}"),
        spec_with("\"epochs\":6,\"optimizer\":{\"lr\":0.001,\"beta1\":0.8}"),
    };
    struct loop_member members[3];
    struct rig group, alone;
    for (size_t k = 0; k < 3; k++)
        members[k] = (struct loop_member){&specs[k], 10 + k, NULL};
    rig_open(&group, true, members, 3);
    ck_assert_int_eq(run(&group), LOOP_DONE);
    for (size_t k = 0; k < 3; k++) {
        rig_open(&alone, true, &members[k], 1);
        ck_assert_int_eq(run(&alone), LOOP_DONE);
        AS_AUTO(as_freep) float *a = params_of(&group, k);
        AS_AUTO(as_freep) float *b = params_of(&alone, 0);
        for (size_t i = 0; i < alone.loop->model->shape.n_params; i++)
            ck_assert_msg(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i])), "member %zu, %zu", k, i);
        ck_assert_double_eq_tol(last_value(&group, k, "val_loss"),
                                last_value(&alone, 0, "val_loss"), 1e-4);
        rig_close(&alone);
    }
    rig_close(&group);
}
END_TEST

START_TEST(a_diverged_member_leaves_the_others)
{
    struct train_spec good = spec_with("\"epochs\":8,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.01}");
    struct train_spec bad = spec_with("\"epochs\":8,\"optimizer\":{\"kind\":\"sgd\",\"lr\":1e5}");
    struct loop_member members[2] = {{&bad, 1, NULL}, {&good, 1, NULL}};
    struct rig r, alone;
    rig_open(&r, false, members, 2);
    ck_assert_int_eq(run(&r), LOOP_DONE);
    ck_assert(!isfinite(last_value(&r, 0, "train_loss")));
    ck_assert_double_lt(last_value(&r, 0, "step"), 8); /* it stopped reporting */
    rig_open(&alone, false, &members[1], 1);
    ck_assert_int_eq(run(&alone), LOOP_DONE);
    ck_assert_double_eq_tol(last_value(&r, 1, "val_r2"), last_value(&alone, 0, "val_r2"), 1e-5);
    rig_close(&alone);
    rig_open(&alone, false, &members[0], 1);
    ck_assert_int_eq(run(&alone), LOOP_DIVERGED);
    rig_close(&alone);
    rig_close(&r);
}
END_TEST

/* The loop as another process would find it: made anew, in the state of the checkpoint. */
static void reopen(struct rig *r, const struct loop_member *member)
{
    bool found = false;
    loop_free(r->loop);
    r->loop = open_loop(r, member, 1, "ours");
    ck_ok(checkpoint_read(r->loop, checkpoint_path, &found, &err), err);
    ck_assert(found);
}

/* Stopped before the first step and after the first epoch; inside an epoch it is test_program.c
 * that stops. With a constant rate a job of one epoch is the beginning of the job of four. */
START_TEST(resume_from_a_stop)
{
#define STOPPED "\"model\":{\"dropout\":0.2},\"batch_size\":30"
    struct train_spec spec = spec_with("\"epochs\":4," STOPPED);
    struct train_spec beginning = spec_with("\"epochs\":1," STOPPED);
    struct loop_member member = {&spec, 2, NULL}, first = {&beginning, 2, NULL};
    loop_end end;
    struct rig whole, parts;
    rig_open(&whole, true, &member, 1);
    ck_assert_int_eq(run(&whole), LOOP_DONE);
    rig_open(&parts, true, &first, 1);
    ck_ok(loop_run(parts.loop, &stop_now, &end, &err), err);
    ck_assert_int_eq(end, LOOP_STOPPED);
    reopen(&parts, &first);
    ck_assert_int_eq(run(&parts), LOOP_DONE);
    ck_ok(checkpoint_write(parts.loop, checkpoint_path, &err), err);
    reopen(&parts, &member);
    ck_assert_int_eq(parts.loop->epoch, 1);
    ck_assert_int_eq(run(&parts), LOOP_DONE);
    AS_AUTO(as_freep) float *a = params_of(&whole, 0);
    AS_AUTO(as_freep) float *b = params_of(&parts, 0);
    ck_assert_mem_eq(a, b, whole.loop->model->shape.n_params * sizeof *a);
    ck_assert_str_eq(whole.loop->last_report[0].s, parts.loop->last_report[0].s);
    rig_close(&whole);
    rig_close(&parts);
}
END_TEST

START_TEST(checkpoints_that_do_not_fit)
{
    struct train_spec spec = spec_with("\"epochs\":2");
    struct train_spec wide = spec_with("\"epochs\":2,\"model\":{\"layers\":[65]}");
    struct loop_member member = {&spec, 2, NULL}, other = {&wide, 2, NULL};
    struct rig r;
    bool found = true;
    rig_open(&r, true, &member, 1);
    ck_ok(checkpoint_read(r.loop, checkpoint_path, &found, &err), err);
    ck_assert(!found);
    ck_assert_int_eq(run(&r), LOOP_DONE);
    ck_ok(checkpoint_write(r.loop, checkpoint_path, &err), err);
    ck_ok(checkpoint_read(r.loop, checkpoint_path, &found, &err), err);
    ck_assert(found);
    ck_assert_int_eq(run(&r), LOOP_DONE); /* nothing is left to do */

    struct loop *theirs = open_loop(&r, &member, 1, "theirs");
    ck_fails(checkpoint_read(theirs, checkpoint_path, &found, &err), AS_E_INVAL, err,
             "belongs to another job");
    ck_assert_ptr_nonnull(strstr(err.msg, checkpoint_path));
    loop_free(theirs);
    struct loop *wider = open_loop(&r, &other, 1, "ours");
    ck_fails(checkpoint_read(wider, checkpoint_path, &found, &err), AS_E_INVAL, err,
             "tensor 'params' holds");
    loop_free(wider);

    AS_AUTO(as_freep) char *bytes = NULL;
    size_t len = 0;
    ck_ok(file_read(checkpoint_path, 1 << 24, &bytes, &len, &err), err);
    for (size_t cut = 0; cut < len; cut += cut < 1200 ? 97 : len / 7) {
        ck_ok(file_replace(checkpoint_path, bytes, cut, 0644, &err), err);
        ck_fails(checkpoint_read(r.loop, checkpoint_path, &found, &err), AS_E_INVAL, err,
                 checkpoint_path);
    }
    rig_close(&r);
}
END_TEST

START_TEST(odd_shapes)
{
    /* one training row, a batch of everything, batches that do not divide */
    static const char *const docs[] = {
        "\"epochs\":2,\"validation\":{\"fraction\":0.999}",
        "\"epochs\":2,\"batch_size\":100000",
        "\"epochs\":2,\"batch_size\":299",
        "\"epochs\":2,\"batch_size\":1,\"model\":{\"layers\":[1]}",
        "\"epochs\":3,\"report_every\":2,\"model\":{\"layers\":[]}",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(docs); i++)
        for (int classify = 0; classify < 2; classify++) {
            struct train_spec spec = spec_with(docs[i]);
            struct rig r;
            rig_open(&r, classify, &(struct loop_member){&spec, 1, NULL}, 1);
            ck_assert_int_eq(run(&r), LOOP_DONE);
            ck_assert_double_eq(last_value(&r, 0, "step"), (double)spec.epochs);
            rig_close(&r);
        }
}
END_TEST

START_TEST(out_of_memory)
{
    struct train_spec spec = spec_with("\"epochs\":2");
    struct rig r;
    struct loop_opts opts = {checkpoint_path, "ours", 0};
    rig_open(&r, true, &(struct loop_member){&spec, 1, NULL}, 1);
    for (size_t n = 1; n < 50; n++) {
        struct loop *l = NULL;
        struct loop_member member = {&spec, 1, NULL};
        loop_end end;
        as_mem_fail_nth(n);
        as_status st = loop_create(r.be, &r.data, &member, 1, &opts, &l, &err);
        if (st == AS_OK)
            st = loop_run(l, &go_on, &end, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        loop_free(l);
    }
    rig_close(&r);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("train_loop");
    TCase *t = tcase_create("train_loop");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, learns_classes);
    tcase_add_test(t, linear_cannot_learn_it);
    tcase_add_test(t, regression_in_the_targets_unit);
    tcase_add_test(t, infinite_predictions_are_the_worst);
    tcase_add_test(t, same_seed_same_bits);
    tcase_add_test(t, members_train_as_if_alone);
    tcase_add_test(t, a_diverged_member_leaves_the_others);
    tcase_add_test(t, resume_from_a_stop);
    tcase_add_test(t, checkpoints_that_do_not_fit);
    tcase_add_test(t, odd_shapes);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
