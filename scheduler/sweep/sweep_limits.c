/* Reads, checks and writes the section `limits`, for a new document and for a patch of a stored
 * one. sweep_limits_default has the values of absent fields; -1 failed trials and a target of NaN
 * mean that there is no such limit. What depends on the rest of the document (a target needs one
 * objective) is in sweep_limits_check(). */
#include "scheduler/sweep/sweep_limits_priv.h"

#include <float.h>
#include <math.h>

#define DEFAULT_RESTARTS 3
#define DEFAULT_GRACE_MS 30000

const struct sweep_limits sweep_limits_default = {.max_failed_trials = -1,
                                                  .max_restarts = DEFAULT_RESTARTS,
                                                  .grace_ms = DEFAULT_GRACE_MS,
                                                  .target = NAN,
                                                  .stop_when = {NAN, NAN, STOP_WHEN_TRIALS}};

static const char *const on_timeout_words[] = {"fail", "keep", NULL};

static as_status read_times(struct json_fields *f, struct sweep_limits *l, struct as_err *err)
{
    int on_timeout = 0;
    as_status st =
        json_fields_duration(f, "trial_timeout", JSON_OPTIONAL, &l->trial_timeout_ms, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "on_timeout", JSON_OPTIONAL, on_timeout_words, &on_timeout, err);
    if (st != AS_OK)
        return st;
    l->keeps_timed_out = on_timeout == 1;
    if ((st = json_fields_duration(f, "wall_time", JSON_OPTIONAL, &l->wall_time_ms, err)) != AS_OK)
        return st;
    return json_fields_duration(f, "grace", JSON_OPTIONAL, &l->grace_ms, err);
}

#define STOP_WHEN_AT "/limits/stop_when"

/* What a field alone cannot say. */
static as_status check_stop_when(const struct json_fields *f, const struct sweep_stop_when *w,
                                 struct as_err *err)
{
    const char *found = isnan(w->regret) ? "neither regret nor relative" : "regret and relative";
    if (isnan(w->regret) != isnan(w->relative) || f->is_faulty)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, STOP_WHEN_AT,
                      STOP_WHEN_AT ": found %s, expected one of them: regret in units of the "
                                   "metric, or relative as a share of what trials differ",
                      found);
}

static as_status read_stop_when(struct json_fields *limits, struct sweep_stop_when *w,
                                struct as_err *err)
{
    struct json_fields f;
    json_t *j = NULL;
    as_status st = json_fields_object(limits, "stop_when", JSON_OPTIONAL, &j, err);
    if (st != AS_OK || !j)
        return st;
    if ((st = json_fields_under(&f, limits, j, STOP_WHEN_AT, err)) != AS_OK ||
        (st = json_fields_double(&f, "regret", JSON_OPTIONAL, 0, DBL_MAX, &w->regret, err)) !=
            AS_OK ||
        (st = json_fields_double(&f, "relative", JSON_OPTIONAL, 0, 1, &w->relative, err)) !=
            AS_OK ||
        (st = json_fields_i64(&f, "min_trials", JSON_OPTIONAL, 1, SWEEP_MAX_TRIALS, &w->min_trials,
                              err)) != AS_OK ||
        (st = json_fields_end(&f, err)) != AS_OK)
        return st;
    return json_fields_note(limits, check_stop_when(&f, w, err), err);
}

as_status sweep_limits_read(struct json_fields *f, struct sweep_limits *l, struct as_err *err)
{
    const int64_t most = SWEEP_MAX_TRIALS;
    as_status st = json_fields_i64(f, "max_trials", JSON_OPTIONAL, 1, most, &l->max_trials, err);
    if (st != AS_OK)
        return st;
    if ((st = json_fields_i64(f, "max_concurrent_trials", JSON_OPTIONAL, 1, most,
                              &l->max_concurrent_trials, err)) != AS_OK)
        return st;
    if ((st = json_fields_i64(f, "max_failed_trials", JSON_OPTIONAL, 0, most, &l->max_failed_trials,
                              err)) != AS_OK)
        return st;
    if ((st = json_fields_i64(f, "max_restarts", JSON_OPTIONAL, 0, 1000, &l->max_restarts, err)) !=
        AS_OK)
        return st;
    if ((st = json_fields_i64(f, "max_steps", JSON_OPTIONAL, 1, STOP_MAX_STEPS, &l->max_steps,
                              err)) != AS_OK)
        return st;
    if ((st = json_fields_double(f, "target", JSON_OPTIONAL, -DBL_MAX, DBL_MAX, &l->target, err)) !=
        AS_OK)
        return st;
    if ((st = read_stop_when(f, &l->stop_when, err)) != AS_OK)
        return st;
    if ((st = read_times(f, l, err)) != AS_OK)
        return st;
    return json_fields_end(f, err);
}

