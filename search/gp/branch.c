/* Which branch deserves a trial. The trials of each branch are walked in the order of their numbers
 * to make the curve of its best cost. A branch inside another one counts the trials in which its
 * parameter is active. A branch that was left is visited again, more and more rarely, because the
 * parameters that it shares with others are tuned meanwhile.
 *
 * The constants were chosen on the instances 1 and 2 of the benchmark's family `real`. */
#include "search/gp/branch.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* The figures for these rules, and what was tried beside them, are in decision 4009: one trial for
 * each opened parameter instead of three leaves `methods` at a regret of 0.09 instead of 0.004; a
 * branch is visited again at 1.6 times the results, about four times in a hundred trials. */
#define LEVELS_MOST 16 /* a parent of more levels is a number like others */
/* Every branch gets this many trials, and so many more for each parameter that it opens; while a
 * sweep that declares nothing stalls, one more for each number (decision 4019: on `crowd` 9 of 24
 * sweeps kept a wrong value to the end without them, 3 with them). */
#define TRIALS_LEAST 2
#define TRIALS_FOR_OPENED 3
#define TRIALS_MOST 14
#define SLOPE_LEAST 3 /* trials that a slope is taken over; otherwise half of the branch's */
#define DEVIATIONS 0.5
/* Where nothing is declared, and the choices have at most so many values in all, these are branches
 * while the sweep stalls (decision 4019). Spaces with more have no trials for each. */
#define UNDECLARED_VALUES 12
#define REVISIT 1.6 /* a branch that was left: times the trials that there were at its last one */

struct branches {
    const struct training_set *s;
    bool *active; /* [n x d] */
    size_t n_results;
    size_t lead;       /* the leading choice, or TRAINING_SET_NONE */
    bool looks_around; /* values of choices that open nothing are tuned, too */
};

static bool has_branches(const struct encoded_param *p)
{
    if (p->levels > LEVELS_MOST)
        return false;
    return p->kind == ENCODED_CHOICE ||
           (p->kind == ENCODED_LEVELS && (p->levels == 2 || p->is_parent));
}

bool branch_holds(const struct encoding *e, const struct branch *b, const double *point)
{
    bool active[SPACE_MAX_PARAMS];
    if (!b)
        return true;
    if (encoding_level(e, b->param, point[b->param]) != b->level)
        return false;
    if (!e->params[b->param].is_conditional)
        return true;
    encoding_active(e, point, active);
    return active[b->param];
}

static bool is_in(const struct branches *t, size_t i, const struct branch *b)
{
    const struct encoding *e = t->s->enc;
    return t->active[i * e->n + b->param] &&
           encoding_level(e, b->param, training_set_point(t->s, i)[b->param]) == b->level;
}

/* How many parameters are active in the branch and not in some other branch of its parameter, as
 * far as trials show. */
static size_t opened_by(const struct branches *t, const struct branch *b)
{
    size_t d = t->s->enc->n, n = 0;
    for (size_t j = 0; j < d; j++) {
        bool here = false, missing = false;
        for (size_t i = 0; i < t->s->n; i++) {
            bool is_on = t->active[i * d + j];
            if (is_in(t, i, b))
                here |= is_on;
            else
                missing |= !is_on && t->active[i * d + b->param];
        }
        n += here && missing;
    }
    return n;
}

static size_t trials_wanted(const struct branches *t, const struct branch *b)
{
    const struct encoded_param *p = &t->s->enc->params[b->param];
    size_t n = TRIALS_LEAST;
    if (p->is_parent)
        n += TRIALS_FOR_OPENED * opened_by(t, b);
    else if (b->is_own || (t->looks_around && p->kind == ENCODED_CHOICE))
        n += t->s->enc->n_numeric; /* which of them matter under this value is not known */
    return n < TRIALS_MOST ? n : TRIALS_MOST;
}

/* The cost that continuing the curve reaches, less some deviations of what the branch has shown:
 * the fewer its trials, the more. curve: its best cost after each of n_ended trials, INFINITY
 * before the first. */
static double optimistic_cost(const struct branches *t, const struct branch *b, const double *curve,
                              double variance, size_t n_values)
{
    size_t n = b->n_ended, from, over = n / 2 > SLOPE_LEAST ? n / 2 : SLOPE_LEAST;
    if (!n_values)
        return INFINITY;
    for (from = over < n ? n - 1 - over : 0; !isfinite(curve[from]);)
        from++;
    double last = curve[n - 1];
    double slope = from < n - 1 ? (curve[from] - last) / (double)(n - 1 - from) : 0;
    double wide = sqrt(variance * log((double)t->n_results + 1) / (double)n_values);
    return last - DEVIATIONS * wide - slope * (double)t->n_results;
}

