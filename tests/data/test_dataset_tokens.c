#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "data/dataset_read.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char path[64];
static struct dataset_paths paths;

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/t", dir);
    paths = (struct dataset_paths){.table = path};
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

static as_status inspect(dataset_format format, const struct dataset_options *o,
                         struct dataset_info *ret)
{
    dataset_info_done(ret);
    return dataset_inspect(&paths, format, NULL, DATASET_TASK_AUTO, o, ret, &err);
}

START_TEST(text)
{
    char copy[80];
    (void)snprintf(copy, sizeof copy, "%s/copy", dir);
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    for (int packed = 0; packed < 2; packed++) {
        if (packed) {
            gzFile f = gzopen(path, "wb");
            ck_assert_int_eq(gzwrite(f, "to \xff", 4), 4);
            ck_assert_int_eq(gzclose(f), Z_OK);
        } else {
            ck_ok(file_replace(path, "to \xff", 4, 0644, &err), err);
        }
        ck_ok(inspect(DATASET_TEXT, NULL, &info), err);
        ck_assert_int_eq(info.task, DATASET_LANGUAGE_MODELING);
        ck_assert_int_eq(info.input, DATASET_TOKEN_TEXT);
        ck_assert_uint_eq(info.n_rows, 4);
        ck_assert_uint_eq(info.n_outputs, 256);
        ck_assert_uint_eq(dataset_inputs(&info), 1);
        struct dataset_paths with = {.table = path, .decoded = copy};
        for (int again = 0; again < 2; again++) {
            AS_AUTO(dataset_done) struct dataset d = {0};
            ck_ok(dataset_load(&with, &info, &d, &err), err);
            ck_assert_mem_eq(d.tokens, ((int32_t[]){'t', 'o', ' ', 255}), 16);
            ck_assert_ptr_null(d.x);
            ck_ok(file_replace(path, "to", 2, 0644, &err), err); /* the copy is read now */
        }
        ck_assert_int_eq(unlink(copy), 0);
    }
    struct dataset d = {0};
    ck_ok(file_replace(path, "to b", 4, 0644, &err), err);
    ck_assert_int_eq(truncate(path, 3), 0);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err, "3 rows, the data set says 4");
    ck_fails(dataset_inspect(&paths, DATASET_TEXT, NULL, DATASET_CLASSIFICATION, NULL, &info, &err),
             AS_E_INVAL, err, "the task says classification");
    ck_fails(dataset_inspect(&paths, DATASET_TEXT, "a", DATASET_TASK_AUTO, NULL, &info, &err),
             AS_E_INVAL, err, "not a column of a table");
    ck_assert_int_eq(truncate(path, 1), 0);
    ck_fails(inspect(DATASET_TEXT, NULL, &info), AS_E_INVAL, err, "1 tokens, expected 2");
}
END_TEST

static void put_tokens(uint32_t magic, uint32_t version, uint32_t count, size_t there)
{
    union {
        uint32_t head[256];
        uint16_t tokens[600];
    } b = {.head = {magic, version, count}};
    for (size_t i = 0; i < there; i++)
        b.tokens[512 + i] = (uint16_t)(i * 1000);
    ck_ok(file_replace(path, &b, 1024 + 2 * there, 0644, &err), err);
}

START_TEST(tokens)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    put_tokens(20240520, 1, 5, 5);
    ck_ok(inspect(DATASET_TOKENS, NULL, &info), err);
    ck_assert_uint_eq(info.n_rows, 5);
    ck_assert_uint_eq(info.n_outputs, 4001);
    AS_AUTO(dataset_done) struct dataset d = {0};
    ck_ok(dataset_load(&paths, &info, &d, &err), err);
    ck_assert_mem_eq(d.tokens, ((int32_t[]){0, 1000, 2000, 3000, 4000}), 20);
    ck_ok(inspect(DATASET_TOKENS, &(struct dataset_options){.vocab = 50257}, &info), err);
    ck_assert_uint_eq(info.n_outputs, 50257);
    ck_fails(inspect(DATASET_TOKENS, &(struct dataset_options){.vocab = 4000}, &info), AS_E_INVAL,
             err, "found the token 4000, expected less than 4000");
    ck_ok(inspect(DATASET_TOKENS, &(struct dataset_options){.raw = true}, &info), err);
    ck_assert_uint_eq(info.n_rows, 512 + 5);
    put_tokens(20240520, 2, 5, 5);
    ck_fails(inspect(DATASET_TOKENS, NULL, &info), AS_E_INVAL, err, "starts with 20240520 and 2");
    put_tokens(20240520, 1, 6, 5);
    ck_fails(inspect(DATASET_TOKENS, NULL, &info), AS_E_INVAL, err,
             "holds 5 tokens, its header says 6");
    ck_assert_int_eq(truncate(path, 1000), 0);
    ck_fails(inspect(DATASET_TOKENS, NULL, &info), AS_E_INVAL, err, "cut short in its header");
    ck_assert_int_eq(truncate(path, 999), 0);
    ck_fails(inspect(DATASET_TOKENS, &(struct dataset_options){.raw = true}, &info), AS_E_INVAL,
             err, "half a token");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("dataset_tokens");
    TCase *t = tcase_create("dataset_tokens");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, text);
    tcase_add_test(t, tokens);
    suite_add_tcase(s, t);
    return s;
}
