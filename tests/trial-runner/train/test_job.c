/* JOB.json in both forms: what is read, what is refused, and what the fingerprint depends on. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"
#include "trial-runner/train/job.h"
#include "trial-runner/train/member.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char path[64];

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/job.json", dir);
    (void)unsetenv("ASSAY_SEED");
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

#define TRAIN "\"train\":{\"dataset\":\"d\",\"epochs\":3}"
#define DATA                                                                                       \
    "\"dataset\":{\"name\":\"d\",\"format\":\"csv\",\"task\":\"regression\",\"rows\":9,"           \
    "\"features\":3,\"outputs\":1,\"target\":\"y\",\"sha256\":\"ab\",\"files\":[],"                \
    "\"created_at\":\"2026\",\"paths\":{\"table\":\"/tmp/t.csv\"}}"

static as_status read_job(const char *text, struct job *ret)
{
    ck_ok(file_replace(path, text, strlen(text), 0644, &err), err);
    return job_read(path, ret, &err);
}

/* What the job's only member is. */
static as_status read_member(const char *text, struct member **ret)
{
    AS_AUTO(job_done) struct job job = {0};
    as_status st = read_job(text, &job);
    return st == AS_OK ? member_create(&job, &job.members[0], ret, &err) : st;
}

/* The folder of the first member goes with its end; the others read the test rows at theirs. */
START_TEST(a_group_keeps_its_test_rows)
{
    AS_AUTO(as_freep) char *rows = file_join(dir, "rows.csv"), *text = NULL;
    struct job job = {.group = true, .test = as_strdup(rows)};
    size_t n = 0;
    ck_ok(file_replace(rows, "y,x\n1,2\n", 8, 0644, &err), err);
    ck_ok(job_hold_test(&job, &err), err);
    ck_assert_int_eq(unlink(rows), 0);
    for (int i = 0; i < 2; i++) { /* each member reads it from its begin */
        as_freep(&text);
        ck_ok(file_read(job.test, 100, &text, &n, &err), err);
        ck_assert_str_eq(text, "y,x\n1,2\n");
    }
    job_done(&job);
    job = (struct job){.group = true, .test = as_strdup(rows)};
    ck_fails(job_hold_test(&job, &err), AS_E_IO, err, "rows.csv");
    job_done(&job);
}
END_TEST

START_TEST(whole_job)
{
    AS_AUTO(job_done) struct job job = {0};
    AS_AUTO(member_freep) struct member *m = NULL, *other = NULL, *moved = NULL;
    (void)setenv("ASSAY_SEED", "18446744073709551615", 1);
    (void)setenv("ASSAY_REPORT", "/tmp/r", 1);
    (void)setenv("ASSAY_CHECKPOINTS", "", 1);
    (void)unsetenv("ASSAY_ARTIFACTS");
    ck_ok(read_job("{" TRAIN "," DATA ",\"metric\":{\"name\":\"val_rmse\",\"goal\":\"minimize\"}}",
                   &job),
          err);
    ck_assert(!job.group);
    ck_assert_uint_eq(job.n_members, 1);
    ck_assert_uint_eq(job.members[0].seed, UINT64_MAX);
    ck_assert_str_eq(job.members[0].report, "/tmp/r");
    ck_assert_ptr_null(job.members[0].checkpoints);
    ck_assert_str_eq(job_paths(&job).table, "/tmp/t.csv");
    ck_assert_uint_eq(job.info.n_rows, 9);
    ck_ok(member_create(&job, &job.members[0], &m, &err), err);
    ck_assert_int_eq(m->spec.epochs, 3);
    (void)setenv("ASSAY_SEED", "7", 1);
    ck_ok(read_member("{" TRAIN "," DATA "}", &other), err);
    ck_assert_str_ne(m->fingerprint, other->fingerprint);
    ck_ok(read_member("{\"dataset\":{\"paths\":{\"table\":\"/elsewhere\"},\"format\":\"csv\","
                      "\"task\":\"regression\",\"rows\":9,\"features\":3,\"outputs\":1,\"target\":"
                      "\"y\",\"sha256\":\"ab\"},\"train\":{\"epochs\":3,\"dataset\":\"d\"}}",
                      &moved),
          err);
    ck_assert_str_eq(moved->fingerprint, other->fingerprint); /* neither paths nor order count */
}
END_TEST

START_TEST(group_form)
{
    AS_AUTO(job_done) struct job job = {0};
    AS_AUTO(member_freep) struct member *m = NULL, *alone = NULL;
    (void)setenv("ASSAY_SEED", "9", 1);
    ck_ok(read_member("{" TRAIN "," DATA "}", &alone), err);
    ck_ok(read_job("{" DATA ",\"slots\":4,\"members\":[{\"id\":\"a\",\"seed\":\"9\"," TRAIN
                   "},{\"id\":\"b\",\"seed\":\"8\"," TRAIN "}]}",
                   &job),
          err);
    ck_assert(job.group);
    ck_assert_uint_eq(job.slots, 4);
    ck_assert_uint_eq(job.n_members, 2);
    ck_assert_str_eq(job.members[1].id, "b");
    ck_ok(member_create(&job, &job.members[0], &m, &err), err);
    ck_assert_str_eq(m->fingerprint, alone->fingerprint); /* the same trial, alone or not */
}
END_TEST

