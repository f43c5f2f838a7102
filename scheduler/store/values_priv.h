/* Lists of metric values as PostgreSQL's arrays of float8, and of whole numbers. */
#ifndef ASSAY_SCHEDULER_STORE_VALUES_PRIV_H
#define ASSAY_SCHEDULER_STORE_VALUES_PRIV_H

#include "scheduler/store/pg_priv.h"

/* The names as the text of a text[] parameter. AS_E_NOMEM. */
AS_MUST_CHECK as_status array_of_names(struct str *b, const char *const *names, size_t n,
                                       struct as_err *err);

/* Read the next column, a float8[] of n elements. NaN: the element is null, or the whole column is.
 * ret_has (NULL allowed): which elements had a value. AS_E_INTERNAL: the array has another length
 * or form. */
AS_MUST_CHECK as_status read_values(struct reader *rd, size_t n, double *ret, bool *ret_has,
                                    struct as_err *err);

/* The same of a bigint[] that is not null. ret_has: as above, not NULL. */
AS_MUST_CHECK as_status read_integers(struct reader *rd, size_t n, int64_t *ret, bool *ret_has,
                                      struct as_err *err);

#endif
