/* What a table is like, and what to do with its columns, as `assay fit` decides it. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_FACTS_H
#define ASSAY_CLI_FIT_FIT_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/str.h"
#include "data/table_look.h"

/* The figures that a plan depends on. */
struct fit_facts {
    size_t rows;
    size_t columns;             /* of the file, that are inputs */
    size_t inputs;              /* numbers that a network sees in a row, about */
    size_t targets;             /* columns of the target */
    size_t classes;             /* 0: a regression */
    size_t rarest;              /* rows of the rarest class */
    size_t categories, texts;   /* columns of these */
    size_t category_inputs;     /* of `inputs`, those of categories, one-hot */
    size_t most_values;         /* of a column of categories */
    target_transform transform; /* of the target, that is worth trying (data/skewness.h) … */
    double skewness_left;       /* … and how skewed the target is then */
};

/* Which columns are left out, and which are read in another way than data sets are by themselves.
 * Lists of names with commas between them, for the options of `assay data add`; empty: none. */
struct fit_columns {
    struct str drop;    /* identifiers, constants, empty columns */
    struct str numeric; /* numbers with few texts among them, which become missing, or that are
                         * written with signs */
    struct str text;    /* more different texts than categories may have: their words are hashed */
};

void fit_columns_done(struct fit_columns *c);

/* Decide for each column. A column whose name has a comma or a sign of a pattern cannot be in a
 * list: it stays as it is.
 *   groups  the column that says which rows belong together, which is none of the inputs, or
 *           NULL
 * AS_E_INVAL: nothing is left that says anything; AS_E_NOMEM. */
AS_MUST_CHECK as_status fit_columns_choose(const struct table_look *look, const char *groups,
                                           struct fit_columns *ret, struct as_err *err);

/* Is there enough of each class? AS_E_INVAL: one of two classes has one row, so that no model that
 * learned from it can be judged by it. */
AS_MUST_CHECK as_status fit_facts_check(const struct table_look *look, struct as_err *err);

/* The figures of the table without the columns that are left out. */
struct fit_facts fit_facts_of(const struct table_look *look, const char *groups);

#endif
