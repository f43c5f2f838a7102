/* How the ranks of an asynchronous server put a phase together whose world has ended.
 *
 * The slices of the living are kept as they are; a slice of the dead goes back to the newest copy
 * that a worker has, with the moments of the phase's begin. So lost are the updates of that slice
 * that no worker has got back, and its moments since the phase began. A batch that was on its way
 * is done again. A rank that has the whole state already, from an earlier meeting whose world ended
 * before a phase began, gives it to all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/server_async_priv.h"

/* Every rank gets n values of a piece from `root`. */
static as_status spread(struct coll *c, int32_t root, float *values, size_t n, struct as_err *err)
{
    struct coll_id id = {.tag = TAG_VALUES, .what = "slices"};
    return n && coll_size(c) > 1 ? coll_broadcast(c, id, root, values, n * sizeof *values, err)
                                 : AS_OK;
}

/* The same for slice k of n_slices of all values. */
as_status async_spread_slice(struct async *a, struct coll *c, int32_t root, uint32_t k,
                             uint32_t n_slices, bool moments, struct as_err *err)
{
    size_t n_params = a->replica->n_params, first;
    size_t end = push_slice_n(&a->form, k, n_slices, &first);
    end += first;
    size_t of_params = first >= n_params ? 0 : (end > n_params ? n_params : end) - first;
    as_status st = spread(c, root, a->values.weights + first, end - first, err);
    if (st == AS_OK && moments)
        st = spread(c, root, a->values.moment1 + first, of_params, err);
    if (st == AS_OK && moments && a->values.moment2)
        st = spread(c, root, a->values.moment2 + first, of_params, err);
    return st;
}

/* All ranks get the whole state behind the batches that were done. */
/* What a rank brings: the slices of a world, or all values. */
struct record {
    int64_t at, n; /* of the phase */
    uint32_t epoch, n_slices;
    int32_t rank, n_ranks, whole;
};

static struct record own_record(const struct async *a)
{
    int64_t at = a->replica->ops->step(a->replica->self);
    if (a->resumes && a->at == at)
        return (struct record){.at = at, .n = a->n, .epoch = a->resumes, .whole = 1};
    if (!a->begun || a->at != at)
        return (struct record){0};
    return (struct record){at, a->n, a->begun, a->n_slices, a->rank, a->n_ranks, 0};
}

/* The first rank that brings what is asked for, or -1. */
static int32_t find(const struct record *all, int32_t n, uint32_t epoch, bool whole, int32_t rank)
{
    for (int32_t r = 0; r < n; r++)
        if (all[r].epoch == epoch && (whole ? all[r].whole : !all[r].whole && all[r].rank == rank))
            return r;
    return -1;
}

/* The rank whose copy of slice k has come last. */
static int32_t newest(const struct record *all, const int64_t *pulled, int32_t n, uint32_t epoch,
                      uint32_t n_slices, uint32_t k)
{
    int32_t best = -1;
    for (int32_t r = 0; r < n; r++)
        if (all[r].epoch == epoch &&
            (best < 0 || pulled[(size_t)r * n_slices + k] > pulled[(size_t)best * n_slices + k]))
            best = r;
    return best;
}

static as_status join_slices(struct async *a, struct coll *c, const struct record *all,
                             const struct record *of, struct as_err *err)
{
    int32_t n = coll_size(c), rank = coll_rank(c);
    AS_AUTO(as_freep) int64_t *pulled = as_calloc((size_t)n * of->n_slices, sizeof *pulled);
    if (!pulled)
        return as_fail_nomem(err);
    bool brings = all[rank].epoch == of->epoch;
    if (brings)
        memcpy(pulled + (size_t)rank * of->n_slices, a->pulled, of->n_slices * sizeof *pulled);
    as_status st = coll_allgather(c, (struct coll_id){.tag = TAG_PULLED}, pulled, (size_t)n,
                                  of->n_slices * sizeof *pulled, err);
    if (st == AS_OK)
        st = async_read_state(a,
                              err); /* the copies that workers have, moments of the phase's begin */
    for (uint32_t k = 0; st == AS_OK && k < of->n_slices; k++) {
        int32_t holder = find(all, n, of->epoch, false, (int32_t)(k % (uint32_t)of->n_ranks));
        int32_t root = holder < 0 ? newest(all, pulled, n, of->epoch, of->n_slices, k) : holder;
        if (holder == rank)
            slice_service_read(a->slices, k, &a->values);
        st = async_spread_slice(a, c, root, k, of->n_slices, holder >= 0, err);
    }
    return st;
}

