#include "cli/view/scatter.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tests/support/check_main.h"

static void draw(const struct scatter_point *points, size_t n, struct str *b)
{
    const struct scatter_opts opts = {
        .x_name = "error", .y_name = "speed", .width = 21, .height = 3};
    const struct terminal terminal = {.tty = true, .width = 80};
    scatter_draw(points, n, &opts, &terminal, b);
}

START_TEST(a_front)
{
    struct str b = {0};
    const struct scatter_point points[] = {
        {0.25, 100, true}, {0.5, 50, false}, {0.25, 100, false}, {0.75, 0, true}, {NAN, 3, true},
    };
    draw(points, 5, &b);
    ck_assert_str_eq(str_cstr(&b), "  speed\n"
                                   "       100 |o\n"
                                   "           |          .\n"
                                   "         0 |                    o\n"
                                   "           +---------------------\n"
                                   "            0.25    error    0.75\n");
    str_done(&b);
}
END_TEST

START_TEST(extremes)
{
    struct str b = {0};
    const struct scatter_point one = {.x = 3, .y = 4}, none = {.x = INFINITY, .y = 1};
    const struct scatter_point far[] = {{-DBL_MAX, -DBL_MAX, false}, {DBL_MAX, DBL_MAX, true}};
    draw(&one, 1, &b);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "           |          .\n"));
    str_clear(&b);
    draw(far, 2, &b);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "|                    o\n"));
    str_clear(&b);
    draw(&none, 1, &b);
    draw(NULL, 0, &b);
    ck_assert_uint_eq(b.len, 0);
    str_done(&b);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("scatter");
    TCase *t = tcase_create("scatter");
    tcase_add_test(t, a_front);
    tcase_add_test(t, extremes);
    suite_add_tcase(s, t);
    return s;
}
