/* Trials that wait at a rung for nothing: so many others are better there that no promotion can
 * reach them. They are pruned while the sweep runs, so that their checkpoints do not fill the
 * store. When that happens depends on the clock, and so do their places in the order; no decision
 * does, because what is over is neither in a share nor before anything that is
 * (tests/search/stopping/test_stopping.c), and a replay reads the places that are stored. Before
 * the first trial has completed nothing is over: those that are better may all fail. */
#include "scheduler/lifecycle/rungs_over.h"

#include "scheduler/lifecycle/rungs.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/rung_board_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_store.h"

#define OVER_AT_ONCE 1000

/* Some of the trials that are over, with their rows locked. */
static as_status lock_over(struct tx *t, struct arena *a, const struct sweep_head *s,
                           struct trial_list_heads *ret, struct as_err *err)
{
    struct rung_opening o = {.sweep_key = s->key, .finish_seq = s->finish_seq};
    uint64_t *numbers = arena_alloc(a, OVER_AT_ONCE, sizeof *numbers);
    struct trial_head *heads = arena_alloc(a, OVER_AT_ONCE, sizeof *heads);
    if (!numbers || !heads)
        return as_fail_nomem(err);
    as_status st = store_rung_open(t, a, &o, 1, err);
    if (st != AS_OK)
        return st;
    size_t n = stopping_list_over(o.board->index, (uint64_t)s->planned, (uint64_t)s->finish_seq,
                                  numbers, OVER_AT_ONCE);
    for (size_t i = 0; i < n; i++)
        heads[i] = (struct trial_head){.sweep_key = s->key, .number = (int64_t)numbers[i]};
    return n > 0 ? store_trial_lock_many(t, a, heads, n, ret, err) : AS_OK;
}

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
    st = lock_over(t, a, &s, &waiting, err);
    for (size_t i = 0; i < waiting.n && st == AS_OK; i++) {
        if (waiting.rows[i].state != TRIAL_PAUSED) /* its attempt has not ended yet */
            continue;
        st = trial_transition(t, a, &s, &waiting.rows[i], &over, NULL, err);
        (*ret_n)++;
    }
    return st;
}
