/* Batches: gathered on the device from the data, which is there once.
 *
 * For training, each slot has an order of its own for the epoch, which is uploaded once. The part
 * of the order that a batch takes is read from a tensor on the device (`at`). So nothing in a
 * training step comes from the host, and a step can be recorded as a graph.
 *
 * Validation takes the same rows for all members. They are gathered once, into the place of the
 * first slot of the range, and all slots read them there: the returned tensors have the stride 0.
 *
 * In text, a row is a window. The order then holds the place of each token, and the targets are
 * gathered from the same tensor, one token further. */
#include "model/network/batches.h"

#include <string.h>

void batches_free(struct batches *b)
{
    if (!b)
        return;
    buf_free(b->order);
    buf_free(b->x);
    buf_free(b->codes);
    buf_free(b->y);
    buf_free(b->weights);
    buf_free(b->augmented);
    free(b->places);
    free(b);
}

static as_status create_buffer(struct batches *b, buf_kind kind, size_t per_slot, struct buf **ret,
                               struct as_err *err)
{
    size_t n;
    if (per_slot == 0)
        return AS_OK;
    if (__builtin_mul_overflow(b->slots, per_slot, &n))
        return as_fail(err, AS_E_TOO_LARGE, "batches of %zu rows are too large", b->max_rows);
    return buf_create(b->device->be, kind, n, ret, err);
}

