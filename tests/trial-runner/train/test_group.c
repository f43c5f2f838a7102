/* Groups of trials in one process: every member must end with the bits that it ends with alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/support/check_main.h"
#include "tests/support/rig.h"
#include "tests/support/roots.h"

static struct rig rig;

static void setup(void)
{
    rig_open(&rig);
}

static void teardown(void)
{
    rig_close(&rig);
}

/* One shape, everything else different: optimizers, rates, schedules, clipping, smoothing, dropout,
 * class weights, epochs, seeds, and batches of one, two and three micro-batches. */
#define MIXED(dropout, rest)                                                                       \
    "\"model\":{\"layers\":[24,16],\"dropout\":" dropout "},\"micro_batch\":16,"                   \
    "\"class_weights\":\"balanced\"," rest
static const struct trial mixed[] = {
    {"sgd/1.1",
     MIXED("0.2", "\"epochs\":4,\"batch_size\":16,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05,"
                  "\"momentum\":0.9,\"nesterov\":true,\"weight_decay\":1e-3}"),
     "1"},
    {"adamw/2.1",
     MIXED("0", "\"epochs\":5,\"batch_size\":32,\"optimizer\":{\"lr\":0.003,\"clip_norm\":0.5},"
                "\"schedule\":{\"kind\":\"cosine\",\"warmup_epochs\":1},\"label_smoothing\":0.1"),
     "18446744073709551615"},
    {"rms/3.1",
     MIXED("0.4", "\"epochs\":3,\"batch_size\":48,\"optimizer\":{\"kind\":\"rmsprop\",\"lr\":0.002,"
                  "\"momentum\":0.5},\"metrics\":[\"val_auc\","
                  "\"val_f1\",\"val_top5\",\"val_log_loss\"]"),
     "3"},
    {"lamb/4.1",
     MIXED("0.1", "\"epochs\":4,\"batch_size\":16,\"optimizer\":{\"kind\":\"lamb\",\"lr\":0.01},"
                  "\"schedule\":{\"kind\":\"one_cycle\"},\"report_every\":3"),
     "4"},
    {"lion/5.1",
     MIXED("0", "\"epochs\":4,\"batch_size\":32,\"optimizer\":{\"kind\":\"lion\",\"lr\":0.001},"
                "\"schedule\":{\"kind\":\"step\",\"step_epochs\":2,\"gamma\":0.5}"),
     "4"},
    {"adagrad/6.1",
     MIXED("0.2", "\"epochs\":3,\"batch_size\":32,\"optimizer\":{\"kind\":\"adagrad\","
                  "\"lr\":0.05,\"weight_decay\":0.001}"),
     "3"},
};
#define N_MIXED AS_ARRAY_LEN(mixed)

static void pointers(const struct trial *trials, size_t n, const struct trial **ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = &trials[i];
}

static void equals_solo(const char *backend, const size_t *threads, size_t n_threads)
{
    const struct trial *all[N_MIXED];
    pointers(mixed, N_MIXED, all);
    for (size_t i = 0; i < N_MIXED; i++)
        ck_assert_int_eq(rig_solo(&rig, "solo", all[i], backend), 0);
    for (size_t i = 0; i < n_threads; i++) {
        char tag[32];
        (void)snprintf(tag, sizeof tag, "fused-%zu", threads[i]);
        rig_job(&rig, tag, all, N_MIXED, N_MIXED);
        ck_assert_int_eq(rig_run(&rig, backend, threads[i]), 0);
        for (size_t k = 0; k < N_MIXED; k++)
            rig_same(&rig, "solo", tag, all[k]);
    }
}

START_TEST(fused_as_alone_in_lanes)
{
    equals_solo("cpu", (size_t[]){1, 2, 4}, 3);
}
END_TEST

/* The oracle has one lockstep for all members, as a device has: masks, mixed batches, compaction.
 */
START_TEST(fused_as_alone_in_lockstep)
{
    equals_solo("reference", (size_t[]){1}, 1);
}
END_TEST

