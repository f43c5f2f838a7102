/* Dates: the forms that are read, those that are not, and the numbers of a date. The days were
 * computed with Python's datetime.date.toordinal() - 719163. */
#include "data/date.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/support/check_main.h"

START_TEST(forms)
{
    static const struct {
        const char *text;
        int64_t day;
        double seconds;
    } cases[] = {
        {"1970-01-01", 0, 0},
        {"2024-02-29", 19782, 0},
        {"2024/2/9", 19762, 0},
        {"1969-12-31", -1, 0},
        {"0001-01-01", -719162, 0},
        {"9999-12-31", 2932896, 0},
        {"9.3.2024", 19791, 0},
        {"09.03.2024", 19791, 0},
        {"9 Mar 2024", 19791, 0},
        {"9-Mar-2024", 19791, 0},
        {"9. march 2024", 19791, 0},
        {"March 9, 2024", 19791, 0},
        {"Mar. 9, 2024", 19791, 0},
        {"2024-03-09T15:04", 19791, 54240},
        {"2024-03-09 15:04:05", 19791, 54245},
        {"2024-03-09 15:04:05.25", 19791, 54245.25},
        {"2024-03-09T15:04:05Z", 19791, 54245},
        {"2024-03-09T23:30:00-01:00", 19792, 1800},
        {"2024-03-09T00:30:00+0100", 19790, 84600},
        {"2024-03-09T00:30:00+01", 19790, 84600},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct date d = {0};
        ck_assert_msg(date_parse(cases[i].text, strlen(cases[i].text), &d), "%s", cases[i].text);
        ck_assert_msg(d.day == cases[i].day, "%s: day %lld", cases[i].text, (long long)d.day);
        ck_assert_double_eq_tol(d.seconds, cases[i].seconds, 1e-9);
    }
}
END_TEST

START_TEST(no_dates)
{
    static const char *const texts[] = {
        "",
        "2024-13-01",
        "2023-02-29",
        "1900-02-29",
        "2024-00-10",
        "2024-01-00",
        "2024-1-32",
        "03/09/2024",
        "9/3/2024",
        "2024-03",
        "20240309",
        "2024-03/09",
        "2024-03-09x",
        "2024-03-09 25:00",
        "2024-03-09 15:60",
        "2024-03-09T15:04:05+1",
        "2024-03-09T15:04:05+19:00",
        "12:30:00",
        "9 Mer 2024",
        "March 2024",
        "1.2.3.2024",
        "2024-03-09 15",
        "2024-03-09T15:04:05+010",
        "tomorrow",
        "2024-03-09 15:04:05.",
        "99999-01-01",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
        struct date d;
        ck_assert_msg(!date_parse(texts[i], strlen(texts[i]), &d), "%s", texts[i]);
    }
}
END_TEST

/* Every day of four centuries has the date after the one before. */
START_TEST(every_day)
{
    struct date d = {0};
    char text[24];
    for (int64_t day = -140000; day < 7000; day++) {
        date_format(day, text);
        ck_assert(date_parse(text, strlen(text), &d));
        ck_assert_int_eq(d.day, day);
        ck_assert_int_eq(date_weekday(day + 1), (date_weekday(day) + 1) % 7);
    }
    ck_assert_int_eq(date_weekday(19791), 5); /* 2024-03-09 was a Saturday */
    ck_assert_int_eq(date_month(19791), 2);
}
END_TEST

START_TEST(numbers)
{
    const struct date d = {19791, 6 * 3600}; /* a Saturday, in March, at 6:00 */
    ck_assert_float_eq(date_number(&d, DATASET_DAYS, 19790), 1.25f);
    ck_assert_float_eq(date_number(&d, DATASET_WEEK_SIN, 0), (float)sin(2 * M_PI * 5 / 7));
    ck_assert_float_eq(date_number(&d, DATASET_WEEK_COS, 0), (float)cos(2 * M_PI * 5 / 7));
    ck_assert_float_eq_tol(date_number(&d, DATASET_MONTH_SIN, 0), (float)sin(2 * M_PI * 2 / 12),
                           1e-7f);
    ck_assert_float_eq_tol(date_number(&d, DATASET_MONTH_COS, 0), 0.5f, 1e-7f);
    ck_assert_float_eq_tol(date_number(&d, DATASET_HOUR_SIN, 0), 1, 1e-7f);
    ck_assert_float_eq_tol(date_number(&d, DATASET_HOUR_COS, 0), 0, 1e-7f);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("date");
    TCase *t = tcase_create("date");
    tcase_add_test(t, forms);
    tcase_add_test(t, no_dates);
    tcase_add_test(t, every_day);
    tcase_add_test(t, numbers);
    suite_add_tcase(s, t);
    return s;
}
