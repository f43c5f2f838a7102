#include "scheduler/lifecycle/lease_clock.h"

#include "base/clock.h"

#define BREAK_MIN_MS 1000

/* The database's clock was set back, so the time between two looks is unknown: a break. */
static bool is_break(const struct lease_clock *c, int64_t lease_ms, int64_t now_ms)
{
    int64_t break_ms = lease_ms / 2 > BREAK_MIN_MS ? lease_ms / 2 : BREAK_MIN_MS;
    return c->looked_ms == 0 || now_ms < c->looked_ms || now_ms - c->looked_ms > break_ms;
}

bool lease_clock_hears(struct lease_clock *c, int64_t lease_ms, int64_t now_ms)
{
    if (is_break(c, lease_ms, now_ms))
        c->hears_since_ms = now_ms;
    c->looked_ms = now_ms;
    return now_ms - c->hears_since_ms >= lease_ms;
}

bool lease_clock_prunes(struct lease_clock *c, int64_t prune_ms, int64_t now_ns)
{
    if (now_ns < c->prune_at_ns)
        return false;
    c->prune_at_ns = now_ns + prune_ms * NS_PER_MS;
    return true;
}