/* Which batches are done, as far as any rank knows. */
static as_status join_losses(struct async *a, struct coll *c, const struct record *of, bool brings,
                             struct as_err *err)
{
    size_t n = (size_t)of->n;
    AS_AUTO(as_freep) double *known = as_calloc(n, sizeof *known);
    AS_AUTO(as_freep) double *all = as_calloc(n, sizeof *all);
    if (!known || !all)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        known[i] = (double)-INFINITY;
    if (brings)
        slice_service_done(a->slices, known, of->n);
    for (size_t i = 0; brings && i < n; i++)
        known[i] = fmax(known[i], fmax(a->own[i], a->losses[i]));
    as_status st = coll_allreduce(c, (struct coll_id){.tag = TAG_DONE}, COLL_RING, &reduce_f64_max,
                                  known, all, n, err);
    if (st < 0)
        return st;
    free(a->losses);
    a->losses = as_steal(all);
    return AS_OK;
}

static as_status take_whole(struct async *a, struct coll *c, int32_t root, int64_t n,
                            struct as_err *err)
{
    AS_AUTO(as_freep) double *losses = as_calloc((size_t)n, sizeof *losses);
    if (!losses)
        return as_fail_nomem(err);
    if (coll_rank(c) == root)
        memcpy(losses, a->losses, (size_t)n * sizeof *losses);
    as_status st = coll_rank(c) == root || a->resumes ? AS_OK : async_read_state(a, err);
    if (st == AS_OK)
        st = async_spread_slice(a, c, root, 0, 1, true, err);
    if (st == AS_OK)
        st = coll_broadcast(c, (struct coll_id){.tag = TAG_DONE}, root, losses,
                            (size_t)n * sizeof *losses, err);
    if (st < 0)
        return st;
    free(a->losses);
    a->losses = as_steal(losses);
    return AS_OK;
}

as_status async_meet(void *self, struct meeting *m, struct as_err *err)
{
    struct async *a = self;
    struct coll *c = m->coll;
    int32_t n = coll_size(c);
    AS_AUTO(as_freep) struct record *all = as_calloc((size_t)n, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    as_status st = meeting_catch_up(m, err);
    if (st == AS_OK && a->kept.n) {
        async_spread_residuals(a, c);
        st = residuals_meet(&a->kept, c, a->replica->ops->step(a->replica->self), a->runs, 0, 0,
                            err);
    }
    if (st < 0)
        return st;
    all[coll_rank(c)] = own_record(a);
    st = coll_allgather(c, (struct coll_id){.tag = TAG_RECORDS, .what = "phases"}, all, (size_t)n,
                        sizeof *all, err);
    const struct record *of = &all[0];
    for (int32_t r = 1; r < n; r++)
        of = all[r].epoch > of->epoch ? &all[r] : of;
    if (st < 0 || of->epoch == 0) /* nobody has been inside a phase */
        return st;
    int32_t root = find(all, n, of->epoch, true, 0);
    bool brings = all[coll_rank(c)].epoch == of->epoch;
    if (root >= 0)
        st = take_whole(a, c, root, of->n, err);
    else if ((st = join_slices(a, c, all, of, err)) == AS_OK)
        st = join_losses(a, c, of, brings, err);
    if (st < 0) {
        a->resumes = brings && root >= 0 ? a->resumes : 0;
        return st;
    }
    a->at = a->replica->ops->step(a->replica->self);
    a->n = of->n;
    a->resumes = coll_world(c)->epoch;
    return AS_OK;
}
