/* One parameter on a grid: its numbered values, and the classes that conditions distinguish. */
#ifndef ASSAY_SEARCH_SAMPLING_GRID_AXIS_PRIV_H
#define ASSAY_SEARCH_SAMPLING_GRID_AXIS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/space/cond.h"
#include "search/space/param.h"

/* Values of one parameter that no condition distinguishes: a single value that a condition names,
 * or all other values from low up to high. */
struct axis_class {
    uint64_t low, high; /* indices low <= k < high */
    bool is_named;
    uint64_t size;  /* the number of values, without named ones in between */
    uint64_t first; /* the smallest: classes are in the order of these */
};

/* The values of one parameter on the grid. */
struct axis {
    const struct space_param *param; /* borrowed */
    uint64_t n;
    union param_value *points; /* owned, ascending; NULL: the parameter's levels */
    uint64_t *named;           /* owned, ascending: indices that some condition names */
    size_t n_named, named_cap;
    uint64_t *cuts; /* owned, ascending: indices where a range begins or has just ended */
    size_t n_cuts, cuts_cap;
    struct axis_class *classes; /* owned; at least one */
    size_t n_classes;
};

/* The values of `p` (borrowed): its `points` unless `full`, else its levels. `pointer` is the place
 * of the parameters in the document. AS_E_INVAL: it has neither. AS_E_NOMEM. After a failure
 * axis_done still accepts the axis.
 */
AS_MUST_CHECK as_status axis_init(struct axis *a, const struct space_param *p, const char *pointer,
                                  bool full, struct as_err *err);
void axis_done(struct axis *a);

union param_value axis_value(const struct axis *a, uint64_t k); /* k < n */
uint64_t axis_find(const struct axis *a, union param_value v);  /* its index, n when not there */

/* Record the values that a condition on this parameter distinguishes. After all conditions,
 * axis_split makes the classes. AS_E_NOMEM. */
AS_MUST_CHECK as_status axis_note(struct axis *a, const struct cond *c, struct as_err *err);
AS_MUST_CHECK as_status axis_split(struct axis *a, struct as_err *err);

size_t axis_class_at(const struct axis *a, uint64_t k); /* which class holds index k */

/* The j-th index from `low` on that no condition names; and the position of index k in its
 * class. */
uint64_t axis_unnamed(const struct axis *a, uint64_t low, uint64_t j);
uint64_t axis_rank(const struct axis *a, const struct axis_class *class, uint64_t k);

#endif
