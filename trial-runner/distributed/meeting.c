#include "trial-runner/distributed/strategy.h"

as_status meeting_catch_up(struct meeting *m, struct as_err *err)
{
    int32_t n = coll_size(m->coll), ahead = 0;
    as_status st = AS_OK;
    for (int32_t r = 1; r < n; r++)
        if (m->steps[r] > m->steps[ahead])
            ahead = r;
    for (int32_t r = 0; st == AS_OK && r < n; r++)
        if (m->steps[r] != m->steps[ahead])
            st = m->transfer(m, ahead, r, err);
    return st;
}
