/* What one line of a `when`, or of a forbidden combination, says of a parameter: that it has one of
 * some values, or a value in a range.
 *
 *   sgd   [sgd, adamw]   {min: 32, max: 128}   {min: 0.5}
 *
 * Ranges speak of floats, ints and ordinals, whose ends are two of their values; both ends are
 * included and either may be absent. */
#ifndef ASSAY_SEARCH_SPACE_COND_H
#define ASSAY_SEARCH_SPACE_COND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "search/space/param.h"

struct cond {
    size_t parent; /* the parameter whose value is looked at */
    bool is_range;
    union param_value low, high; /* is_range: values that the parameter takes (of a continuous one,
                                    numbers of its range); low <= high */
    union param_value *allowed;  /* owned; ascending values of the parameter; none of a range */
    size_t n_allowed;
};

/* Parse a condition on parameter `p`, which stands at `pointer`; `parent` of the result is left 0.
 * AS_E_INVAL: a value or a range that p never takes, a value twice, an empty list, a range of
 * choices that have no order. AS_E_TOO_LARGE: past PARAM_MAX_VALUES. AS_E_NOMEM. Free with
 * cond_done. */
AS_MUST_CHECK as_status cond_parse(const struct space_param *p, const json_t *j,
                                   const char *pointer, struct cond *ret, struct as_err *err);
void cond_done(struct cond *c); /* accepts a zeroed one */

/* Does value v of parameter p, which is active, meet it? O(log values). */
bool cond_holds(const struct space_param *p, const struct cond *c, union param_value v);

/* A value of p that meets all n conditions, each of which speaks of p. False: there is none. */
bool cond_meet(const struct space_param *p, const struct cond *const *conds, size_t n,
               union param_value *ret);

/* What cond_parse reads: a list, or {min, max}. New reference; NULL when memory is out. */
json_t *cond_to_json(const struct space_param *p, const struct cond *c);

#endif
