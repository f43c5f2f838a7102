/* assay-runner with the real trainer on emulated GPUs that are missing, broken or full, and with
 * trials of other programs that report a fault. */
#include "tests/trial-runner/agent/runner_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/roots.h"

#define TWO "H200:GPU-aa11:80;H200:GPU-ab22:70"

static void setup(void)
{
    static const char *const variables[] = {
        "EMU_FAIL",      "EMU_MEMORY",           "EMU_SAYS_FREE",
        "ASSAY_BACKEND", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};
    for (size_t i = 0; i < AS_ARRAY_LEN(variables); i++)
        (void)unsetenv(variables[i]);
    (void)setenv("ASSAY_NVML", getenv("ASSAY_TEST_NVML"), 1);
    (void)setenv("NVML_STUB", TWO, 1);
    fx_setup();
}

/* A trial of the built-in trainer on the digits, with one GPU. */
static struct trial *offer_train(int number, int epochs, const char *group, int members)
{
    char doc[300], path[400];
    (void)snprintf(doc, sizeof doc,
                   "{\"train\":{\"dataset\":\"d\",\"model\":{\"layers\":[12]},\"micro_batch\":32,"
                   "\"batch_size\":32,\"epochs\":%d}}",
                   epochs);
    struct trial *t = offer(number, doc, PATIENCE_MS, 0, 1);
    fx_lock();
    if (fx.n_blobs == 0) {
        struct blob *b = &fx.blobs[fx.n_blobs++];
        (void)snprintf(path, sizeof path, "%s/examples/digits.csv", source_root());
        ck_assert(file_read(path, 1 << 22, &b->bytes, &b->len, NULL) == AS_OK);
        ck_assert(sha256_of(b->bytes, b->len, b->sha, NULL) == AS_OK);
    }
    json_t *dataset =
        json_pack("{s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:[s,s,s,s,s,s,s,s,s,s],s:s,s:[{s:s,s:s,s:i}]}",
                  "name", "d", "format", "csv", "task", "classification", "target", "-1", "rows",
                  1797, "features", 64, "outputs", 10, "classes", "0", "1", "2", "3", "4", "5", "6",
                  "7", "8", "9", "sha256", fx.blobs[0].sha, "files", "role", "table", "sha256",
                  fx.blobs[0].sha, "size", (int)fx.blobs[0].len);
    ck_assert_ptr_nonnull(dataset);
    json_object_set_new(t->claim, "dataset", dataset);
    json_object_set_new(t->claim, "metric",
                        json_pack("{s:s,s:s}", "name", "val_error", "goal", "minimize"));
    if (group)
        json_object_set_new(t->claim, "group",
                            json_pack("{s:s,s:s,s:i,s:i}", "id", group, "shape", "mlp 64-12",
                                      "bytes_per_member", 1000, "max_members", members));
    fx_unlock();
    return t;
}

static const char *fault_of(size_t i, const char *field)
{
    const char *s = json_string_value(json_object_get(json_array_get(fx.faults, i), field));
    return s ? s : "";
}

/* Without a plugin no GPU of this machine can be used: one attempt shows it. */
START_TEST(no_gpu_that_can_be_used)
{
    (void)setenv("ASSAY_PLUGIN_DIR", fx.dir, 1);
    struct trial *t = offer_train(0, 1, NULL, 0);
    start_runner("--gpus", "auto");
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "retry");
    ck_assert_msg(strstr(reason_of(t), "no libassay-cuda.so") != NULL, "%s", reason_of(t));
    AWAIT(json_array_size(fx.faults) == 2 && fx.claim_gpus == 0);
    ck_assert_ptr_nonnull(strstr(fault_of(1, "reason"), "no libassay-cuda.so"));
    struct trial *host = offer_sh(1, "echo gpus=$CUDA_VISIBLE_DEVICES fault=$ASSAY_DEVICE_FAULT");
    AWAIT(host->completion); /* trials without GPUs go on */
    ck_assert(log_has(host, "gpus= fault=\n"));
}
END_TEST

START_TEST(a_broken_gpu_is_set_aside)
{
    (void)setenv("ASSAY_PLUGIN_DIR", getenv("ASSAY_TEST_EMULATOR"), 1);
    (void)setenv("EMU_FAIL", "214:300:GPU-aa11", 1);
    struct trial *bad = offer_train(0, 2, NULL, 0);
    start_runner("--gpus", "auto");
    AWAIT(bad->completion);
    ck_assert_str_eq(outcome_of(bad), "retry");
    ck_assert_msg(strstr(reason_of(bad), "ECC") != NULL, "%s", reason_of(bad));
    AWAIT(json_array_size(fx.faults) == 1 && fx.claim_gpus == 1);
    ck_assert_str_eq(fault_of(0, "gpu"), "GPU-aa11");
    ck_assert_ptr_nonnull(strstr(fault_of(0, "reason"), "ECC"));
    ck_assert_int_eq(fx.claim_gpu_bytes, (int64_t)70 << 20);
    struct trial *good = offer_train(1, 2, NULL, 0); /* on the other GPU */
    AWAIT(good->completion);
    ck_assert_msg(strcmp(outcome_of(good), "completed") == 0, "%s", reason_of(good));
    /* A runner that registers again says so again. */
    fx_lock();
    fx.epoch++;
    int before = fx.registrations;
    fx_unlock();
    AWAIT(fx.registrations > before);
    ck_assert_uint_eq(json_array_size(json_object_get(fx.registration, "gpu_faults")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(fx.registration, "gpus")), 2);
}
END_TEST

