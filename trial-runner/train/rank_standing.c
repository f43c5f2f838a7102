#include "trial-runner/train/rank_standing.h"

#include <stdio.h>
#include <stdlib.h>

#include "trial-runner/train/report_file.h"

static uint64_t job_of(const struct member *m)
{
    char digits[17];
    (void)snprintf(digits, sizeof digits, "%.16s", m->fingerprint);
    return strtoull(digits, NULL, 16);
}

static as_status compare_jobs(const struct rank_standing *all, int32_t rank, int32_t n,
                              struct as_err *err)
{
    for (int32_t r = 0; r < n; r++)
        if (all[r].job != all[rank].job)
            return as_fail(
                err, AS_E_CONFLICT,
                "rank %d has another job than rank %d (train document, data set or seed)", (int)r,
                (int)rank);
    return AS_OK;
}

as_status rank_standing_exchange(struct coll *c, const struct member *m,
                                 const struct rank_standing *own, struct rank_standing **ret,
                                 struct as_err *err)
{
    int32_t rank = coll_rank(c), n = coll_size(c);
    const struct coll_id id = {.tag = RANK_STANDING_TAG, .what = "positions"};
    AS_AUTO(as_freep) struct rank_standing *all = as_calloc((size_t)n, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    all[rank] = *own;
    all[rank].reported = report_step(str_cstr(&m->last_report));
    all[rank].job = job_of(m);
    as_status st = coll_allgather(c, id, all, (size_t)n, sizeof *all, err);
    if (st == AS_OK)
        st = compare_jobs(all, rank, n, err);
    if (st == AS_OK)
        *ret = as_steal(all);
    return st;
}
