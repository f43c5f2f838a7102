/* The combinations that a space allows: parameter_constraints and forbidden. The first list holds
 * expressions (expr.h); the second holds conjunctions of conditions (cond.h). Both are numbered as
 * one list of rules, so that a caller can count and report the rule that was broken. */
#include <string.h>

#include "base/json.h"
#include "search/space/config.h"
#include "search/space/expr.h"
#include "search/space/space_priv.h"

/* ---- parsing ---- */

static as_status check_list(const json_t *list, const char *pointer, size_t most,
                            struct as_err *err)
{
    if (!json_is_array(list))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %s, expected a list", pointer,
                          json_type_name(list));
    if (json_array_size(list) > most)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer, "%s: %zu entries, at most %zu are allowed",
                          pointer, json_array_size(list), most);
    return AS_OK;
}

/* Does the text name a parameter at fault? Its expression cannot be checked then. */
static bool names_lacking(const struct space *s, const json_t *parameters, const char *text)
{
    for (void *it = json_object_iter((json_t *)parameters); it;
         it = json_object_iter_next((json_t *)parameters, it)) {
        const char *name = json_object_iter_key(it);
        if (space_lacks(s, parameters, name) && strstr(text, name))
            return true;
    }
    return false;
}

static as_status parse_constraint(struct space *s, const json_t *text, const char *pointer,
                                  const json_t *parameters, struct as_err *err)
{
    if (!json_is_string(text))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %s, expected a string such as 'a * b <= 4096'", pointer,
                          json_type_name(text));
    if (names_lacking(s, parameters, json_string_value(text)))
        return AS_OK;
    as_status st =
        expr_parse(s, json_string_value(text), pointer, &s->constraints[s->n_constraints], err);
    if (st == AS_OK)
        s->n_constraints++;
    return st;
}

/* `parameters`, `faults`: as in space_parse_rules; both NULL: the first fault is returned. */
static as_status parse_constraints(struct space *s, const json_t *list, const char *pointer,
                                   const json_t *parameters, struct faults *faults,
                                   struct as_err *err)
{
    if (!list)
        return AS_OK;
    as_status st = check_list(list, pointer, SPACE_MAX_CONSTRAINTS, err);
    if (st < 0)
        return faults_note(faults, st, err);
    s->constraints = as_calloc(json_array_size(list), sizeof(struct expr *));
    if (!s->constraints)
        return as_fail(err, AS_E_NOMEM, "out of memory for constraints");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        st = parse_constraint(s, json_array_get(list, i), at, parameters, err);
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status space_parse_constraints(struct space *s, const json_t *list, const char *pointer,
                                  struct as_err *err)
{
    return parse_constraints(s, list, pointer, NULL, NULL, err);
}

static as_status parse_combination(const struct space *s, const json_t *j, const char *pointer,
                                   const json_t *parameters, struct space_forbidden *f,
                                   struct as_err *err)
{
    size_t n = json_object_size(j);
    if (!json_is_object(j) || n == 0)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %s, expected an object such as {optimizer: sgd}", pointer,
                          json_is_object(j) ? "an empty one" : json_type_name(j));
    if (n > SPACE_MAX_CONDS)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer, "%s: %zu entries, at most %d are allowed",
                          pointer, n, SPACE_MAX_CONDS);
    f->conds = as_calloc(n, sizeof *f->conds);
    if (!f->conds)
        return as_fail(err, AS_E_NOMEM, "out of memory for a forbidden combination");
    for (void *it = json_object_iter((json_t *)j); it;
         it = json_object_iter_next((json_t *)j, it)) {
        const char *name = json_object_iter_key(it);
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(pointer, name, at);
        int i = space_find(s, name);
        if (space_lacks(s, parameters, name))
            continue;
        if (i < 0)
            return as_fail_at(err, AS_E_INVAL, at, "%s: there is no parameter '%.64s'", at, name);
        as_status st =
            cond_parse(&s->params[i], json_object_iter_value(it), at, &f->conds[f->n_conds], err);
        if (st < 0)
            return st;
        f->conds[f->n_conds++].parent = (size_t)i;
    }
    return AS_OK;
}

