#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/check_main.h"
#include "trial-runner/train/report_file.h"
#include "tests/support/temp_folder.h"

static struct as_err err;

START_TEST(lines)
{
    char dir[TEMP_FOLDER_SIZE];
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *path = file_join(dir, "report");
    AS_AUTO(str_done) struct str line = {0};
    struct report_value values[] = {{"val_error", 0.1}, {"val_loss", NAN}, {"x", -INFINITY}};
    ck_ok(report_format(3, values, 3, &line, &err), err);
    ck_assert_str_eq(str_cstr(&line), "{\"step\": 3, \"val_error\": 0.1, \"val_loss\": \"NaN\", "
                                      "\"x\": \"-Infinity\"}\n");
    JSON_AUTO j = NULL;
    double v = 0;
    ck_ok(json_parse(line.s, line.len, &j, &err), err);
    ck_assert(json_number_get(json_object_get(j, "val_loss"), &v) && isnan(v));
    AS_AUTO(report_file_done) struct report_file report, gone, none;
    ck_ok(report_file_init(&report, path, &err), err);
    ck_ok(report_file_init(&gone, path, &err), err);
    ck_ok(report_file_init(&none, NULL, &err), err);
    ck_ok(report_file_append(&report, &line, &err), err);
    ck_ok(report_file_append(&report, &line, &err), err);
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    ck_ok(file_read(path, 1 << 16, &text, &len, &err), err);
    ck_assert_uint_eq(len, 2 * line.len);
    temp_folder_remove(dir);
    ck_fails(report_file_append(&gone, &line, &err), AS_E_IO, err, path);
    ck_ok(report_file_append(&none, &line, &err), err);
}
END_TEST

START_TEST(lines_of_later_steps)
{
    char dir[TEMP_FOLDER_SIZE];
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *path = file_join(dir, "report");
    AS_AUTO(report_file_done) struct report_file report, none;
    AS_AUTO(str_done) struct str all = {0}, later = {0}, line = {0};
    struct report_value value = {"loss", 0.5};
    ck_ok(report_file_init(&report, path, &err), err);
    ck_ok(report_file_init(&none, NULL, &err), err);
    ck_ok(report_file_lines(&report, -1, &all, &err), err); /* it does not exist yet */
    ck_ok(report_file_lines(&none, -1, &all, &err), err);
    ck_assert_uint_eq(all.len, 0);
    for (int64_t step = 8; step <= 11; step++) {
        str_clear(&line);
        ck_ok(report_format(step, &value, 1, &line, &err), err);
        ck_ok(report_file_append(&report, &line, &err), err);
        ck_assert_int_eq(report_step(line.s), step);
    }
    ck_ok(report_file_lines(&report, -1, &all, &err), err);
    ck_ok(report_file_lines(&report, 9, &later, &err), err);
    ck_assert_str_eq(later.s, "{\"step\": 10, \"loss\": 0.5}\n{\"step\": 11, \"loss\": 0.5}\n");
    ck_assert_str_eq(all.s + all.len - later.len, later.s);
    ck_assert_int_eq(report_step("{\"steps\": 3}"), -1);
    ck_assert_int_eq(report_step(""), -1);
    temp_folder_remove(dir);
}
END_TEST

/* A file that is longer than what is sent gives whole lines of its end. */
START_TEST(the_end_of_a_long_file)
{
    char dir[TEMP_FOLDER_SIZE];
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *path = file_join(dir, "report");
    AS_AUTO(report_file_done) struct report_file report;
    AS_AUTO(str_done) struct str text = {0}, got = {0};
    int64_t step = 0;
    ck_ok(report_file_init(&report, path, &err), err);
    while (text.len <= REPORT_LINES_MAX + 1000)
        ck_ok(report_format(++step, &(struct report_value){"loss", 0.5}, 1, &text, &err), err);
    ck_ok(report_file_append(&report, &text, &err), err);
    ck_ok(report_file_lines(&report, -1, &got, &err), err);
    ck_assert_uint_le(got.len, REPORT_LINES_MAX);
    ck_assert_uint_gt(got.len, REPORT_LINES_MAX - 100);
    ck_assert_str_eq(text.s + text.len - got.len, got.s);
    ck_assert(text.s[text.len - got.len - 1] == '\n');
    temp_folder_remove(dir);
}
END_TEST

START_TEST(full_disk)
{
    AS_AUTO(str_done) struct str line = {0};
    str_puts(&line, "{\"step\": 1}\n");
    AS_AUTO(report_file_done) struct report_file full;
    ck_ok(report_file_init(&full, "/dev/full", &err), err);
    ck_fails(report_file_append(&full, &line, &err), AS_E_IO, err, "No space left");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("report");
    TCase *t = tcase_create("report");
    tcase_add_test(t, lines);
    tcase_add_test(t, lines_of_later_steps);
    tcase_add_test(t, the_end_of_a_long_file);
    tcase_add_test(t, full_disk);
    suite_add_tcase(s, t);
    return s;
}