START_TEST(refused)
{
    struct job job = {0};
    struct member *m = NULL;
    ck_fails(job_read("/nonexistent.json", &job, &err), AS_E_NOT_FOUND, err, "/nonexistent.json");
    ck_fails(read_job("{", &job), AS_E_INVAL, err, "job.json: not JSON");
    ck_fails(read_job("{" TRAIN "}", &job), AS_E_INVAL, err, "/dataset is missing");
    ck_fails(read_job("{" DATA "}", &job), AS_E_INVAL, err, "/train is missing");
    ck_fails(read_job("{" TRAIN "," DATA ",\"x\":1}", &job), AS_E_INVAL, err, "/x");
    ck_fails(read_job("{" DATA ",\"slots\":65,\"members\":[]}", &job), AS_E_INVAL, err, "/slots");
    ck_fails(read_job("{" DATA ",\"slots\":1,\"members\":[{},{}]}", &job), AS_E_INVAL, err,
             "/members: found 2, expected at most 1");
    ck_fails(read_job("{" DATA ",\"slots\":2,\"members\":[{\"id\":\"a\",\"seed\":\"1\"," TRAIN
                      "},{\"id\":\"a\",\"seed\":\"1\"," TRAIN "}]}",
                      &job),
             AS_E_INVAL, err, "/members/1/id");
    ck_fails(
        read_job("{" DATA ",\"slots\":2,\"members\":[{\"id\":\"a\",\"seed\":1," TRAIN "}]}", &job),
        AS_E_INVAL, err, "/members/0/seed");
    ck_fails(read_member("{\"train\":{\"dataset\":\"d\",\"epochs\":0}," DATA "}", &m), AS_E_INVAL,
             err, "/train/epochs: found 0");
    ck_fails(
        read_member(
            "{\"train\":{\"dataset\":\"d\",\"epochs\":1,\"loss\":\"cross_entropy\"}," DATA "}", &m),
        AS_E_INVAL, err, "/train/loss");
    ck_fails(
        read_member("{\"train\":{\"dataset\":\"d\",\"epochs\":1,\"model\":{\"layers\":[65536,65536]"
                    "}}," DATA "}",
                    &m),
        AS_E_TOO_LARGE, err, "/train/model/layers: the model has");
    ck_fails(read_member("{" TRAIN "," DATA ",\"metric\":{\"name\":\"val_error\"}}", &m),
             AS_E_INVAL, err,
             "/metric/name: found 'val_error', which the trainer does not report for regression");
    (void)setenv("ASSAY_SEED", "-1", 1);
    ck_fails(read_job("{" TRAIN "," DATA "}", &job), AS_E_INVAL, err, "ASSAY_SEED: found '-1'");
    (void)setenv("ASSAY_SEED", "18446744073709551616", 1);
    ck_fails(read_job("{" TRAIN "," DATA "}", &job), AS_E_INVAL, err, "ASSAY_SEED");
}
END_TEST

START_TEST(out_of_memory)
{
    static const char text[] = "{" TRAIN "," DATA "}";
    ck_ok(file_replace(path, text, strlen(text), 0644, &err), err);
    for (size_t n = 1; n < 100; n++) {
        AS_AUTO(job_done) struct job job = {0};
        AS_AUTO(member_freep) struct member *m = NULL;
        as_mem_fail_nth(n);
        as_status st = job_read(path, &job, &err);
        if (st == AS_OK)
            st = member_create(&job, &job.members[0], &m, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
    }
}
END_TEST

#define WITH_TEST(rows, digest, paths)                                                             \
    "{" TRAIN ",\"dataset\":{\"name\":\"d\",\"format\":\"csv\",\"task\":\"regression\","           \
    "\"rows\":9,\"features\":3,\"outputs\":1,\"target\":\"y\",\"sha256\":\"" digest                \
    "\",\"test\":{\"rows\":" rows ",\"train_sha256\":\"ab\"},\"paths\":{" paths "}}}"
#define TABLE "\"table\":\"/tmp/t.csv\""

/* Other test rows are another data set, and the same training. */
START_TEST(test_rows_do_not_show)
{
    AS_AUTO(job_done) struct job job = {0}, bad = {0};
    AS_AUTO(member_freep) struct member *m = NULL, *other = NULL, *none = NULL;
    ck_ok(read_job(WITH_TEST("4", "cd", TABLE ",\"test\":\"/tmp/u.csv\""), &job), err);
    ck_assert_uint_eq(job.test_rows, 4);
    ck_assert_str_eq(job.test, "/tmp/u.csv");
    ck_ok(read_member(WITH_TEST("4", "cd", TABLE ",\"test\":\"/tmp/u.csv\""), &m), err);
    ck_ok(read_member(WITH_TEST("5", "ef", TABLE ",\"test\":\"/tmp/v.csv\""), &other), err);
    ck_ok(read_member("{" TRAIN "," DATA "}", &none), err);
    ck_assert_str_eq(m->fingerprint, other->fingerprint);
    ck_assert_str_eq(m->fingerprint, none->fingerprint);
    ck_fails(read_job(WITH_TEST("4", "cd", TABLE), &bad), AS_E_INVAL, err, "expected test");
}
END_TEST

START_TEST(test_rows_need_their_files)
{
    AS_AUTO(job_done) struct job job = {0};
    ck_fails(read_job(WITH_TEST("0", "cd", TABLE ",\"test\":\"/tmp/u.csv\""), &job), AS_E_INVAL,
             err, "/dataset/test/rows");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("job");
    TCase *t = tcase_create("job");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, whole_job);
    tcase_add_test(t, a_group_keeps_its_test_rows);
    tcase_add_test(t, group_form);
    tcase_add_test(t, refused);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, test_rows_do_not_show);
    tcase_add_test(t, test_rows_need_their_files);
    suite_add_tcase(s, t);
    return s;
}
