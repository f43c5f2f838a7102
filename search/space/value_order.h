/* The order of the values of a categorical that are numbers.
 *
 * People list sizes, counts and rates as choices: [16, 32, 64, 128]. Neighbours in their order are
 * likely to perform similarly, unless the numbers are labels ([18, 34, 50], of networks). So a
 * model sees both: which value it is, and its place in the order. */
#ifndef ASSAY_SEARCH_SPACE_VALUE_ORDER_H
#define ASSAY_SEARCH_SPACE_VALUE_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "search/space/param.h"

/* Has it an order by value? A categorical of at least three values, all numbers. */
bool value_order_exists(const struct space_param *p);

/* The place of each value in that order, in [0, 1] at equal distances: [n_values], by the index of
 * the value. AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status value_order_places(const struct space_param *p, double **ret,
                                           struct as_err *err);

#endif
