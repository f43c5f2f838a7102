/* The methods that need no more than the ranks of the candidates. */
#include "search/ensemble/selection_priv.h"

as_status average_fit(struct selection *s, struct row_list l, struct combination *ret,
                      struct as_err *err)
{
    size_t n = 0;
    (void)l;
    as_status st = selection_best(s, &n, err);
    for (size_t k = 0; k < n; k++)
        ret->counts[s->picks[k]] = 1;
    combination_average(ret, s->in);
    return st;
}

/* The rows of the list in a bucket. */
static struct row_list rows_of(const struct ensemble_input *in, struct row_list l, size_t bucket,
                               size_t *rows)
{
    struct row_list of = {rows, 0};
    for (size_t i = 0; i < l.n; i++)
        if (in->buckets[l.rows[i]] == bucket)
            rows[of.n++] = l.rows[i];
    return of;
}

/* The best of each bucket. Afterwards the candidates are ranked on all rows of the list again. */
static as_status fit_buckets(struct selection *s, struct row_list l, struct combination *ret,
                             struct as_err *err)
{
    const struct ensemble_input *in = s->in;
    size_t best = s->order[0];
    AS_AUTO(as_freep) size_t *rows = as_calloc(l.n, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (size_t b = 0; b < in->n_buckets; b++) {
        struct row_list of = rows_of(in, l, b, rows);
        size_t chosen = best;
        if (of.n >= ENSEMBLE_BUCKET_ROWS) {
            as_status st = selection_rank_singles(s, of, err);
            if (st != AS_OK)
                return st;
            chosen = s->order[0];
        }
        ret->of_bucket[b] = chosen;
        ret->counts[chosen]++;
        ret->weights[chosen] += (double)of.n / (double)l.n;
    }
    ret->of_bucket[in->n_buckets] = best; /* of any other bucket */
    ret->is_by_bucket = true;
    return selection_rank_singles(s, l, err);
}

as_status bucketing_fit(struct selection *s, struct row_list l, struct combination *ret,
                        struct as_err *err)
{
    if (s->in->buckets)
        return fit_buckets(s, l, ret, err);
    size_t n = 0;
    as_status st = selection_best(s, &n, err);
    if (st != AS_OK)
        return st;
    ret->counts[s->picks[0]] = 1;
    combination_average(ret, s->in);
    return AS_OK;
}
