/* The rules of early stopping, over the standings of each rung.
 *
 * Every rule says from which rung on a trial is compared, and which share of a rung goes on:
 *
 * asha       from the first rung, one in eta (Li et al., "A system for massively parallel
 *            hyperparameter tuning", MLSys 2020). A free place goes to the best waiting trial that
 *            is in the share of its rung, on the highest rung that has one
 * hyperband  the same, but each trial draws the rung from which it is compared, with the weights of
 *            the brackets of Hyperband (Li et al., JMLR 18, 2018); all trials share the rungs
 * pasha      as asha below a cap, which rises while the ranks change (ranking_cap.h)
 * median     the better half, once more than five trials have reached the rung
 * curve      those whose chance to beat the best one is not too low (chance.h)
 * pbt        all but the last of a rung, which are replaced by forks of the best (exploit.h)
 *
 * With min_steps: auto trials are compared only from the rung on where ranks agree with those at
 * the end (agreement.h). Until that is known, trials that can wait do so at a low rung, and others
 * run in full.
 *
 * A trial that would be promoted as soon as it waits goes on without a pause. */
#include "search/stopping/stopping.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "search/problem/random_stream.h"
#include "search/stopping/exploit.h"
#include "search/stopping/stopping_priv.h"

const char *const stop_verdict_words[] = {"go_on", "prune", "pause", NULL};

#define UNKNOWN_REACH 27 /* before agreements are known trials wait at max_steps / 27 or above */

as_status stopping_create(const struct stop_spec *spec, struct stopping **ret, struct as_err *err)
{
    struct stopping *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->spec = *spec;
    size_t n_metrics = spec->has_metric ? 1 : spec->n_objectives;
    for (size_t k = 0; k < spec->n_rungs; k++)
        s->rungs[k].n_metrics = n_metrics;
    s->agreement.n_metrics = n_metrics;
    s->agreement.n_rungs = spec->n_rungs;
    s->cap.last = spec->n_rungs > 0 ? (uint32_t)spec->n_rungs - 1 : 0;
    s->cap.rung = spec->method == STOP_PASHA ? 1 : s->cap.last;
    s->best = INFINITY;
    if (spec->method == STOP_CURVE) {
        s->pairs = as_calloc(spec->n_rungs, sizeof *s->pairs);
        if (!s->pairs) {
            stopping_free(s);
            return as_fail_nomem(err);
        }
    }
    *ret = s;
    return AS_OK;
}

void stopping_free(struct stopping *s)
{
    if (!s)
        return;
    for (size_t k = 0; k < STOP_RUNGS_MAX; k++)
        standings_done(&s->rungs[k]);
    agreement_done(&s->agreement);
    free(s->places);
    free(s->costs);
    free(s->pairs);
    free(s);
}

/* ---- where a trial is compared ---- */

static uint32_t last_rung(const struct stopping *s)
{
    return (uint32_t)s->spec.n_rungs - 1;
}

/* The bracket of Hyperband with s + 1 rungs begins ceil((s_max + 1) / (s + 1) * eta^s) trials. */
static uint32_t bracket_of(const struct stopping *s, uint64_t number)
{
    double weights[STOP_RUNGS_MAX], sum = 0;
    struct rng r;
    for (size_t k = 0; k < s->spec.n_rungs; k++) {
        size_t above = s->spec.n_rungs - k; /* its rungs */
        weights[k] = ceil((double)s->spec.n_rungs / (double)above *
                          pow((double)s->spec.eta, (double)(above - 1)));
        sum += weights[k];
    }
    rng_init(&r, s->spec.seed, number << 8 | SEARCH_DRAW_BRACKET);
    double u = rng_uniform(&r) * sum;
    uint32_t k = 0;
    while (k < last_rung(s) && u >= weights[k])
        u -= weights[k++];
    return k;
}

bool stopping_is_measured(const struct stopping *s)
{
    return s->spec.is_min_auto && s->spec.method != STOP_CURVE;
}

/* Where trials wait until it is known at which rungs ranks agree; the last rung: nowhere. */
static uint32_t unknown_rung(const struct stopping *s)
{
    uint32_t k = 0;
    if (s->spec.mode == STOP_MODE_STOP)
        return last_rung(s);
    while (s->spec.steps[k] * UNKNOWN_REACH < s->spec.max_steps)
        k++;
    return k;
}

uint32_t stopping_lowest_rung(const struct stopping *s)
{
    if (!stopping_is_measured(s))
        return 0;
    return agreement_is_known(&s->agreement) ? agreement_first_rung(&s->agreement)
                                             : unknown_rung(s);
}

