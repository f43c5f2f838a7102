#include "scheduler/assign/sharing.h"

int64_t share_of_first(const struct claimable_sweep *sweeps, size_t n, int64_t slots)
{
    int64_t running[TURN_LIST_MAX], turn[TURN_LIST_MAX], share = 0;
    for (size_t i = 0; i < n; i++) {
        running[i] = sweeps[i].running;
        turn[i] = (int64_t)i - (int64_t)n; /* before all turns below */
    }
    for (int64_t slot = 0; slot < slots; slot++) {
        size_t next = 0;
        for (size_t i = 1; i < n && sweeps[i].priority == sweeps[0].priority; i++)
            if (running[i] < running[next] || (running[i] == running[next] && turn[i] < turn[next]))
                next = i;
        running[next]++;
        turn[next] = slot;
        share += next == 0;
    }
    return share;
}

int64_t share_ahead(int64_t share, int64_t room, int64_t *want)
{
    if (share <= room)
        return share;
    *want = room > 0 ? room : 0;
    return *want;
}
