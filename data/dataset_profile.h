/* What the values of a registered data set are like, for people who look at it: of each column the
 * distribution and what is missing, and the first rows.
 *
 * The kinds of the columns are those of the record (dataset_info): a model sees the same. The files
 * are read once, one row in memory at a time, and no further than PROFILE_VALUES values. */
#ifndef ASSAY_DATA_DATASET_PROFILE_H
#define ASSAY_DATA_DATASET_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/number_bins.h"

#define PROFILE_COLUMNS ((size_t)256) /* that are described; the targets come first */
#define PROFILE_TOP ((size_t)20)      /* most frequent values of a column */
#define PROFILE_ROWS ((size_t)20)     /* first rows */
#define PROFILE_CELL ((size_t)100)    /* bytes of a cell in them */
#define PROFILE_VALUES ((size_t)1 << 26)

typedef enum profile_kind {
    PROFILE_NUMERIC, /* of an image: all of its numbers, as one column */
    PROFILE_CATEGORICAL,
    PROFILE_DATE, /* the numbers are days since 1970-01-01 */
    PROFILE_TEXT  /* the numbers are the bytes of a text */
} profile_kind;

struct profile_value {
    char *name; /* owned */
    size_t rows;
};

struct profile_column {
    char *name; /* owned */
    profile_kind kind;
    bool is_target;
    size_t n_missing;
    struct number_bins numbers; /* all kinds but categories */
    struct profile_value *top;  /* [n_top], the most frequent first; owned */
    size_t n_top, n_values;     /* n_values: different ones */
    size_t n_other;             /* rows whose values are not among `top` */
};

/* A zeroed struct is empty. */
struct dataset_profile {
    size_t n_looked;                /* rows */
    size_t n_all;                   /* columns of the data set, described or not */
    struct profile_column *columns; /* [n_columns]; owned */
    size_t n_columns;
    char **cells; /* [n_first, n_columns], as they are in the file; owned. None of images and
                   * tokens */
    size_t n_first;
};

void dataset_profile_done(struct dataset_profile *p);

/* Read the files that `info` describes. ret is owned by the caller, untouched on failure. Errors as
 * for dataset_load(). */
AS_MUST_CHECK as_status dataset_profile_read(const struct dataset_paths *paths,
                                             const struct dataset_info *info,
                                             struct dataset_profile *ret, struct as_err *err);

/* The DatasetProfile of the API. New reference; NULL when memory is out. */
json_t *dataset_profile_to_json(const struct dataset_profile *p);

#endif
