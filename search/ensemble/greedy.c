/* Greedy selection with replacement, from a sorted start.
 *
 * The best three candidates by the metric start, as many of them as are best together. Then members
 * are added that lower the log loss of the mean prediction most (numbers: the squared or the
 * absolute error), because the metric itself is too coarse or too blind on few rows to choose among
 * candidates. Steps may repeat a candidate: the counts are the weights. The best prefix wins,
 * because the metric may get worse again after it.
 *
 * Where the members' bytes are limited, a candidate that would not fit beside the picks is passed
 * over.
 *
 * The sum of the members' predictions is kept, so a step costs one pass over the candidates and not
 * one over the members. For classes, a step needs only the outputs of the targets, because it is
 * guided by the log loss. docs/decisions/4013 has the measurements behind these
 * choices. */
#include <math.h>

#include "search/ensemble/selection_priv.h"

/* A sorted start (Caruana et al., ICML 2004); its figures are in decision 4013. */
#define START_SIZE 3 /* candidates of the sorted start, at most */

/* One selection: its best prefix so far. */
struct greedy {
    struct selection *s;
    struct row_list l;
    struct rank best;
    size_t n_best;
};

/* Take the candidate as pick number n, and keep the prefix if it is the best so far. */
static as_status take(struct greedy *g, size_t candidate, size_t n, struct as_err *err)
{
    struct rank now;
    g->s->picks[n] = candidate;
    selection_add(g->s, g->l, candidate);
    as_status st = selection_rank(g->s, g->l, (double)(n + 1), &now, err);
    if (st == AS_OK && (n == 0 || rank_less(now, g->best))) {
        g->best = now;
        g->n_best = n + 1;
    }
    return st;
}

/* The sorted start. Afterwards g->n_best of them, whose mean is best, are in the sum. */
static as_status start_sorted(struct greedy *g, struct as_err *err)
{
    size_t most = 0;
    as_status st = selection_best(g->s, &most, err);
    selection_clear(g->s, g->l);
    for (size_t n = 0; st == AS_OK && n < START_SIZE && n < most; n++)
        st = take(g, g->s->picks[n], n, err);
    if (st != AS_OK)
        return st;
    selection_clear(g->s, g->l);
    for (size_t k = 0; k < g->n_best; k++)
        selection_add(g->s, g->l, g->s->picks[k]);
    return AS_OK;
}

as_status greedy_fit(struct selection *s, struct row_list l, struct combination *ret,
                     struct as_err *err)
{
    struct greedy g = {.s = s, .l = l};
    as_status st = start_sorted(&g, err);
    for (size_t n = g.n_best; st == AS_OK && n < s->in->size; n++) {
        size_t next = s->picks[0];
        double least = INFINITY;
        for (size_t j = 0; j < s->in->candidates; j++) {
            bool may = s->usable[j] && selection_fits(s, s->picks, n, j);
            double guide = may ? selection_guide(s, l, j, (double)(n + 1)) : INFINITY;
            if (guide < least) {
                least = guide;
                next = j;
            }
        }
        st = take(&g, next, n, err);
    }
    for (size_t k = 0; k < g.n_best; k++)
        ret->counts[s->picks[k]]++;
    combination_average(ret, s->in);
    return st;
}
