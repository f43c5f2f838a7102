#include "scheduler/sweep/sweep_end.h"

sweep_end sweep_end_of(const struct sweep_standing *s)
{
    if (s->target_reached)
        return SWEEP_TARGET_REACHED;
    if (s->max_failed >= 0 && s->failed > s->max_failed)
        return SWEEP_TOO_MANY_FAILED;
    if (s->is_blind)
        return SWEEP_IS_BLIND;
    if (s->little_left)
        return SWEEP_LITTLE_LEFT;
    if (s->wall_time_over)
        return SWEEP_OUT_OF_TIME;
    if (s->is_spent)
        return SWEEP_OUT_OF_STEPS;
    return s->live == 0 && s->total >= s->planned ? SWEEP_ALL_ENDED : SWEEP_GOES_ON;
}

const char *sweep_end_advice(struct arena *a, const struct sweep_standing *s, sweep_end end)
{
    if (end == SWEEP_TARGET_REACHED)
        return arena_strdup(a, "a trial has reached the target: set another one, or remove it "
                               "(target=none)");
    if (end == SWEEP_TOO_MANY_FAILED)
        return arena_printf(a,
                            "%lld trials failed (max_failed_trials is %lld): raise it, or retry "
                            "the failed trials",
                            (long long)s->failed, (long long)s->max_failed);
    if (end == SWEEP_IS_BLIND)
        return arena_strdup(a, "no trial reports a value at a rung of early_stopping below the "
                               "last (strict)");
    if (end == SWEEP_LITTLE_LEFT)
        return arena_strdup(a, "what may be left to gain is within stop_when: lower it, or remove "
                               "it (stop_when=none)");
    if (end == SWEEP_OUT_OF_TIME)
        return arena_strdup(a, "wall_time is over: raise it");
    if (end == SWEEP_OUT_OF_STEPS)
        return arena_strdup(a, "max_steps are spent: raise it");
    return arena_printf(a, "all of its %lld trials have ended: raise max_trials, or retry trials",
                        (long long)s->total);
}
