/* Parsing a space. First every domain is parsed, because a condition may name a parameter that
 * comes later in the document. Then come the conditions, the order of parents before children, and
 * the check that each parameter can be active.
 *
 * With a list of faults, a parameter at fault is left out of the space, and so is each condition on
 * it: whether the condition is right cannot be said. */
#include "search/space/space.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/param_name.h"
#include "search/space/config.h"
#include "search/space/expr.h"
#include "search/space/space_priv.h"

void space_free(struct space *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        param_done(&s->params[i]);
    for (size_t i = 0; i < s->n_constraints; i++)
        expr_free(s->constraints[i]);
    for (size_t i = 0; i < s->n_forbidden; i++) {
        for (size_t k = 0; k < s->forbidden[i].n_conds; k++)
            cond_done(&s->forbidden[i].conds[k]);
        free(s->forbidden[i].conds);
    }
    free(s->constraints);
    free(s->forbidden);
    free(s->params);
    free(s->order);
    free(s);
}

int space_find(const struct space *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->params[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool space_lacks(const struct space *s, const json_t *parameters, const char *name)
{
    return json_object_get(parameters, name) && space_find(s, name) < 0;
}

/* ---- conditions ---- */

static as_status parse_cond(struct space *s, size_t child, const char *key, const json_t *value,
                            const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, key, at);
    int parent = space_find(s, key);
    if (parent < 0)
        return as_fail_at(err, AS_E_INVAL, at, "%s: there is no parameter '%.64s'", at, key);
    if ((size_t)parent == child)
        return as_fail_at(err, AS_E_INVAL, at, "%s: a parameter cannot depend on itself", at);
    struct space_param *p = &s->params[child];
    if (s->params[parent].kind == PARAM_FLOAT && !json_is_object(value))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: '%s' is a float; name a range of it, such as {min: 0.5}", at, key);
    struct cond *cond = &p->conds[p->n_conds];
    as_status st = cond_parse(&s->params[parent], value, at, cond, err);
    if (st < 0)
        return st;
    cond->parent = (size_t)parent;
    p->n_conds++;
    s->params[parent].is_parent = true;
    return AS_OK;
}

/* `parameters`, `faults`: as in space_parse_noting. */
static as_status parse_when(struct space *s, size_t child, const json_t *when, const char *pointer,
                            const json_t *parameters, struct faults *faults, struct as_err *err)
{
    if (!when)
        return AS_OK;
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, s->params[child].name, at);
    json_pointer_child(at, "when", at);
    if (!json_is_object(when))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %s, expected an object such as {optimizer: sgd}", at,
                          json_type_name(when));
    if (json_object_size(when) == 0)
        return as_fail_at(err, AS_E_INVAL, at, "%s: it is empty, expected a parameter's name", at);
    if (json_object_size(when) > SPACE_MAX_CONDS)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "%s: %zu conditions, at most %d are allowed", at,
                          json_object_size(when), SPACE_MAX_CONDS);
    struct space_param *p = &s->params[child];
    p->conds = as_calloc(json_object_size(when), sizeof *p->conds);
    if (!p->conds)
        return as_fail(err, AS_E_NOMEM, "out of memory for a condition");
    for (void *it = json_object_iter((json_t *)when); it;
         it = json_object_iter_next((json_t *)when, it)) {
        const char *key = json_object_iter_key(it);
        if (space_lacks(s, parameters, key))
            continue;
        as_status st = parse_cond(s, child, key, json_object_iter_value(it), at, err);
        st = faults_note(faults, st, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* ---- order, loops, contradictions ---- */

static bool parents_placed(const struct space_param *p, const bool *placed)
{
    for (size_t i = 0; i < p->n_conds; i++)
        if (!placed[p->conds[i].parent])
            return false;
    return true;
}

/* Walk from an unplaced parameter to one of its unplaced parents until a parameter repeats: that
 * parameter is on the loop. */
static as_status refuse_loop(const struct space *s, const bool *placed, const char *pointer,
                             struct as_err *err)
{
    bool seen[SPACE_MAX_PARAMS] = {false};
    size_t i = 0;
    while (placed[i])
        i++;
    while (!seen[i]) {
        seen[i] = true;
        size_t c = 0;
        while (placed[s->params[i].conds[c].parent])
            c++;
        i = s->params[i].conds[c].parent;
    }
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, s->params[i].name, at);
    json_pointer_child(at, "when", at);
    return as_fail_at(err, AS_E_INVAL, at, "%s: the conditions loop: '%s' depends on itself", at,
                      s->params[i].name);
}

static as_status sort_parents_first(struct space *s, const char *pointer, struct as_err *err)
{
    bool placed[SPACE_MAX_PARAMS] = {false};
    s->order = as_calloc(s->n, sizeof *s->order);
    if (!s->order)
        return as_fail(err, AS_E_NOMEM, "out of memory for a space");
    for (size_t done = 0; done < s->n;) {
        size_t before = done;
        for (size_t i = 0; i < s->n; i++) {
            if (placed[i] || !parents_placed(&s->params[i], placed))
                continue;
            placed[i] = true;
            s->order[done++] = i;
        }
        if (done == before)
            return refuse_loop(s, placed, pointer, err);
    }
    return AS_OK;
}

/* Mark every condition that must hold for parameter i to be active: its own, its parents', … */
static void mark_ancestors(const struct space *s, size_t i, bool *marked)
{
    if (marked[i])
        return;
    marked[i] = true;
    for (size_t c = 0; c < s->params[i].n_conds; c++)
        mark_ancestors(s, s->params[i].conds[c].parent, marked);
}

/* Find a value of `parent` that all conditions of the marked parameters allow. *ret_asked: is any
 * of them a condition on `parent`? False: there is no such value. */
static bool find_allowed(const struct space *s, const bool *marked, size_t parent, bool *ret_asked,
                         union param_value *ret)
{
    const struct cond *conds[SPACE_MAX_PARAMS]; /* a `when` names a parameter once at most */
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t c = 0; marked[i] && c < s->params[i].n_conds; c++)
            if (s->params[i].conds[c].parent == parent)
                conds[n++] = &s->params[i].conds[c];
    *ret_asked = n > 0;
    return n == 0 || cond_meet(&s->params[parent], conds, n, ret);
}

