/* Training of trees, round by round, so that the caller can report, save and stop between rounds.
 *
 * Boosted trees are XGBoost's, with its own gradients: each round adds a tree for each output. A
 * forest grows a tree for each output in each round as well, but every tree is fitted to the
 * targets themselves, with mean values in its leaves; the forest is the mean of its trees
 * (docs/decisions/2006).
 *
 * Two runs with the same arguments end with the same bits, also when one of them was saved at a
 * boundary and restored. XGBoost does not promise equal bits for different numbers of threads. One
 * thread at a time, and of all trainers in a thread only one may be between two boundaries: XGBoost
 * keeps one generator of random numbers for each thread. */
#ifndef ASSAY_MODEL_TREES_TREE_TRAIN_H
#define ASSAY_MODEL_TREES_TREE_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
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
    const struct train_spec *spec; /* kind boosted_trees or random_forest; borrowed for the call */
    const struct dataset_info *info; /* borrowed for the call */
    uint64_t seed;
    size_t threads; /* at least 1 */
};

typedef enum tree_part { TREE_TRAINING_ROWS, TREE_HELD_ROWS } tree_part;

struct tree_train;

/* AS_E_UNSUPPORTED: without XGBoost's library. AS_E_NOMEM, AS_E_INTERNAL (with XGBoost's
 * reason). */
AS_MUST_CHECK as_status tree_train_create(const struct tree_train_opts *opts,
                                          const struct tree_rows *training,
                                          const struct tree_rows *held, struct tree_train **ret,
                                          struct as_err *err);
void tree_train_free(struct tree_train *t);
AS_DEFINE_FREEP(struct tree_train, tree_train_free)

/* Continue after the rounds that tree_train_save() stored; t is new. AS_E_INVAL: the bytes are no
 * such model. */
AS_MUST_CHECK as_status tree_train_restore(struct tree_train *t, const void *bytes, size_t len,
                                           struct as_err *err);

size_t tree_train_rounds(const struct tree_train *t); /* done */

/* Is this number of rounds a boundary, at which a run can be restored? */
bool tree_train_is_boundary(const struct tree_train *t, size_t rounds);

/* Do one round; of a forest at most n_estimators. */
AS_MUST_CHECK as_status tree_train_round(struct tree_train *t, struct as_err *err);

/* Predictions after the rounds done: ret [n, outputs] as of tree_model_predict(). They may differ
 * in the last bit from those of the stored model. */
AS_MUST_CHECK as_status tree_train_predict(struct tree_train *t, tree_part part, float *ret,
                                           struct as_err *err);

/* The model of the first `rounds` rounds, at least 1, as UBJSON; owned by the caller. */
AS_MUST_CHECK as_status tree_train_save(struct tree_train *t, size_t rounds, char **ret,
                                        size_t *ret_len, struct as_err *err);

#endif
