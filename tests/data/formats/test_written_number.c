/* Numbers as people write them, and texts that are none. */
#include <string.h>

#include "data/formats/written_number.h"
#include "base/mem.h"
#include "tests/support/check_main.h"

#define EURO 0xac82e2U

static const struct {
    const char *text;
    char decimal;
    const char *plain; /* NULL: none */
    uint32_t sign;
} cases[] = {
    {"88,139", '.', "88139", 0},
    {"-1,234,567.50", '.', "-1234567.50", 0},
    {" 1,234 ", '.', "1234", 0},
    {"$26,441.83", '.', "26441.83", '$'},
    {"-$5", '.', "-5", '$'},
    {"$-5", '.', "-5", '$'},
    {"$ .5", '.', ".5", '$'},
    {"64.9%", '.', "64.9", '%'},
    {"64,9 %", ',', "64.9", '%'},
    {"1.234,50 €", ',', "1234.50", EURO},
    {"€\u00a01.234", ',', "1234", EURO},
    {"€1.234", '.', "1.234", EURO},
    {"1'234.5", '.', "1234.5", 0},
    {"1\u2019234\u2019567", '.', "1234567", 0},
    {"1 234,5", ',', "1234.5", 0},
    {"1\u202f234,5", ',', "1234.5", 0},
    {"+1,000", '.', "1000", 0},
    {"12", '.', "12", 0},
    {"(1,234.50)", '.', "-1234.50", 0},
    {"($5)", '.', "-5", '$'},
    {"(5", '.', NULL, 0},
    {"5)", '.', NULL, 0},
    {"(-5)", '.', NULL, 0},
    {"()", '.', NULL, 0},
    {"1,23", '.', NULL, 0}, /* a decimal comma, or a slip */
    {"1,2345", '.', NULL, 0},
    {"1234,567", '.', NULL, 0},
    {"0,123", '.', NULL, 0}, /* no thousands begin with 0 */
    {",123", '.', NULL, 0},
    {"1,234'567", '.', NULL, 0}, /* two signs */
    {"1,234,", '.', NULL, 0},
    {"1.234.56", ',', NULL, 0},
    {"04.06.2015", ',', NULL, 0},
    {"$5%", '.', NULL, 0},
    {"%5", '.', NULL, 0},
    {"$", '.', NULL, 0},
    {"+-5", '.', NULL, 0},
    {"5 kg", '.', NULL, 0},
    {"1e5", '.', NULL, 0},
    {".", '.', NULL, 0},
    {"", '.', NULL, 0},
    {"C00001", '.', NULL, 0},
    {"1,111,111,111,111,111,111,111,111,111,111,111,111,111,111,111,111", '.', NULL, 0},
};

START_TEST(forms)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char plain[WRITTEN_NUMBER_MAX] = "untouched";
        uint32_t sign = 0;
        const char *expected = cases[i].plain ? cases[i].plain : "untouched";
        size_t n =
            written_number(cases[i].text, strlen(cases[i].text), cases[i].decimal, plain, &sign);
        ck_assert_msg(strcmp(plain, expected) == 0 && sign == cases[i].sign, "'%s': '%s' %x",
                      cases[i].text, plain, sign);
        ck_assert_uint_eq(n, cases[i].plain ? strlen(plain) : 0);
    }
}
END_TEST

START_TEST(only_so_many_bytes)
{
    char plain[WRITTEN_NUMBER_MAX];
    uint32_t sign = 0;
    ck_assert_uint_eq(written_number("1,234,567", 5, '.', plain, &sign), 4);
    ck_assert_str_eq(plain, "1234");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("written_number");
    TCase *t = tcase_create("written_number");
    tcase_add_test(t, forms);
    tcase_add_test(t, only_so_many_bytes);
    suite_add_tcase(s, t);
    return s;
}