/* All conditions above a parameter must hold together, and each is on one parameter. So the
 * parameter can be active exactly if, for each parent, the allowed values intersect. */
static as_status check_reachable(const struct space *s, const char *pointer, struct as_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        bool marked[SPACE_MAX_PARAMS] = {false};
        if (s->params[i].n_conds == 0)
            continue;
        mark_ancestors(s, i, marked);
        for (size_t parent = 0; parent < s->n; parent++) {
            union param_value found;
            bool asked;
            if (!marked[parent] || find_allowed(s, marked, parent, &asked, &found))
                continue;
            char at[AS_ERR_POINTER_MAX];
            json_pointer_child(pointer, s->params[i].name, at);
            json_pointer_child(at, "when", at);
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: it can never hold, because the conditions leave '%s' no value",
                              at, s->params[parent].name);
        }
    }
    return AS_OK;
}

void space_activate(const struct space *s, size_t i, struct config *c)
{
    bool marked[SPACE_MAX_PARAMS] = {false};
    mark_ancestors(s, i, marked);
    for (size_t parent = 0; parent < s->n; parent++) {
        bool asked;
        union param_value v;
        if (marked[parent] && find_allowed(s, marked, parent, &asked, &v) && asked)
            c->entries[parent].value = v;
    }
}

/* ---- the whole ---- */

static as_status parse_domains(struct space *s, const json_t *parameters, const char *pointer,
                               const json_t **whens, struct faults *faults, struct as_err *err)
{
    for (void *it = json_object_iter((json_t *)parameters); it;
         it = json_object_iter_next((json_t *)parameters, it)) {
        const char *name = json_object_iter_key(it);
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(pointer, name, at);
        as_status st = AS_OK;
        if (!param_name_valid(name))
            st = as_fail_at(err, AS_E_INVAL, at,
                            "%s: '%.70s' is no name for a parameter; expected " PARAM_NAME_RULE, at,
                            name);
        else
            st = param_parse(name, json_object_iter_value(it), at, faults, &s->params[s->n],
                             &whens[s->n], err);
        if (st == AS_OK)
            s->n++;
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status parse_conditions(struct space *s, const json_t *parameters, const char *pointer,
                                  const json_t *const *whens, struct faults *faults,
                                  struct as_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        as_status st = parse_when(s, i, whens[i], pointer, parameters, faults, err);
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    as_status st = sort_parents_first(s, pointer, err);
    if (st != AS_OK)
        return faults_note(faults, st, err);
    return faults_note(faults, check_reachable(s, pointer, err), err);
}

as_status space_parse_noting(const json_t *parameters, const char *pointer, struct faults *faults,
                             struct space **ret, struct as_err *err)
{
    if (!json_is_object(parameters))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %s, expected an object", pointer,
                          json_type_name(parameters));
    size_t n = json_object_size(parameters);
    if (n == 0)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: there is no parameter to search", pointer);
    if (n > SPACE_MAX_PARAMS)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer,
                          "%s: %zu parameters, at most %d are allowed", pointer, n,
                          SPACE_MAX_PARAMS);
    const json_t *whens[SPACE_MAX_PARAMS] = {NULL};
    AS_AUTO(space_freep) struct space *s = as_calloc(1, sizeof *s);
    if (!s || !(s->params = as_calloc(n, sizeof *s->params)))
        return as_fail(err, AS_E_NOMEM, "out of memory for a space");
    as_status st = parse_domains(s, parameters, pointer, whens, faults, err);
    if (st < 0)
        return st;
    st = parse_conditions(s, parameters, pointer, whens, faults, err);
    if (st < 0)
        return st;
    *ret = as_steal(s);
    return AS_OK;
}

as_status space_parse(const json_t *parameters, const char *pointer, struct space **ret,
                      struct as_err *err)
{
    return space_parse_noting(parameters, pointer, NULL, ret, err);
}

static json_t *when_to_json(const struct space *s, const struct space_param *p)
{
    JSON_AUTO when = json_object();
    int bad = 0;
    for (size_t i = 0; i < p->n_conds; i++) {
        const struct space_param *parent = &s->params[p->conds[i].parent];
        bad |= json_object_set_new(when, parent->name, cond_to_json(parent, &p->conds[i]));
    }
    return bad ? NULL : as_steal(when);
}

json_t *space_to_json(const struct space *s)
{
    JSON_AUTO all = json_object();
    int bad = 0;
    for (size_t i = 0; i < s->n; i++) {
        JSON_AUTO j = param_to_json(&s->params[i]);
        if (s->params[i].n_conds)
            bad |= json_object_set_new(j, "when", when_to_json(s, &s->params[i]));
        bad |= json_object_set(all, s->params[i].name, j);
    }
    return bad ? NULL : as_steal(all);
}
