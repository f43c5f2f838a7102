/* What an attempt, or a rank of it, used of its machine over time. Conventions: "Rows" in
 * scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_USAGE_ROW_H
#define ASSAY_SCHEDULER_ROWS_USAGE_ROW_H

#include <stddef.h>
#include <stdint.h>

#define USAGE_SAMPLES_MAX 512 /* of one attempt or rank; a runner sends at most 240 */
#define USAGE_NO_SEAT (-1)

struct usage_row {
    int64_t attempt;
    int64_t seat;      /* USAGE_NO_SEAT: the attempt is no gang's */
    const char *usage; /* JSON: "every_ms", and a list of samples for each quantity */
};

struct usage_list {
    struct usage_row *rows;
    size_t n;
};

#endif
