/* The value of the first objective is in the trial's row; the latest values of the other required
 * metrics are one query, and a sweep with one metric needs none. A missing value is a refusal,
 * because the client still has it (decision 5009); one that is not finite is a failed trial; one
 * outside a bound is completed and infeasible. A timeout that counts (`on_timeout: keep`) is judged
 * by the same rule, and fails where a completion would be refused. */
#include "scheduler/lifecycle/feasibility.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static as_status read_list(struct arena *a, const char *text, const char *name_field,
                           struct required_metrics *w, struct as_err *err)
{
    JSON_AUTO list = NULL;
    size_t i;
    json_t *v;
    if (!text)
        return AS_OK;
    as_status st = json_parse(text, strlen(text), &list, err);
    if (st != AS_OK)
        return st;
    json_array_foreach(list, i, v)
    {
        const char *name = arena_strdup(a, json_string_value(json_object_get(v, name_field)));
        const json_t *min = json_object_get(v, "min"), *max = json_object_get(v, "max");
        if (!name || w->n == METRICS_MAX)
            return as_fail(err, AS_E_INTERNAL, "the stored metrics of the sweep cannot be read");
        if (name_field[0] == 'm' && i < SEARCH_MAX_OUTCOMES) {
            w->min[i] = min ? json_number_value(min) : -INFINITY;
            w->max[i] = max ? json_number_value(max) : INFINITY;
        }
        w->names[w->n++] = name;
    }
    return AS_OK;
}

as_status required_metrics_of(struct arena *a, const struct sweep_head *s,
                              struct required_metrics *w, struct as_err *err)
{
    *w = (struct required_metrics){0};
    as_status st = read_list(a, s->objectives, "name", w, err);
    if (st != AS_OK)
        return st;
    if (w->n == 0)
        w->names[w->n++] = s->metric;
    w->n_objectives = w->n;
    return read_list(a, s->outcomes, "metric", w, err);
}

struct feasibility feasibility_of(const struct required_metrics *w, const double *values,
                                  const bool *has)
{
    struct feasibility v = {.feasible = true};
    for (size_t i = 0; i < w->n && !v.missing; i++) {
        if (has[i] && isfinite(values[i]))
            continue;
        v.missing = w->names[i];
        v.was_measured = has[i];
        v.value = values[i];
    }
    for (size_t i = w->n_objectives; i < w->n; i++)
        v.feasible &=
            values[i] >= w->min[i - w->n_objectives] && values[i] <= w->max[i - w->n_objectives];
    return v;
}

as_status trial_feasibility(struct tx *t, struct arena *a, const struct sweep_head *s,
                            const struct trial_head *x, struct feasibility *ret, struct as_err *err)
{
    struct required_metrics w;
    double values[METRICS_MAX] = {x->value};
    bool has[METRICS_MAX] = {x->has_value};
    as_status st = required_metrics_of(a, s, &w, err);
    if (st == AS_OK && w.n > 1)
        st = store_trial_measured(t, x->sweep_key, x->number, w.names, w.n, values, has, err);
    if (st == AS_OK)
        *ret = feasibility_of(&w, values, has);
    return st;
}

/* A trial that completes needs a value of each metric. Without one the request is refused, because
 * whoever forgot a value still has it. A value that is not finite is a result: the trial failed. */
static as_status fail_missing(const struct feasibility *v, struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    json_pointer_child("/metrics", v->missing, pointer);
    return as_fail_at(err, AS_E_UNSUPPORTED, pointer,
                      "%s: the metric '%s' was never reported; a trial that completes needs a "
                      "value of it",
                      pointer, v->missing);
}

static const char *not_finite_reason(struct arena *a, const struct trial_head *x,
                                     const struct feasibility *v)
{
    char value[32];
    return arena_printf(a, "%s, but the metric '%s' is %s", x->client ? "completed" : "exit 0",
                        v->missing, as_format_double(v->value, value, sizeof value));
}

as_status trial_judged(struct arena *a, const struct trial_head *x, const struct feasibility *v,
                       struct trial_change *ret, struct as_err *err)
{
    if (v->missing && !v->was_measured)
        return fail_missing(v, err);
    ret->event = v->missing ? TRIAL_EV_FAIL : TRIAL_EV_COMPLETE;
    ret->outcome = v->missing ? "failed" : "completed";
    ret->feasible = v->feasible;
    if (v->missing)
        ret->reason = not_finite_reason(a, x, v);
    return AS_OK;
}

as_status trial_judge(struct tx *t, struct arena *a, const struct sweep_head *s,
                      const struct trial_head *x, struct trial_change *ret, struct as_err *err)
{
    struct feasibility v = {0};
    as_status st = trial_feasibility(t, a, s, x, &v, err);
    return st == AS_OK ? trial_judged(a, x, &v, ret, err) : st;
}

as_status trial_judged_timeout(struct arena *a, const struct feasibility *v,
                               struct trial_change *ret, struct as_err *err)
{
    char value[32];
    if (!v->missing) {
        ret->event = TRIAL_EV_KEEP;
        ret->feasible = v->feasible;
        ret->reason = NULL; /* the table's: it says that the values count */
        return AS_OK;
    }
    const char *why = ret->reason ? ret->reason : "it ran longer than trial_timeout";
    ret->reason = v->was_measured
                      ? arena_printf(a, "%s, and the metric '%s' is %s", why, v->missing,
                                     as_format_double(v->value, value, sizeof value))
                      : arena_printf(a, "%s, and had reported no value of '%s'", why, v->missing);
    return ret->reason ? AS_OK : as_fail_nomem(err);
}

as_status trial_judge_timeout(struct tx *t, struct arena *a, const struct sweep_head *s,
                              const struct trial_head *x, struct trial_change *ret,
                              struct as_err *err)
{
    struct feasibility v = {0};
    ret->event = TRIAL_EV_TIMEOUT;
    if (!s->keeps_timed_out)
        return AS_OK;
    as_status st = trial_feasibility(t, a, s, x, &v, err);
    return st == AS_OK ? trial_judged_timeout(a, &v, ret, err) : st;
}
