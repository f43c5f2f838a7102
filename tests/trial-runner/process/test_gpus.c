/* Which GPUs a runner hands out. The driver's library is nvml_stub.c; what CUDA lists comes from a
 * script in place of assay-train. */
#include "trial-runner/process/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#define TWO "H200:GPU-aa11:80;H200:GPU-ab22:81"
#define MIXED "T4:GPU-aa11:80;H200:GPU-ab22:81"
#define DIVIDED "H200:GPU-aa11:80=MIG-x1,MIG-x2;H200:GPU-ab22:81"

static char dir[TEMP_FOLDER_SIZE], trainer[120];
static struct gpu_list found;
static struct as_err err;

/* A trainer that prints this and exits so. */
static void make_trainer(const char *output, int code)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "#!/bin/sh\nprintf '%s'\necho visible=$CUDA_VISIBLE_DEVICES > %s/asked\n"
                     "exit %d\n",
                     output, dir, code);
    ck_assert(file_replace(trainer, text, (size_t)n, 0700, NULL) == AS_OK);
}

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(trainer, sizeof trainer, "%s/trainer", dir);
    make_trainer("no devices\\n", 1);
    (void)setenv("ASSAY_NVML", getenv("ASSAY_TEST_NVML"), 1);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)unsetenv("CUDA_DEVICE_ORDER");
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* The ids that are found, with commas. */
static const char *find(const char *words)
{
    static char text[1024];
    size_t n = 0;
    found = (struct gpu_list){0};
    text[0] = '\0';
    as_status st = gpus_find(words, trainer, &found, &err);
    if (st != AS_OK)
        return err.msg;
    for (size_t i = 0; i < found.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "," : "", found.v[i].id);
    return text;
}

START_TEST(those_that_this_process_may_use)
{
    static const struct {
        const char *listed, *visible, *words, *want;
    } cases[] = {
        {TWO, NULL, NULL, "GPU-aa11,GPU-ab22"},
        {TWO, NULL, "auto", "GPU-aa11,GPU-ab22"},
        {TWO, "", "auto", ""},
        {TWO, "-1", "auto", ""},
        {TWO, "NoDevFiles", "auto", ""},
        {TWO, "1", "auto", "GPU-ab22"},
        {TWO, "1,0", "auto", "GPU-ab22,GPU-aa11"},
        {TWO, "1,-1,0", "auto", "GPU-ab22"}, /* CUDA ends the list there */
        {TWO, "0,9,1", "auto", "GPU-aa11"},
        {TWO, " 0 , 1 ", "auto", "GPU-aa11,GPU-ab22"},
        {TWO, "0,0", "auto", "GPU-aa11"},
        {TWO, "GPU-ab22", "auto", "GPU-ab22"},
        {TWO, "GPU-ab", "auto", "GPU-ab22"}, /* the beginning of one */
        {TWO, "GPU-a", "auto", ""},          /* of two */
        {TWO, "GPU-", "auto", ""},
        {TWO, "GPU-ab22,0", "auto", "GPU-ab22,GPU-aa11"},
        {TWO, "99999999999999999999", "auto", ""},
        {DIVIDED, NULL, "auto", "MIG-x1,MIG-x2,GPU-ab22"},
        {DIVIDED, "MIG-x2", "auto", "MIG-x2"},
        {DIVIDED, "0,1", "auto", "MIG-x1,GPU-ab22"},
        {DIVIDED, "GPU-aa11", "auto", "MIG-x1"},
        {"lost;H200:GPU-ab22:81", NULL, "auto", "GPU-ab22"},
        {"lost;H200:GPU-ab22:81", "1", "auto", "GPU-ab22"}, /* indices stay */
        {"lost;H200:GPU-ab22:81", "0,1", "auto", ""},
        {TWO, NULL, "auto:1/2", "GPU-aa11"},
        {TWO, NULL, "auto:2/2", "GPU-ab22"},
        {TWO, NULL, "auto:3/3", ""},
        {TWO, "1", "auto:1/2", "GPU-ab22"},
        {TWO, "1", "0", "GPU-aa11"}, /* --gpus replaces what was inherited */
        {TWO, NULL, "1,GPU-aa", "GPU-ab22,GPU-aa11"},
        {TWO, NULL, "7", "7"}, /* not listed: as it was given */
        {DIVIDED, NULL, "MIG-x2,1", "MIG-x2,GPU-ab22"},
        {TWO, NULL, "none", ""},
        {TWO, NULL, "", ""},
        {TWO, NULL, "0,GPU-aa11", "--gpus: GPU-aa11 is given twice"},
        {TWO, NULL, "0,,1", "--gpus: expected 0,1,… or UUIDs, auto, auto:I/N, or none"},
        {TWO, NULL, "auto:0/2", "--gpus: found 'auto:0/2', expected auto:I/N, 1 <= I <= N"},
        {TWO, NULL, "auto:3/2", "--gpus: found 'auto:3/2', expected auto:I/N, 1 <= I <= N"},
        {TWO, NULL, "auto:1/2x", "--gpus: found 'auto:1/2x', expected auto:I/N, 1 <= I <= N"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        (void)setenv("NVML_STUB", cases[i].listed, 1);
        (void)unsetenv("CUDA_VISIBLE_DEVICES");
        if (cases[i].visible)
            (void)setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
        const char *got = find(cases[i].words);
        ck_assert_msg(strcmp(got, cases[i].want) == 0, "%zu: '%s', expected '%s'", i, got,
                      cases[i].want);
    }
    (void)setenv("NVML_STUB", DIVIDED, 1);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)find("auto");
    ck_assert_int_eq(found.v[0].memory_bytes, (int64_t)20 << 20);
    ck_assert_int_eq(found.v[2].memory_bytes, (int64_t)81 << 20);
}
END_TEST

