/* Converts, predicts and formats the rows of a block, in a thread of its own. For cli/predict/
 * alone. */
#ifndef ASSAY_CLI_PREDICT_WORKER_H
#define ASSAY_CLI_PREDICT_WORKER_H

#include "cli/predict/input.h"
#include "cli/predict/prediction_output.h"
#include "model/predict/predictor.h"

/* What becomes of a block. */
struct predict_done {
    struct str text; /* formatted rows; keeps its memory */
    size_t rows, unknown;
    /* [columns of the model] missing numbers in columns that had none. From the caller, owned;
     * NULL: the model has no named columns. */
    size_t *imputed;
    char first[240]; /* the first unknown category of the block, as in struct predict_summary */
    as_status st;
    struct as_err err;
};

/* What one thread works with. */
struct predict_worker {
    const struct predict_input *input;
    const struct predict_output *output;
    bool strict;
    struct predictor *predictor; /* owned, like the rest */
    size_t batch;                /* rows that are predicted at once */
    float *raw, *predictions;    /* [batch, …] */
    unsigned char *bytes;        /* of one image; NULL: there are none */
    bool *categorical;           /* [columns of the model] */
};

AS_MUST_CHECK as_status predict_worker_init(struct predict_worker *w, const struct model_file *f,
                                            const struct predict_input *input,
                                            const struct predict_output *output, bool strict,
                                            struct as_err *err);
void predict_worker_done(struct predict_worker *w);

/* Predict a block. ret->st and ret->err say how it went. */
void predict_worker_run(struct predict_worker *w, struct predict_block *block,
                        struct predict_done *ret);

#endif
