/* One parameter of a space: its domain, and the maps between its values, levels and the unit
 * interval.
 *
 * A discrete parameter (every kind except a float without step) has levels 0..n-1. A `step` grid is
 * anchored at min and holds max only when max lies on it; points of a float's grid are rounded to
 * 15 digits, as people write them (0.3, not 0.30000000000000004). */
#ifndef ASSAY_SEARCH_SPACE_PARAM_H
#define ASSAY_SEARCH_SPACE_PARAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/faults.h"
#include "base/status.h"

#define PARAM_MAX_VALUES 1000  /* of one categorical */
#define PARAM_MAX_POINTS 10000 /* of one parameter */
#define PARAM_LIST_ITEMS 1000  /* of a list that is a value, with those of its lists */
#define PARAM_LIST_DEPTH 4

/* Values of a discrete parameter survive param_encode/param_decode exactly up to this many of them.
 */
#define PARAM_EXACT_LEVELS (UINT64_C(1) << 40)

typedef enum param_kind {
    PARAM_FLOAT,
    PARAM_INT,
    PARAM_CATEGORICAL,
    PARAM_ORDINAL, /* values whose order has a meaning */
    PARAM_BOOL,
    PARAM_CONSTANT
} param_kind;

typedef enum param_scale { SCALE_LINEAR, SCALE_LOG } param_scale;

/* One value. The parameter's kind determines the member. */
union param_value {
    double real;     /* PARAM_FLOAT */
    int64_t integer; /* PARAM_INT */
    size_t choice;   /* the others: index into values */
};

struct cond;        /* cond.h */
struct param_prior; /* param_prior.h */

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
    json_t *values; /* owned; an array, for what param_is_choice; NULL otherwise. Those of a
                       categorical may be null and lists */
    size_t n_values;
    struct cond *conds; /* owned; empty: always active */
    size_t n_conds;
    bool is_parent;            /* some other parameter's `when` names it */
    struct param_prior *prior; /* owned; NULL: the document says nothing of what is likely */
};

/* Parse one parameter's object; `pointer` is its place in the document. `when` is not parsed,
 * because it names other parameters: it is returned (borrowed, NULL if absent). `name` is copied
 * unchecked. AS_E_INVAL: an unknown field or type, min > max, a log scale with min <= 0, a step
 * that is not above 0 or is larger than the range, step and points together, an int range that
 * does not fit int64, empty or repeated values. AS_E_TOO_LARGE: past PARAM_MAX_*. AS_E_NOMEM. Every
 * fault is noted in `faults` (NULL: none is noted); the first is returned. On success free with
 * param_done. */
AS_MUST_CHECK as_status param_parse(const char *name, const json_t *j, const char *pointer,
                                    struct faults *faults, struct space_param *ret,
                                    const json_t **ret_when, struct as_err *err);
void param_done(struct space_param *p); /* accepts a zeroed or half-built one */

/* Every value comes from `values`: categorical, ordinal, bool, constant. */
bool param_is_choice(const struct space_param *p);

/* The object's fields except `when`, with defaults written out. New reference; NULL when memory is
 * out. */
json_t *param_to_json(const struct space_param *p);

/* v rounded to 15 digits if that is within `tolerance` of v, else v. This is the number that people
 * would write. */
double param_round(double v, double tolerance);

/* The number of distinct values of one parameter; 0 for a float without step. */
uint64_t param_levels(const struct space_param *p);

/* The k-th value, k < param_levels(p), of a discrete parameter, and the level of a value that
 * param_contains. Exact: param_level_of(p, param_level(p, k)) == k. */
union param_value param_level(const struct space_param *p, uint64_t k);
uint64_t param_level_of(const struct space_param *p, union param_value v);

/* Compare by number, or by place among the choices: -1, 0 or 1. */
int param_compare(const struct space_param *p, union param_value a, union param_value b);

/* Is it a value that this parameter can take? */
bool param_contains(const struct space_param *p, union param_value v);

/* The value at place t in [0,1] of a float's or an int's range, on its scale; within [min, max]. */
double param_spread(const struct space_param *p, double t);

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
 * lists item by item; 1 and 1.0 are equal. AS_E_INVAL with `pointer` and what was expected. */
AS_MUST_CHECK as_status param_value_from_json(const struct space_param *p, const json_t *j,
                                              const char *pointer, union param_value *ret,
                                              struct as_err *err);

#endif
