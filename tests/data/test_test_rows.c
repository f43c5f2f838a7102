/* The rows of a test file: they are read by the decisions of the training part, and what that has
 * not seen is refused with its line and column. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char train_path[64], test_path[64];
static struct dataset_info info;
static size_t rows;

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(train_path, sizeof train_path, "%s/train", dir);
    (void)snprintf(test_path, sizeof test_path, "%s/test", dir);
}

static void teardown(void)
{
    dataset_info_done(&info);
    info = (struct dataset_info){0};
    temp_folder_remove(dir);
}

static void write_text(const char *path, const char *text)
{
    ck_ok(file_replace(path, text, strlen(text), 0644, &err), err);
}

static void train_on(const char *text, const char *target)
{
    write_text(train_path, text);
    ck_ok(dataset_inspect(&(struct dataset_paths){.table = train_path}, DATASET_CSV, target,
                          DATASET_TASK_AUTO, NULL, &info, &err),
          err);
}

static as_status inspect_test(const char *text)
{
    write_text(test_path, text);
    return dataset_test_inspect(&(struct dataset_paths){.table = test_path}, &info, &rows, &err);
}

static struct dataset load_test(void)
{
    struct dataset d = {0};
    ck_ok(dataset_test_load(&(struct dataset_paths){.table = test_path}, &info, rows, &d, &err),
          err);
    return d;
}

#define TRAIN                                                                                      \
    "age,colour,size,class\n1,red,10,no\n2,blue,,yes\n3,red,12,no\n4,blue,9,yes\n5,red,7,no\n"

START_TEST(they_are_read_as_the_training_part_says)
{
    train_on(TRAIN, "class");
    /* read alone, `age` would be text and there would be one class */
    ck_ok(inspect_test("age,colour,size,class\n7,red,,yes\n8,blue,1,yes\n"), err);
    ck_assert_uint_eq(rows, 2);
    AS_AUTO(dataset_done) struct dataset d = load_test();
    ck_assert_uint_eq(d.n_rows, 2);
    ck_assert_float_eq(d.x[0], 7);
    ck_assert_float_eq(d.x[1], 1); /* blue, red */
    ck_assert(isnan(d.x[2]));
    ck_assert_float_eq(d.x[4], 0);
    ck_assert_int_eq(d.labels[0], 1);
    ck_assert_int_eq(d.labels[1], 1);
}
END_TEST

START_TEST(what_the_training_part_has_not_is_refused)
{
    static const struct {
        const char *text, *expected[3];
    } bad[] = {
        {"age,colour,size,class\n7,red,1,maybe\n", {"line 2", "'class'", "maybe"}},
        {"age,colour,size,class\nold,red,1,yes\n", {"line 2", "'age'", "old"}},
        {"age,color,size,class\n7,red,1,yes\n", {"line 1", "color", "colour"}},
        {"colour,age,colour,class\nred,7,1,yes\n", {"line 1", "2 columns", "'colour'"}},
        {"age,colour,more,class\n7,red,1,yes\n",
         {"line 1", "no column 'size'", "age, colour, more"}},
        {"7,red,1,yes\n8,red,2,no\n", {"class", "red", "yes"}},
        {"age,colour,size,class\n", {"no ", "rows", "row"}},
    };
    train_on(TRAIN, "class");
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(inspect_test(bad[i].text), AS_E_INVAL);
        for (size_t k = 0; k < 3; k++)
            ck_assert_msg(strstr(err.msg, bad[i].expected[k]) != NULL, "case %zu: '%s' has no '%s'",
                          i, err.msg, bad[i].expected[k]);
    }
}
END_TEST

/* As in rows to predict, columns are known by their names; those that the training part left out
 * may be there or not. */
START_TEST(columns_stand_anywhere)
{
    static const char *const texts[] = {
        "id,age,colour,when,size,class\n1,7,red,2024-03-09,1,yes\n",
        "class,more,size,when,colour,age\nyes,x,1,2024-03-09,red,7\n"};
    const struct dataset_options o = {.drop = {(char *[]){(char *)"id"}, 1}};
    write_text(train_path, "id,age,colour,when,size,class\n1,1,red,2024-03-04,10,no\n"
                           "2,2,blue,2024-03-11,,yes\n3,3,red,2024-03-07,12,no\n"
                           "4,4,blue,2024-03-08,9,yes\n");
    ck_ok(dataset_inspect(&(struct dataset_paths){.table = train_path}, DATASET_CSV, "class",
                          DATASET_TASK_AUTO, &o, &info, &err),
          err);
    ck_ok(inspect_test(texts[0]), err);
    AS_AUTO(dataset_done) struct dataset straight = load_test();
    ck_ok(inspect_test(texts[1]), err);
    AS_AUTO(dataset_done) struct dataset turned = load_test();
    ck_assert(straight.n_features == 6 && straight.x[0] == 7 && straight.labels[0] == 1);
    ck_assert_mem_eq(straight.x, turned.x, 6 * sizeof *turned.x);
    ck_assert_int_eq(turned.labels[0], 1);
}
END_TEST

