/* The runs of a sweep whose ranks are compared from rung to rung.
 *
 * A complete run changes the measure, so tau is computed anew for all rungs then: at most
 * AGREEMENT_LATEST runs, whose pairs are few. In between the measure is read alone, and a decision
 * costs nothing for it. */
#include "search/stopping/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct full_run {
    uint64_t number;
    uint32_t reached; /* a bit for each rung */
    struct standing rows[STOP_RUNGS_MAX];
};

void agreement_done(struct agreement *a)
{
    free(a->runs);
}

bool agreement_is_control(uint64_t number)
{
    return number % AGREEMENT_EVERY == 0;
}

static bool is_complete(const struct agreement *a, const struct full_run *r)
{
    return r->reached >> (a->n_rungs - 1) & 1;
}

static struct full_run *find(const struct agreement *a, uint64_t number)
{
    for (size_t i = a->n; i-- > 0;)
        if (a->runs[i].number == number)
            return &a->runs[i];
    return NULL;
}

static void remove_at(struct agreement *a, size_t i)
{
    a->n_complete -= is_complete(a, &a->runs[i]);
    memmove(a->runs + i, a->runs + i + 1, (--a->n - i) * sizeof *a->runs);
}

void agreement_drop(struct agreement *a, uint64_t number)
{
    struct full_run *r = find(a, number);
    if (r && !is_complete(a, r))
        remove_at(a, (size_t)(r - a->runs));
}

/* Pairs that are equal at one of the rungs count as half in order. */
static double tau_of(const struct agreement *a, size_t rung)
{
    size_t last = a->n_rungs - 1, n = 0;
    double sum = AGREEMENT_PRIOR_TAU * AGREEMENT_PRIOR_PAIRS;
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct full_run *p = &a->runs[i], *q = &a->runs[j];
            if (!(p->reached & q->reached & UINT32_C(1) << last) ||
                !(p->reached & q->reached & UINT32_C(1) << rung))
                continue;
            int at_end = standing_compare(&p->rows[last], &q->rows[last], a->n_metrics);
            int here = standing_compare(&p->rows[rung], &q->rows[rung], a->n_metrics);
            n += at_end != 0;
            sum += at_end * here;
        }
    }
    return sum / (double)(n + AGREEMENT_PRIOR_PAIRS);
}

static void remove_oldest(struct agreement *a, bool complete)
{
    size_t oldest = 0;
    while (is_complete(a, &a->runs[oldest]) != complete)
        oldest++;
    remove_at(a, oldest);
}

static void measure(struct agreement *a)
{
    if (a->n_complete > AGREEMENT_LATEST)
        remove_oldest(a, true);
    for (size_t k = 0; k < a->n_rungs; k++)
        a->tau[k] = tau_of(a, k);
}

as_status agreement_add(struct agreement *a, uint32_t rung, const struct standing *row,
                        struct as_err *err)
{
    struct full_run *r = find(a, row->number);
    if (!r) {
        if (a->n - a->n_complete == AGREEMENT_OPEN)
            remove_oldest(a, false);
        as_status st = as_reserve_one(&a->runs, a->n, &a->cap, sizeof *a->runs, err);
        if (st != AS_OK)
            return st;
        r = &a->runs[a->n++];
        *r = (struct full_run){.number = row->number};
    }
    r->reached |= UINT32_C(1) << rung;
    r->rows[rung] = *row;
    if (rung + 1 == a->n_rungs) {
        a->n_complete++;
        measure(a);
    }
    return AS_OK;
}

bool agreement_is_known(const struct agreement *a)
{
    return a->n_complete >= AGREEMENT_ENOUGH;
}

uint32_t agreement_first_rung(const struct agreement *a)
{
    uint32_t first = (uint32_t)a->n_rungs - 1;
    while (first > 0 && a->tau[first - 1] >= AGREEMENT_LEAST_TAU)
        first--;
    return first;
}
