/* Tables with missing values or categories: what is learnt about their columns, and the encoding of
 * a row in the layout that data/dataset.h describes. */
#ifndef ASSAY_DATA_PREPROCESS_TABLE_H
#define ASSAY_DATA_PREPROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/preprocess/preprocess.h"

/* Everything that encoding a row needs; borrowed. */
struct preprocess_table {
    const struct dataset_info *info;
    const float *fill; /* as in struct preprocess */
    const char *seen;  /* preprocess_table_numbers() does not use it */
};

/* True if the table has no missing value and no category, so that its rows are the inputs. Also
 * true for images and text. */
bool preprocess_table_is_plain(const struct dataset_info *info);

/* Allocate `fill` and `seen` for a table that is not plain, all 0. AS_E_NOMEM; p->fill may then be
 * set: the caller frees p. */
AS_MUST_CHECK as_status preprocess_table_alloc(const struct dataset_info *info,
                                               struct preprocess *p, struct as_err *err);

/* Call preprocess_table_alloc(), then set fill and seen from the training rows. */
AS_MUST_CHECK as_status preprocess_table_fit(const struct dataset *set,
                                             const struct dataset_info *info,
                                             const struct preprocess_rows *rows,
                                             struct preprocess *p, struct as_err *err);

/* A column of numbers or dates that lacks none: a number that is missing in a row to predict
 * becomes its median. The parts of a date but the days are 0 where it is missing, and need none. */
static inline bool preprocess_column_is_complete(const struct dataset_column *c)
{
    return dataset_column_is_number(c) && c->n_missing == 0;
}

/* Set p->median of a table whose columns have names. AS_E_NOMEM; p->median may then be set. */
AS_MUST_CHECK as_status preprocess_table_medians(const struct dataset *set,
                                                 const struct dataset_info *info,
                                                 const struct preprocess_rows *rows,
                                                 struct preprocess *p, struct as_err *err);

/* p->median with no column known. AS_E_NOMEM. */
AS_MUST_CHECK as_status preprocess_table_alloc_medians(const struct dataset_info *info,
                                                       struct preprocess *p, struct as_err *err);

/* Write the numeric inputs of a row to x [dataset_numeric_inputs()]: values, with missing ones
 * filled, and indicators. They are not standardised. */
void preprocess_table_numbers(const struct preprocess_table *t, const float *row, float *x);

/* Write the categories of a row. If `codes` [categorical columns] is not NULL, it gets the code of
 * each column. Else `slots` [dataset_category_slots()], zeroed by the caller, gets a 1 for each
 * column. */
void preprocess_table_categories(const struct preprocess_table *t, const float *row, float *slots,
                                 int32_t *codes);

#endif
