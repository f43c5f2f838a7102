/* A condition on one parameter, from one line of a `when` or of a forbidden combination: the
 * parameter has one of some values, or a value in a range.
 *
 *   sgd   [sgd, adamw]   {min: 32, max: 128}   {min: 0.5}
 *
 * Ranges apply to floats, ints and ordinals. The ends of an ordinal's range are two of its values.
 * Both ends are included, and either may be absent. */
#ifndef ASSAY_SEARCH_SPACE_COND_H
#define ASSAY_SEARCH_SPACE_COND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "search/space/param.h"

struct cond {
    size_t parent; /* the parameter whose value is tested */
    bool is_range;
    /* is_range: values that the parameter takes (any numbers of its range if it is continuous); low
     * <= high */
    union param_value low, high;
    union param_value *allowed; /* owned; ascending values of the parameter; empty for a range */
    size_t n_allowed;
};

/* Parse a condition on parameter `p`; `pointer` is its place in the document. `parent` of the
 * result stays 0.
 * AS_E_INVAL: a value or a range that p never takes, a repeated value, an empty list, or a range on
 * choices without an order. AS_E_TOO_LARGE: past PARAM_MAX_VALUES. AS_E_NOMEM. Free with
 * cond_done. */
AS_MUST_CHECK as_status cond_parse(const struct space_param *p, const json_t *j,
                                   const char *pointer, struct cond *ret, struct as_err *err);
void cond_done(struct cond *c); /* accepts a zeroed one */

/* Does value v of parameter p, which is active, meet it? O(log values). */
bool cond_holds(const struct space_param *p, const struct cond *c, union param_value v);

/* Find a value of p that meets all n conditions; each of them is on p. False: there is none. */
bool cond_meet(const struct space_param *p, const struct cond *const *conds, size_t n,
               union param_value *ret);

/* The JSON that cond_parse reads: a list, or {min, max}. New reference; NULL when memory is out. */
json_t *cond_to_json(const struct space_param *p, const struct cond *c);

#endif