/* The first FEW rows of the digits, of which 256 are trained on: 16 micro-steps an epoch, and
 * batches of three that do not divide them. Each thread of an emulated kernel is a fiber, and all
 * rows would take five times as long (minutes under a sanitizer) for more of the same steps. */
#define FEW 320
static void use_few_digits(void)
{
    char all[512], line[4096];
    AS_AUTO(as_freep) char *few = file_join(rig.dir, "few.csv");
    (void)snprintf(all, sizeof all, "%s/examples/digits.csv", source_root());
    FILE *from = fopen(all, "r"), *to = fopen(few, "w");
    ck_assert(from && to);
    for (int i = 0; i <= FEW && fgets(line, sizeof line, from); i++)
        ck_assert_int_ge(fputs(line, to), 0);
    (void)fclose(from);
    ck_assert_int_eq(fclose(to), 0);
    struct as_err err;
    JSON_AUTO doc = NULL;
    ck_ok(json_parse(rig.dataset, strlen(rig.dataset), &doc, &err), err);
    json_t *paths = json_object_get(doc, "paths");
    ck_assert_int_eq(json_object_set_new(doc, "rows", json_integer(FEW)), 0);
    ck_assert_int_eq(json_object_set_new(paths, "table", json_string(few)), 0);
    free(rig.dataset);
    rig.dataset = json_format(doc);
}

/* The device's kernels, emulated: one lockstep, whose steps are recorded as graphs. Not on a real
 * one, where cuBLAS may choose by the number of members. */
START_TEST(fused_as_alone_on_a_device)
{
    use_few_digits();
    equals_solo("cuda", (size_t[]){1}, 1);
}
END_TEST

START_TEST(alone_with_many_threads)
{
    rig_job(&rig, "one", (const struct trial *[]){&mixed[0]}, 1, 1);
    ck_assert_int_eq(rig_run(&rig, "cpu", 1), 0);
    rig_job(&rig, "four", (const struct trial *[]){&mixed[0]}, 1, 1);
    ck_assert_int_eq(rig_run(&rig, "cpu", 4), 0);
    rig_same(&rig, "one", "four", &mixed[0]);
}
END_TEST

/* The average of weights is evaluated and kept, in a group as alone. */
START_TEST(averages_of_weights)
{
    static const struct trial ema[] = {
        {"a", "\"model\":{\"layers\":[16]},\"epochs\":3,\"optimizer\":{\"ema\":0.9,\"lr\":0.01}",
         "1"},
        {"b", "\"model\":{\"layers\":[16]},\"epochs\":3,\"optimizer\":{\"ema\":0.5,\"lr\":0.02}",
         "2"},
        {"raw", "\"model\":{\"layers\":[16]},\"epochs\":3,\"optimizer\":{\"lr\":0.01}", "1"},
    };
    const struct trial *both[] = {&ema[0], &ema[1]};
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(rig_solo(&rig, "solo", &ema[i], "reference"), 0);
    rig_job(&rig, "fused", both, 2, 2);
    ck_assert_int_eq(rig_run(&rig, "reference", 1), 0);
    rig_same(&rig, "solo", "fused", &ema[0]);
    rig_same(&rig, "solo", "fused", &ema[1]);
    size_t n = 0, m = 0; /* and it is not the last weights that are kept */
    AS_AUTO(as_freep) char *x = rig_read(&rig, "solo", "a", "artifacts/predictions.npy", &n);
    AS_AUTO(as_freep) char *y = rig_read(&rig, "solo", "raw", "artifacts/predictions.npy", &m);
    ck_assert_uint_eq(n, m);
    ck_assert_int_ne(memcmp(x, y, n), 0);
}
END_TEST

