#include "search/trial_rungs.h"

#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

void trial_rungs_view(const struct trial_rung *rungs, size_t n, int64_t seen, struct observation *o)
{
    while (n > 0 && rungs[n - 1].seq > seen)
        n--;
    if (n == 0)
        return;
    const struct trial_rung *last = &rungs[n - 1];
    bool has_gone_on = last->promoted_seq > 0 && last->promoted_seq <= seen;
    if (o->state == OBSERVED_PENDING && last->is_stopped && !has_gone_on)
        o->state = OBSERVED_PARTIAL;
    o->rungs = rungs;
    o->n_rungs = n;
}

static double value_of(const json_t *v)
{
    double value;
    return json_number_get(v, &value) && isfinite(value) ? value : NAN;
}

static as_status read_rung(const json_t *j, size_t n_objectives, size_t metric, int64_t after,
                           const char *at, struct trial_rung *ret, struct as_err *err)
{
    const char *decision = json_string_value(json_object_get(j, "decision"));
    const json_t *values = json_object_get(j, "values");
    struct trial_rung r = {.seq = json_integer_value(json_object_get(j, "seq")),
                           .promoted_seq = json_integer_value(json_object_get(j, "promoted_seq")),
                           .step = json_number_value(json_object_get(j, "step")),
                           .is_stopped =
                               as_streq(decision, "pause") || as_streq(decision, "prune")};
    if (!decision || r.seq <= after || (r.promoted_seq != 0 && r.promoted_seq <= r.seq))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: expected a decision, and seq and promoted_seq in ascending order",
                          at);
    for (size_t k = 0; k < SEARCH_MAX_OBJECTIVES; k++)
        r.values[k] =
            k < n_objectives && json_is_array(values) ? value_of(json_array_get(values, k)) : NAN;
    if (!json_is_array(values))
        r.values[metric] = value_of(json_object_get(j, "value"));
    *ret = r;
    return AS_OK;
}

as_status trial_rungs_read(const json_t *rungs, size_t n_objectives, size_t metric,
                           const char *pointer, struct trial_rung **ret, size_t *ret_n,
                           struct as_err *err)
{
    size_t n = json_array_size(rungs);
    *ret = NULL;
    *ret_n = 0;
    if (!rungs || json_is_null(rungs) || (json_is_array(rungs) && n == 0))
        return AS_OK;
    if (!json_is_array(rungs))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected a list or null", pointer);
    AS_AUTO(as_freep) struct trial_rung *list = as_calloc(n, sizeof *list);
    if (!list)
        return as_fail(err, AS_E_NOMEM, "out of memory for the rungs of a trial");
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        as_status st = read_rung(json_array_get(rungs, i), n_objectives, metric,
                                 i ? list[i - 1].seq : 0, at, &list[i], err);
        if (st != AS_OK)
            return st;
    }
    *ret = as_steal(list);
    *ret_n = n;
    return AS_OK;
}