as_status batches_create(struct device_data *device, size_t slots, size_t max_rows, bool augment,
                         struct batches **ret, struct as_err *err)
{
    size_t places = train_data_places(device->data) * device->per_row;
    AS_AUTO(batches_freep) struct batches *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail_nomem(err);
    *b = (struct batches){.device = device, .slots = slots, .max_rows = max_rows};
    b->places = as_calloc(places, sizeof *b->places);
    if (!b->places)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", places);
    as_status st = create_buffer(b, BUF_I32, places, &b->order, err);
    if (st != AS_OK)
        return st;
    st = create_buffer(b, BUF_F32, max_rows * device->n_x, &b->x, err);
    if (st != AS_OK)
        return st;
    st = create_buffer(b, BUF_I32, max_rows * device->per_row * device->n_codes, &b->codes, err);
    if (st != AS_OK)
        return st;
    st = create_buffer(b, device->y_kind, max_rows * device->per_row * device->n_y, &b->y, err);
    if (st != AS_OK)
        return st;
    st = create_buffer(b, BUF_F32, device->weights ? max_rows : 0, &b->weights, err);
    if (st != AS_OK)
        return st;
    if (augment)
        st = create_buffer(b, BUF_F32, max_rows * device->n_x, &b->augmented, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(b);
    return AS_OK;
}

size_t batches_bytes(const struct device_data *device, size_t max_rows, bool augment)
{
    size_t row = device->n_x * (augment ? 2 : 1) +
                 device->per_row * (device->n_codes + device->n_y) + (device->weights != NULL);
    return (train_data_places(device->data) * device->per_row + max_rows * row) * 4;
}

as_status batches_shuffle(struct batches *b, size_t slot, uint64_t seed, int64_t resample,
                          int64_t epoch, struct as_err *err)
{
    const struct train_data *d = b->device->data;
    size_t n = train_data_places(d) * b->device->per_row;
    if (d->context) {
        AS_AUTO(as_freep) int32_t *offsets = as_calloc(d->n_train, sizeof *offsets);
        if (!offsets)
            return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", d->n_train);
        train_data_order(d, seed, resample, epoch, offsets);
        device_data_window_places(offsets, d->n_train, d->context, b->places);
    } else {
        train_data_order(d, seed, resample, epoch, b->places);
    }
    return buf_upload(b->order, slot * n, b->places, n, err);
}

/* Which rows (or tokens) a batch takes. */
struct source {
    size_t members; /* from slot `first` on */
    size_t first;
    struct tensor index;       /* their numbers, for these members */
    struct tensor at;          /* which micro-batch of the index to take; absent: the first */
    size_t at_rows, index_len; /* numbers in a micro-batch, and in the index of a member */
};

/* Gather `width` elements of src for each place into dst [slots, max_rows, …]. */
static as_status gather_values(struct backend *lane, const struct source *from, struct tensor src,
                               size_t rows, size_t width, size_t places, struct tensor dst,
                               struct as_err *err)
{
    struct gather_args a = {.members = from->members,
                            .rows = rows,
                            .batch = places,
                            .width = width,
                            .src = src,
                            .index = from->index,
                            .at = from->at,
                            .at_rows = from->at_rows,
                            .index_len = from->index_len,
                            .dst = tensor_from(dst, from->first)};
    return backend_gather(lane, &a, err);
}

/* Gather the inputs of a batch from bytes, and scale them. */
static as_status gather_bytes(struct backend *lane, const struct source *from,
                              const struct device_data *device, size_t places, struct tensor dst,
                              struct as_err *err)
{
    struct gather_bytes_args a = {.members = from->members,
                                  .rows = device->data->set.n_rows,
                                  .batch = places,
                                  .width = device->n_x,
                                  .src = tensor_at(device->x, 0, 0),
                                  .index = from->index,
                                  .at = from->at,
                                  .at_rows = from->at_rows,
                                  .index_len = from->index_len,
                                  .mean = tensor_at(device->mean, 0, 0),
                                  .scale = tensor_at(device->scale, 0, 0),
                                  .dst = tensor_from(dst, from->first)};
    return backend_gather_bytes(lane, &a, err);
}

static as_status gather_batch(struct batches *b, struct backend *lane, const struct source *from,
                              size_t rows, struct batch *ret, struct as_err *err)
{
    const struct device_data *device = b->device;
    size_t n_rows = device->data->set.n_rows, places = rows * device->per_row;
    struct batch out = {.rows = rows,
                        .y = tensor_at(b->y, 0, b->max_rows * device->per_row * device->n_y)};
    as_status st = AS_OK;
    if (b->x) {
        out.x = tensor_at(b->x, 0, b->max_rows * device->n_x);
        st = device->mean ? gather_bytes(lane, from, device, places, out.x, err)
                          : gather_values(lane, from, tensor_at(device->x, 0, 0), n_rows,
                                          device->n_x, places, out.x, err);
    }
    if (st != AS_OK)
        return st;
    if (b->codes) {
        out.codes = tensor_at(b->codes, 0, b->max_rows * device->per_row * device->n_codes);
        st = gather_values(lane, from, tensor_at(device->codes, 0, 0), n_rows, device->n_codes,
                           places, out.codes, err);
    }
    if (st != AS_OK)
        return st;
    if (device->data->context) /* the target of a token is the next token */
        st = gather_values(lane, from, tensor_at(device->codes, 1, 0), n_rows - 1, 1, places, out.y,
                           err);
    else
        st = gather_values(lane, from, tensor_at(device->y, 0, 0), n_rows, device->n_y, places,
                           out.y, err);
    if (st != AS_OK)
        return st;
    *ret = out;
    return AS_OK;
}

as_status batches_train(struct batches *b, struct backend *lane, size_t first, size_t n,
                        struct tensor at, size_t micro, size_t rows, struct batch *ret,
                        struct as_err *err)
{
    size_t per_row = b->device->per_row, len = train_data_places(b->device->data) * per_row;
    struct source from = {.members = n,
                          .first = first,
                          .index = tensor_at(b->order, first * len, len),
                          .at = tensor_from(at, first),
                          .at_rows = micro * per_row,
                          .index_len = len};
    as_status st = gather_batch(b, lane, &from, rows, ret, err);
    if (st != AS_OK || !b->weights)
        return st;
    ret->weights = tensor_at(b->weights, 0, b->max_rows);
    return gather_values(lane, &from, tensor_at(b->device->weights, 0, 0),
                         b->device->data->set.n_rows, 1, rows, ret->weights, err);
}

as_status batches_held(struct batches *b, struct backend *lane, size_t first, size_t at,
                       size_t rows, struct batch *ret, struct as_err *err)
{
    struct batch out = {0};
    struct source from = {.members = 1,
                          .first = first,
                          .index = tensor_at(b->device->held, at * b->device->per_row, 0)};
    as_status st = gather_batch(b, lane, &from, rows, &out, err);
    if (st != AS_OK)
        return st;
    struct tensor *all[] = {&out.x, &out.codes, &out.y};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        *all[i] = (struct tensor){all[i]->buf, all[i]->offset + first * all[i]->stride, 0};
    *ret = out;
    return AS_OK;
}
