/* What the document says of where a parameter's good values lie: its field `prior`.
 *
 *   float, int                  {mean, deviation}: a normal distribution on the parameter's scale
 *   categorical, ordinal, bool  {weights: {value: weight}}: how much likelier a value is than one
 *                               that is not listed. A value that is no text is written as JSON
 *
 * On a linear scale both numbers are in the parameter's own unit. On a log scale `mean` is a value
 * of the parameter, the median of the distribution, and `deviation` is that of the natural
 * logarithm: with 0.7, two thirds of the probability lie between half and twice the mean. */
#ifndef ASSAY_SEARCH_SPACE_PARAM_PRIOR_H
#define ASSAY_SEARCH_SPACE_PARAM_PRIOR_H

#include "base/json.h"
#include "search/space/param.h"

#define PARAM_PRIOR_LEAST_WEIGHT 1e-6
#define PARAM_PRIOR_MOST_WEIGHT 1e6

struct param_prior {
    double mean, deviation; /* of a float or an int; mean lies within [min, max] */
    double *weights;        /* owned: [n_values] of a choice, all above 0; NULL for numbers */
};

/* Read the field `prior` of the parameter's object into p->prior; absent: NULL. The domain of p is
 * parsed. AS_E_INVAL with the pointer of the field: an unknown field, a mean outside the range, a
 * deviation that is not above 0, a weight of a value that the parameter does not have or that two
 * of its values are written as, a prior of a constant. AS_E_NOMEM. Faults as json_fields. */
AS_MUST_CHECK as_status param_prior_parse(struct json_fields *f, struct space_param *p,
                                          struct as_err *err);
void param_prior_free(struct param_prior *b);
AS_DEFINE_FREEP(struct param_prior, param_prior_free)

/* The canonical field: the weights that are not 1. New reference; NULL when memory is out. */
json_t *param_prior_to_json(const struct space_param *p);

#endif
