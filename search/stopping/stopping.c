/* The rules of early stopping, over the standings of each rung.
 *
 * asha: Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020. With
 * STOP_MODE_PAUSE every trial waits at its rung, and a free place goes to the best waiting trial
 * that is among the best floor(n / eta) of the n at its rung, on the highest rung that has one. With
 * STOP_MODE_STOP a trial goes on if it is among the best max(1, floor(n / eta)) when it arrives. */
#include "search/stopping/stopping.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "search/stopping/standings.h"

/* Where a trial stands; zeroed: no result. */
struct place {
    uint32_t reached;    /* a bit for each rung with a result */
    bool waits;          /* at `row`'s rung */
    uint32_t rung;       /* of `row` */
    struct standing row; /* its latest result */
};

struct stopping {
    struct stop_spec spec;
    struct standings rungs[STOP_RUNGS_MAX];
    struct stop_counts counts[STOP_RUNGS_MAX];
    struct place *places; /* by number */
    size_t n_places, cap_places;
    uint64_t seq;
};

as_status stopping_create(const struct stop_spec *spec, struct stopping **ret, struct as_err *err)
{
    struct stopping *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->spec = *spec;
    for (size_t k = 0; k < spec->n_rungs; k++) {
        s->rungs[k].n_metrics = spec->has_metric ? 1 : spec->n_objectives;
        s->counts[k].step = spec->steps[k];
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
    free(s->places);
    free(s);
}

uint64_t stopping_seq(const struct stopping *s)
{
    return s->seq;
}

/* ---- results ---- */

static struct standing standing_of(const struct stop_spec *spec, const struct rung_result *r)
{
    struct standing row = {.number = r->number, .kind = r->feasible ? 0 : 1};
    size_t first = spec->has_metric ? spec->metric : 0;
    size_t n = spec->has_metric ? 1 : spec->n_objectives;
    for (size_t i = 0; i < n; i++) {
        double v = r->values[first + i];
        row.costs[i] = spec->maximize[first + i] ? -v : v;
        if (isnan(v))
            row.kind = 2;
    }
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

static as_status make_place(struct stopping *s, uint64_t number, struct as_err *err)
{
    while (s->n_places <= number) {
        as_status st =
            as_reserve_one(&s->places, s->n_places, &s->cap_places, sizeof *s->places, err);
        if (st != AS_OK)
            return st;
        s->places[s->n_places++] = (struct place){0};
    }
    return AS_OK;
}

as_status stopping_add(struct stopping *s, const struct rung_result *r, struct as_err *err)
{
    struct standing row = standing_of(&s->spec, r);
    as_status st = check_result(s, r, err);
    if (st != AS_OK)
        return st;
    row.waits = r->decision == STOP_PAUSE;
    if ((st = make_place(s, r->number, err)) != AS_OK)
        return st;
    if ((st = standings_add(&s->rungs[r->rung], &row, err)) != AS_OK)
        return st;
    struct place *p = &s->places[r->number];
    p->reached |= UINT32_C(1) << r->rung;
    p->rung = r->rung;
    p->waits = row.waits;
    p->row = row;
    struct stop_counts *c = &s->counts[r->rung];
    c->reached++;
    c->stopped += r->decision == STOP_PRUNE;
    c->paused += r->decision == STOP_PAUSE;
    s->seq = r->seq > s->seq ? r->seq : s->seq;
    return AS_OK;
}

void stopping_left(struct stopping *s, uint64_t number)
{
    struct place *p = number < s->n_places ? &s->places[number] : NULL;
    if (!p || !p->waits)
        return;
    p->waits = false;
    standings_leave(&s->rungs[p->rung], &p->row);
}

void stopping_promoted(struct stopping *s, uint64_t number)
{
    stopping_left(s, number);
}

void stopping_counts(const struct stopping *s, uint32_t rung, struct stop_counts *ret)
{
    *ret = s->counts[rung];
    ret->waiting = s->rungs[rung].n_waiting;
}

/* ---- decisions ---- */

/* How many of n results go on. */
static size_t share(const struct stopping *s, size_t n, bool at_least_one)
{
    size_t go_on = n / (size_t)s->spec.eta;
    return go_on == 0 && at_least_one ? 1 : go_on;
}

static void decide_asha(const struct stopping *s, const struct rung_result *now,
                        struct stop_decision *d)
{
    int64_t step = s->spec.steps[now->rung];
    if (s->spec.mode == STOP_MODE_PAUSE) {
        d->verdict = STOP_PAUSE;
        (void)snprintf(d->reason, sizeof d->reason,
                       "rank %zu of %zu at step %" PRId64 ": it waits there for its turn", d->rank,
                       d->of, step);
        return;
    }
    size_t best = share(s, d->of, true);
    d->verdict = d->rank <= best ? STOP_GO_ON : STOP_PRUNE;
    (void)snprintf(d->reason, sizeof d->reason,
                   "rank %zu of %zu at step %" PRId64 ", where the best %zu go on", d->rank, d->of,
                   step, best);
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
    d.rank = standings_rank(&s->rungs[now->rung], &row, false);
    d.of = s->rungs[now->rung].n + 1;
    if (now->rung + 1 == s->spec.n_rungs)
        (void)snprintf(d.reason, sizeof d.reason, "rank %zu of %zu at the last step", d.rank, d.of);
    else
        decide_asha(s, now, &d);
    *ret = d;
    return AS_OK;
}

static bool promote_from(const struct stopping *s, uint32_t rung, bool is_closing,
                         struct stop_promotion *ret)
{
    const struct standings *all = &s->rungs[rung];
    const struct standing *best = standings_best_waiting(all);
    if (!best)
        return false;
    size_t rank = standings_rank(all, best, true), most = share(s, all->n, is_closing);
    if (rank > most)
        return false;
    *ret = (struct stop_promotion){
        .number = best->number, .rung = rung, .until = rung + 1, .rank = rank, .of = all->n};
    (void)snprintf(ret->reason, sizeof ret->reason,
                   "rank %zu of %zu at step %" PRId64 ", where the best %zu go on", rank, all->n,
                   s->spec.steps[rung], most);
    return true;
}

bool stopping_promote(const struct stopping *s, bool is_closing, struct stop_promotion *ret)
{
    if (s->spec.mode != STOP_MODE_PAUSE)
        return false;
    for (size_t k = s->spec.n_rungs; k-- > 0;)
        if (promote_from(s, (uint32_t)k, is_closing, ret))
            return true;
    return false;
}

bool stopping_is_over(const struct stopping *s, uint64_t number, uint64_t most)
{
    const struct place *p = place_of(s, number);
    if (!p || !p->waits)
        return false;
    size_t rank = standings_rank(&s->rungs[p->rung], &p->row, true);
    return rank > share(s, (size_t)most, true);
}
