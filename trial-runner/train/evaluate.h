/* How good the members are on the rows held out. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_EVALUATE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_EVALUATE_H

#include "base/mem.h"
#include "trial-runner/train/batches.h"
#include "trial-runner/train/model_mlp.h"

/* Figures of one member. Those of the other task are 0. Losses and errors of regression are in the
 * target's own unit (squared for the loss). */
struct evaluation {
    double loss;
    double error, accuracy; /* classification: shares of the rows */
    double rmse, mae, r2;   /* regression; r2 of constant targets is 1 when exact, else 0;
                             * -Infinity or NaN when the predictions are not finite */
};

struct evaluator {
    struct model *model;     /* borrowed */
    struct batches *batches; /* borrowed */
    bool classify;
    size_t outputs;
    struct buf *row_loss, *row_class; /* [K, max_batch] */
    struct buf *loss, *correct;       /* [K] */
    float *predictions;               /* [n_val, outputs], workspace */
};

/* AS_E_NOMEM. Owned by the caller; frees before what it borrows. */
AS_MUST_CHECK as_status evaluator_create(struct model *model, struct batches *batches,
                                         bool classify, struct evaluator **ret, struct as_err *err);
void evaluator_free(struct evaluator *e);
AS_DEFINE_FREEP(struct evaluator, evaluator_free)

/* ret[k] for every member. */
AS_MUST_CHECK as_status evaluator_run(struct evaluator *e, struct evaluation *ret,
                                      struct as_err *err);

/* Member k's predictions of the rows held out, [n_val, outputs]: probabilities, or numbers in the
 * target's own unit. A view of e until its next call. */
AS_MUST_CHECK as_status evaluator_predict(struct evaluator *e, size_t k, const float **ret,
                                          struct as_err *err);

#endif