/* From which rung on is this trial compared? */
static uint32_t first_rung(const struct stopping *s, uint64_t number)
{
    uint32_t first = stopping_lowest_rung(s);
    if (stopping_is_measured(s) && agreement_is_control(number))
        return last_rung(s);
    if (s->spec.method == STOP_HYPERBAND) {
        uint32_t drawn = bracket_of(s, number);
        first = drawn > first ? drawn : first;
    }
    return first;
}

/* How many of n results at a rung go on. */
static size_t share(const struct stopping *s, size_t n, bool at_least_one)
{
    size_t go_on = s->spec.method != STOP_MEDIAN ? n / (size_t)s->spec.eta
                   : n <= STOP_MEDIAN_FIRST      ? n
                                                 : (n + 1) / 2;
    return go_on == 0 && at_least_one ? 1 : go_on;
}

/* ---- results ---- */

static void set_kind_of_nan(struct standing *row, size_t n_metrics)
{
    for (size_t i = 0; i < n_metrics; i++)
        if (isnan(row->costs[i]))
            row->kind = 2;
}

static struct standing standing_of(const struct stop_spec *spec, const struct rung_result *r)
{
    struct standing row = {.number = r->number, .kind = r->feasible ? 0 : 1};
    size_t first = spec->has_metric ? spec->metric : 0;
    size_t n = spec->has_metric ? 1 : spec->n_objectives;
    for (size_t i = 0; i < n; i++) {
        double v = r->values[first + i];
        double cost = spec->maximize[first + i] ? -v : v;
        row.costs[i] = cost > -INFINITY ? cost : NAN; /* no trial can end with that */
    }
    set_kind_of_nan(&row, n);
    return row;
}

static const struct place *place_of(const struct stopping *s, uint64_t number)
{
    return number < s->n_places ? &s->places[number] : NULL;
}

static as_status check_result(const struct stopping *s, const struct rung_result *r,
                              struct as_err *err)
{
    const struct place *p = place_of(s, r->number);
    if (r->rung >= s->spec.n_rungs)
        return as_fail(err, AS_E_INVAL, "trial %" PRIu64 ": found rung %u, expected one below %zu",
                       r->number, r->rung, s->spec.n_rungs);
    if (p && (p->reached >> r->rung & 1))
        return as_fail(err, AS_E_CONFLICT, "trial %" PRIu64 " has a result at rung %u already",
                       r->number, r->rung);
    return AS_OK;
}

static bool keeps_costs(const struct stopping *s)
{
    return s->pairs || stopping_is_measured(s);
}

static size_t costs_of_a_trial(const struct stopping *s)
{
    return s->spec.n_rungs * s->rungs[0].n_metrics;
}

/* The costs of a trial that has a place. */
static double *costs_at(const struct stopping *s, uint64_t number, uint32_t rung)
{
    return s->costs + number * costs_of_a_trial(s) + rung * s->rungs[0].n_metrics;
}

static as_status make_place(struct stopping *s, uint64_t number, struct as_err *err)
{
    while (s->n_places <= number) {
        as_status st =
            as_reserve_one(&s->places, s->n_places, &s->cap_places, sizeof *s->places, err);
        if (st != AS_OK)
            return st;
        s->places[s->n_places++] = (struct place){.before = NAN};
    }
    return keeps_costs(s)
               ? as_grow(&s->costs, s->cap_places * costs_of_a_trial(s), sizeof *s->costs, err)
               : AS_OK;
}

/* What curve learns. The costs are kept already. */
static void add_to_pairs(struct stopping *s, const struct place *p, const struct standing *row,
                         uint32_t rung)
{
    if (!s->pairs || rung != last_rung(s))
        return;
    for (uint32_t k = 0; k < rung; k++)
        if (p->reached >> k & 1)
            chance_add(&s->pairs[k], costs_at(s, row->number, k)[0], row->costs[0]);
    if (row->kind == 0)
        s->best = fmin(s->best, row->costs[0]);
}

/* What pasha learns from a result at its cap. */
static void add_to_cap(struct stopping *s, const struct place *p, const struct standing *row,
                       uint32_t rung)
{
    if (s->spec.method != STOP_PASHA || rung != s->cap.rung || rung == 0 ||
        !(p->reached >> (rung - 1) & 1))
        return;
    ranking_cap_add(&s->cap, &(struct ranked_trial){p->before, p->row.costs[0], row->costs[0]});
}

static void keep_costs(struct stopping *s, const struct standing *row, uint32_t rung)
{
    if (keeps_costs(s))
        memcpy(costs_at(s, row->number, rung), row->costs,
               s->rungs[rung].n_metrics * sizeof *s->costs);
}

