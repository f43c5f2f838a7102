/* Which numbers have an effect on the results of some trials.
 *
 * A Gaussian process with a lengthscale for each number is fitted to the trials, and each number in
 * turn is given the evidence of having no effect at all against that of effects of several
 * strengths. The strength is set by the scale of the number's column: that leaves the
 * hyperparameters and so the prior as they are, and evidences differ by their likelihoods alone. */
#ifndef ASSAY_SEARCH_GP_EFFECT_H
#define ASSAY_SEARCH_GP_EFFECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "search/gp/trial_rows.h"
#include "search/regression/fit.h"

/* A weak effect is no evidence against none unless it explains so much more, as a logarithm. */
#define EFFECT_WEAK 0.5

/* The trials of a test. */
struct effect_trials {
    size_t n; /* for which takes() holds */
    bool (*takes)(const struct training_set *s, size_t i, const void *arg);
    /* Does trial i say nothing of the parameter, whatever it has there? NULL: each trial does. */
    bool (*is_silent)(const struct training_set *s, size_t i, size_t param, const void *arg);
    const void *arg; /* borrowed */
};

struct effects {
    struct trial_rows t;
    bool *is_silent;   /* [rows x columns]: there the column is constant */
    bool *is_left_out; /* of each column, set by the caller: it is constant */
    double *best;      /* of each column: evidence of the best effect less that of none */
    double *none;      /* of each column: evidence of none less that of a usual effect */
};

/* Memory, and the columns: e->t.param says of which parameter each is. AS_E_NOMEM. effects_done()
 * also after a failure. */
AS_MUST_CHECK as_status effects_reserve(struct effects *e, const struct training_set *s,
                                        struct as_err *err);
void effects_done(struct effects *e); /* accepts a zeroed one */

/* Weigh each number by these trials. Numbers that may not die (encoding_may_die) keep 0. *work is
 * made if it is NULL. AS_E_NUMERIC: the model cannot be fitted. AS_E_NOMEM. O(n^3 + d n^3 / 3) with
 * n at most 48. */
AS_MUST_CHECK as_status effects_weigh(struct effects *e, const struct effect_trials *trials,
                                      struct gp_fit_work **work, struct as_err *err);

/* Does the row say nothing of the number of column c? */
static inline bool effects_is_silent(const struct effects *e, size_t row, size_t c)
{
    return e->is_silent[row * e->t.columns.n_real + c];
}

/* How many of the rows say something of the number of column c. */
size_t effects_rows(const struct effects *e, size_t c);

#endif
