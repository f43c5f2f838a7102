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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define SPACE_MAX_PARAMS 256
#define SPACE_MAX_VALUES 1000   /* of one categorical */
#define SPACE_MAX_POINTS 100000 /* of one parameter */
#define SPACE_MAX_NAME 63

/* Values of a discrete parameter survive param_encode/param_decode exactly up to this many of them.
 */
#define PARAM_EXACT_LEVELS (UINT64_C(1) << 50)

typedef enum param_kind {
    PARAM_FLOAT,
    PARAM_INT,
    PARAM_CATEGORICAL,
    PARAM_BOOL,
    PARAM_CONSTANT
} param_kind;

typedef enum param_scale { SCALE_LINEAR, SCALE_LOG } param_scale;

/* One value. Which member is meant follows from the parameter's kind. */
union param_value {
    double real;     /* PARAM_FLOAT */
    int64_t integer; /* PARAM_INT */
    size_t choice;   /* the others: index into values */
};

/* One line of a `when`: parameter `parent` must be active with one of the `allowed` values (an
 * int's value, or a choice's index), ascending. */
struct param_cond {
    size_t parent;
    int64_t *allowed;
    size_t n_allowed;
};

struct space_param {
    char *name;
    param_kind kind;
    param_scale scale;
    struct {
        double min, max, step; /* step 0: continuous */
    } real;
    struct {
        int64_t min, max;
        uint64_t step; /* at least 1 */
    } integer;
    int64_t points; /* 0: not given */
    json_t *values; /* owned; an array, for categorical, bool and constant; NULL otherwise */
    size_t n_values;
    struct param_cond *conds; /* owned; empty: always active */
    size_t n_conds;
    bool is_parent; /* some other parameter's `when` names it */
};

struct space {
    struct space_param *params; /* in the document's order */
    size_t n;
    size_t *order; /* the n indices, each parent before its children */
};

/* Parse and check a `parameters` object. `pointer` is where it stands in the document
 * ("/parameters"): errors name the field below it.
 * AS_E_INVAL: an unknown field or type, min > max, a log scale with min <= 0, a step that is not
 * above 0 or is larger than the range, empty or repeated values, a `when` that names nothing,
 * itself, a loop, a float, or a value that the other can never take, a name that is not
 * [A-Za-z_][A-Za-z0-9_.-]{0,62}, no parameter at all. AS_E_TOO_LARGE: past SPACE_MAX_*. AS_E_NOMEM.
 * `ret` is owned by the caller. */
AS_MUST_CHECK as_status space_parse(const json_t *parameters, const char *pointer,
                                    struct space **ret, struct as_err *err);
void space_free(struct space *s);
AS_DEFINE_FREEP(struct space, space_free)

/* The parameter's index, or -1. */
int space_find(const struct space *s, const char *name);

/* The canonical `parameters` object: defaults written out, order kept. Parsing it gives an equal
 * space. New reference; NULL when memory is out. */
json_t *space_to_json(const struct space *s);

/* The number of distinct values of one parameter; 0 for a float without step, UINT64_MAX for the
 * one int range that has 2^64. */
uint64_t param_levels(const struct space_param *p);

/* The k-th value, k < param_levels(p), of a discrete parameter, and the level of a value that
 * param_contains. Exact: param_level_of(p, param_level(p, k)) == k. */
union param_value param_level(const struct space_param *p, uint64_t k);
uint64_t param_level_of(const struct space_param *p, union param_value v);

/* Is it a value that this parameter can take? */
bool param_contains(const struct space_param *p, union param_value v);

/* Unit interval to value. u in [0,1]; every value of a discrete parameter on a linear scale owns an
 * equal share of it, on a log scale the share between the half-steps around it; 0 is min and 1 is
 * max of a continuous one. param_decode(p, param_encode(p, v)) == v for every discrete value (see
 * PARAM_EXACT_LEVELS) and for both ends of a continuous range; inside it, within a few parts in
 * 1e15 of the range (of the value, on a log scale). */
union param_value param_decode(const struct space_param *p, double u);
double param_encode(const struct space_param *p, union param_value v);

/* New reference; NULL when memory is out. */
json_t *param_value_to_json(const struct space_param *p, union param_value v);
/* A float takes whole numbers too, an int takes 3.0; categorical values compare by type and value,
 * 1 and 1.0 are equal. AS_E_INVAL with `pointer` and what was expected. */
AS_MUST_CHECK as_status param_value_from_json(const struct space_param *p, const json_t *j,
                                              const char *pointer, union param_value *ret,
                                              struct as_err *err);

#endif
