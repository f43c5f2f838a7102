#include "trial-runner/agent/pace.h"

#include <stdio.h>

#include "base/str.h"

static size_t place_of(const struct pace *p, const char *sweep)
{
    size_t i = 0;
    while (i < PACE_SWEEPS && !as_streq(p->v[i].sweep, sweep))
        i++;
    return i;
}

void pace_note(struct pace *p, const char *sweep, bool is_short)
{
    size_t i = place_of(p, sweep);
    if (i == PACE_SWEEPS) {
        i = p->next;
        p->next = (p->next + 1) % PACE_SWEEPS;
        p->v[i].n_short = 0;
        (void)snprintf(p->v[i].sweep, sizeof p->v[i].sweep, "%s", sweep);
    }
    p->v[i].n_short = is_short ? p->v[i].n_short + 1 : 0;
}

bool pace_is_short(const struct pace *p, const char *sweep)
{
    size_t i = place_of(p, sweep);
    return i < PACE_SWEEPS && p->v[i].n_short >= PACE_SHORT_TRIALS;
}

void pace_forget(struct pace *p)
{
    *p = (struct pace){0};
}
