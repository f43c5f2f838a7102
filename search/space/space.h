/* The space that a sweep searches: its parameters, their domains, when each one is active, and
 * which combinations are allowed.
 *
 * Parsed from the `parameters` object of a sweep document; the order of the document is kept.
 *   float        {type: float, min, max, scale: linear|log, step, points}
 *   int          {type: int, min, max, scale: linear|log, step, points}
 *   categorical  {type: categorical, values: [strings, numbers, booleans]}
 *   ordinal      {type: ordinal, values: [strings, numbers]}   in their order
 *   bool         {type: bool}                 the same as categorical [false, true]
 *   constant     {type: constant, value}      the same as categorical with one value
 * Each may have `when: {other: value}`, `{other: [v1, v2]}` or `{other: {min: a, max: b}}` (either
 * end may be absent). It is active only while every parameter that `when` names is itself active
 * and has one of the values. Chains are allowed, loops are not. Ranges apply to floats, ints and
 * ordinals (the ends of an ordinal's range are two of its values). Values apply to all kinds except
 * floats.
 *
 * A `step` grid is anchored at min and holds max only when max lies on it. `points` is the number
 * of grid cells of a parameter without a step (evenly spaced from min to max on its scale); methods
 * other than grid ignore it.
 *
 * Two fields of a document restrict the combinations: `parameter_constraints`, expressions that
 * must be true (expr.h), and `forbidden`, combinations of values that must not occur together.
 *
 * A space never changes once it is parsed, so distinct threads may read one. */
#ifndef ASSAY_SEARCH_SPACE_SPACE_H
#define ASSAY_SEARCH_SPACE_SPACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/faults.h"
#include "base/mem.h"
#include "base/status.h"
#include "search/space/cond.h"
#include "search/space/param.h"

#define SPACE_MAX_PARAMS 256
#define SPACE_MAX_CONDS 16 /* of one `when`, of one forbidden combination */
#define SPACE_MAX_CONSTRAINTS 64
#define SPACE_MAX_FORBIDDEN 1000

struct expr;
struct config;

/* A combination that must not be tried: every parameter named is active and meets its condition. */
struct space_forbidden {
    struct cond *conds; /* owned */
    size_t n_conds;     /* at least 1 */
};

struct space {
    struct space_param *params; /* in the document's order */
    size_t n;
    size_t *order; /* the n indices, each parent before its children */
    struct expr **constraints;
    size_t n_constraints;
    struct space_forbidden *forbidden;
    size_t n_forbidden;
};

/* Parse and check a `parameters` object. `pointer` is its place in the document ("/parameters");
 * errors name the field below it.
 * AS_E_INVAL: an unknown field or type, min > max, a log scale with min <= 0, a step that is not
 * above 0 or is larger than the range, empty or repeated values, a `when` that names nothing,
 * itself, a loop, values of a float, or a value or range that the other can never take, conditions
 * that exclude each other, a name that is none (base/param_name.h), no parameter at all.
 * AS_E_TOO_LARGE: past SPACE_MAX_* or PARAM_MAX_*. AS_E_NOMEM. `ret` is owned by the caller. */
AS_MUST_CHECK as_status space_parse(const json_t *parameters, const char *pointer,
                                    struct space **ret, struct as_err *err);
/* The same for a document of which every fault is wanted: each is noted in `faults` (NULL: the
 * first one is returned), and AS_OK may mean a space that lacks the parameters and conditions at
 * fault. Such a space is for space_parse_rules and for the values of its parameters alone. */
AS_MUST_CHECK as_status space_parse_noting(const json_t *parameters, const char *pointer,
                                           struct faults *faults, struct space **ret,
                                           struct as_err *err);
void space_free(struct space *s);
AS_DEFINE_FREEP(struct space, space_free)

/* The parameter's index, or -1. */
int space_find(const struct space *s, const char *name);

/* Read the document's lists `parameter_constraints` and `forbidden` into a space that was just
 * parsed and is not shared yet. `pointer` is the list's place in the document. NULL: the field is
 * absent. Call each function once.
 * AS_E_INVAL: a wrong expression (expr.h), an empty combination, or one that names an unknown
 * parameter or value. AS_E_TOO_LARGE: past SPACE_MAX_*. AS_E_NOMEM. */
AS_MUST_CHECK as_status space_parse_constraints(struct space *s, const json_t *list,
                                                const char *pointer, struct as_err *err);
AS_MUST_CHECK as_status space_parse_forbidden(struct space *s, const json_t *list,
                                              const char *pointer, struct as_err *err);

/* Read both lists of a document, `/parameter_constraints` and `/forbidden` (NULL: absent), into the
 * space of space_parse_noting. `parameters` is the object that it came from: a rule that names one
 * of its parameters at fault is not checked. Faults as in space_parse_noting. */
AS_MUST_CHECK as_status space_parse_rules(struct space *s, const json_t *parameters,
                                          const json_t *constraints, const json_t *forbidden,
                                          struct faults *faults, struct as_err *err);

/* Are there any constraints or forbidden combinations? */
bool space_is_constrained(const struct space *s);

/* May this settled configuration be tried? A constraint that names an inactive parameter is
 * satisfied. A constraint whose value is not finite (a division by zero) is not. Allocates
 * nothing. */
bool space_allows(const struct space *s, const struct config *c);

/* The first rule that the configuration breaks: k < n_constraints is a constraint, n_constraints +
 * k is a forbidden combination, -1 is none. */
int space_violation(const struct space *s, const struct config *c);

/* How far a settled configuration is from being allowed: 0 if space_allows, above 0 if not. The sum
 * over the rules: expr_excess of a constraint, 1 for a forbidden combination. Allocates nothing. */
double space_excess(const struct space *s, const struct config *c);

/* Does rule k, numbered as in space_violation, name parameter i? */
bool space_rule_names(const struct space *s, size_t k, size_t i);

/* AS_E_UNSUPPORTED with the pointer of rule k ("/parameter_constraints/0", "/forbidden/2") and a
 * message: no allowed configuration was found, and this rule was broken most often. */
AS_MUST_CHECK as_status space_refuse_rule(const struct space *s, size_t k, const char *what,
                                          struct as_err *err);

/* Give every ancestor of parameter i a value that makes i active; such values always exist. Other
 * entries stay unchanged. Call config_settle afterwards. */
void space_activate(const struct space *s, size_t i, struct config *c);

/* The canonical `parameters` object: defaults written out, order kept. Parsing it gives an equal
 * space. New reference; NULL when memory is out. */
json_t *space_to_json(const struct space *s);

/* The canonical `parameter_constraints` and `forbidden`: lists, empty when there are none. New
 * references; NULL when memory is out. */
json_t *space_constraints_to_json(const struct space *s);
json_t *space_forbidden_to_json(const struct space *s);

#endif
