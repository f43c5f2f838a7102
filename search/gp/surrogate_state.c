/* A model's state as JSON: {"theta": […], "scale": […], "rows": [[first, last], …], "best":
 * number}. */
#include "search/gp/surrogate_priv.h"

#include "base/json.h"

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the state of a model");
}

/* Mark the trials within the ranges. Both lists ascend, so one pass suffices. False: not a valid
 * list. */
static bool read_rows(struct surrogate_task *t, const json_t *rows)
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
            t->in_fit[place] = true;
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

void surrogate_read_state(struct surrogate_task *t, const json_t *state)
{
    const json_t *best = json_object_get(state, "best");
    size_t n = gp_n_theta(&t->s->columns);
    if (!json_is_integer(best) ||
        !read_numbers(json_object_get(state, "theta"), n, -100, 100, t->theta) ||
        !read_numbers(json_object_get(state, "scale"), n, 1e-100, 1e100, t->scale) ||
        !read_rows(t, json_object_get(state, "rows")))
        return;
    t->fit_best = (uint64_t)json_integer_value(best);
    t->has_theta = true;
}

static as_status add_range(json_t *rows, uint64_t first, uint64_t last, struct as_err *err)
{
    json_t *range = json_pack("[I,I]", (json_int_t)first, (json_int_t)last);
    return json_array_append_new(rows, range) < 0 ? out_of_memory(err) : AS_OK;
}

/* A range must not include a trial that may end later, so it joins only consecutive numbers. */
static as_status write_rows(const struct surrogate_task *t, json_t *rows, struct as_err *err)
{
    uint64_t first = 0, last = 0;
    bool open = false;
    for (size_t i = 0; i < t->n_done; i++) {
        if (!t->in_fit[i])
            continue;
        uint64_t number = surrogate_number(t, i);
        if (open && number != last + 1) {
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

as_status surrogate_write_state(const struct surrogate_task *t, json_t **ret, struct as_err *err)
{
    JSON_AUTO state = json_pack("{s:[], s:[], s:[], s:I}", "theta", "scale", "rows", "best",
                                (json_int_t)t->fit_best);
    size_t n = gp_n_theta(&t->s->columns);
    if (!state)
        return out_of_memory(err);
    as_status st = add_numbers(json_object_get(state, "theta"), t->theta, n, err);
    if (st < 0)
        return st;
    st = add_numbers(json_object_get(state, "scale"), t->scale, n, err);
    if (st < 0)
        return st;
    st = write_rows(t, json_object_get(state, "rows"), err);
    if (st < 0)
        return st;
    *ret = as_steal(state);
    return AS_OK;
}
