/* What people should know of a table before a model learns from it, as sentences. */
#ifndef ASSAY_DATA_REMARKS_H
#define ASSAY_DATA_REMARKS_H

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"
#include "data/table_look.h"

typedef enum remark_kind {
    REMARK_STRAY,      /* numbers, and few texts among them */
    REMARK_WRITTEN,    /* numbers as people write them; of the table: the target's */
    REMARK_BAD,        /* a number that is infinite or too large */
    REMARK_LONG,       /* a text that is too long for a category */
    REMARK_IDENTIFIER, /* another value in each row */
    REMARK_REFUSED,    /* more categories than a column may have */
    REMARK_EMPTY,      /* every cell is missing */
    REMARK_CONSTANT,
    REMARK_ROUNDED,    /* float32 takes much of how numbers differ; of the table: the target's */
    REMARK_SLASHED,    /* days in an order that is not certain */
    REMARK_CODE,       /* a number that may stand for a missing value */
    REMARK_TARGET,     /* it says what the target is */
    REMARK_COPIES,     /* rows that repeat others */
    REMARK_UNLABELLED, /* rows that lack the target */
    REMARK_ALIKE,      /* classes that differ by the case of letters alone */
    REMARK_RARE        /* a class with one row, which cannot be both learned and tested */
} remark_kind;

struct remark {
    remark_kind kind;
    size_t column; /* of the look; SIZE_MAX: of the table */
};

/* The remarks of a table, columns in their order, then those of the whole table. *ret is owned by
 * the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status remarks_of(const struct table_look *t, struct remark **ret, size_t *ret_n,
                                   struct as_err *err);

/* Append a remark as one line without its end. */
void remark_format(const struct table_look *t, const struct remark *r, struct str *b);

/* Append a count with commas between thousands: 5,404. */
void remark_count(struct str *b, size_t n);

#endif
