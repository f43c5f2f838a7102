/* A part of the rows of a table: the same part whether the file is packed or not. */
#include "cli/files/row_sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#define ROWS 400
#define LONG 70000 /* more than is read at once */

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE], plain[64], packed[64], out[64];
static struct str table;

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(plain, sizeof plain, "%s/t.csv", dir);
    (void)snprintf(packed, sizeof packed, "%s/t.csv.gz", dir);
    (void)snprintf(out, sizeof out, "%s/out.csv", dir);
    str_puts(&table, "# of 2026\nx;text;y\n");
    for (int i = 0; i < ROWS; i++)
        str_printf(&table, "%d;\"two\nlines %d\";%d\n", i, i, i % 2);
    str_printf(&table, "%d;", ROWS);
    for (int i = 0; i < LONG; i++)
        str_putc(&table, 'z');
    str_puts(&table, ";1");
    ck_ok(file_replace(plain, table.s, table.len, 0644, &err), err);
    gzFile gz = gzopen(packed, "wb1");
    ck_assert_int_eq(gzwrite(gz, table.s, (unsigned)table.len), (int)table.len);
    ck_assert_int_eq(gzclose(gz), Z_OK);
}

static void teardown(void)
{
    str_done(&table);
    temp_folder_remove(dir);
}

static as_status sample(const char *path, double share, size_t *ret_kept, char **ret)
{
    const struct csv_dialect dialect = {.separator = ';', .comment = '#'};
    size_t len;
    int fd = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
    as_status st = row_sample_file(path, &dialect, share, fd, ret_kept, &err);
    (void)close(fd);
    if (st == AS_OK)
        ck_ok(file_read(out, (size_t)1 << 20, ret, &len, &err), err);
    return st;
}

START_TEST(packed_or_not)
{
    AS_AUTO(as_freep) char *a = NULL, *b = NULL, *all = NULL;
    size_t kept = 0, same = 0, every = 0, rows = 0;
    ck_ok(sample(plain, 0.3, &kept, &a), err);
    ck_ok(sample(packed, 0.3, &same, &b), err);
    ck_assert_str_eq(a, b);
    ck_assert_uint_eq(kept, same);
    ck_assert_uint_gt(kept, ROWS / 5);
    ck_assert_uint_lt(kept, ROWS / 2);
    ck_assert(strncmp(a, "# of 2026\nx;text;y\n", 19) == 0);
    for (const char *at = a; (at = strstr(at, "two\nlines ")); at++)
        rows++;
    ck_assert_uint_ge(rows + 1, kept); /* a record stays whole */
    ck_assert_uint_le(rows, kept);
    ck_ok(sample(packed, 1, &every, &all), err);
    ck_assert_str_eq(all, str_cstr(&table));
    ck_assert_uint_eq(every, ROWS + 1);
}
END_TEST

START_TEST(a_damaged_file)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t kept;
    ck_assert_int_eq(truncate(packed, 200), 0);
    ck_assert_int_eq(sample(packed, 0.3, &kept, &text), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "t.csv.gz"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("row_sample");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, packed_or_not);
    tcase_add_test(t, a_damaged_file);
    suite_add_tcase(s, t);
    return s;
}
