/* Dates: reading the forms whose order is certain, and the numbers of a date.
 *
 * Days are counted with the algorithm of Howard Hinnant ("chrono-Compatible Low-Level Date
 * Algorithms"): years begin in March, so that the leap day is the last day of a year, and a cycle
 * of 400 years has 146,097 days. */
#include "data/date.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static int64_t day_of(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400, year = y - era * 400;
    int64_t in_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + year * 365 + year / 4 - year / 100 + in_year - 719468;
}

static void civil_of(int64_t day, int64_t *ret_y, int *ret_m, int *ret_d)
{
    day += 719468;
    int64_t era = (day >= 0 ? day : day - 146096) / 146097, in_era = day - era * 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100), m = (5 * in_year + 2) / 153;
    *ret_d = (int)(in_year - (153 * m + 2) / 5 + 1);
    *ret_m = (int)(m < 10 ? m + 3 : m - 9);
    *ret_y = year + era * 400 + (*ret_m <= 2);
}

int date_weekday(int64_t day)
{
    return (int)(((day + 3) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
}

int date_month(int64_t day)
{
    int64_t y;
    int m, d;
    civil_of(day, &y, &m, &d);
    return m - 1;
}

void date_format(int64_t day, char ret[24])
{
    int64_t y;
    int m, d;
    civil_of(day, &y, &m, &d);
    (void)snprintf(ret, 24, "%04" PRId64 "-%02d-%02d", y, m, d);
}

/* ---- reading ---- */

struct cursor {
    const char *p, *end;
};

/* Read `least` to `most` digits; false: there are fewer or more. */
static bool read_digits(struct cursor *c, int least, int most, int64_t *ret)
{
    int n = 0;
    int64_t v = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9' && n <= most; c->p++, n++)
        v = v * 10 + (*c->p - '0');
    *ret = v;
    return n >= least && n <= most;
}

static bool take(struct cursor *c, char ch)
{
    if (c->p == c->end || *c->p != ch)
        return false;
    c->p++;
    return true;
}

static bool read_month_name(struct cursor *c, int64_t *ret)
{
    static const char *const names[] = {"january",   "february", "march",    "april",
                                        "may",       "june",     "july",     "august",
                                        "september", "october",  "november", "december"};
    const char *start = c->p;
    while (c->p < c->end && ((*c->p >= 'a' && *c->p <= 'z') || (*c->p >= 'A' && *c->p <= 'Z')))
        c->p++;
    size_t n = (size_t)(c->p - start);
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if ((n == 3 || n == strlen(names[i])) && strncasecmp(start, names[i], n) == 0) {
            *ret = (int64_t)i + 1;
            (void)take(c, '.');
            return true;
        }
    return false;
}

/* "2024-03-09", "2024/3/9". */
static bool read_year_first(struct cursor *c, int64_t *y, int64_t *m, int64_t *d)
{
    if (!read_digits(c, 4, 4, y) || c->p == c->end || (*c->p != '-' && *c->p != '/'))
        return false;
    char between = *c->p++;
    return read_digits(c, 1, 2, m) && take(c, between) && read_digits(c, 1, 2, d);
}

/* "9.3.2024", "9 Mar 2024", "9-Mar-2024". */
static bool read_day_first(struct cursor *c, int64_t *y, int64_t *m, int64_t *d)
{
    if (!read_digits(c, 1, 2, d) || c->p == c->end || !strchr(". -", *c->p))
        return false;
    char between = *c->p++;
    if (between == '.' && c->p < c->end && *c->p >= '0' && *c->p <= '9')
        return read_digits(c, 1, 2, m) && take(c, '.') && read_digits(c, 4, 4, y);
    between = between == '.' ? ' ' : between; /* "9. March 2024" */
    (void)take(c, ' ');
    return read_month_name(c, m) && take(c, between) && read_digits(c, 4, 4, y);
}

/* "March 9, 2024". */
static bool read_month_first(struct cursor *c, int64_t *y, int64_t *m, int64_t *d)
{
    if (!read_month_name(c, m) || !take(c, ' ') || !read_digits(c, 1, 2, d))
        return false;
    bool comma = take(c, ',');
    return (take(c, ' ') || comma) && read_digits(c, 4, 4, y);
}

static bool read_fraction(struct cursor *c, double *seconds)
{
    double unit = 0.1;
    const char *start = c->p;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, unit /= 10)
        *seconds += unit * (*c->p - '0');
    return c->p > start;
}

/* Z, +01:00, +0100 or +01; the seconds that the zone is ahead of UTC. */
static bool read_zone(struct cursor *c, int64_t *ret)
{
    int64_t hours = 0, minutes = 0;
    *ret = 0;
    if (c->p == c->end || take(c, 'Z') || take(c, 'z'))
        return true;
    bool west = *c->p == '-';
    if (!take(c, '+') && !take(c, '-'))
        return false;
    const char *start = c->p;
    if (!read_digits(c, 2, 4, &hours))
        return false;
    ptrdiff_t digits = c->p - start;
    if (digits == 3)
        return false;
    if (digits == 4) {
        minutes = hours % 100;
        hours /= 100;
    } else if (take(c, ':') && !read_digits(c, 2, 2, &minutes)) {
        return false;
    }
    *ret = (hours * 60 + minutes) * (west ? -60 : 60);
    return hours <= 18 && minutes < 60;
}

static bool read_time(struct cursor *c, struct date *ret)
{
    int64_t h = 0, min = 0, s = 0, ahead = 0;
    double fraction = 0;
    if (!read_digits(c, 1, 2, &h) || !take(c, ':') || !read_digits(c, 2, 2, &min) || h > 23 ||
        min > 59)
        return false;
    if (take(c, ':')) {
        if (!read_digits(c, 2, 2, &s) || s > 60)
            return false;
        if ((take(c, '.') || take(c, ',')) && !read_fraction(c, &fraction))
            return false;
    }
    (void)take(c, ' ');
    if (!read_zone(c, &ahead))
        return false;
    ret->seconds = (double)(h * 3600 + min * 60 + s - ahead) + fraction;
    int64_t days = (int64_t)floor(ret->seconds / 86400);
    ret->day += days;
    ret->seconds -= (double)days * 86400;
    return true;
}

bool date_parse(const char *s, size_t len, struct date *ret)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t y = 0, m = 0, d = 0;
    struct cursor c = {s, s + len};
    struct date date = {0};
    if (len < 8 || len > 40)
        return false;
    bool first = *s >= '0' && *s <= '9';
    bool ok = !first                                      ? read_month_first(&c, &y, &m, &d)
              : s[1] >= '0' && s[2] >= '0' && s[2] <= '9' ? read_year_first(&c, &y, &m, &d)
                                                          : read_day_first(&c, &y, &m, &d);
    if (!ok || y < 1 || m < 1 || m > 12 || d < 1)
        return false;
    bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    if (d > days[m - 1] + (m == 2 && leap))
        return false;
    date.day = day_of(y, m, d);
    if (c.p < c.end && (take(&c, ' ') || take(&c, 'T') || take(&c, 't'))) {
        if (!read_time(&c, &date))
            return false;
    }
    if (c.p != c.end)
        return false;
    *ret = date;
    return true;
}

/* ---- numbers ---- */

float date_number(const struct date *d, dataset_part part, int64_t since)
{
    double turn = 0; /* share of the cycle */
    if (part == DATASET_DAYS)
        return (float)((double)(d->day - since) + d->seconds / 86400);
    if (part == DATASET_WEEK_SIN || part == DATASET_WEEK_COS)
        turn = date_weekday(d->day) / 7.0;
    else if (part == DATASET_MONTH_SIN || part == DATASET_MONTH_COS)
        turn = date_month(d->day) / 12.0;
    else
        turn = d->seconds / 86400;
    bool sine = part == DATASET_WEEK_SIN || part == DATASET_MONTH_SIN || part == DATASET_HOUR_SIN;
    return (float)(sine ? sin(2 * M_PI * turn) : cos(2 * M_PI * turn));
}
