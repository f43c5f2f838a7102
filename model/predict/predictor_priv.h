/* The inside of a predictor: for model/predict/ alone. */
#ifndef ASSAY_MODEL_PREDICT_PREDICTOR_PRIV_H
#define ASSAY_MODEL_PREDICT_PREDICTOR_PRIV_H

#include "model/combine/combine.h"
#include "model/predict/part.h"
#include "model/predict/predictor.h"

/* Rows of a pass as one preprocessing encodes them. Members whose preprocessing learnt the same
 * share it. */
struct predict_encoding {
    const struct dataset_info *info; /* what its members were trained on; view of the model file */
    size_t stack;                    /* which predictions it sees beside the columns, or
                                      * MODEL_NO_STACK */
    const struct preprocess *fit;    /* view of the model file */
    const json_t *record;            /* the same, as JSON */
    bool is_made;                    /* for the rows that go through now */
    struct dataset set;              /* the encoded rows of a pass */
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
    size_t *of_row;    /* by a column: [max_rows] the input of each row of a pass; else NULL */
    float *raw, *part; /* by a column: rows of an input [max_rows, n_features], and what it predicts
                        * [max_rows, n_outputs] */
    size_t n_stacks;   /* of the model */
    float **stacked;   /* [n_stacks]: rows of a pass, with what their inputs predict behind
                      * them [max_rows, n_features of the stack] */
    float *seen;       /* with stacks: what one input predicts [max_rows, n_outputs]; else NULL */
    bool *wanted;      /* [inputs]: which a pass needs */
    bool *categorical; /* [columns] */
    float *coded; /* of a data set with codes of missing values: rows of a pass, in which NaN stands
                   * for them [max_rows, n_features]; else NULL */
    bool has_gaps;       /* the rows of this call have missing numbers */
    size_t *first_value; /* tables with columns: [columns], in `known` */
    bool *known;         /* [values of all columns]: has the training data of a member this one? */
};

/* The predictions of a member in a pass: [rows, n_outputs]. */
float *predictor_values(const struct predictor *p, size_t member);

/* Set terms, inputs, sum, and what a combination by a column needs, for max_rows. AS_E_NOMEM. */
AS_MUST_CHECK as_status predictor_combine_init(struct predictor *p, struct as_err *err);

/* Combine the members' predictions of a pass, which are lost: ret[rows, n_outputs]. Not of a
 * combination by a column. */
void predictor_combine(const struct predictor *p, size_t rows, float *ret);
/* What the combination gave, calibrated in place, if the model is. */
void predictor_calibrate(const struct predictor *p, size_t rows, float *ret);

/* What one input predicts, from the predictions of its members. */
void predictor_combine_input(const struct predictor *p, size_t input, size_t rows, float *ret);

/* A pass of at most max_rows rows through the members of one input, or of all (SIZE_MAX): encode
 * them and set predictor_values(). AS_E_NOMEM and the errors of back ends. */
AS_MUST_CHECK as_status predictor_members_run(struct predictor *p, size_t input, const float *raw,
                                              size_t rows, struct as_err *err);

/* A pass of a combination by a column: each input predicts its rows. As predictor_members_run(). */
AS_MUST_CHECK as_status predictor_by_column(struct predictor *p, const float *raw, size_t rows,
                                            float *ret, struct as_err *err);

/* Layers (stacks.c). Make what they need, for max_rows. AS_E_NOMEM. */
AS_MUST_CHECK as_status predictor_stacks_init(struct predictor *p, struct as_err *err);
/* Set `wanted` for a pass of one input, or of all (SIZE_MAX): the input, and all that it sees. */
void predictor_want(struct predictor *p, size_t input);
/* Make the rows of those stacks whose wanted inputs are at this depth. What they see was predicted
 * before. */
void predictor_stack_rows(struct predictor *p, size_t depth, const float *raw, size_t rows);

/* Set categorical, first_value and known. AS_E_NOMEM. */
AS_MUST_CHECK as_status predictor_know_values(struct predictor *p, struct as_err *err);

#endif
