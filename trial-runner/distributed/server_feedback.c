#include "trial-runner/distributed/parameter_server_priv.h"

#include <string.h>

const float *server_lost_before(struct server *s, int64_t step, uint32_t shard)
{
    int64_t at = s->replica->ops->step(s->replica->self);
    for (int64_t prev = step - 1; prev >= at; prev--) {
        const struct flight *f = server_flight(s, prev);
        if (f->step == prev && shard - f->run.first < f->run.count)
            return f->after[shard];
    }
    return residuals_before(&s->kept, shard);
}

as_status server_stage(struct server *s, int64_t step, struct as_err *err)
{
    const struct flight *f = server_flight(s, step);
    if (!server_has_feedback(s))
        return AS_OK;
    residuals_begin(&s->kept, step, step + 1, f->step == step ? f->total : s->kept.shards);
    for (uint32_t i = f->run.first; f->step == step && i < f->run.first + f->run.count; i++) {
        float *after;
        as_status st = residuals_after(&s->kept, i, &after, err);
        if (st < 0)
            return st;
        memcpy(after, f->after[i], s->kept.n * sizeof *after);
    }
    return AS_OK;
}

void server_take_back(struct server *s, const struct flight *f, size_t first, size_t n)
{
    n = first + n <= s->kept.n ? n : s->kept.n - first;
    for (uint32_t i = f->run.first; i < f->run.first + f->run.count; i++)
        if (s->kept.written[i])
            memcpy(s->kept.after[i] + first, residuals_before(&s->kept, i) + first,
                   n * sizeof(float));
}

as_status server_stage_missed(struct server *s, int64_t at, struct as_err *err)
{
    for (int64_t p = s->kept.step; p < at && server_flight(s, p)->step == p; p++) {
        as_status st = server_stage(s, p, err);
        if (st < 0)
            return st;
        if (p < at - 1)
            residuals_commit(&s->kept);
    }
    return AS_OK;
}
