#include "search/stopping/ranking_cap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define EPSILON_QUANTILE 0.9

static bool swapped_back(const struct ranked_trial *a, const struct ranked_trial *b)
{
    int first = as_compare_f64(a->before, b->before), then = as_compare_f64(a->below, b->below),
        now = as_compare_f64(a->here, b->here);
    return !isnan(a->before) && !isnan(b->before) && first * then < 0 && then * now < 0;
}

static double epsilon_of(const struct ranking_cap *c)
{
    double differences[RANKING_LATEST * (RANKING_LATEST - 1) / 2];
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < i; j++)
            if (swapped_back(&c->trials[i], &c->trials[j])) {
                double d = fabs(c->trials[i].here - c->trials[j].here);
                if (isfinite(d)) /* a trial that diverged says nothing of how noisy ranks are */
                    differences[n++] = d;
            }
    if (n == 0)
        return 0;
    qsort(differences, n, sizeof *differences, as_order_f64);
    return differences[(size_t)(EPSILON_QUANTILE * (double)(n - 1))];
}

/* Where each trial stands by one of its costs: order[i] is the trial at position i. */
static void sort_by(const struct ranking_cap *c, bool below, size_t *order)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t at = i;
        const struct ranked_trial *t = &c->trials[i];
        while (at > 0) {
            const struct ranked_trial *p = &c->trials[order[at - 1]];
            if (as_compare_f64(below ? p->below : p->here, below ? t->below : t->here) <= 0)
                break;
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

static bool is_stable(const struct ranking_cap *c)
{
    size_t here[RANKING_LATEST], below[RANKING_LATEST];
    double epsilon = epsilon_of(c);
    sort_by(c, false, here);
    sort_by(c, true, below);
    for (size_t i = 0; i < c->n; i++) {
        double a = c->trials[here[i]].below, b = c->trials[below[i]].below;
        if (as_compare_f64(a, b) != 0 && !(fabs(a - b) <= epsilon))
            return false;
    }
    return true;
}

void ranking_cap_add(struct ranking_cap *c, const struct ranked_trial *t)
{
    if (c->rung == c->last)
        return;
    if (c->n == RANKING_LATEST) {
        c->n--;
        memmove(c->trials, c->trials + 1, c->n * sizeof *c->trials);
    }
    c->trials[c->n++] = *t;
    if (is_stable(c))
        return;
    c->rung++;
    c->n = 0;
}
