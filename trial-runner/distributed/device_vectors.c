/* A buffer on the device for each shard of the rank's run, made once for a world. Two plans of sums
 * are kept: for full steps and for the last number of shards below that, which the end of each
 * epoch has. Nothing is allocated in a step after the first of its kind. */
#include "trial-runner/distributed/device_vectors.h"

#include <stdlib.h>

#include "trial-runner/distributed/device_sum.h"

struct device_vectors {
    struct device_comm *world;
    size_t n;
    uint32_t max_shards, n_vectors;
    struct shard_run *runs; /* by rank */
    struct buf **vectors;   /* [n_vectors] */
    struct buf *sum;
    /* For a step with all shards, and of the last one that had fewer: the end of an epoch. */
    struct device_sum *whole, *rest;
    uint32_t rest_shards;
};

void device_vectors_free(struct device_vectors *v)
{
    if (!v)
        return;
    for (uint32_t i = 0; v->vectors && i < v->n_vectors; i++)
        buf_free(v->vectors[i]);
    free(v->vectors);
    buf_free(v->sum);
    device_sum_free(v->whole);
    device_sum_free(v->rest);
    free(v->runs);
    free(v);
}

struct shard_run device_vectors_run(struct device_vectors *v, uint32_t shards)
{
    const struct coll *c = device_comm_coll(v->world);
    coll_spread(shards, coll_size(c), v->runs);
    return v->runs[coll_rank(c)];
}

static as_status new_sum(struct device_vectors *v, uint32_t shards, struct device_sum **ret,
                         struct as_err *err)
{
    const struct coll *c = device_comm_coll(v->world);
    (void)device_vectors_run(v, shards);
    return device_sum_create(device_comm_backend(v->world), device_comm_peers(v->world),
                             coll_rank(c), coll_size(c), v->runs, shards, v->n, ret, err);
}

static as_status make_buffers(struct device_vectors *v, struct as_err *err)
{
    struct backend *be = device_comm_backend(v->world);
    as_status st = buf_create(be, BUF_F32, v->n, &v->sum, err);
    for (uint32_t i = 0; st == AS_OK && i < v->n_vectors; i++)
        st = buf_create(be, BUF_F32, v->n, &v->vectors[i], err);
    return st < 0 ? st : new_sum(v, v->max_shards, &v->whole, err);
}

as_status device_vectors_create(struct device_comm *world, uint32_t max_shards, size_t n,
                                struct device_vectors **ret, struct as_err *err)
{
    AS_AUTO(device_vectors_freep) struct device_vectors *v = as_calloc(1, sizeof *v);
    bool all = false;
    *ret = NULL;
    if (!v)
        return as_fail_nomem(err);
    *v = (struct device_vectors){.world = world, .n = n, .max_shards = max_shards};
    v->runs = as_calloc((size_t)coll_size(device_comm_coll(world)), sizeof *v->runs);
    if (!v->runs)
        return as_fail_nomem(err);
    v->n_vectors = device_vectors_run(v, max_shards).count; /* with fewer shards it has no more */
    v->vectors = as_calloc(v->n_vectors, sizeof(struct buf *));
    if (!v->vectors)
        return as_fail_nomem(err);
    as_status st = make_buffers(v, err);
    if (st < 0 && st != AS_E_NOMEM)
        return st;
    st = device_comm_agree(world, st == AS_OK, &all, err);
    if (st == AS_OK && all)
        *ret = as_steal(v);
    return st;
}

struct buf *device_vectors_at(struct device_vectors *v, uint32_t i)
{
    return v->vectors[i];
}

static as_status sum_of(struct device_vectors *v, uint32_t shards, struct device_sum **ret,
                        struct as_err *err)
{
    as_status st = AS_OK;
    if (shards != v->max_shards && shards != v->rest_shards) {
        device_sum_free(v->rest);
        v->rest = NULL;
        v->rest_shards = 0;
        if ((st = new_sum(v, shards, &v->rest, err)) == AS_OK)
            v->rest_shards = shards;
    }
    *ret = shards == v->max_shards ? v->whole : v->rest;
    return st;
}

as_status device_vectors_sum(struct device_vectors *v, uint32_t shards, struct buf **ret,
                             struct as_err *err)
{
    struct device_sum *sum = NULL;
    as_status st = sum_of(v, shards, &sum, err);
    if (st < 0 || (st = device_sum_run(sum, v->vectors, v->sum, err)) < 0 ||
        (st = device_comm_wait(v->world, err)) < 0)
        return st;
    *ret = v->sum;
    return AS_OK;
}

as_status device_vectors_sum_host(struct device_vectors *v, uint32_t shards,
                                  const float *const *vectors, float *ret, struct as_err *err)
{
    struct shard_run run = device_vectors_run(v, shards);
    struct buf *sum = NULL;
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < run.count; i++)
        st = buf_upload(v->vectors[i], 0, vectors[i], v->n, err);
    if (st < 0 || (st = device_vectors_sum(v, shards, &sum, err)) < 0)
        return st;
    return buf_download(sum, 0, ret, v->n, err);
}