/* A trial at the last rung, whose row there is `last`, says how ranks agree. */
static as_status add_to_agreement(struct stopping *s, const struct standing *last,
                                  struct as_err *err)
{
    const struct place *p = &s->places[last->number];
    struct agreement_run run = {.is_compared = p->is_compared,
                                .reached = p->reached | UINT32_C(1) << last_rung(s)};
    for (uint32_t k = 0; k < last_rung(s); k++) {
        struct standing *row = &run.rows[k];
        if (!(p->reached >> k & 1))
            continue;
        *row = (struct standing){.number = last->number, .kind = p->infeasible >> k & 1};
        memcpy(row->costs, costs_at(s, last->number, k),
               s->rungs[k].n_metrics * sizeof *row->costs);
        set_kind_of_nan(row, s->rungs[k].n_metrics);
    }
    run.rows[last_rung(s)] = *last;
    return agreement_add(&s->agreement, &run, err);
}

/* Everything that can fail comes first. */
as_status stopping_add(struct stopping *s, const struct rung_result *r, struct as_err *err)
{
    struct standing row = standing_of(&s->spec, r);
    as_status st = check_result(s, r, err);
    if (st != AS_OK)
        return st;
    row.waits = r->decision == STOP_PAUSE;
    if ((st = make_place(s, r->number, err)) != AS_OK)
        return st;
    if ((st = standings_reserve(&s->rungs[r->rung], err)) != AS_OK)
        return st;
    bool is_compared = r->rung < last_rung(s) && r->rung >= first_rung(s, r->number);
    keep_costs(s, &row, r->rung);
    if (stopping_is_measured(s) && r->rung == last_rung(s) &&
        (st = add_to_agreement(s, &row, err)) != AS_OK)
        return st;
    struct place *p = &s->places[r->number];
    if (p->waits) /* it waits at one rung at most, or its promotion would not end */
        standings_leave(&s->rungs[p->rung], &p->row);
    add_to_cap(s, p, &row, r->rung);
    add_to_pairs(s, p, &row, r->rung);
    standings_add(&s->rungs[r->rung], &row);
    bool follows = r->rung > 0 && (p->reached >> (r->rung - 1) & 1);
    *p = (struct place){.reached = p->reached | UINT32_C(1) << r->rung,
                        .infeasible = p->infeasible | (uint32_t)!r->feasible << r->rung,
                        .rung = r->rung,
                        .waits = row.waits,
                        .is_compared = p->is_compared || is_compared,
                        .before = follows ? p->row.costs[0] : NAN,
                        .row = row};
    s->n_decided += r->decision != STOP_GO_ON;
    return AS_OK;
}

static void end_wait(struct stopping *s, uint64_t number, bool goes_on)
{
    struct place *p = number < s->n_places ? &s->places[number] : NULL;
    if (!p || !p->waits)
        return;
    p->waits = false;
    p->has_left = !goes_on;
    standings_leave(&s->rungs[p->rung], &p->row);
}

void stopping_left(struct stopping *s, uint64_t number)
{
    end_wait(s, number, false);
}

void stopping_promoted(struct stopping *s, uint64_t number)
{
    end_wait(s, number, true);
}

/* ---- promotions ---- */

/* The best waiting trial of the rung, if it is in the share of n results. */
static const struct standing *best_in_share(const struct stopping *s, uint32_t rung, size_t n,
                                            bool at_least_one, size_t *ret_rank)
{
    const struct standings *all = &s->rungs[rung];
    const struct standing *best = standings_best_waiting(all);
    if (!best)
        return NULL;
    *ret_rank = standings_rank(all, best, true);
    return *ret_rank <= share(s, n, at_least_one) ? best : NULL;
}

/* Do waiting trials of this rung go on in the usual way? */
static bool is_open(const struct stopping *s, uint32_t rung)
{
    return rung >= stopping_lowest_rung(s) && rung < s->cap.rung;
}

/* The chance of a trial at this rung to beat the best one. */
static double chance_of(const struct stopping *s, uint32_t rung, const struct standing *row)
{
    return row->kind == 1 ? 0 : chance_below(&s->pairs[rung], row->costs[0], s->best);
}

/* Without its reason. */
static struct stop_promotion promotion_of(const struct stopping *s, uint32_t rung,
                                          const struct standing *row)
{
    return (struct stop_promotion){.number = row->number,
                                   .rung = rung,
                                   .until = rung + 1,
                                   .rank = standings_rank(&s->rungs[rung], row, true),
                                   .of = s->rungs[rung].n};
}

