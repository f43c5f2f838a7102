#include "trial-runner/train/batches.h"

#include <string.h>

#include "trial-runner/train/draw.h"

void batches_free(struct batches *b)
{
    if (!b)
        return;
    buf_free(b->x);
    buf_free(b->y);
    buf_free(b->order);
    buf_free(b->held);
    buf_free(b->x_batch);
    buf_free(b->y_batch);
    free(b->shuffled);
    free(b);
}

/* A buffer with content. */
static as_status put(struct backend *be, buf_kind kind, const void *src, size_t n, struct buf **ret,
                     struct as_err *err)
{
    as_status st = buf_create(be, kind, n, ret, err);
    return st < 0 ? st : buf_upload(*ret, 0, src, n, err);
}

static as_status fill(struct batches *b, struct as_err *err)
{
    const struct train_data *d = b->data;
    const struct dataset *set = &d->set;
    buf_kind kind = set->labels ? BUF_I32 : BUF_F32;
    const void *y = set->labels ? (const void *)set->labels : set->targets;
    size_t batch = b->members * b->max_batch;
    as_status st = put(b->be, BUF_F32, set->x, set->n_rows * set->n_features, &b->x, err);
    if (st == AS_OK)
        st = put(b->be, kind, y, set->n_rows, &b->y, err);
    if (st == AS_OK)
        st = put(b->be, BUF_I32, d->val_rows, d->n_val, &b->held, err);
    if (st == AS_OK)
        st = buf_create(b->be, BUF_I32, b->members * d->n_train, &b->order, err);
    if (st == AS_OK)
        st = buf_create(b->be, BUF_F32, batch * set->n_features, &b->x_batch, err);
    if (st == AS_OK)
        st = buf_create(b->be, kind, batch, &b->y_batch, err);
    return st;
}

as_status batches_create(struct backend *be, const struct train_data *data, size_t members,
                         size_t max_batch, struct batches **ret, struct as_err *err)
{
    AS_AUTO(batches_freep) struct batches *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *b = (struct batches){.be = be, .data = data, .members = members, .max_batch = max_batch};
    b->shuffled = as_calloc(data->n_train, sizeof *b->shuffled);
    if (!b->shuffled)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", data->n_train);
    as_status st = fill(b, err);
    if (st == AS_OK)
        *ret = as_steal(b);
    return st;
}

as_status batches_shuffle(struct batches *b, size_t k, uint64_t seed, int64_t epoch,
                          struct as_err *err)
{
    size_t n = b->data->n_train;
    memcpy(b->shuffled, b->data->train_rows, n * sizeof *b->shuffled);
    struct rng r = draw_stream(seed, DRAW_SHUFFLE, (uint64_t)epoch);
    draw_shuffle(&r, b->shuffled, n);
    return buf_upload(b->order, k * n, b->shuffled, n, err);
}

/* Gather the rows that `index` names, for `members` members. */
static as_status gather(struct batches *b, size_t members, struct tensor index, size_t n,
                        struct batch *ret, struct as_err *err)
{
    const struct dataset *set = &b->data->set;
    bool shared = members == 1;
    struct tensor x = tensor_at(b->x_batch, 0, shared ? 0 : b->max_batch * set->n_features);
    struct tensor y = tensor_at(b->y_batch, 0, shared ? 0 : b->max_batch);
    struct gather_args a = {.members = members,
                            .rows = set->n_rows,
                            .batch = n,
                            .width = set->n_features,
                            .src = tensor_at(b->x, 0, 0),
                            .index = index,
                            .dst = x};
    as_status st = backend_gather(b->be, &a, err);
    a.width = 1;
    a.src = tensor_at(b->y, 0, 0);
    a.dst = y;
    if (st == AS_OK)
        st = backend_gather(b->be, &a, err);
    if (st == AS_OK)
        *ret = (struct batch){n, x, y};
    return st;
}

as_status batches_train(struct batches *b, size_t first, size_t n, struct batch *ret,
                        struct as_err *err)
{
    return gather(b, b->members, tensor_at(b->order, first, b->data->n_train), n, ret, err);
}

as_status batches_validation(struct batches *b, size_t first, size_t n, struct batch *ret,
                             struct as_err *err)
{
    return gather(b, 1, tensor_at(b->held, first, 0), n, ret, err);
}
