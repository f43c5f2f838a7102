#include "bench/search/sweep.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/search/searcher.h"
#include "search/incumbent.h"

#define FAILURES_EARLY 10
#define ABSURD 1e100         /* a result beyond it is nobody's best */
#define DURATION_PURPOSE 201 /* noise of problems is 200 */

struct run {
    const struct problem *problem;
    struct searcher *searcher;
    uint64_t seed;
    size_t trials, asked, ended;
    struct observation *seen; /* by number */
    struct config **configs;
    bool *late;   /* suggested after the tenth failure; by number */
    double *ends; /* time at which a trial ends; by number */
    double now;
    double lowest, regret; /* of the best so far */
    struct sweep_record *record;
};

static void run_done(struct run *r)
{
    for (size_t i = 0; r->configs != NULL && i < r->asked; i++)
        config_free(r->configs[i]);
    free(r->configs);
    free(r->seen);
    free(r->ends);
    free(r->late);
    searcher_free(r->searcher);
}

static double duration(uint64_t seed, uint64_t trial)
{
    struct rng r;
    rng_init(&r, seed, trial << 8 | DURATION_PURPOSE);
    return exp(0.5 * rng_normal(&r));
}

static as_status begin_trial(struct run *r, double *ret_ms, struct as_err *err)
{
    size_t t = r->asked;
    const struct history h = {r->seen, t};
    as_status st = searcher_ask(r->searcher, &h, t, &r->configs[t], ret_ms, err);
    if (st < 0)
        return st;
    r->seen[t] = (struct observation){
        .number = t, .config = r->configs[t], .state = OBSERVED_PENDING, .is_suggested = true};
    r->ends[t] = r->now + duration(r->seed, t);
    r->late[t] = r->record->failed >= FAILURES_EARLY;
    r->asked++;
    return AS_OK;
}

static bool is_noisy(const struct problem *p)
{
    return p->def->noise > 0 || p->def->fn_observe != NULL;
}

/* What the sweep would show as its best trial: of a peer, which repeats nothing, the luckiest. */
static as_status take_incumbent(struct run *r, struct as_err *err)
{
    const struct history h = {r->seen, r->asked};
    struct incumbent best;
    as_status st = incumbent_find(searcher_spec(r->searcher), &h, &best, err);
    if (st == AS_OK && best.is_known && fabs(best.value) < ABSURD)
        r->regret = problem_value(r->problem, r->configs[best.number]) - r->problem->optimum;
    return st;
}

static as_status end_trial(struct run *r, struct as_err *err)
{
    size_t t = r->trials;
    for (size_t i = 0; i < r->asked; i++)
        if (r->seen[i].state == OBSERVED_PENDING && (t == r->trials || r->ends[i] < r->ends[t]))
            t = i;
    double v = problem_observe(r->problem, r->configs[t], r->seed, t);
    r->now = r->ends[t];
    r->seen[t].state = isfinite(v) ? OBSERVED_COMPLETED : OBSERVED_FAILED;
    r->seen[t].values[0] = isfinite(v) ? v : 0;
    if (is_noisy(r->problem)) {
        as_status st = take_incumbent(r, err);
        if (st < 0)
            return st;
    } else if (fabs(v) < ABSURD && v < r->lowest) {
        r->lowest = v;
        r->regret = problem_value(r->problem, r->configs[t]) - r->problem->optimum;
    }
    r->record->failed += !isfinite(v);
    r->record->late += r->late[t];
    r->record->failed_late += r->late[t] && !isfinite(v);
    r->ended++;
    as_status st = searcher_tell(r->searcher, t, v, err);
    if (st < 0 || !r->record->on_ended)
        return st;
    const struct history h = {r->seen, r->asked};
    return r->record->on_ended(r->record->ctx, searcher_spec(r->searcher), &h, r->regret, err);
}

static as_status run_all(struct run *r, size_t slots, struct as_err *err)
{
    double *ret_regret = r->record->regret, *ret_ms = r->record->ms;
    bool exhausted = false;
    while (r->ended < r->trials) {
        while (!exhausted && r->asked < r->trials && r->asked - r->ended < slots) {
            as_status st = begin_trial(r, &ret_ms[r->asked], err);
            exhausted = st == AS_E_EXHAUSTED;
            if (st < 0 && !exhausted)
                return st;
        }
        if (r->asked == r->ended)
            break;
        as_status st = end_trial(r, err);
        if (st < 0)
            return st;
        ret_regret[r->ended - 1] = r->regret;
    }
    for (size_t i = r->ended; i < r->trials; i++) {
        ret_regret[i] = r->regret;
        ret_ms[i] = 0;
    }
    return AS_OK;
}

as_status sweep_run(const struct problem *p, const char *method, uint64_t seed, size_t slots,
                    size_t trials, struct sweep_record *ret, struct as_err *err)
{
    AS_AUTO(run_done)
    struct run r = {.problem = p,
                    .seed = seed,
                    .trials = trials,
                    .seen = as_calloc(trials, sizeof *r.seen),
                    .configs = as_calloc(trials, sizeof(struct config *)),
                    .ends = as_calloc(trials, sizeof(double)),
                    .late = as_calloc(trials, sizeof(bool)),
                    .record = ret,
                    .lowest = INFINITY,
                    .regret = INFINITY};
    if (r.seen == NULL || r.configs == NULL || r.ends == NULL || r.late == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    ret->failed = ret->late = ret->failed_late = 0;
    as_status st = searcher_open(method, p, seed, &r.searcher, err);
    return st == AS_OK ? run_all(&r, slots, err) : st;
}
