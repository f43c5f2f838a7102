#include "tests/support/check_main.h"

#include <string.h>

#include "trial-runner/reports/near_lines.h"

static const struct {
    const char *log, *metric, *text, *want;
} cases[] = {
    {"a\nVal loss: 0.5\nb 3\n", "val_loss", "xyz", "'Val loss: 0.5'"},
    {"loss=1\nloss=2\r\nloss=3\n  loss=4", "loss", "xyz", "'loss=2', 'loss=3', 'loss=4'"},
    {"the loss is good\nno\n", "loss", "xyz", "'the loss is good'"},
    {"the loss is good\nloss 3\n", "loss", "xyz", "'loss 3'"},
    {"Epoch 1: fine\nEpoch: none\n", "loss", "Epoch", "'Epoch 1: fine'"},
    {"ab 1\n", "loss", "ab", ""}, /* too short a text */
    {"[assay-runner] loss 3\n", "loss", "xyz", ""},
    {"", "loss", "xyz", ""},
};

START_TEST(lines)
{
    AS_AUTO(str_done) struct str b = {0};
    near_lines(cases[_i].log, cases[_i].metric, &cases[_i].text, 1, &b);
    ck_assert_str_eq(str_cstr(&b), cases[_i].want);
}
END_TEST

START_TEST(long_lines_are_shortened)
{
    AS_AUTO(str_done) struct str b = {0}, log = {0};
    str_puts(&log, "loss 1 ");
    for (int i = 0; i < 300; i++)
        str_puts(&log, "\xc3\xa9");
    near_lines(log.s, "loss", NULL, 0, &b);
    ck_assert_uint_le(b.len, NEAR_MAX_BYTES + 5);
    ck_assert(as_utf8_valid(b.s, b.len));
    ck_assert(as_ends_with(b.s, "\xe2\x80\xa6'"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("near_lines");
    TCase *t = tcase_create("near_lines");
    tcase_add_loop_test(t, lines, 0, (int)AS_ARRAY_LEN(cases));
    tcase_add_test(t, long_lines_are_shortened);
    suite_add_tcase(s, t);
    return s;
}
