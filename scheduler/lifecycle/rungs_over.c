/* Trials that wait at a rung for nothing: so many others are better there that no promotion can
 * reach them. They are pruned while the sweep runs, so that their checkpoints do not fill the
 * store. When that happens depends on the clock, and so do their places in the order; no decision
 * does, because what is over is neither in a share nor before anything that is
 * (tests/search/stopping/test_stopping.c), and a replay reads the places that are stored. Before
 * the first trial has completed nothing is over: those that are better may all fail. */
#include "scheduler/lifecycle/rungs_over.h"

#include "scheduler/lifecycle/rungs.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/rung_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"

as_status rungs_prune(struct tx *t, struct arena *a, int64_t sweep_key, int64_t *ret_n,
                      struct as_err *err)
{
    const struct trial_change over = {.event = TRIAL_EV_PRUNE,
                                      .reason = "too many trials are better at its rung: no "
                                                "promotion can reach it any more",
                                      .outcome = "pruned"};
    struct trial_list_heads waiting = {0};
    struct sweep_head s;
    *ret_n = 0;
    as_status st = store_sweep_lock(t, a, sweep_key, &s, err);
    if (st != AS_OK || (s.state != SWEEP_RUNNING && s.state != SWEEP_PAUSED) || rungs_in_vain(&s))
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    struct rung_opening o = {.sweep_key = s.key, .finish_seq = s.finish_seq};
    if ((st = store_rung_open(t, a, &o, 1, err)) == AS_OK)
        st = store_trial_ended(t, a, s.key, TRIAL_PAUSED, 1000, &waiting, err);
    for (size_t i = 0; i < waiting.n && st == AS_OK; i++) {
        if (!stopping_is_over(o.board->index, (uint64_t)waiting.rows[i].number,
                              (uint64_t)s.planned))
            continue;
        st = trial_transition(t, a, &s, &waiting.rows[i], &over, NULL, err);
        (*ret_n)++;
    }
    return st;
}
