#include "trial-runner/distributed/device_step.h"

#include <stdlib.h>

struct device_step {
    struct replica *replica;
    uint32_t n_wishes;
    struct device_vectors *vectors;
    float *behind; /* [n_state + 1 + n_wishes] */
};

void device_step_free(struct device_step *s)
{
    if (!s)
        return;
    device_vectors_free(s->vectors);
    free(s->behind);
    free(s);
}

as_status device_step_create(struct device_comm *world, struct replica *replica, uint32_t n_wishes,
                             struct device_step **ret, struct as_err *err)
{
    size_t n_behind = replica->n_state + 1 + n_wishes;
    AS_AUTO(device_step_freep) struct device_step *s = as_calloc(1, sizeof *s);
    *ret = NULL;
    if (!s || !(s->behind = as_calloc(n_behind, sizeof *s->behind)))
        return as_fail_nomem(err);
    s->replica = replica;
    s->n_wishes = n_wishes;
    as_status st = device_vectors_create(world, replica->max_shards, replica->n_params + n_behind,
                                         &s->vectors, err);
    if (st == AS_OK && s->vectors)
        *ret = as_steal(s);
    return st;
}

/* A rank's wishes travel with its first shard; a rank without one has none. */
static as_status compute(struct device_step *s, struct backend *lane, struct shard_run run,
                         unsigned wishes, struct as_err *err)
{
    struct replica *r = s->replica;
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < run.count; i++) {
        struct buf *to = device_vectors_at(s->vectors, i);
        st = r->ops->gradient_on_device(r->self, lane, 0, run.first + i, to, err);
        for (uint32_t w = 0; st == AS_OK && w < s->n_wishes; w++)
            st = buf_fill_f32(to, r->n_numbers + w, 1, i == 0 && (wishes >> w & 1) ? 1 : 0, err);
    }
    return st;
}

as_status device_step_run(struct device_step *s, struct backend *lane, unsigned wishes,
                          struct buf **ret_sum, const float **ret_behind, struct as_err *err)
{
    struct replica *r = s->replica;
    uint32_t shards = r->ops->shards(r->self, 0);
    struct buf *sum = NULL;
    struct shard_run run = device_vectors_run(s->vectors, shards);
    as_status st = compute(s, lane, run, wishes, err);
    if (st < 0 || (st = device_vectors_sum(s->vectors, shards, &sum, err)) < 0 ||
        (st = buf_download(sum, r->n_params, s->behind, r->n_state + 1 + s->n_wishes, err)) < 0)
        return st;
    *ret_sum = sum;
    *ret_behind = s->behind;
    return AS_OK;
}
