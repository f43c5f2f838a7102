/* Models of trees, as they are stored and predict: XGBoost's own format (UBJSON), so that any
 * program with XGBoost reads them too; extra trees in that of extra-trees/extra_forest.h.
 *
 * The outputs of the stored booster, and what tree_model_predict() makes of them:
 *   boosted, classes     probabilities (binary:logistic: of class 1; multi:softprob: of each class)
 *   boosted, numbers     standardised targets, as networks are trained on them; with the loss bce,
 *                        shares from 0 to 1
 *   forest, classes      means over the trees of "the row is of this class" (of two classes: of
 *                        class 1; else a tree for each class), from -rounding to 1: they are
 *                        limited to [0, 1], and of several classes divided by their sum
 *   forest, numbers      means over the trees of standardised targets, or of shares
 *   extra trees          as a forest; one tree has all classes or targets
 *
 * Nearest neighbours and naive Bayes are stored, predicted and trained behind the same functions:
 * their bytes are those of neighbours/neighbours.h and naive-bayes/naive_bayes.h, they have one
 * round, their outputs are predictions. */
#ifndef ASSAY_MODEL_TREES_TREE_MODEL_H
#define ASSAY_MODEL_TREES_TREE_MODEL_H

#include <jansson.h>
#include <stddef.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "model/document/train_spec.h"

struct tree_model; /* immutable */

/* Read a stored model.
 *   bytes    of a model of this kind; they stay until tree_model_free(), because extra trees are
 *            not copied. To XGBoost only bytes that a checksum vouches for: the library's reader is
 *            not made for hostile ones
 *   spec     the document that it was trained with, for kind and loss; borrowed for the call
 *   info     the record of its data set; borrowed for the call
 *   threads  of one prediction, at least 1
 *   ret      owned by the caller
 * AS_E_UNSUPPORTED: without XGBoost's library, of the other kinds. AS_E_INVAL: it is no model, or
 * one of other inputs, outputs or another objective. AS_E_NOMEM. */
AS_MUST_CHECK as_status tree_model_load(const void *bytes, size_t len,
                                        const struct train_spec *spec,
                                        const struct dataset_info *info, size_t threads,
                                        struct tree_model **ret, struct as_err *err);
void tree_model_free(struct tree_model *m);
AS_DEFINE_FREEP(struct tree_model, tree_model_free)

size_t tree_model_inputs(const struct tree_model *m);  /* model_inputs_count() */
size_t tree_model_outputs(const struct tree_model *m); /* classes, or targets */
size_t tree_model_rounds(const struct tree_model *m);

/* Predict rows.
 *   inputs  [rows, tree_model_inputs()], tree_inputs.h; borrowed
 *   ret     [rows, tree_model_outputs()]: probabilities of the classes; or numbers, standardised as
 *           the targets in training (outputs_to_own_unit() of model/network turns them back)
 * A row's bits depend on the row alone, not on the others nor on threads. Any number of threads may
 * call it at once. AS_E_NOMEM, AS_E_INTERNAL. */
AS_MUST_CHECK as_status tree_model_predict(const struct tree_model *m, const float *inputs,
                                           size_t rows, float *ret, struct as_err *err);

/* What the columns of the file (pixels of an image) are worth to the model, as XGBoost counts it:
 *   weight  splits that use the column
 *   gain    mean gain of these splits
 *   cover   mean of the rows (of their second derivatives) at these splits
 * {"columns": [{"column", "gain", "cover", "weight", "share"}]}: share is the column's part of the
 * whole gain; the largest comes first; columns that no split uses are left out, so neighbours and
 * naive Bayes have none. A new reference. */
AS_MUST_CHECK as_status tree_model_importance(const struct tree_model *m,
                                              const struct dataset_info *info, json_t **ret,
                                              struct as_err *err);

/* ---- shared with training ---- */

/* The name of the tensor of bytes: "trees", "neighbours" or "naive_bayes". */
const char *tree_model_tensor(const struct train_model_spec *m);

/* What a booster's outputs mean. */
struct tree_outputs {
    bool forest;   /* or any other kind but boosted trees */
    bool classes;  /* else numbers */
    bool shares;   /* numbers from 0 to 1 (loss bce) */
    size_t raw;    /* numbers of a row that the booster gives */
    size_t values; /* numbers of a row that are reported: classes, or targets */
};

struct tree_outputs tree_outputs_of(const struct train_spec *spec, const struct dataset_info *info);

/* XGBoost's name of what such a booster is trained for. */
const char *tree_outputs_objective(const struct tree_outputs *o, train_loss loss);

/* raw [rows, o->raw] to ret [rows, o->values], as above. `scale` is 1; of a forest that has grown t
 * of its N trees, N / t. */
void tree_outputs_apply(const struct tree_outputs *o, const float *raw, size_t rows, float scale,
                        float *ret);

#endif
