/* Training of trees, round by round, so that the caller can report, save and stop between rounds.
 *
 * Boosted trees are XGBoost's, with its own gradients: each round adds a tree for each output. A
 * forest grows a tree for each output in each round as well, but every tree is fitted to the
 * targets themselves, with mean values in its leaves; the forest is the mean of its trees
 * (docs/decisions/2006). Extra trees are our own: one for all outputs in each round, and each round
 * is a boundary (docs/decisions/2011). Neighbours and naive Bayes have one round.
 *
 * Two runs with the same arguments end with the same bits, also when one of them was saved at a
 * boundary and restored. XGBoost does not promise equal bits for different numbers of threads;
 * extra trees have them. One thread at a time, and of all trainers in a thread only one may be
 * between two boundaries: XGBoost keeps one generator of random numbers for each thread. */
#ifndef ASSAY_MODEL_TREES_TREE_TRAIN_H
#define ASSAY_MODEL_TREES_TREE_TRAIN_H

#include <stdbool.h>

#include "base/mem.h"
#include "model/trees/tree_rows.h"

struct tree_train;

/* AS_E_UNSUPPORTED: without XGBoost's library, of the other kinds. AS_E_NOMEM, AS_E_INTERNAL (with
 * XGBoost's reason); AS_E_TOO_LARGE: too many rows for extra trees. */
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

/* Do one round; of forests at most n_estimators. */
AS_MUST_CHECK as_status tree_train_round(struct tree_train *t, struct as_err *err);

/* How many of the n training rows tree_train_predict() predicts: all, but of neighbours at most
 * TREE_SHOWN_ROWS, because a row costs them as much as there are rows; and the i-th of these. */
#define TREE_SHOWN_ROWS ((size_t)2000)
size_t tree_train_shown(const struct train_spec *spec, size_t n);
size_t tree_train_shown_row(size_t n, size_t shown, size_t i);

/* Predictions after the rounds done: ret [n, outputs] as of tree_model_predict(), of the training
 * rows tree_train_shown(). They may differ in the last bit from those of the stored model. */
AS_MUST_CHECK as_status tree_train_predict(struct tree_train *t, tree_part part, float *ret,
                                           struct as_err *err);

/* The model of the first `rounds` rounds, at least 1, as tree_model_load() reads it; of extra trees
 * of all rounds. Owned by the caller. */
AS_MUST_CHECK as_status tree_train_save(struct tree_train *t, size_t rounds, char **ret,
                                        size_t *ret_len, struct as_err *err);

#endif
