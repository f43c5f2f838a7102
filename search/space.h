/* The space that a sweep searches: its parameters, their domains, and when each one is active.
 *
 * Parsed from the `parameters` object of a sweep document; the order of the document is kept.
 *   float        {type: float, min, max, scale: linear|log, step, points}
 *   int          {type: int, min, max, scale: linear|log, step, points}
 *   categorical  {type: categorical, values: [strings, numbers, booleans]}
 *   bool         {type: bool}                 the same as categorical [false, true]
 *   constant     {type: constant, value}      the same as categorical with one value
 * Each may carry `when: {other: value}` or `{other: [v1, v2]}`: it is active only while every
 * parameter named is itself active and has one of the values. Chains are allowed, loops are not; a
 * float cannot be named.
 *
 * A `step` grid is anchored at min and holds max only when max lies on it. `points` is the number
 * of grid cells of a parameter without a step (evenly spaced from min to max on its scale); methods
 * other than grid do not look at it.
 *
 * A space never changes after space_parse, so distinct threads may read one. */
#ifndef ASSAY_SEARCH_SPACE_H
#define ASSAY_SEARCH_SPACE_H

#include <jansson.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/param.h"

#define SPACE_MAX_PARAMS 256
#define SPACE_MAX_CONDS 16 /* of one `when` */

struct space {
    struct space_param *params; /* in the document's order */
    size_t n;
    size_t *order; /* the n indices, each parent before its children */
};

/* Parse and check a `parameters` object. `pointer` is where it stands in the document
 * ("/parameters"): errors name the field below it.
 * AS_E_INVAL: an unknown field or type, min > max, a log scale with min <= 0, a step that is not
 * above 0 or is larger than the range, empty or repeated values, a `when` that names nothing,
 * itself, a loop, a float, or a value that the other can never take, conditions that exclude each
 * other, a name that is not [A-Za-z_][A-Za-z0-9_.-]{0,62}, no parameter at all. AS_E_TOO_LARGE:
 * past SPACE_MAX_* or PARAM_MAX_*. AS_E_NOMEM. `ret` is owned by the caller. */
AS_MUST_CHECK as_status space_parse(const json_t *parameters, const char *pointer,
                                    struct space **ret, struct as_err *err);
void space_free(struct space *s);
AS_DEFINE_FREEP(struct space, space_free)

/* The parameter's index, or -1. */
int space_find(const struct space *s, const char *name);

/* Give every ancestor of parameter i a value that makes i active: there always is one. Entries that
 * are no ancestors are left alone; call config_settle afterwards. */
struct config;
void space_activate(const struct space *s, size_t i, struct config *c);

/* The canonical `parameters` object: defaults written out, order kept. Parsing it gives an equal
 * space. New reference; NULL when memory is out. */
json_t *space_to_json(const struct space *s);

#endif
