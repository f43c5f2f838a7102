/* The runs of a sweep whose ranks are compared from rung to rung.
 *
 * A run changes the measure, so tau is computed anew for all rungs then: at most AGREEMENT_LATEST
 * runs, whose pairs are few. In between the measure is read alone, and a decision costs nothing for
 * it. */
#include "search/stopping/agreement.h"

#include <stdlib.h>

#include "base/mem.h"

void agreement_done(struct agreement *a)
{
    free(a->runs);
}

bool agreement_is_control(uint64_t number)
{
    return number % AGREEMENT_EVERY == 0 || number == AGREEMENT_SECOND;
}

/* Pairs that are equal at one of the rungs count as half in order. */
static double tau_of(const struct agreement *a, size_t rung)
{
    size_t last = a->n_rungs - 1, n = 0;
    double sum = AGREEMENT_PRIOR_TAU * AGREEMENT_PRIOR_PAIRS;
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct agreement_run *p = &a->runs[i], *q = &a->runs[j];
            if ((p->is_compared && q->is_compared) || !(p->reached & q->reached & 1U << rung))
                continue;
            int at_end = standing_compare(&p->rows[last], &q->rows[last], a->n_metrics);
            int here = standing_compare(&p->rows[rung], &q->rows[rung], a->n_metrics);
            n += at_end != 0;
            sum += at_end * here;
        }
    }
    return sum / (double)(n + AGREEMENT_PRIOR_PAIRS);
}

as_status agreement_add(struct agreement *a, const struct agreement_run *run, struct as_err *err)
{
    if (a->n < AGREEMENT_LATEST) {
        as_status st = as_reserve_one(&a->runs, a->n, &a->cap, sizeof *a->runs, err);
        if (st != AS_OK)
            return st;
        a->n++;
    }
    a->runs[a->next] = *run;
    a->next = (a->next + 1) % AGREEMENT_LATEST;
    a->has_uncompared |= !run->is_compared;
    for (size_t k = 0; k < a->n_rungs; k++)
        a->tau[k] = tau_of(a, k);
    return AS_OK;
}

bool agreement_is_known(const struct agreement *a)
{
    return a->n >= AGREEMENT_ENOUGH && a->has_uncompared;
}

uint32_t agreement_first_rung(const struct agreement *a)
{
    uint32_t first = (uint32_t)a->n_rungs - 1;
    while (first > 0 && a->tau[first - 1] >= AGREEMENT_LEAST_TAU)
        first--;
    return first;
}
