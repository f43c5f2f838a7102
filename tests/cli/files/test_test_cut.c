/* A table is cut in two by a column: each line goes to one part, as it was written. */
#include "cli/files/test_cut.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE], path[64], train[64], test[64];
static struct test_cut rows;

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/all.csv", dir);
    (void)snprintf(train, sizeof train, "%s/train.csv", dir);
    (void)snprintf(test, sizeof test, "%s/test.csv", dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

static as_status cut_bytes(const char *text, size_t len, const char *column)
{
    const struct csv_dialect unknown = {.separator = '\0'};
    ck_ok(file_replace(path, text, len, 0644, &err), err);
    int a = open(train, O_RDWR | O_CREAT | O_TRUNC, 0600);
    int b = open(test, O_RDWR | O_CREAT | O_TRUNC, 0600);
    as_status st = test_cut_file(path, &unknown, column, a, b, &rows, &err);
    (void)close(a);
    (void)close(b);
    return st;
}

static as_status cut(const char *text, const char *column)
{
    return cut_bytes(text, strlen(text), column);
}

static void holds(const char *name, const char *expected)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    ck_ok(file_read(name, 4096, &text, &len, &err), err);
    ck_assert_str_eq(text, expected);
}

START_TEST(each_row_goes_to_one_part)
{
    ck_ok(cut("a,part,y\n1,train,0\n2,TEST,1\n3, train ,0\n4,testing,1", "part"), err);
    ck_assert_uint_eq(rows.n_train, 2);
    ck_assert_uint_eq(rows.n_test, 2);
    holds(train, "a,part,y\n1,train,0\n3, train ,0\n");
    holds(test, "a,part,y\n2,TEST,1\n4,testing,1");
}
END_TEST

/* Records of several lines, another separator, a byte order mark, CRLF and empty lines stay. */
START_TEST(lines_stay_as_they_are)
{
    ck_ok(cut("\xef\xbb\xbfname;held;y\r\n\"a;\r\nb\";1;2,5\r\n\r\nc;0;3,5\r\n\"d "
              "\"\"e\"\"\";1;1\r\n",
              "held"),
          err);
    holds(train, "\xef\xbb\xbfname;held;y\r\nc;0;3,5\r\n");
    holds(test, "\xef\xbb\xbfname;held;y\r\n\"a;\r\nb\";1;2,5\r\n\r\n\"d \"\"e\"\"\";1;1\r\n");
}
END_TEST

START_TEST(a_table_without_header_has_indices)
{
    ck_ok(cut("1,0,7\n2,1,8\n3,0,9\n", "1"), err);
    holds(train, "1,0,7\n3,0,9\n");
    holds(test, "2,1,8\n");
}
END_TEST

START_TEST(what_is_not_clear_is_refused)
{
    static const struct {
        const char *text, *column, *expected;
        as_status st;
    } bad[] = {
        {"a,part\n1,train\n2,perhaps\n", "part", "line 3: found 'perhaps'", AS_E_INVAL},
        {"a,part\n1,train\n2,test\n", "parts", "the columns are: a, part", AS_E_INVAL},
        {"a,part\n1,train\n2,train\n", "part", "0 test rows of 2", AS_E_INVAL},
        {"a,part\n1,test\n", "part", "1 test rows of 1", AS_E_INVAL},
        {"a,part\n1,test\n2\n", "part", "line 3", AS_E_INVAL},
        {"\x1f\x8b\b", "part", "cut short", AS_E_INVAL},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(cut(bad[i].text, bad[i].column), bad[i].st);
        ck_assert_msg(strstr(err.msg, bad[i].expected) && strstr(err.msg, "all.csv"),
                      "case %zu: %s", i, err.msg);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("test_cut");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, each_row_goes_to_one_part);
    tcase_add_test(t, lines_stay_as_they_are);
    tcase_add_test(t, a_table_without_header_has_indices);
    tcase_add_test(t, what_is_not_clear_is_refused);
    suite_add_tcase(s, t);
    return s;
}