START_TEST(a_group_on_a_broken_gpu)
{
    (void)setenv("ASSAY_PLUGIN_DIR", getenv("ASSAY_TEST_EMULATOR"), 1);
    (void)setenv("EMU_FAIL", "214:400:GPU-aa11", 1);
    struct trial *t[] = {offer_train(0, 50, "g", 2), offer_train(1, 50, "g", 2)};
    start_runner("--gpus", "auto");
    for (size_t i = 0; i < 2; i++) {
        AWAIT(t[i]->completion);
        ck_assert_str_eq(outcome_of(t[i]), "retry");
        ck_assert_msg(strstr(reason_of(t[i]), "ECC") != NULL, "%s", reason_of(t[i]));
    }
    AWAIT(json_array_size(fx.faults) == 1 && fx.claim_gpus == 1);
    ck_assert_str_eq(fault_of(0, "gpu"), "GPU-aa11");
}
END_TEST

/* Other programs report a fault in the same way. Exit 75 alone, or a report without it, is none. */
START_TEST(any_program_may_report_a_fault)
{
#define OFFER(number, script)                                                                      \
    offer(number, "{\"command\":[\"sh\",\"-c\",\"" script "\"]}", PATIENCE_MS, 0, 1)
    struct trial *t[] = {OFFER(0, "exit 75"), OFFER(1, "echo x > $ASSAY_DEVICE_FAULT"),
                         OFFER(2, "mkfifo $ASSAY_DEVICE_FAULT; exit 75")};
    start_runner("--gpus", "auto");
    for (size_t i = 0; i < 3; i++)
        AWAIT(t[i]->completion);
    ck_assert_ptr_null(fx.faults);
    AWAIT(fx.claim_gpus == 2);
    struct trial *f = OFFER(3, "echo it fell off the bus > $ASSAY_DEVICE_FAULT; exit 75");
    AWAIT(f->completion && json_array_size(fx.faults) == 1);
    ck_assert_str_eq(outcome_of(f), "retry");
    ck_assert_str_eq(fault_of(0, "reason"), "it fell off the bus");
    AWAIT(fx.claim_gpus == 1);
}
END_TEST

/* Members that the device has no room for go back to the queue, without using a restart. */
START_TEST(a_group_that_is_too_large)
{
    (void)setenv("ASSAY_PLUGIN_DIR", getenv("ASSAY_TEST_EMULATOR"), 1);
    (void)setenv("EMU_MEMORY", "980000", 1); /* the data is 470 KB, a member 130 KB */
    struct trial *t[4];
    size_t released = 0, completed = 0;
    for (int i = 0; i < 4; i++)
        t[i] = offer_train(i, 6, "g", 4);
    start_runner("--gpus", "auto");
    for (size_t i = 0; i < 4; i++) {
        AWAIT(t[i]->completion);
        released += strcmp(outcome_of(t[i]), "released") == 0;
        completed += strcmp(outcome_of(t[i]), "completed") == 0;
        if (strcmp(outcome_of(t[i]), "released") == 0)
            ck_assert_msg(strstr(reason_of(t[i]), "no room") != NULL, "%s", reason_of(t[i]));
    }
    ck_assert_msg(released >= 1 && released + completed == 4, "%zu %zu", released, completed);
    AWAIT(fx.measured != NULL);
    json_t *first = json_array_get(fx.measured, 0);
    ck_assert_uint_eq((size_t)json_integer_value(json_object_get(first, "members")), completed);
    ck_assert_ptr_null(fx.faults);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("agent_faults");
    TCase *t = tcase_create("agent_faults");
    tcase_add_checked_fixture(t, setup, fx_teardown);
    tcase_add_test(t, no_gpu_that_can_be_used);
    tcase_add_test(t, a_broken_gpu_is_set_aside);
    tcase_add_test(t, a_group_on_a_broken_gpu);
    tcase_add_test(t, any_program_may_report_a_fault);
    tcase_add_test(t, a_group_that_is_too_large);
    suite_add_tcase(s, t);
    return s;
}
