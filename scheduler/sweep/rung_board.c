/* The rung results of one sweep, and the decisions that follow from them.
 *
 * search/stopping decides. This file keeps the order: a result has its place, and promotions that
 * it allows come right after it. So whoever reads the stored events in their order can make every
 * decision again. */
#include "scheduler/sweep/rung_board.h"

#include <string.h>

#include "base/str.h"

as_status rung_board_create(const struct sweep_doc *doc, struct rung_board **ret,
                            struct as_err *err)
{
    AS_AUTO(rung_board_freep) struct rung_board *b = as_calloc(1, sizeof *b);
    bool failed = !b;
    if (!failed) {
        b->spec = doc->stopping;
        b->repeats = doc->trial.kind == TRIAL_TRAIN;
    }
    for (size_t i = 0; i < doc->n_objectives && !failed; i++) {
        b->metrics[b->n_metrics++] = as_strdup(doc->objectives[i].name);
        failed = !b->metrics[i];
    }
    for (size_t i = 0; i < doc->n_outcomes && !failed; i++) {
        b->outcomes[b->n_outcomes++] = doc->outcomes[i];
        b->outcomes[i].metric = as_strdup(doc->outcomes[i].metric);
        failed = !b->outcomes[i].metric;
    }
    if (failed)
        return as_fail_nomem(err);
    as_status st = stopping_create(&b->spec, &b->index, err);
    if (st == AS_OK)
        *ret = as_steal(b);
    return st;
}

void rung_board_free(struct rung_board *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n_metrics; i++)
        free(b->metrics[i]);
    for (size_t i = 0; i < b->n_outcomes; i++)
        free(b->outcomes[i].metric);
    stopping_free(b->index);
    free(b);
}

bool rung_board_compares(const struct rung_board *b, size_t metric)
{
    return !b->spec.has_metric || b->spec.metric == metric;
}
