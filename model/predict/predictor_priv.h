/* The inside of a predictor: for model/predict/ alone. */
#ifndef ASSAY_MODEL_PREDICT_PREDICTOR_PRIV_H
#define ASSAY_MODEL_PREDICT_PREDICTOR_PRIV_H

#include "model/combine/combine.h"
#include "model/predict/part.h"
#include "model/predict/predictor.h"

/* Rows of a pass as one preprocessing encodes them. Members whose preprocessing learnt the same
 * share it. */
struct predict_encoding {
    const struct preprocess *fit; /* view of the model file */
    const json_t *record;         /* the same, as JSON */
    struct dataset set;           /* the encoded rows of a pass */
    int32_t *codes;
};

struct predictor {
    const struct model_file *file;   /* borrowed */
    const struct dataset_info *info; /* view of file */
    struct backend *be;              /* owned */
    size_t n_outputs, max_rows;
    size_t n_encodings, n_parts;
    struct predict_encoding *encodings;
    struct predict_part *parts;
    float *values;   /* [members, max_rows, n_outputs]: predictions of a pass */
    float **of_part; /* [members]: where the members of the current part write theirs */
    struct combine_term *terms, *inputs; /* [members]; what is combined */
    double *sum;                         /* [max_rows, n_outputs] */
    bool *categorical;                   /* [columns] */
    size_t *first_value;                 /* tables with columns: [columns], in `known` */
    bool *known; /* [values of all columns]: has the training data of a member this one? */
};

/* The predictions of a member in a pass: [rows, n_outputs]. */
float *predictor_values(const struct predictor *p, size_t member);

/* Set terms, inputs and sum, for max_rows. AS_E_NOMEM. */
AS_MUST_CHECK as_status predictor_combine_init(struct predictor *p, struct as_err *err);

/* Combine the members' predictions of a pass, which are lost: ret[rows, n_outputs]. */
void predictor_combine(const struct predictor *p, size_t rows, float *ret);

/* Set categorical, first_value and known. AS_E_NOMEM. */
AS_MUST_CHECK as_status predictor_know_values(struct predictor *p, struct as_err *err);

#endif
