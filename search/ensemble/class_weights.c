/* Which of several classes is predicted, where the metric looks at all of them alike.
 *
 * The likeliest class is right most often. The balanced accuracy counts the rows of a rare class
 * for more: by Bayes' rule the class with the highest p_c / s_c is best by it, with the share s_c
 * of the class in the rows, if the probabilities are right. The macro mean of F1 lies in between.
 * So the weights are s_c ^ -a, with one number a that is the best by the metric on the rows that
 * are given, and of equally good ones the nearest to 0. A free weight for each class would follow
 * accidents of the few rows of the rare ones (decision 2013). */
#include <math.h>
#include <string.h>

#include "search/ensemble/selection_priv.h"

#define STEPS 16 /* a = 0, 0.1, … */
#define STEP 0.1

static bool looks_at_classes_alike(score_metric m)
{
    return m == SCORE_F1 || m == SCORE_BALANCED_ACCURACY;
}

/* ret[outputs]: with a class that has no row, as if it had the weight of half of one. */
static void shares_of(const struct ensemble_input *in, struct row_list l, double *ret)
{
    size_t C = in->truth.outputs;
    double all = 0;
    memset(ret, 0, C * sizeof *ret);
    for (size_t i = 0; i < l.n; i++) {
        double w = score_weight(&in->truth, l.rows[i]);
        ret[in->truth.classes[l.rows[i]]] += w;
        all += w;
    }
    for (size_t c = 0; c < C; c++)
        ret[c] = fmax(ret[c] / all, 0.5 / (double)l.n);
}

/* The weights for a; the largest share has 1. */
static void set_weights(const double *shares, size_t C, double a, double *ret)
{
    double most = 0;
    for (size_t c = 0; c < C; c++)
        most = fmax(most, shares[c]);
    for (size_t c = 0; c < C; c++)
        ret[c] = pow(shares[c] / most, -a);
}

as_status class_weights_fit(const struct ensemble_input *in, struct row_list l, double *p,
                            struct combination *ret, struct as_err *err)
{
    size_t C = in->truth.outputs;
    AS_AUTO(as_freep) double *shares = as_calloc(C, sizeof *shares);
    AS_AUTO(as_freep) double *decided = as_calloc(l.n, C * sizeof *decided);
    double best = NAN, chosen = 0;
    if (!looks_at_classes_alike(in->metric))
        return AS_OK;
    if (!shares || !decided)
        return as_fail_nomem(err);
    shares_of(in, l, shares);
    ret->n_class_weights = C;
    for (int step = 0; step < STEPS; step++) {
        double value = NAN;
        set_weights(shares, C, step * STEP, ret->class_weights);
        memcpy(decided, p, l.n * C * sizeof *p);
        combination_decide(ret, l.n, decided);
        as_status st =
            score_compute(in->metric, &in->truth, l.rows, l.n, decided, 1, &value, NULL, err);
        if (st != AS_OK)
            return st;
        if (step == 0 || value > best) {
            best = value;
            chosen = step * STEP;
        }
    }
    set_weights(shares, C, chosen, ret->class_weights);
    ret->n_class_weights = chosen > 0 ? C : 0;
    return AS_OK;
}
