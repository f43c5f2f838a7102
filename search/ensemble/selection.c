/* Predictions of the chosen candidates are kept as sums, so a further candidate costs one pass over
 * rows and not over all members. Losses are compared after rounding to 48 bits: two orders of the
 * same additions are a tie, which the guide (the log loss, or an error of numbers) decides. So a
 * selection does not depend on rounding (decision 4013). */
#include <math.h>
#include <string.h>

#include "search/ensemble/selection_priv.h"

#define MIN_PROBABILITY 1e-7 /* as in score.h */

bool rank_less(struct rank a, struct rank b)
{
    return a.loss < b.loss || (a.loss == b.loss && a.guide < b.guide);
}

static bool all_finite(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

as_status selection_init(struct selection *s, const struct ensemble_input *in, const size_t *places,
                         struct as_err *err)
{
    size_t cells = in->truth.rows * in->truth.outputs;
    s->in = in;
    s->places = places;
    s->usable = as_calloc(in->candidates, sizeof *s->usable);
    s->alone = as_calloc(in->candidates, sizeof *s->alone);
    s->order = as_calloc(in->candidates, sizeof *s->order);
    s->picks = as_calloc(in->size, sizeof *s->picks);
    s->sum = as_calloc(cells, sizeof *s->sum);
    if (!s->usable || !s->alone || !s->order || !s->picks || !s->sum)
        return as_fail(err, AS_E_NOMEM, "out of memory for an ensemble");
    for (size_t j = 0; j < in->candidates; j++) {
        s->usable[j] = all_finite(in->predictions[j], cells);
        s->n_usable += s->usable[j];
    }
    if (s->n_usable == 0)
        return as_fail(err, AS_E_INVAL, "no candidate has predictions that are all finite");
    return AS_OK;
}

void selection_done(struct selection *s)
{
    free(s->usable);
    free(s->alone);
    free(s->order);
    free(s->picks);
    free(s->sum);
}

static bool has_part(const struct ensemble_bytes *b, size_t candidate, size_t part)
{
    return b->has[candidate * b->n_parts + part];
}

bool selection_fits(const struct selection *s, const size_t *picks, size_t n, size_t candidate)
{
    const struct ensemble_bytes *b = s->in->bytes;
    if (!b)
        return true;
    int64_t left = b->max - b->own[candidate];
    for (size_t k = 0; k < n; k++) {
        bool again = picks[k] == candidate;
        for (size_t j = 0; j < k; j++)
            again = again || picks[j] == picks[k];
        left -= again ? 0 : b->own[picks[k]];
    }
    for (size_t part = 0; part < b->n_parts; part++) {
        bool has = has_part(b, candidate, part);
        for (size_t k = 0; k < n && !has; k++)
            has = has_part(b, picks[k], part);
        left -= has ? b->parts[part] : 0;
    }
    return left >= 0;
}

as_status selection_best(struct selection *s, size_t *ret_n, struct as_err *err)
{
    size_t n = 0;
    for (size_t k = 0; k < s->n_usable && n < s->in->size; k++)
        if (selection_fits(s, s->picks, n, s->order[k]))
            s->picks[n++] = s->order[k];
    if (n == 0)
        return as_fail(err, AS_E_INVAL, "each model has more than %lld bytes",
                       (long long)s->in->bytes->max);
    *ret_n = n;
    return AS_OK;
}

void selection_clear(struct selection *s, struct row_list l)
{
    memset(s->sum, 0, l.n * s->in->truth.outputs * sizeof *s->sum);
}

void selection_add(struct selection *s, struct row_list l, size_t candidate)
{
    size_t C = s->in->truth.outputs;
    const float *p = s->in->predictions[candidate];
    for (size_t i = 0; i < l.n; i++)
        for (size_t c = 0; c < C; c++)
            s->sum[i * C + c] += (double)p[l.rows[i] * C + c];
}

double selection_guide(const struct selection *s, struct row_list l, size_t candidate,
                       double members)
{
    const struct score_truth *t = &s->in->truth;
    size_t C = t->outputs;
    bool classes = t->classes != NULL && score_is_of_classes(s->in->metric);
    const float *p = candidate < s->in->candidates ? s->in->predictions[candidate] : NULL;
    double total = 0, of = 0;
    for (size_t i = 0; i < l.n; i++) {
        double row_loss = 0, weight = score_weight(t, l.rows[i]);
        size_t row = l.rows[i], first = classes ? (size_t)t->classes[row] : 0;
        for (size_t c = first; c < (classes ? first + 1 : C); c++) {
            double v = (s->sum[i * C + c] + (p ? (double)p[row * C + c] : 0)) / members;
            double d = classes ? 0 : v - (double)t->targets[row * C + c];
            row_loss += classes                      ? -log(fmin(fmax(v, MIN_PROBABILITY), 1))
                        : s->in->metric == SCORE_MAE ? fabs(d)
                                                     : d * d;
        }
        total += weight * row_loss;
        of += weight;
    }
    return of > 0 ? total / of : 0;
}

/* v to 48 bits: a mean of shares such as 1/2 + 1/3 and 1/3 + 1/2 is a tie, whatever its
 * rounding. */
static double without_rounding(double v)
{
    int exponent;
    double share = frexp(v, &exponent);
    return isfinite(v) ? ldexp(nearbyint(ldexp(share, 48)), exponent - 48) : v;
}

as_status selection_rank(const struct selection *s, struct row_list l, double members,
                         struct rank *ret, struct as_err *err)
{
    const struct ensemble_input *in = s->in;
    double v = 0;
    as_status st =
        score_compute(in->metric, &in->truth, l.rows, l.n, s->sum, members, &v, NULL, err);
    if (st != AS_OK)
        return st;
    v = score_is_maximized(in->metric) ? -v : v;
    *ret = (struct rank){isnan(v) ? 0 : without_rounding(v),
                         selection_guide(s, l, in->candidates, members)};
    return AS_OK;
}

as_status selection_rank_singles(struct selection *s, struct row_list l, struct as_err *err)
{
    size_t n = 0;
    for (size_t j = 0; j < s->in->candidates; j++) {
        s->alone[j] = (struct rank){INFINITY, INFINITY};
        if (!s->usable[j])
            continue;
        selection_clear(s, l);
        selection_add(s, l, j);
        as_status st = selection_rank(s, l, 1, &s->alone[j], err);
        if (st != AS_OK)
            return st;
        size_t at = n++; /* insertion sort, stable */
        for (; at > 0 && rank_less(s->alone[j], s->alone[s->order[at - 1]]); at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = j;
    }
    return AS_OK;
}