/* The best waiting trial of the rung, if its chance is not too low. */
static bool promote_by_chance(const struct stopping *s, uint32_t rung, struct stop_promotion *ret)
{
    const struct standing *best = standings_best_waiting(&s->rungs[rung]);
    if (!best || chance_of(s, rung, best) < s->spec.chance)
        return false;
    *ret = promotion_of(s, rung, best);
    (void)snprintf(ret->reason, sizeof ret->reason,
                   "its chance to beat the best trial is %.3f now, at least %g goes on",
                   chance_of(s, rung, best), s->spec.chance);
    return true;
}

static bool promote_from(const struct stopping *s, uint32_t rung, bool at_least_one,
                         struct stop_promotion *ret)
{
    size_t rank = 0, of = s->rungs[rung].n;
    const struct standing *best = best_in_share(s, rung, of, at_least_one, &rank);
    if (!best)
        return false;
    *ret = (struct stop_promotion){
        .number = best->number, .rung = rung, .until = rung + 1, .rank = rank, .of = of};
    (void)snprintf(ret->reason, sizeof ret->reason,
                   "rank %zu of %zu at step %" PRId64 ", where the best %zu go on", rank, of,
                   s->spec.steps[rung], share(s, of, at_least_one));
    return true;
}

/* The highest rung with a result. */
static uint32_t top_rung(const struct stopping *s)
{
    uint32_t top = last_rung(s);
    while (top > 0 && s->rungs[top].n == 0)
        top--;
    return top;
}

/* How many trials went on from the rung? When nothing runs, none of them came further. */
static size_t count_gone_on(const struct stopping *s, uint32_t rung)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_places; i++) {
        const struct place *p = &s->places[i];
        n += p->reached != 0 && p->rung == rung && !p->waits && !p->has_left;
    }
    return n;
}

/* The best waiting trial of the highest rung where one waits. Those that are better there have all
 * ended, and none of them completed. Where several in a row failed on the way to the end, the
 * others would as well. */
static bool promote_in_vain(const struct stopping *s, struct stop_promotion *ret)
{
    if (count_gone_on(s, top_rung(s)) >= STOP_VAIN_TRIES)
        return false;
    for (uint32_t k = last_rung(s); k-- > 0;) {
        const struct standing *best = standings_best_waiting(&s->rungs[k]);
        if (!best)
            continue;
        *ret = promotion_of(s, k, best);
        (void)snprintf(ret->reason, sizeof ret->reason,
                       "rank %zu of %zu at step %" PRId64
                       ", the best that waits, and no trial has completed",
                       ret->rank, ret->of, s->spec.steps[k]);
        return true;
    }
    return false;
}

bool stopping_promote(const struct stopping *s, stop_closing closing, struct stop_promotion *ret)
{
    if (s->spec.method == STOP_NONE || s->spec.mode != STOP_MODE_PAUSE)
        return false;
    for (uint32_t k = last_rung(s); k-- > 0;)
        if (s->pairs ? promote_by_chance(s, k, ret)
                     : is_open(s, k) && promote_from(s, k, false, ret))
            return true;
    uint32_t top = top_rung(s);
    if (closing != STOP_NOT_CLOSING && top < last_rung(s) && promote_from(s, top, true, ret))
        return true;
    return closing == STOP_CLOSING_IN_VAIN && promote_in_vain(s, ret);
}

bool stopping_is_over(const struct stopping *s, uint64_t number, uint64_t most)
{
    const struct place *p = place_of(s, number);
    if (!p || !p->waits || s->pairs) /* a chance may rise */
        return false;
    size_t rank = standings_rank(&s->rungs[p->rung], &p->row, true);
    return rank > share(s, (size_t)most, true);
}

size_t stopping_list_over(const struct stopping *s, uint64_t most, uint64_t from, uint64_t *ret,
                          size_t cap)
{
    size_t n = 0, looks = s->rungs[0].n_metrics > 1 ? STOP_OVER_LOOKS : 100 * STOP_OVER_LOOKS;
    for (size_t i = 0; i < s->n_places && n < cap && looks > 0; i++) {
        uint64_t number = (from % s->n_places + i) % s->n_places;
        if (!s->places[number].waits)
            continue;
        looks--;
        if (stopping_is_over(s, number, most))
            ret[n++] = number;
    }
    return n;
}

/* ---- decisions ---- */

