/* CSV as programs write it: in pieces, quoted, with holes, and written again from the beginning. */
#include "tests/support/check_main.h"

#include <string.h>

#include "tests/trial-runner/reports/seen.h"
#include "trial-runner/reports/csv_reader.h"

static const struct {
    const char *step, *bytes, *want;
} cases[] = {
    {NULL, "loss\n0.5\n0.25\n", "0{\"loss\":0.5} 1{\"loss\":0.25} "},
    {NULL, "step,loss\r\n3,0.5\r\n7,nan\r\n", "3{\"loss\":0.5} 7{\"loss\":\"NaN\"} "},
    {"epoch", "epoch,step,loss\n1,10,0.5\n", "1{\"loss\":0.5,\"step\":10.0} "},
    {"epoch", "loss\n1\n", "bad1(the header has no column 'epoc) 0{\"loss\":1.0} "},
    /* Lightning: the rows of training and validation have different cells */
    {"epoch", "epoch,val/loss,lr\n0,,0.1\n0,0.5,\n", "0{\"lr\":0.1} 0{\"val/loss\":0.5} "},
    {NULL,
     "\xEF\xBB\xBF"
     "a;b\n1;2\n",
     "0{\"a\":1.0,\"b\":2.0} "},
    {NULL, "a\tb\n1\t2\n", "0{\"a\":1.0,\"b\":2.0} "},
    {NULL, "a,b\n1,\"x, \"\"y\"\"\nz\"\n2,ok\n", "b=x, \"y\"\nz 0{\"a\":1.0} b=ok 1{\"a\":2.0} "},
    {NULL, "a,b\n1,5\" disk\n2,3\n", "b=5\" disk 0{\"a\":1.0} 1{\"a\":2.0,\"b\":3.0} "},
    {NULL, "step,a\nx,1\n-1,2\n",
     "bad2(the step must be a whole numbe) 0{\"a\":1.0} "
     "bad3(the step must be a whole numbe) 1{\"a\":2.0} "},
    {NULL, ",a\n0,1\n1,2\n", "0{\"a\":1.0} 1{\"a\":2.0} "}, /* an index of pandas */
    {NULL, "a\n1\na\n2\n", "0{\"a\":1.0} 1{\"a\":2.0} "},   /* a header again */
    {NULL, "a,b\n1\n1,2,3\n", "0{\"a\":1.0} 1{\"a\":1.0,\"b\":2.0} "},
    {NULL, "\n\na\n\n -inf \n", "0{\"a\":\"-Infinity\"} "},
    {NULL, "a\n1", "0{\"a\":1.0} "}, /* completed by the end */
};

static void feed(struct csv_reader *r, struct seen *s, const char *bytes, size_t len)
{
    struct report_fns fns = seen_fns(s);
    struct as_err err = {0};
    ck_ok(csv_reader_feed(r, bytes, len, &fns, &err), err);
}

START_TEST(rows)
{
    size_t len = strlen(cases[_i].bytes);
    for (size_t piece = 1; piece <= len; piece += 2) { /* whatever the pieces */
        struct csv_reader r = {.step_column = cases[_i].step};
        struct seen s = {0};
        struct report_fns fns = seen_fns(&s);
        struct as_err err = {0};
        for (size_t at = 0; at < len; at += piece)
            feed(&r, &s, cases[_i].bytes + at, len - at < piece ? len - at : piece);
        ck_ok(csv_reader_end(&r, &fns, &err), err);
        ck_assert_str_eq(str_cstr(&s.text), cases[_i].want);
        csv_reader_done(&r);
        str_done(&s.text);
    }
}
END_TEST

START_TEST(a_file_that_is_written_again_counts_once)
{
    struct csv_reader r = {.step_column = "epoch"};
    struct seen s = {0};
    feed(&r, &s, "epoch,loss\n0,0.5\n", 17);
    csv_reader_restart(&r);
    feed(&r, &s, "epoch,loss\n0,0.5\n1,0.4\n", 23);
    csv_reader_restart(&r);
    feed(&r, &s, "epoch,loss\n0,0.5\n1,0.4\n2,0.3\n", 29);
    ck_assert_str_eq(str_cstr(&s.text), "0{\"loss\":0.5} 1{\"loss\":0.4} 2{\"loss\":0.3} ");
    csv_reader_restart(&r); /* another run's: from the first row that differs everything is new */
    str_clear(&s.text);
    feed(&r, &s, "epoch,loss\n0,0.5\n1,0.7\n2,0.3\n", 29);
    ck_assert_str_eq(str_cstr(&s.text), "1{\"loss\":0.7} 2{\"loss\":0.3} ");
    csv_reader_restart(&r); /* a new column */
    str_clear(&s.text);
    feed(&r, &s, "epoch,loss,acc\n0,0.5,1\n", 23);
    ck_assert_str_eq(str_cstr(&s.text), "0{\"acc\":1.0,\"loss\":0.5} ");
    csv_reader_done(&r);
    str_done(&s.text);
}
END_TEST

START_TEST(a_row_without_end_is_given_up)
{
    struct csv_reader r = {0};
    struct seen s = {0};
    char piece[1000];
    memset(piece, '1', sizeof piece);
    feed(&r, &s, "a\n\"", 3);
    for (int i = 0; i < 200; i++)
        feed(&r, &s, piece, sizeof piece);
    ck_assert_uint_lt(r.row.cap, 4 * CSV_MAX_ROW);
    feed(&r, &s, "\n7\n", 3);
    ck_assert_str_eq(str_cstr(&s.text), "bad2(the row is too long) 0{\"a\":7.0} ");
    csv_reader_done(&r);
    str_done(&s.text);
}
END_TEST

START_TEST(out_of_memory_is_told)
{
    for (size_t nth = 1; nth < 60; nth++) {
        struct csv_reader r = {0};
        struct seen s = {0};
        struct report_fns fns = seen_fns(&s);
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = csv_reader_feed(&r, "a,b\n1,x\n", 8, &fns, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        csv_reader_done(&r);
        str_done(&s.text);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("csv_reader");
    TCase *t = tcase_create("csv_reader");
    tcase_add_loop_test(t, rows, 0, (int)AS_ARRAY_LEN(cases));
    tcase_add_test(t, a_file_that_is_written_again_counts_once);
    tcase_add_test(t, a_row_without_end_is_given_up);
    tcase_add_test(t, out_of_memory_is_told);
    suite_add_tcase(s, t);
    return s;
}
