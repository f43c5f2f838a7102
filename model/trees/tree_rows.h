/* What trees are trained on. */
#ifndef ASSAY_MODEL_TREES_TREE_ROWS_H
#define ASSAY_MODEL_TREES_TREE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "model/document/train_spec.h"

/* Rows with what is known of them; all borrowed for the call. */
struct tree_rows {
    const float *inputs; /* [n, tree_inputs_count()] */
    size_t n;
    const int32_t *labels; /* [n]; NULL for numbers */
    const float *targets;  /* [n, targets], standardised, or shares; NULL for classes */
    const float *weights;  /* [n], >= 0; NULL: all 1 */
};

struct tree_train_opts {
    const struct train_spec *spec;   /* of a kind of trees; borrowed for the call */
    const struct dataset_info *info; /* borrowed for the call */
    uint64_t seed;
    size_t threads; /* at least 1 */
};

typedef enum tree_part { TREE_TRAINING_ROWS, TREE_HELD_ROWS } tree_part;

#endif
