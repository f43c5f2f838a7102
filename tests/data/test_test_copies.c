/* Test rows that a model has learned from: by columns' names, without those that are left out. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/test_copies.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char table[64], test[64];

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(table, sizeof table, "%s/t.csv", dir);
    (void)snprintf(test, sizeof test, "%s/test.csv", dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

static as_status count(const char *a, const char *b, const char *target,
                       const struct dataset_options *o, size_t *rows, size_t *copies)
{
    ck_ok(file_replace(table, a, strlen(a), 0644, &err), err);
    ck_ok(file_replace(test, b, strlen(b), 0644, &err), err);
    return test_copies_count(table, test, target, o, rows, copies, &err);
}

static void counts(const char *a, const char *b, const struct dataset_options *o,
                   size_t expected_rows, size_t expected)
{
    size_t rows = 99, copies = 99;
    ck_ok(count(a, b, "y", o, &rows, &copies), err);
    ck_assert_uint_eq(rows, expected_rows);
    ck_assert_uint_eq(copies, expected);
}

START_TEST(rows_are_compared_by_names)
{
    const struct dataset_options o = {0};
    const char *a = "id,a,b,y\n1,3,x,no\n2,4,y,yes\n3,5,z,no\n4,6,z,\n";
    counts(a, a, &o, 3, 3); /* the same file; the last row has no target */
    counts(a, "y,b,a,id\nno,x,3,1\nno,x,3,2\n", &o, 2, 1);
}
END_TEST

START_TEST(lists_and_orders_do_not_count)
{
    char *drop[] = {"id"};
    const struct dataset_options without = {.drop = {.name = drop, .n = 1}};
    const char *a = "id,a,b,y\n1,3,x,no\n2,4,y,yes\n3,5,z,no\n";
    counts(a, "y,extra,b,a\nno,7,x, 3\nyes,7,y,4\nno,7,y,4\nno,7,y,4\n,7,z,5\n", &without, 4, 2);
}
END_TEST

START_TEST(files_are_written_alike)
{
    const struct dataset_options o = {0};
    counts("a;b;y\n1,5;x;no\n2,5;y;yes\n3,5;z;no\n", "a;b;y\n1,5;x;no\n2,5;x;no\n", &o, 2, 1);
    size_t rows = 7, copies = 7;
    ck_ok(count("1,2,3\n4,5,6\n7,8,9\n", "4,5,6\n4,5,7\n", "2", &o, &rows, &copies), err);
    ck_assert_uint_eq(copies, 1);
}
END_TEST

START_TEST(what_lacks_is_named)
{
    const struct dataset_options o = {0};
    const char *a = "a,b,y\n1,x,no\n2,y,yes\n";
    size_t rows = 7, copies = 7;
    ck_fails(count(a, "a,y\n1,no\n", "y", &o, &rows, &copies), AS_E_INVAL, err,
             "test.csv: line 1: there is no column 'b', which the training part has");
    ck_fails(count(a, "a,b,Y\n1,x,no\n", "y", &o, &rows, &copies), AS_E_INVAL, err,
             "test.csv: there is no target column 'y'; did you mean 'Y'?");
    ck_fails(count(a, "", "y", &o, &rows, &copies), AS_E_INVAL, err,
             "test.csv: the table is empty");
    ck_fails(test_copies_count(table, dir, "y", &o, &rows, &copies, &err), AS_E_INVAL, err,
             "is a folder");
    ck_assert_uint_eq(rows, 7);
    ck_assert_uint_eq(copies, 7);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("data/test_copies");
    TCase *t = tcase_create("test_copies");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, rows_are_compared_by_names);
    tcase_add_test(t, lists_and_orders_do_not_count);
    tcase_add_test(t, files_are_written_alike);
    tcase_add_test(t, what_lacks_is_named);
    suite_add_tcase(s, t);
    return s;
}