/* What predicting takes: a category that the training part has not, or has in one row alone, is
 * another one; a cell may be missing that is in every row there. */
START_TEST(new_rows_may_be_unlike_the_training_part)
{
    train_on("n,colour,class\n1,red,no\n2,red,yes\n3,green,no\n4,blue,no\n5,blue,yes\n", "class");
    ck_ok(inspect_test("n,colour,class\n1,pink,no\n2,green,yes\n,,no\n"), err);
    AS_AUTO(dataset_done) struct dataset rare = load_test();
    ck_assert_float_eq(rare.x[1], 2); /* another one */
    ck_assert_float_eq(rare.x[3], 2);
    ck_assert(isnan(rare.x[4]));
    ck_assert_float_eq(rare.x[5], 3); /* missing */
    dataset_info_done(&info);
    train_on(TRAIN, "class"); /* no colour is rare there */
    ck_ok(inspect_test("age,colour,size,class\n7,pink,1,no\n"), err);
    AS_AUTO(dataset_done) struct dataset d = load_test();
    ck_assert_float_eq(d.x[1], 2);
}
END_TEST

/* Without a header the first row of text above numbers is data, as it is in the training part. */
START_TEST(a_file_without_header_stays_without)
{
    train_on("39, A, 1, no\n38, A, 3, no\n50, 7, 2, yes\n28, 7, 4, yes\n", "3");
    ck_ok(inspect_test("41, A, 1, no\n42, 7, 2, yes\n43, 7, 2, yes\n"), err);
    ck_assert_uint_eq(rows, 3);
    ck_assert_int_eq(inspect_test("age, code, n, class\n41, A, 1, no\n"), AS_E_INVAL);
    ck_assert_msg(strstr(err.msg, "line 1") != NULL, "%s", err.msg);
}
END_TEST

/* pandas writes indices as a header when columns have no names. */
START_TEST(indices_may_be_a_header)
{
    train_on("0,1,2,3\n5.5,6,1,1\n7.5,8,2,0\n5.5,5,1,1\n", "3");
    ck_assert_uint_eq(info.n_rows, 3);
    ck_ok(inspect_test("0,1,2,3\n5.5,6,1,1\n"), err);
    ck_assert_uint_eq(rows, 1);
    ck_ok(inspect_test("5.5,6,1,1\n7.5,8,1,1\n"), err);
    ck_assert_uint_eq(rows, 2);
}
END_TEST

/* Names that are numbers are a header if the target has another. */
START_TEST(numbers_may_be_names)
{
    train_on("0,1,class\n5,6,a\n7,8,b\n5,5,a\n", "class");
    ck_ok(inspect_test("0,1,class\n5,6,b\n"), err);
    ck_assert_uint_eq(rows, 1);
}
END_TEST

static void write_array(const char *path, npy_type type, const size_t *shape, size_t n,
                        const void *data)
{
    ck_ok(npy_write(path, type, shape, n, data, &err), err);
}

static void fails_with(as_status st, const char *part)
{
    ck_assert_int_eq(st, AS_E_INVAL);
    ck_assert_msg(strstr(err.msg, part) != NULL, "%s", err.msg);
}

