/* Tables with missing values or categories: what is learnt of their columns, and a row's encoding,
 * in the layout that data/dataset.h describes. */
#ifndef ASSAY_DATA_PREPROCESS_TABLE_H
#define ASSAY_DATA_PREPROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/preprocess/preprocess.h"

/* What a row is encoded by; borrowed. */
struct preprocess_table {
    const struct dataset_info *info;
    const float *fill; /* as in struct preprocess */
    const char *seen;  /* not used for numbers */
};

/* Is nothing missing and nothing a category, so that rows are inputs as they are? True for images
 * and text too. */
bool preprocess_table_is_plain(const struct dataset_info *info);

/* Allocate `fill` and `seen` for a table that is not plain, all 0. AS_E_NOMEM; p->fill may be set
 * then: the caller frees p. */
AS_MUST_CHECK as_status preprocess_table_alloc(const struct dataset_info *info,
                                               struct preprocess *p, struct as_err *err);

/* preprocess_table_alloc(), then fill and seen of the training rows. */
AS_MUST_CHECK as_status preprocess_table_fit(const struct dataset *set,
                                             const struct dataset_info *info,
                                             const struct preprocess_rows *rows,
                                             struct preprocess *p, struct as_err *err);

/* A row of the file, its missing numbers filled, into x [dataset_numeric_inputs()]: values and
 * indicators, not standardised. */
void preprocess_table_numbers(const struct preprocess_table *t, const float *row, float *x);

/* The categories of a row: `slots` [dataset_category_slots()], zeroed by the caller, gets a 1 for
 * each column; or, where `codes` [categorical columns] is not NULL, each column's code goes there.
 */
void preprocess_table_categories(const struct preprocess_table *t, const float *row, float *slots,
                                 int32_t *codes);

#endif
