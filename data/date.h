/* Dates in tables, and the numbers that a model gets of them. */
#ifndef ASSAY_DATA_DATE_H
#define ASSAY_DATA_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"

#define DATE_MIN_DAY INT64_C(-719528) /* a day before 0001-01-01 in any zone, since 1970-01-01 */
#define DATE_MAX_DAY INT64_C(2932897) /* a day after 9999-12-31 in any zone */

struct date {
    int64_t day;    /* since 1970-01-01, in the Gregorian calendar */
    double seconds; /* of the day, in [0, 86400) */
};

/* Read a date, with or without a time. Only forms whose order is certain:
 *   2024-03-09   2024/03/09   9.3.2024   9 Mar 2024   9-Mar-2024   March 9, 2024
 * and then, after a blank or T, 15:04, 15:04:05 or 15:04:05.678, and Z or an offset (+01:00,
 * +0100). A time with an offset is converted to UTC. Months have their English names or the first
 * three letters. 03/09/2024 is no date here, because it means two days. False: no date. */
bool date_parse(const char *s, size_t len, struct date *ret);

/* The number of a date: one of DATASET_DAYS to DATASET_HOUR_COS (dataset.h). `since` is the day
 * that is 0 in DATASET_DAYS. */
float date_number(const struct date *d, dataset_part part, int64_t since);

/* 0 Monday … 6 Sunday; 0 January … 11 December. */
int date_weekday(int64_t day);
int date_month(int64_t day);

/* "2024-03-09". */
void date_format(int64_t day, char ret[24]);

#endif