/* Would this trial be promoted at once if it waited? Not if another one is promoted before it. */
static bool is_next(const struct stopping *s, uint32_t rung, const struct standing *row,
                    const struct stop_decision *d)
{
    size_t rank;
    if (!is_open(s, rung) || d->rank > share(s, d->of, false))
        return false;
    for (uint32_t k = last_rung(s); k-- > rung + 1;)
        if (is_open(s, k) && best_in_share(s, k, s->rungs[k].n, false, &rank))
            return false;
    const struct standings *all = &s->rungs[rung];
    const struct standing *best = standings_best_waiting(all);
    if (!best)
        return true;
    if (all->n_metrics > 1)
        return standings_rank(all, best, true) > d->rank;
    int c = standing_compare(row, best, 1);
    return c < 0 || (c == 0 && row->number < best->number);
}

static void decide(const struct stopping *s, const struct rung_result *now,
                   const struct standing *row, struct stop_decision *d)
{
    int64_t step = s->spec.steps[now->rung];
    bool pauses = s->spec.mode == STOP_MODE_PAUSE;
    size_t best = share(s, d->of, !pauses);
    bool goes_on = pauses ? is_next(s, now->rung, row, d) : d->rank <= best;
    d->verdict = goes_on ? STOP_GO_ON : pauses ? STOP_PAUSE : STOP_PRUNE;
    (void)snprintf(d->reason, sizeof d->reason,
                   "rank %zu of %zu at step %" PRId64 ", where the best %zu go on", d->rank, d->of,
                   step, best);
}

static void decide_by_chance(const struct stopping *s, const struct rung_result *now,
                             const struct standing *row, struct stop_decision *d)
{
    double chance = chance_of(s, now->rung, row);
    d->verdict = chance >= s->spec.chance          ? STOP_GO_ON
                 : s->spec.mode == STOP_MODE_PAUSE ? STOP_PAUSE
                                                   : STOP_PRUNE;
    (void)snprintf(d->reason, sizeof d->reason,
                   "rank %zu of %zu at step %" PRId64
                   "; its chance to beat the best trial is %.3f, at least %g goes on",
                   d->rank, d->of, s->spec.steps[now->rung], chance, s->spec.chance);
}

static void decide_by_population(const struct stopping *s, const struct rung_result *now,
                                 struct stop_decision *d)
{
    struct exploit x;
    exploit_decide(&s->rungs[now->rung], now->rung, now->number, d->rank, &s->spec.pbt,
                   s->spec.seed, &x);
    d->forks = x.is_last;
    d->parent = x.parent;
    d->verdict = x.is_last ? STOP_PRUNE : STOP_GO_ON;
    (void)snprintf(d->reason, sizeof d->reason,
                   "rank %zu of %zu at step %" PRId64 ", where the last %zu are replaced", d->rank,
                   d->of, s->spec.steps[now->rung], x.n_last);
}

static void pass(const struct stopping *s, const struct rung_result *now, uint32_t first,
                 struct stop_decision *d)
{
    int64_t step = s->spec.steps[now->rung];
    if (now->rung == last_rung(s))
        (void)snprintf(d->reason, sizeof d->reason, "rank %zu of %zu at the last step", d->rank,
                       d->of);
    else if (stopping_is_measured(s) && agreement_is_control(now->number))
        (void)snprintf(d->reason, sizeof d->reason,
                       "it runs in full, to measure how well early ranks agree with the last ones");
    else if (stopping_is_measured(s) && first == last_rung(s))
        (void)snprintf(d->reason, sizeof d->reason,
                       "no rung is known yet whose ranks agree with those at the end");
    else
        (void)snprintf(d->reason, sizeof d->reason,
                       "rank %zu of %zu at step %" PRId64 ", and it is compared from step %" PRId64
                       " on",
                       d->rank, d->of, step, s->spec.steps[first]);
}

as_status stopping_decide(const struct stopping *s, const struct rung_result *now,
                          struct stop_decision *ret, struct as_err *err)
{
    struct stop_decision d = {.verdict = STOP_GO_ON, .rank = 1, .of = 1};
    if (s->spec.method == STOP_NONE) {
        *ret = d;
        return AS_OK;
    }
    as_status st = check_result(s, now, err);
    if (st != AS_OK)
        return st;
    const struct standing row = standing_of(&s->spec, now);
    uint32_t first = first_rung(s, now->number);
    d.rank = standings_rank(&s->rungs[now->rung], &row, false);
    d.of = s->rungs[now->rung].n + 1;
    if (now->rung < first || now->rung == last_rung(s))
        pass(s, now, first, &d);
    else if (s->spec.method == STOP_PBT)
        decide_by_population(s, now, &d);
    else
        (s->pairs ? decide_by_chance : decide)(s, now, &row, &d);
    *ret = d;
    return AS_OK;
}
