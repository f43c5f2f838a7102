/* Trials as the rows of a test of what the parameters do (relevance.h, bend.h): a column for each
 * number, a category for each choice, whatever was learned to be dead before. */
#ifndef ASSAY_SEARCH_GP_TRIAL_ROWS_H
#define ASSAY_SEARCH_GP_TRIAL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/regression/fit.h"
#include "search/regression/training_set.h"

#define TRIAL_ROWS_MOST 48 /* the first half of the trials and the newest half */

struct trial_rows {
    const struct training_set *s; /* borrowed */
    struct gp_columns columns;
    struct gp_rows rows; /* views of x and z */
    size_t *trial;       /* of each row */
    size_t *param;       /* of each column */
    double *x, *y;       /* y: on the scale WARP_HALF_RANK */
    int32_t *z;
};

/* Memory for the rows, and the columns. AS_E_NOMEM. trial_rows_done() also after a failure. */
AS_MUST_CHECK as_status trial_rows_reserve(struct trial_rows *t, const struct training_set *s,
                                           struct as_err *err);
void trial_rows_done(struct trial_rows *t);

/* Fill them with trials for which takes() holds, of which there are n_all. AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_rows_fill(struct trial_rows *t, size_t n_all,
                                        bool (*takes)(const struct training_set *s, size_t i,
                                                      const void *arg),
                                        const void *arg, struct as_err *err);

/* Where the trial of a row is in column c, as its encoding says. */
static inline double trial_rows_place(const struct trial_rows *t, size_t row, size_t c)
{
    return training_set_point(t->s, t->trial[row])[t->param[c]];
}

/* Put a value into column c of a row, whose middle stays where it is: `width` times as wide. */
static inline void trial_rows_put(struct trial_rows *t, size_t row, size_t c, double place,
                                  double width)
{
    t->x[row * t->columns.n_real + c] = 0.5 + width * (place - 0.5);
}

#endif
