/* Weights are copied to the host at the end of each of the last cycles (decision 2003). At the end
 * each snapshot is put into the member's slot in turn and predicts the held-out rows; the last one
 * is put last, because the slot keeps it. The mean is that of model/combine, so predicting with the
 * stored model gives the same bits. */
#include "trial-runner/train/snapshots.h"

#include <stdlib.h>

#include "model/combine/combine.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/tree_metrics.h"

/* The arena that reports and artifacts are made with. */
static struct buf *weights_of(struct lockstep *ls, const struct member *m)
{
    return m->spec.optimizer.ema > 0 ? ls->optimizer->average : network_params(ls->network);
}

static as_status copy_weights(struct lockstep *ls, size_t slot, struct snapshots *s,
                              struct as_err *err)
{
    const struct net_plan *plan = ls->member[slot]->plan;
    as_status st = snapshots_alloc(s, plan->n_params + plan->n_state, err);
    if (st != AS_OK)
        return st;
    float *to = s->values[s->n];
    st = network_read(ls->network, weights_of(ls, ls->member[slot]), slot, plan, to, err);
    if (st == AS_OK && plan->n_state > 0)
        st = network_read_state(ls->network, slot, to + plan->n_params, err);
    if (st == AS_OK)
        s->n++;
    return st;
}

as_status snapshots_take(struct lockstep *ls, size_t slot, struct as_err *err)
{
    struct member *m = ls->member[slot];
    bool due = snapshots_after(&m->spec, m->epoch) > m->snapshots.n;
    return due ? copy_weights(ls, slot, &m->snapshots, err) : AS_OK;
}

/* ---- the end ---- */

static as_status put_weights(struct lockstep *ls, size_t slot, const float *values,
                             struct as_err *err)
{
    const struct net_plan *plan = ls->member[slot]->plan;
    struct buf *to = weights_of(ls, ls->member[slot]);
    as_status st = network_write(ls->network, to, slot, plan, values, err);
    if (st == AS_OK && plan->n_state > 0)
        st = network_write_state(ls->network, slot, values + plan->n_params, err);
    return st;
}

/* The predictions of each snapshot: owned by the caller, on failure too. The last snapshot, whose
 * weights the slot has at its end, is the last one that is put there. */
static as_status predict_each(struct lockstep *ls, struct backend *lane, size_t slot,
                              struct combine_term *terms, float **ret, struct as_err *err)
{
    const struct snapshots *s = &ls->member[slot]->snapshots;
    for (size_t k = 0; k < s->n; k++) {
        as_status st = put_weights(ls, slot, s->values[k], err);
        if (st == AS_OK)
            st = evaluate_predict(ls, lane, slot, &ret[k], err);
        if (st != AS_OK)
            return st;
        terms[k] = (struct combine_term){ret[k], 1 / (double)s->n};
    }
    return AS_OK;
}

/* The mean of the snapshots' predictions, by the formula of a predictor (model/combine), so that
 * predicting the rows again gives the same bits. */
static as_status mean_prediction(struct lockstep *ls, struct backend *lane, size_t slot,
                                 float **ret, struct as_err *err)
{
    size_t m = ls->member[slot]->snapshots.n, rows = ls->setup->data->n_val;
    const struct combine_rule mean = {.outputs = evaluate_columns(ls->setup)};
    size_t n = rows * mean.outputs;
    AS_AUTO(as_freep) double *sum = as_calloc(n, sizeof *sum);
    AS_AUTO(as_freep) struct combine_term *terms = as_calloc(m, sizeof *terms);
    AS_AUTO(as_freep) float **each = as_calloc(m, sizeof *each);
    if (!sum || !terms || !each)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", n);
    as_status st = predict_each(ls, lane, slot, terms, each, err);
    if (st == AS_OK) {
        combine_predictions(&mean, terms, m, NULL, rows, sum);
        for (size_t i = 0; i < n; i++)
            each[0][i] = (float)sum[i];
        *ret = as_steal(each[0]);
    }
    for (size_t k = 0; k < m; k++)
        free(each[k]);
    return st;
}

static as_status evaluate_mean(const struct lockstep_setup *s, const struct member *m,
                               const float *values, struct evaluation *ret, struct as_err *err)
{
    AS_AUTO(as_freep) float *weights = NULL;
    as_status st = tree_row_weights(s, m, s->data->val_rows, s->data->n_val, &weights, err);
    return st == AS_OK ? tree_evaluate_own(s, m, values, weights, ret, err) : st;
}

as_status snapshots_finish(struct lockstep *ls, struct backend *lane, size_t slot, float **ret,
                           struct evaluation *ret_e, struct as_err *err)
{
    const struct member *m = ls->member[slot];
    AS_AUTO(as_freep) float *values = NULL;
    if (m->snapshots.n == 0)
        return AS_OK;
    as_status st = mean_prediction(ls, lane, slot, &values, err);
    if (st == AS_OK)
        st = evaluate_mean(ls->setup, m, values, ret_e, err);
    if (st == AS_OK)
        *ret = as_steal(values);
    return st;
}
