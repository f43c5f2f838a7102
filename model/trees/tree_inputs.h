/* How a model of trees sees a row: its inputs.
 *
 * Preprocessing for trees standardises nothing and turns categories into codes (preprocess_opts
 * with standardize false and embed_categories true: what its record then says). From such rows:
 *   tables   the numeric columns, then the categorical columns, both in the order of the file; one
 *            input each. A number is as in the file; a missing one is NaN again, and its indicator
 *            is left out, because trees learn where missing values go. A category is its index
 *            among the column's values; n_values stands for all others (rare, or in no training
 *            row); a missing one is NaN
 *   images   the pixels, in the order of the data set
 * XGBoost's feature i is input i. */
#ifndef ASSAY_MODEL_TREES_TREE_INPUTS_H
#define ASSAY_MODEL_TREES_TREE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "model/document/train_spec.h"

/* The number of inputs. */
size_t tree_inputs_count(const struct dataset_info *info);

/* The same of a model that `spec` describes. Neighbours see rows as networks with one-hot
 * categories do: the numbers that preprocessing gives. */
size_t model_inputs_count(const struct train_spec *spec, const struct dataset_info *info);

/* The column of the file (a pixel of an image) that an input is made of. O(columns). */
size_t tree_inputs_column(const struct dataset_info *info, size_t input);

/* Is this input a category? O(columns). */
bool tree_inputs_is_category(const struct dataset_info *info, size_t input);

/* The inputs of rows as preprocess_apply() encodes them.
 *   x      [rows, dataset_numeric_inputs(info)]; NULL when that is 0
 *   codes  [rows, dataset_categorical_columns(info)]; NULL when that is 0
 *   pick   row numbers [rows] of x and codes, or NULL: 0, 1, …
 *   ret    [rows, tree_inputs_count(info)] */
void tree_inputs_of(const struct dataset_info *info, const float *x, const int32_t *codes,
                    const int32_t *pick, size_t rows, float *ret);

/* The same of such a model: ret [rows, model_inputs_count()]. */
void model_inputs_of(const struct train_spec *spec, const struct dataset_info *info, const float *x,
                     const int32_t *codes, const int32_t *pick, size_t rows, float *ret);

#endif