as_status sweep_limits_parse(const json_t *j, struct sweep_limits *ret, struct as_err *err)
{
    struct json_fields f;
    struct sweep_limits l = sweep_limits_default;
    as_status st = json_fields_init(&f, j, "/limits", err);
    if (st == AS_OK)
        st = sweep_limits_read(&f, &l, err);
    if (st == AS_OK)
        *ret = l;
    return st;
}

/* Does any parameter have two values? */
static bool is_varied(const struct space *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (param_levels(&s->params[i]) != 1)
            return true;
    return false;
}

static as_status check_stop_when_beside(const struct sweep_doc *d, struct as_err *err)
{
    if (!sweep_stop_when_is_set(&d->limits.stop_when))
        return AS_OK;
    if (d->n_objectives > 1)
        return as_fail_at(err, AS_E_INVAL, STOP_WHEN_AT,
                          STOP_WHEN_AT
                          ": found it beside %zu metrics, expected one metric: what is "
                          "left to gain is bounded for one",
                          d->n_objectives);
    if (d->space && !is_varied(d->space)) /* NULL: its fault is noted */
        return as_fail_at(err, AS_E_INVAL, STOP_WHEN_AT,
                          STOP_WHEN_AT ": found it where no parameter has two values, expected "
                                       "something to gain");
    return AS_OK;
}

as_status sweep_limits_check(const struct sweep_doc *d, struct as_err *err)
{
    as_status st = check_stop_when_beside(d, err);
    if (st != AS_OK)
        return st;
    if (!isnan(d->limits.target) && d->n_objectives > 1)
        return as_fail_at(err, AS_E_INVAL, "/limits/target",
                          "/limits/target: found a target beside %zu metrics, expected one metric "
                          "to compare it with",
                          d->n_objectives);
    if (d->limits.keeps_timed_out && d->limits.trial_timeout_ms == 0)
        return as_fail_at(err, AS_E_INVAL, "/limits/on_timeout",
                          "/limits/on_timeout: found keep without trial_timeout, expected "
                          "trial_timeout beside it");
    return AS_OK;
}

as_status sweep_limits_check_steps(const struct sweep_doc *d, bool stops, struct as_err *err)
{
    const struct stop_spec *spec = &d->stopping; /* without rungs: its fault is noted */
    if (d->limits.max_steps > 0 && spec->n_rungs > 0 && d->limits.max_steps < spec->steps[0])
        return as_fail_at(
            err, AS_E_INVAL, "/limits/max_steps",
            "/limits/max_steps: found %lld, expected at least %lld, the first rung of "
            "early_stopping: no trial begins that cannot reach it",
            (long long)d->limits.max_steps, (long long)spec->steps[0]);
    if (d->limits.max_steps == 0 || stops)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/limits/max_steps",
                      "/limits/max_steps: found a budget of steps without early_stopping, expected "
                      "early_stopping beside it: steps are counted at its rungs");
}

/* Milliseconds as a duration of the document: seconds if they are a whole number. */
static json_t *duration_to_json(int64_t ms)
{
    return ms % 1000 ? json_real((double)ms / 1000.0) : json_integer(ms / 1000);
}

static json_t *stop_when_to_json(const struct sweep_stop_when *w)
{
    bool is_relative = isnan(w->regret);
    return json_pack("{s:f, s:I}", is_relative ? "relative" : "regret",
                     is_relative ? w->relative : w->regret, "min_trials",
                     (json_int_t)w->min_trials);
}

json_t *sweep_limits_to_json(const struct sweep_limits *l)
{
    JSON_AUTO j = json_object();
    int bad = json_object_set_new(j, "max_trials", json_integer(l->max_trials));
    if (l->max_concurrent_trials)
        bad |=
            json_object_set_new(j, "max_concurrent_trials", json_integer(l->max_concurrent_trials));
    if (l->max_failed_trials >= 0)
        bad |= json_object_set_new(j, "max_failed_trials", json_integer(l->max_failed_trials));
    bad |= json_object_set_new(j, "max_restarts", json_integer(l->max_restarts));
    if (l->max_steps)
        bad |= json_object_set_new(j, "max_steps", json_integer(l->max_steps));
    if (!isnan(l->target))
        bad |= json_object_set_new(j, "target", json_real(l->target));
    if (sweep_stop_when_is_set(&l->stop_when))
        bad |= json_object_set_new(j, "stop_when", stop_when_to_json(&l->stop_when));
    if (l->trial_timeout_ms)
        bad |= json_object_set_new(j, "trial_timeout", duration_to_json(l->trial_timeout_ms));
    if (l->keeps_timed_out)
        bad |= json_object_set_new(j, "on_timeout", json_string(on_timeout_words[1]));
    if (l->wall_time_ms)
        bad |= json_object_set_new(j, "wall_time", duration_to_json(l->wall_time_ms));
    bad |= json_object_set_new(j, "grace", duration_to_json(l->grace_ms));
    return bad ? NULL : as_steal(j);
}
