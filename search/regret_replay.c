/* A stored bound is computed from the history that replay_bound() makes up to its place, and
 * compared field by field. Which counts may follow each other is said for scheduled ones; a count
 * between two of them, whose bound a service keeps when results pause, may stand anywhere. */
#include "search/regret_replay.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"

/* As they are stored. */
struct stored {
    int64_t completed, seq;
    bool is_enough;
    double bound, relative; /* NaN: none */
    bool has_best;          /* false: values counted as told, or the server was an older one */
    struct incumbent best;
};

static double number_or_nan(const json_t *j, const char *name)
{
    double v;
    return json_number_get(json_object_get(j, name), &v) ? v : NAN;
}

static as_status read_stored(const json_t *items, size_t i, struct stored *ret, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    const json_t *j = json_array_get(items, i);
    *ret = (struct stored){.completed = json_integer_value(json_object_get(j, "completed")),
                           .seq = json_integer_value(json_object_get(j, "finish_seq")),
                           .is_enough = json_is_true(json_object_get(j, "enough")),
                           .bound = number_or_nan(j, "bound"),
                           .relative = number_or_nan(j, "relative")};
    const json_t *best = json_object_get(j, "best");
    ret->has_best = json_is_object(best);
    ret->best =
        (struct incumbent){.number = (uint64_t)json_integer_value(json_object_get(best, "number")),
                           .mean = number_or_nan(best, "mean"),
                           .deviation = number_or_nan(best, "deviation"),
                           .noise = number_or_nan(best, "noise")};
    if (ret->completed >= 1 && ret->seq >= ret->completed)
        return AS_OK;
    json_pointer_index("/regret", i, at);
    return as_fail_at(err, AS_E_INVAL, at, "%s: expected completed and a finish_seq from there on",
                      at);
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool is_same_best(const struct stored *s, const struct incumbent *again)
{
    if (!s->has_best)
        return true;
    return again->is_by_model && s->best.number == again->number &&
           is_same(s->best.mean, again->mean) && is_same(s->best.deviation, again->deviation) &&
           is_same(s->best.noise, again->noise);
}

static bool is_scheduled(int64_t completed)
{
    return (int64_t)regret_bound_latest((size_t)completed) == completed;
}

/* The nearest stored bound of a scheduled count before i; its count is 0 if there is none. */
static as_status read_scheduled(const json_t *items, size_t i, struct stored *ret,
                                struct as_err *err)
{
    as_status st = AS_OK;
    *ret = (struct stored){0};
    while (i > 0 && (st = read_stored(items, --i, ret, err)) == AS_OK)
        if (is_scheduled(ret->completed))
            return AS_OK;
    *ret = (struct stored){0};
    return st;
}

/* May s follow? Any count between two scheduled ones may. */
static bool follows(const struct stored *before, const struct stored *s)
{
    return is_scheduled(s->completed)
               ? regret_bound_follows((size_t)before->completed, (size_t)s->completed)
               : s->completed > before->completed;
}

as_status regret_replay_step(struct replay *r, const json_t *items, size_t i,
                             struct regret_step *ret, struct as_err *err)
{
    struct stored s, before;
    struct regret_bound b;
    struct incumbent best;
    size_t n = 0;
    as_status st = read_scheduled(items, i, &before, err);
    if (st < 0 || (st = read_stored(items, i, &s, err)) < 0 ||
        (st = replay_bound(r, s.seq, &n, &b, &best, err)) < 0)
        return st;
    const double bound = b.is_known ? b.bound : NAN;
    const double relative = b.is_known && isfinite(b.relative) ? b.relative : NAN;
    struct regret_step step = {.completed = s.completed};
    if (!follows(&before, &s))
        (void)snprintf(step.why, sizeof step.why, "the one before is of %lld completed trials",
                       (long long)before.completed);
    else if (s.completed != (int64_t)n)
        (void)snprintf(step.why, sizeof step.why, "%zu trials had completed", n);
    else if (s.is_enough != b.is_enough)
        (void)snprintf(step.why, sizeof step.why, "whether it says something differs");
    else if (!is_same(s.bound, bound) || !is_same(s.relative, relative))
        (void)snprintf(step.why, sizeof step.why, "stored %.17g (%.17g), again %.17g (%.17g)",
                       s.bound, s.relative, bound, relative);
    else if (!is_same_best(&s, &best))
        (void)snprintf(step.why, sizeof step.why,
                       "stored trial %llu as the best (mean %.17g), again %llu (%.17g)",
                       (unsigned long long)s.best.number, s.best.mean,
                       (unsigned long long)best.number, best.mean);
    step.is_same = step.why[0] == '\0';
    *ret = step;
    return AS_OK;
}
