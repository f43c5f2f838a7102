/* A model's state as JSON: {"theta": […], "scale": […], "rows": [[first, last], …], "best":
 * number}, and while a fit is under way "next", of the same form, with "evals". */
#include "search/gp/surrogate_priv.h"

#include "base/json.h"

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the state of a model");
}

/* Mark the trials within the ranges. Both lists ascend, so one pass suffices. False: not a valid
 * list. */
static bool read_rows(const struct surrogate_task *t, const json_t *rows, bool *in_fit)
{
    size_t place = 0;
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *range = json_array_get(rows, r);
        if (!json_is_integer(json_array_get(range, 0)) ||
            !json_is_integer(json_array_get(range, 1)))
            return false;
        json_int_t first = json_integer_value(json_array_get(range, 0));
        json_int_t last = json_integer_value(json_array_get(range, 1));
        if (first < 0 || last < first)
            return false;
        while (place < t->n_done && surrogate_number(t, place) < (uint64_t)first)
            place++;
        for (; place < t->n_done && surrogate_number(t, place) <= (uint64_t)last; place++)
            in_fit[place] = true;
    }
    return json_is_array(rows);
}

/* n numbers within [least, most]. */
static bool read_numbers(const json_t *list, size_t n, double least, double most, double *ret)
{
    if (json_array_size(list) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        ret[i] = json_number_value(v);
        if (!json_is_number(v) || !(ret[i] >= least && ret[i] <= most))
            return false;
    }
    return true;
}

static void read_fit(const struct surrogate_task *t, const json_t *state, struct surrogate_fit *ret)
{
    const json_t *best = json_object_get(state, "best");
    size_t n = gp_n_theta(&t->columns);
    if (!json_is_integer(best) ||
        !read_numbers(json_object_get(state, "theta"), n, -100, 100, ret->theta) ||
        !read_numbers(json_object_get(state, "scale"), n, 1e-100, 1e100, ret->scale) ||
        !read_rows(t, json_object_get(state, "rows"), ret->in_fit))
        return;
    ret->best = (uint64_t)json_integer_value(best);
    ret->is_set = true;
}

void surrogate_read_state(struct surrogate_task *t, const json_t *state)
{
    const json_t *next = json_object_get(state, "next"), *evals = json_object_get(next, "evals");
    read_fit(t, state, &t->fit);
    if (!t->fit.is_set || !json_is_integer(evals) || json_integer_value(evals) < 0)
        return;
    read_fit(t, next, &t->next);
    t->next.evals = (uint64_t)json_integer_value(evals);
}

static as_status add_range(json_t *rows, uint64_t first, uint64_t last, struct as_err *err)
{
    json_t *range = json_pack("[I,I]", (json_int_t)first, (json_int_t)last);
    return json_array_append_new(rows, range) < 0 ? out_of_memory(err) : AS_OK;
}

/* A range must not include a trial that may end later, so it joins only consecutive numbers. All
 * values of a trial are in the fit, or none: one that it gets later joins the base. */
static as_status write_rows(const struct surrogate_task *t, const bool *in_fit, json_t *rows,
                            struct as_err *err)
{
    uint64_t first = 0, last = 0;
    bool open = false;
    for (size_t i = 0; i < t->n_done; i++) {
        if (!in_fit[i])
            continue;
        uint64_t number = surrogate_number(t, i);
        if (open && number > last + 1) {
            as_status st = add_range(rows, first, last, err);
            if (st < 0)
                return st;
            open = false;
        }
        if (!open)
            first = number;
        last = number;
        open = true;
    }
    return open ? add_range(rows, first, last, err) : AS_OK;
}

static as_status add_numbers(json_t *list, const double *v, size_t n, struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        /* + 0.0: a store may lose the sign of zero */
        if (json_array_append_new(list, json_real(v[i] + 0.0)) < 0)
            return out_of_memory(err);
    }
    return AS_OK;
}

static as_status write_fit(const struct surrogate_task *t, const struct surrogate_fit *f,
                           json_t **ret, struct as_err *err)
{
    JSON_AUTO state =
        json_pack("{s:[], s:[], s:[], s:I}", "theta", "scale", "rows", "best", (json_int_t)f->best);
    size_t n = gp_n_theta(&t->columns);
    if (!state)
        return out_of_memory(err);
    as_status st = add_numbers(json_object_get(state, "theta"), f->theta, n, err);
    if (st < 0)
        return st;
    st = add_numbers(json_object_get(state, "scale"), f->scale, n, err);
    if (st < 0)
        return st;
    st = write_rows(t, f->in_fit, json_object_get(state, "rows"), err);
    if (st < 0)
        return st;
    *ret = as_steal(state);
    return AS_OK;
}

as_status surrogate_write_state(const struct surrogate_task *t, json_t **ret, struct as_err *err)
{
    JSON_AUTO state = NULL;
    json_t *next = NULL;
    as_status st = write_fit(t, &t->fit, &state, err);
    if (st == AS_OK && t->next.is_set && (st = write_fit(t, &t->next, &next, err)) == AS_OK &&
        (json_object_set_new(next, "evals", json_integer((json_int_t)t->next.evals)) < 0 ||
         json_object_set(state, "next", next) < 0))
        st = out_of_memory(err);
    json_decref(next);
    if (st == AS_OK)
        *ret = as_steal(state);
    return st;
}
