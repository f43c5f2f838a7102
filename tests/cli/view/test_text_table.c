/* Tables in a pipe and on a terminal: widths, hidden columns, colours, pieces. */
#include "cli/view/text_table.h"

#include <string.h>

#include "tests/support/check_main.h"

static struct table *example(void)
{
    struct table *t = table_create();
    ck_assert_ptr_nonnull(t);
    table_column(t, "name", TABLE_LEFT, 6);
    table_column(t, "value", TABLE_RIGHT, 0);
    table_column(t, "note", TABLE_LEFT, 8);
    table_cell(t, "first");
    table_cellf(t, "%d", 1);
    table_cell(t, "a long note about the first one");
    table_cell_styled(t, STYLE_GOOD, "second\tone");
    table_cell(t, "12345");
    table_cell(t, NULL);
    return t;
}

static void check_format(const struct terminal *terminal, const char *want, const char *want_hidden)
{
    AS_AUTO(table_freep) struct table *t = example();
    struct as_err err = {0};
    struct str b = {0}, hidden = {0};
    ck_assert_uint_eq(table_rows(t), 2);
    ck_ok(table_format(t, terminal, &b, &hidden, &err), err);
    ck_assert_str_eq(str_cstr(&b), want);
    ck_assert_str_eq(str_cstr(&hidden), want_hidden);
    str_done(&b);
    str_done(&hidden);
}

START_TEST(pipe)
{
    const struct terminal terminal = {.width = SIZE_MAX};
    check_format(&terminal,
                 "name\tvalue\tnote\nfirst\t1\ta long note about the first one\n"
                 "second\\tone\t12345\t\n",
                 "");
}
END_TEST

START_TEST(on_a_terminal)
{
    const struct terminal wide = {.tty = true, .unicode = true, .width = 80};
    check_format(&wide,
                 "NAME         VALUE  NOTE\n"
                 "first            1  a long note about the first one\n"
                 "second\\tone  12345  -\n",
                 "");
    const struct terminal narrow = {.tty = true, .unicode = true, .width = 36};
    check_format(&narrow,
                 "NAME         VALUE  NOTE\n"
                 "first            1  a long note abo…\n"
                 "second\\tone  12345  -\n",
                 "");
    const struct terminal small = {.tty = true, .width = 20};
    check_format(&small, "NAME         VALUE\nfirst            1\nsecond\\tone  12345\n", "note");
}
END_TEST

/* Numbers are shown whole or not at all; only their headers are cut. */
START_TEST(numbers)
{
    const struct terminal terminal = {.tty = true, .unicode = true, .width = 14};
    AS_AUTO(table_freep) struct table *t = table_create();
    struct as_err err = {0};
    struct str b = {0}, hidden = {0};
    table_column(t, "learning_rate", TABLE_RIGHT, 6);
    table_column(t, "n", TABLE_RIGHT, 0);
    table_column(t, "momentum", TABLE_RIGHT, 6);
    table_cell(t, "1.853e-05");
    table_cell(t, "7");
    table_cell(t, "0.5");
    ck_ok(table_format(t, &terminal, &b, &hidden, &err), err);
    ck_assert_str_eq(str_cstr(&b), "LEARNING_R…  N\n  1.853e-05  7\n");
    ck_assert_str_eq(str_cstr(&hidden), "momentum");
    str_done(&b);
    str_done(&hidden);
}
END_TEST

START_TEST(colours)
{
    const struct terminal terminal = {.tty = true, .color = true, .width = 80};
    AS_AUTO(table_freep) struct table *t = table_create();
    struct as_err err = {0};
    struct str b = {0};
    table_column(t, "state", TABLE_LEFT, 0);
    table_cell_styled(t, terminal_state_style("failed"), "failed");
    ck_ok(table_format(t, &terminal, &b, NULL, &err), err);
    ck_assert_str_eq(str_cstr(&b), "\x1b[1mSTATE\x1b[0m\n\x1b[31mfailed\x1b[0m\n");
    str_done(&b);
}
END_TEST

/* Rows that come in pieces look as those that come at once. */
START_TEST(pieces)
{
    static const char *const rows[][2] = {{"a", "1"}, {"a long name", "22"}, {"b", "333333"}};
    for (int tty = 0; tty < 2; tty++) {
        const struct terminal terminal = {.tty = tty, .unicode = true, .width = 15};
        AS_AUTO(table_freep) struct table *whole = table_create();
        AS_AUTO(table_freep) struct table *t = table_create();
        struct as_err err = {0};
        struct str want = {0}, b = {0}, hidden = {0};
        for (size_t i = 0; i < 2; i++) {
            table_column(whole, i ? "n" : "name", i ? TABLE_RIGHT : TABLE_LEFT, 0);
            table_column(t, i ? "n" : "name", i ? TABLE_RIGHT : TABLE_LEFT, 0);
        }
        for (size_t row = 0; row < AS_ARRAY_LEN(rows); row++) {
            for (size_t i = 0; i < 2; i++) {
                table_cell(whole, rows[row][i]);
                table_cell(t, rows[row][i]);
            }
            table_forget_rows(t);
        }
        ck_ok(table_format(whole, &terminal, &want, NULL, &err), err);
        ck_ok(table_format_head(t, &terminal, &b, &hidden, &err), err);
        for (size_t row = 0; row < AS_ARRAY_LEN(rows); row++) {
            for (size_t i = 0; i < 2; i++)
                table_cell(t, rows[row][i]);
            ck_ok(table_format_rows(t, &terminal, &b, &err), err);
            table_forget_rows(t);
        }
        ck_assert_str_eq(str_cstr(&b), str_cstr(&want));
        str_done(&want);
        str_done(&b);
        str_done(&hidden);
    }
}
END_TEST

START_TEST(out_of_memory)
{
    const struct terminal terminal = {.width = SIZE_MAX};
    for (size_t nth = 1; nth < 12; nth++) {
        as_mem_fail_nth(nth);
        AS_AUTO(table_freep) struct table *t = table_create();
        if (t) {
            struct str b = {0};
            table_column(t, "a", TABLE_LEFT, 0);
            table_cell(t, "x");
            as_status st = table_format(t, &terminal, &b, NULL, NULL);
            ck_assert(st == AS_OK || st == AS_E_NOMEM);
            str_done(&b);
        }
        as_mem_fail_nth(0);
    }
}
END_TEST

TEST_SUITE()
{
    terminal_setup();
    Suite *s = suite_create("table");
    TCase *t = tcase_create("table");
    tcase_add_test(t, pipe);
    tcase_add_test(t, on_a_terminal);
    tcase_add_test(t, numbers);
    tcase_add_test(t, colours);
    tcase_add_test(t, pieces);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