START_TEST(padded_widths)
{
    static const struct trial widths[] = {
        {"w40", "\"model\":{\"layers\":[40,20]},\"epochs\":2,\"optimizer\":{\"lr\":0.01}", "1"},
        {"w48", "\"model\":{\"layers\":[48,22]},\"epochs\":2,\"optimizer\":{\"kind\":\"sgd\"}",
         "2"},
        {"w44", "\"model\":{\"layers\":[44,24]},\"epochs\":2,\"optimizer\":{\"kind\":\"lamb\"}",
         "3"},
    };
    const struct trial *all[3];
    pointers(widths, 3, all);
    static const char *const backends[] = {"reference", "cpu"};
    for (size_t b = 0; b < 2; b++) {
        for (size_t i = 0; i < 3; i++)
            ck_assert_int_eq(rig_solo(&rig, "solo", all[i], backends[b]), 0);
        rig_job(&rig, "fused", all, 3, 3);
        ck_assert_int_eq(rig_run(&rig, backends[b], 2), 0);
        for (size_t i = 0; i < 3; i++)
            ck_assert_double_le(rig_distance(&rig, "solo", "fused", all[i]), 1e-6);
    }
}
END_TEST

static void one_diverges(const char *backend)
{
    static const struct trial bad = {
        "bad",
        MIXED("0", "\"epochs\":6,\"optimizer\":{\"kind\":\"sgd\",\"lr\":1e6},\"batch_size\":16"),
        "9"};
    const struct trial *all[] = {&mixed[0], &bad, &mixed[1]};
    ck_assert_int_eq(rig_solo(&rig, "solo", &mixed[0], backend), 0);
    ck_assert_int_eq(rig_solo(&rig, "solo", &mixed[1], backend), 0);
    rig_job(&rig, "fused", all, 3, 3);
    ck_assert_int_eq(rig_run(&rig, backend, 2), 0);
    rig_same(&rig, "solo", "fused", &mixed[0]);
    rig_same(&rig, "solo", "fused", &mixed[1]);
    size_t n = 0;
    AS_AUTO(as_freep) char *report = rig_read(&rig, "fused", "bad", "report", &n);
    ck_assert_ptr_nonnull(report);
    ck_assert_ptr_nonnull(strstr(report, "\"train_loss\": \"NaN\""));
    ck_assert_ptr_null(rig_read(&rig, "fused", "bad", "artifacts/model.safetensors", &n));
}

START_TEST(one_diverges_the_others_go_on)
{
    one_diverges("cpu");
    teardown();
    setup();
    one_diverges("reference");
}
END_TEST

START_TEST(a_bad_member_does_not_touch_the_others)
{
    static const struct trial other_shape = {"shape", "\"model\":{\"layers\":[500]},\"epochs\":1",
                                             "1"};
    static const struct trial bad_document = {"document", "\"model\":{\"layers\":[0]},\"epochs\":1",
                                              "1"};
    const struct trial *all[] = {&mixed[0], &other_shape, &bad_document};
    ck_assert_int_eq(rig_solo(&rig, "solo", &mixed[0], "cpu"), 0);
    rig_job(&rig, "fused", all, 3, 3);
    ck_assert_int_eq(rig_run(&rig, "cpu", 2), 0);
    rig_same(&rig, "solo", "fused", &mixed[0]);
    size_t n = 0;
    ck_assert_ptr_null(rig_read(&rig, "fused", "shape", "report", &n));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_group");
    TCase *t = tcase_create("train_group");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, fused_as_alone_in_lanes);
    tcase_add_test(t, fused_as_alone_in_lockstep);
    tcase_add_test(t, alone_with_many_threads);
    tcase_add_test(t, averages_of_weights);
    tcase_add_test(t, padded_widths);
    tcase_add_test(t, one_diverges_the_others_go_on);
    tcase_add_test(t, a_bad_member_does_not_touch_the_others);
    suite_add_tcase(s, t);
    t = tcase_create("device");
    tcase_add_checked_fixture(t, setup, teardown);
    add_test_if(t, fused_as_alone_on_a_device, getenv("ASSAY_TEST_EMULATED") != NULL,
                "no emulated device (ASSAY_TEST_EMULATED)");
    suite_add_tcase(s, t);
    return s;
}
