/* Training of trees by XGBoost. The functions are those of tree_train.h, with the same contracts;
 * model/trees/ alone calls them. */
#ifndef ASSAY_MODEL_TREES_XGBOOST_TRAIN_H
#define ASSAY_MODEL_TREES_XGBOOST_TRAIN_H

#include <stdbool.h>

#include "base/mem.h"
#include "model/trees/tree_rows.h"

struct xgboost_train;

AS_MUST_CHECK as_status xgboost_train_create(const struct tree_train_opts *opts,
                                             const struct tree_rows *training,
                                             const struct tree_rows *held,
                                             struct xgboost_train **ret, struct as_err *err);
void xgboost_train_free(struct xgboost_train *t);
AS_DEFINE_FREEP(struct xgboost_train, xgboost_train_free)

AS_MUST_CHECK as_status xgboost_train_restore(struct xgboost_train *t, const void *bytes,
                                              size_t len, struct as_err *err);
size_t xgboost_train_rounds(const struct xgboost_train *t);
bool xgboost_train_is_boundary(const struct xgboost_train *t, size_t rounds);
AS_MUST_CHECK as_status xgboost_train_round(struct xgboost_train *t, struct as_err *err);
AS_MUST_CHECK as_status xgboost_train_predict(struct xgboost_train *t, tree_part part, float *ret,
                                              struct as_err *err);
AS_MUST_CHECK as_status xgboost_train_save(struct xgboost_train *t, size_t rounds, char **ret,
                                           size_t *ret_len, struct as_err *err);

#endif