/* The dialect, dates, texts and dropped columns are those of the training part too. */
START_TEST(dialect_and_derived_columns)
{
    static const char text[] = "id;when;note;n;y\n"
                               "a;02.03.2024;;1,5;1\nb;04.05.2024;very good tea;2,5;0\n"
                               "c;09.12.2024;good cake and tea;;1\n";
    struct dataset_options o = {.comment = '#',
                                .drop = {(char *[]){(char *)"id"}, 1},
                                .text = {(char *[]){(char *)"note"}, 1},
                                .buckets = 8};
    write_text(train_path, text);
    ck_ok(dataset_inspect(&(struct dataset_paths){.table = train_path}, DATASET_CSV, "y",
                          DATASET_TASK_AUTO, &o, &info, &err),
          err);
    ck_ok(inspect_test("# later\nid;when;note;n;y\nz;03.03.2024;new words;0,5;1\n"), err);
    AS_AUTO(dataset_done) struct dataset d = load_test();
    ck_assert_float_eq(d.x[0], 1); /* a day after the first one */
    ck_assert_float_eq(d.x[d.n_features - 1], 0.5f);
    ck_ok(inspect_test("id;when;note;n;y\nz;;new words;0,5;1\n"), err); /* as of new rows */
    fails_with(inspect_test("id;when;note;n;y\nz;soon;new words;0,5;1\n"), "'when', line 2");
    fails_with(inspect_test("id;when;notes;n;y\nz;03.03.2024;a;0,5;1\n"), "note");
}
END_TEST

START_TEST(arrays_have_test_rows_too)
{
    char x[80], y[80], tx[80], ty[80];
    (void)snprintf(x, sizeof x, "%s.x.npy", train_path);
    (void)snprintf(y, sizeof y, "%s.y.npy", train_path);
    (void)snprintf(tx, sizeof tx, "%s.x.npy", test_path);
    (void)snprintf(ty, sizeof ty, "%s.y.npy", test_path);
    write_array(x, NPY_F4, (size_t[]){3, 2}, 2, (float[]){1, 2, 3, 4, 5, 6});
    write_array(y, NPY_I8, (size_t[]){3}, 1, (int64_t[]){4, 9, 4});
    ck_ok(dataset_inspect(&(struct dataset_paths){.features = x, .targets = y}, DATASET_NPY, NULL,
                          DATASET_CLASSIFICATION, NULL, &info, &err),
          err);
    const struct dataset_paths test = {.features = tx, .targets = ty};
    write_array(tx, NPY_F4, (size_t[]){1, 2}, 2, (float[]){7, 8});
    write_array(ty, NPY_I8, (size_t[]){1}, 1, (int64_t[]){9});
    ck_ok(dataset_test_inspect(&test, &info, &rows, &err), err);
    AS_AUTO(dataset_done) struct dataset d = {0};
    ck_ok(dataset_test_load(&test, &info, rows, &d, &err), err);
    ck_assert_uint_eq(d.n_rows, 1);
    ck_assert_int_eq(d.labels[0], 1);
    ck_assert_float_eq(d.x[1], 8);
    write_array(tx, NPY_F4, (size_t[]){2, 2}, 2, (float[]){7, 8, 1, NAN});
    write_array(ty, NPY_I8, (size_t[]){2}, 1, (int64_t[]){9, 9});
    ck_assert_int_eq(dataset_test_inspect(&test, &info, &rows, &err), AS_E_INVAL);
    ck_assert_msg(strstr(err.msg, "row 1, feature 1") != NULL, "%s", err.msg);
    write_array(tx, NPY_F4, (size_t[]){2, 2}, 2, (float[]){7, 8, 1, 2});
    write_array(ty, NPY_I8, (size_t[]){2}, 1, (int64_t[]){9, 5});
    ck_assert_int_eq(dataset_test_inspect(&test, &info, &rows, &err), AS_E_INVAL);
    ck_assert_msg(strstr(err.msg, "row 1") != NULL, "%s", err.msg);
}
END_TEST

START_TEST(text_has_none)
{
    write_text(train_path, "many bytes of a text that is long enough to be one");
    ck_ok(dataset_inspect(&(struct dataset_paths){.table = train_path}, DATASET_TEXT, NULL,
                          DATASET_TASK_AUTO, NULL, &info, &err),
          err);
    ck_assert_int_eq(inspect_test("another one"), AS_E_UNSUPPORTED);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("test_rows");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, they_are_read_as_the_training_part_says);
    tcase_add_test(t, what_the_training_part_has_not_is_refused);
    tcase_add_test(t, new_rows_may_be_unlike_the_training_part);
    tcase_add_test(t, columns_stand_anywhere);
    tcase_add_test(t, a_file_without_header_stays_without);
    tcase_add_test(t, indices_may_be_a_header);
    tcase_add_test(t, numbers_may_be_names);
    tcase_add_test(t, dialect_and_derived_columns);
    tcase_add_test(t, arrays_have_test_rows_too);
    tcase_add_test(t, text_has_none);
    suite_add_tcase(s, t);
    return s;
}
