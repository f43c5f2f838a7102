/* Trials that are claimed ahead: while the trial before them still runs (decision 7019).
 *
 * Such an attempt is prepared like any other and then waits for a slot, which main gives it in the
 * moment in which a process ends. It takes no slot meanwhile. Where no slot comes free in
 * options.ahead_ms, it goes back to the server. So a runner asks ahead only for slots whose trials
 * are short, and holds at most one waiting attempt for each of them. */
#include "trial-runner/agent/agent.h"

#include "base/clock.h"

void ahead_note_locked(struct agent *a, struct attempt *t)
{
    if (!t->claimed.gives_ahead)
        return;
    pthread_mutex_lock(&t->lock);
    int64_t ran_ns = clock_mono_ns() - t->began_ns;
    pthread_mutex_unlock(&t->lock);
    pace_note(&a->pace, t->sweep, ran_ns < a->options->ahead_ms * NS_PER_MS);
}

int64_t ahead_waiting_locked(const struct agent *a)
{
    int64_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += a->attempts[i]->hold.waits;
    return n;
}

bool ahead_ends_soon_locked(const struct agent *a, struct attempt *t)
{
    if (!t->claimed.gives_ahead || !t->is_quick || t->hold.slot_free)
        return false;
    pthread_mutex_lock(&t->lock);
    bool runs = t->phase == ATTEMPT_RUNNING && t->asked == STOP_NONE &&
                clock_mono_ns() - t->began_ns < a->options->ahead_ms * NS_PER_MS;
    pthread_mutex_unlock(&t->lock);
    return runs && pace_is_short(&a->pace, t->sweep);
}

int64_t ahead_wanted_locked(const struct agent *a)
{
    int64_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += ahead_ends_soon_locked(a, a->attempts[i]);
    return n - ahead_waiting_locked(a);
}

/* The attempt that has waited longest and may start, or NULL. */
static struct attempt *next_locked(const struct agent *a)
{
    struct attempt *next = NULL;
    for (size_t i = 0; i < a->n; i++) {
        struct attempt *t = a->attempts[i];
        if (t->hold.waits && (!next || t->hold.since_ns < next->hold.since_ns) &&
            attempt_asked(t) == STOP_NONE)
            next = t;
    }
    return next;
}

void ahead_hand_on_locked(struct agent *a)
{
    struct attempt *t;
    while (agent_slots_free_locked(a) > 0 && (t = next_locked(a))) {
        t->hold.waits = false;
        attempt_has_waited(t, (clock_mono_ns() - t->hold.since_ns) / NS_PER_MS);
    }
}

void ahead_wake_claims(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    if (ahead_wanted_locked(a) > 0)
        pthread_cond_signal(&a->room);
    pthread_mutex_unlock(&a->lock);
}

int64_t ahead_late_ns(const struct attempt *t)
{
    return t->hold.waits ? t->hold.since_ns + t->options->ahead_ms * NS_PER_MS : INT64_MAX;
}

void ahead_give_back_if_late(struct attempt *t, int64_t now_ns)
{
    if (now_ns >= ahead_late_ns(t))
        attempt_ask_stop(t, STOP_LATE);
}