START_TEST(how_busy_they_are)
{
    AS_AUTO(nvml_meter_closep) struct nvml_meter *m = NULL;
    struct as_err why = {0};
    double busy = 0, memory = 0;
    (void)setenv("NVML_STUB", "H200:GPU-a:100;H200:GPU-b:80=MIG-x,MIG-y", 1);
    ck_ok(nvml_meter_open(&m, &why), why);
    nvml_meter_read(m, "GPU-a", &busy, &memory);
    ck_assert_double_eq(busy, 0.75);
    ck_assert_double_eq(memory, 50 << 20);
    nvml_meter_read(m, "GPU-b", &busy, &memory);
    ck_assert_double_lt(busy, 0); /* the driver does not say */
    ck_assert_double_eq(memory, 40 << 20);
    nvml_meter_read(m, "GPU-c", &busy, &memory);
    ck_assert_double_lt(busy, 0);
    ck_assert_double_lt(memory, 0);
    nvml_meter_close(as_steal(m));
    (void)setenv("NVML_STUB", "fail", 1);
    ck_fails(nvml_meter_open(&m, &why), AS_E_UNAVAILABLE, why, "Driver Not Loaded");
}
END_TEST

static bool was_asked(const char *visible)
{
    char path[160], want[160];
    AS_AUTO(as_freep) char *text = NULL;
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/asked", dir);
    (void)snprintf(want, sizeof want, "visible=%s\n", visible);
    bool asked = file_read(path, 200, &text, &n, NULL) == AS_OK && strcmp(text, want) == 0;
    (void)unlink(path);
    return asked;
}

/* The trainer is asked, in a process of its own, where NVML is absent or cannot know. */
START_TEST(the_trainer_is_asked)
{
    make_trainer("gpu GPU-fast 100\\nnoise\\ngpu GPU-slow 50\\n", 0);
    (void)setenv("NVML_STUB", MIXED, 1);
    ck_assert_str_eq(find("auto"), "GPU-aa11,GPU-ab22"); /* no index: nothing is unclear */
    ck_assert(!was_asked("") && found.note[0] == '\0');
    (void)setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    ck_assert_str_eq(find("auto"), "GPU-fast,GPU-slow");
    ck_assert(was_asked("0,1"));
    ck_assert_ptr_nonnull(strstr(found.note, "CUDA_DEVICE_ORDER"));
    ck_assert_int_eq(found.v[1].memory_bytes, 50);
    (void)setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    ck_assert_str_eq(find("auto"), "GPU-aa11,GPU-ab22");
    ck_assert(!was_asked("0,1"));
    (void)setenv("NVML_STUB", "fail", 1);
    ck_assert_str_eq(find("auto"), "GPU-fast,GPU-slow");
    ck_assert_ptr_nonnull(strstr(found.note, "Driver Not Loaded"));
    (void)setenv("ASSAY_NVML", "/no/libnvidia-ml.so.1", 1);
    ck_assert_str_eq(find("auto"), "GPU-fast,GPU-slow");
    ck_assert_ptr_nonnull(strstr(found.note, "NVML does not load"));
    make_trainer("back end cuda: no plugin\\n", 1);
    ck_assert_str_eq(find("auto"), "");
    ck_assert_ptr_nonnull(strstr(found.note, "no plugin"));
    ck_assert_str_eq(find("0,GPU-x"), "0,GPU-x"); /* as they were given */
    (void)unlink(trainer);
    ck_assert_str_eq(find("auto"), "");
    ck_assert_ptr_nonnull(strstr(found.note, "cannot run"));
}
END_TEST

/* Nobody is asked, and nothing is said, on a machine without a driver. */
START_TEST(no_driver)
{
    if (access("/dev/nvidiactl", F_OK) == 0)
        return;
    (void)unsetenv("ASSAY_NVML");
    make_trainer("gpu GPU-fast 100\\n", 0);
    ck_assert_str_eq(find("auto"), "");
    ck_assert_str_eq(find("5,7"), "5,7");
    ck_assert(!was_asked("") && found.note[0] == '\0');
}
END_TEST

START_TEST(a_reported_fault)
{
    static const struct {
        const char *text, *reason;
        bool all;
    } cases[] = {{"it broke\nmore\n", "it broke", false},
                 {"all: no driver\n", "no driver", true},
                 {"", "the trial gave no reason", false},
                 {"a\x01\xff\x7f z", "a ?  z", false}};
    char path[160];
    bool all = false;
    (void)snprintf(path, sizeof path, "%s/fault", dir);
    struct str reason = {0};
    ck_assert(!gpus_read_fault(path, &reason, &all));
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        str_clear(&reason);
        ck_assert(file_replace(path, cases[i].text, strlen(cases[i].text), 0600, NULL) == AS_OK);
        ck_assert(gpus_read_fault(path, &reason, &all));
        ck_assert_str_eq(str_cstr(&reason), cases[i].reason);
        ck_assert_int_eq(all, cases[i].all);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* the main loop must not wait for it */
    ck_assert(!gpus_read_fault(path, &reason, &all));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    ck_assert(!gpus_read_fault(path, &reason, &all));
    str_done(&reason);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("process_gpus");
    TCase *t = tcase_create("process_gpus");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, those_that_this_process_may_use);
    tcase_add_test(t, how_busy_they_are);
    tcase_add_test(t, the_trainer_is_asked);
    tcase_add_test(t, no_driver);
    tcase_add_test(t, a_reported_fault);
    suite_add_tcase(s, t);
    return s;
}
