/* Lists of metrics' values as PostgreSQL's arrays of float8. */
#ifndef ASSAY_SCHEDULER_STORE_VALUES_PRIV_H
#define ASSAY_SCHEDULER_STORE_VALUES_PRIV_H

#include "scheduler/store/pg_priv.h"

/* The names as text of a text[] parameter. AS_E_NOMEM. */
AS_MUST_CHECK as_status array_of_names(struct str *b, const char *const *names, size_t n,
                                       struct as_err *err);

/* The next column, a float8[] of n elements: NaN where an element is null, or the whole column is.
 * ret_has (NULL allowed) says where one was. AS_E_INTERNAL: the array is another one. */
AS_MUST_CHECK as_status read_values(struct reader *rd, size_t n, double *ret, bool *ret_has,
                                    struct as_err *err);

#endif