static as_status parse_forbidden(struct space *s, const json_t *list, const char *pointer,
                                 const json_t *parameters, struct faults *faults,
                                 struct as_err *err)
{
    if (!list)
        return AS_OK;
    as_status st = check_list(list, pointer, SPACE_MAX_FORBIDDEN, err);
    if (st < 0)
        return faults_note(faults, st, err);
    s->forbidden = as_calloc(json_array_size(list), sizeof *s->forbidden);
    if (!s->forbidden)
        return as_fail(err, AS_E_NOMEM, "out of memory for forbidden combinations");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        s->n_forbidden++;
        st = parse_combination(s, json_array_get(list, i), at, parameters, &s->forbidden[i], err);
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status space_parse_forbidden(struct space *s, const json_t *list, const char *pointer,
                                struct as_err *err)
{
    return parse_forbidden(s, list, pointer, NULL, NULL, err);
}

as_status space_parse_rules(struct space *s, const json_t *parameters, const json_t *constraints,
                            const json_t *forbidden, struct faults *faults, struct as_err *err)
{
    as_status st =
        parse_constraints(s, constraints, "/parameter_constraints", parameters, faults, err);
    if (st != AS_OK)
        return st;
    return parse_forbidden(s, forbidden, "/forbidden", parameters, faults, err);
}

/* ---- meaning ---- */

bool space_is_constrained(const struct space *s)
{
    return s->n_constraints + s->n_forbidden > 0;
}

static bool forbidden_matches(const struct space *s, const struct space_forbidden *f,
                              const struct config *c)
{
    for (size_t k = 0; k < f->n_conds; k++) {
        const struct config_entry *e = &c->entries[f->conds[k].parent];
        if (!e->active || !cond_holds(&s->params[f->conds[k].parent], &f->conds[k], e->value))
            return false;
    }
    return true;
}

int space_violation(const struct space *s, const struct config *c)
{
    for (size_t k = 0; k < s->n_constraints; k++)
        if (!expr_holds(s->constraints[k], s, c))
            return (int)k;
    for (size_t k = 0; k < s->n_forbidden; k++)
        if (forbidden_matches(s, &s->forbidden[k], c))
            return (int)(s->n_constraints + k);
    return -1;
}

bool space_allows(const struct space *s, const struct config *c)
{
    return space_violation(s, c) < 0;
}

double space_excess(const struct space *s, const struct config *c)
{
    double sum = 0;
    for (size_t k = 0; k < s->n_constraints; k++)
        sum += expr_excess(s->constraints[k], s, c);
    for (size_t k = 0; k < s->n_forbidden; k++)
        sum += forbidden_matches(s, &s->forbidden[k], c);
    return sum;
}

bool space_rule_names(const struct space *s, size_t k, size_t i)
{
    if (k < s->n_constraints)
        return expr_names(s->constraints[k], i);
    const struct space_forbidden *f = &s->forbidden[k - s->n_constraints];
    for (size_t c = 0; c < f->n_conds; c++)
        if (f->conds[c].parent == i)
            return true;
    return false;
}

as_status space_refuse_rule(const struct space *s, size_t k, const char *what, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    bool is_constraint = k < s->n_constraints;
    json_pointer_index(is_constraint ? "/parameter_constraints" : "/forbidden",
                       is_constraint ? k : k - s->n_constraints, at);
    return as_fail_at(err, AS_E_UNSUPPORTED, at, "%s: %s; this rule was broken most often", at,
                      what);
}

/* ---- the canonical form ---- */

json_t *space_constraints_to_json(const struct space *s)
{
    JSON_AUTO list = json_array();
    int bad = list ? 0 : -1;
    for (size_t k = 0; k < s->n_constraints; k++)
        bad |= json_array_append_new(list, json_string(expr_text(s->constraints[k])));
    return bad ? NULL : as_steal(list);
}

static json_t *combination_to_json(const struct space *s, const struct space_forbidden *f)
{
    JSON_AUTO j = json_object();
    int bad = j ? 0 : -1;
    for (size_t k = 0; k < f->n_conds; k++) {
        const struct space_param *p = &s->params[f->conds[k].parent];
        bad |= json_object_set_new(j, p->name, cond_to_json(p, &f->conds[k]));
    }
    return bad ? NULL : as_steal(j);
}

json_t *space_forbidden_to_json(const struct space *s)
{
    JSON_AUTO list = json_array();
    int bad = list ? 0 : -1;
    for (size_t k = 0; k < s->n_forbidden; k++)
        bad |= json_array_append_new(list, combination_to_json(s, &s->forbidden[k]));
    return bad ? NULL : as_steal(list);
}