/* Fill in what the trials say. curve has room for all trials. */
static void read_trials(const struct branches *t, struct branch *b, double *curve)
{
    const struct training_set *s = t->s;
    size_t n_values = 0;
    double best = INFINITY, mean = 0, squares = 0;
    size_t last = 0; /* trials before the branch's last one */
    b->best = TRAINING_SET_NONE;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_in(t, i, b))
            continue;
        last = i;
        if (s->state[i] == OBSERVED_PENDING) {
            b->n_pending++;
            continue;
        }
        if (s->feasible[i]) {
            double cost = s->costs[i], off = cost - mean;
            mean += off / (double)++n_values;
            squares += off * (cost - mean);
            b->best = cost < best ? i : b->best;
            best = fmin(best, cost);
        }
        curve[b->n_ended++] = best;
    }
    double variance = n_values ? squares / (double)n_values : 0;
    b->is_own = b->param == t->lead && b->best != TRAINING_SET_NONE;
    b->optimistic = optimistic_cost(t, b, curve, variance, n_values);
    size_t has = b->n_ended + b->n_pending;
    size_t wanted = has < TRIALS_MOST ? trials_wanted(t, b) : 0;
    b->n_missing = has < wanted ? wanted - has : 0;
    b->is_revisit = (double)t->n_results >= REVISIT * (double)(last + 1);
}

/* Is the branch tuned for its own sake? One that opens parameters is, and so is a value of the
 * leading choice; the models compare the others. But where nothing is declared, a value that was
 * seen untuned may need other numbers than the one that was tuned, so that a sweep that stalls
 * looks at each. */
static bool is_for_tuning(const struct branches *t, const struct branch *b)
{
    const struct encoded_param *p = &t->s->enc->params[b->param];
    return p->is_parent || b->is_own || (t->looks_around && p->kind == ENCODED_CHOICE);
}

static bool deserves_trial(const struct branches *t, struct branch *b)
{
    const struct training_set *s = t->s;
    bool is_tuned = is_for_tuning(t, b) && !b->n_pending && s->best != TRAINING_SET_NONE;
    bool is_promising = b->n_missing || (is_tuned && b->optimistic < s->costs[s->best]);
    b->is_revisit &= is_tuned && !is_promising;
    return is_promising || b->is_revisit;
}

static bool precedes(const struct branch *a, const struct branch *b)
{
    if (a->n_missing != b->n_missing)
        return a->n_missing > b->n_missing;
    if (a->is_revisit != b->is_revisit) /* rare, so it cannot starve the others */
        return a->is_revisit;
    return a->optimistic < b->optimistic;
}

static bool choose(const struct branches *t, double *curve, struct branch *ret)
{
    const struct training_set *s = t->s;
    bool is_found = false;
    for (size_t j = 0; j < s->enc->n; j++) {
        for (uint64_t v = 0; has_branches(&s->enc->params[j]) && v < s->enc->params[j].levels;
             v++) {
            struct branch b = {.param = j, .level = v};
            if (s->best != TRAINING_SET_NONE && is_in(t, s->best, &b))
                continue;
            read_trials(t, &b, curve);
            if (!deserves_trial(t, &b) || (is_found && !precedes(&b, ret)))
                continue;
            *ret = b;
            is_found = true;
        }
    }
    return is_found;
}

/* Does the sweep look at values of choices that open nothing? */
static bool looks_around(const struct training_set *s)
{
    uint64_t n = 0;
    for (size_t j = 0; j < s->enc->n; j++)
        if (s->enc->params[j].kind == ENCODED_CHOICE)
            n += s->enc->params[j].levels;
    return s->stalled && !s->enc->has_conditions && n <= UNDECLARED_VALUES;
}

static bool any_has_branches(const struct encoding *e)
{
    for (size_t j = 0; j < e->n; j++)
        if (has_branches(&e->params[j]))
            return true;
    return false;
}

as_status branch_choose(const struct training_set *s, size_t lead, bool *ret_found,
                        struct branch *ret, struct as_err *err)
{
    size_t d = s->enc->n;
    *ret_found = false;
    if (!any_has_branches(s->enc))
        return AS_OK;
    AS_AUTO(as_freep) bool *active = as_calloc(s->n + 1, d * sizeof *active);
    AS_AUTO(as_freep) double *curve = as_calloc(s->n + 1, sizeof *curve);
    if (!active || !curve)
        return as_fail(err, AS_E_NOMEM, "out of memory for the branches of %zu trials", s->n);
    for (size_t i = 0; i < s->n; i++)
        encoding_active(s->enc, training_set_point(s, i), active + i * d);
    struct branches t = {s, active, s->n_completed + s->n_failed + s->n_partial, lead,
                         looks_around(s)};
    *ret_found = choose(&t, curve, ret);
    return AS_OK;
}
