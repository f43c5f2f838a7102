#include "model/network/batches.h"

#include <string.h>

/* ---- shared by all members ---- */

void resident_free(struct resident *r)
{
    if (!r)
        return;
    buf_free(r->x);
    buf_free(r->mean);
    buf_free(r->scale);
    buf_free(r->codes);
    buf_free(r->y);
    buf_free(r->held);
    free(r);
}

/* A buffer with content; nothing when there is none. */
static as_status put(struct backend *be, buf_kind kind, const void *src, size_t n, struct buf **ret,
                     struct as_err *err)
{
    if (!src || n == 0)
        return AS_OK;
    as_status st = buf_create(be, kind, n, ret, err);
    return st == AS_OK ? buf_upload(*ret, 0, src, n, err) : st;
}

/* The places of the tokens of windows that begin at `offsets`. */
static void expand(const int32_t *offsets, size_t n, size_t context, int32_t *ret)
{
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < context; t++)
            ret[i * context + t] = offsets[i] + (int32_t)t;
}

static as_status put_held(struct resident *r, struct as_err *err)
{
    const struct train_data *d = r->data;
    if (d->context == 0)
        return put(r->be, BUF_I32, d->val_rows, d->n_val, &r->held, err);
    size_t n = d->n_val * d->context;
    AS_AUTO(as_freep) int32_t *places = as_calloc(n, sizeof *places);
    if (!places)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu tokens", n);
    expand(d->val_rows, d->n_val, d->context, places);
    return put(r->be, BUF_I32, places, n, &r->held, err);
}

static void measure(struct resident *r, bool classes)
{
    const struct train_data *d = r->data;
    const struct dataset *set = &d->set;
    r->per_row = d->context ? d->context : 1;
    r->n_x = d->context ? 0 : set->n_features;
    r->n_codes = d->context ? 1 : d->n_codes;
    r->n_y = d->context || classes ? 1 : d->n_targets;
    r->y_kind = d->context || classes ? BUF_I32 : BUF_F32;
}

/* One value per column of an image's rows, from one per channel. */
static as_status put_columns(struct resident *r, const float *values, struct buf **ret,
                             struct as_err *err)
{
    AS_AUTO(as_freep) float *each = as_calloc(r->n_x, sizeof *each);
    if (!each)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu columns", r->n_x);
    for (size_t c = 0; c < r->n_x; c++)
        each[c] = values[c % r->data->fit.n_scales];
    return put(r->be, BUF_F32, each, r->n_x, ret, err);
}

static as_status put_x(struct resident *r, struct dataset *set, struct as_err *err)
{
    size_t n = set->n_rows * r->n_x;
    if (n == 0)
        return AS_OK;
    if (!r->data->is_bytes)
        return buf_adopt(r->be, BUF_F32, n, as_steal(set->x), &r->x, err);
    as_status st = buf_adopt(r->be, BUF_I32, gather_bytes_len(set->n_rows, r->n_x),
                             as_steal(set->bytes), &r->x, err);
    if (st == AS_OK)
        st = put_columns(r, r->data->fit.mean, &r->mean, err);
    return st == AS_OK ? put_columns(r, r->data->fit.scale, &r->scale, err) : st;
}

as_status resident_create(struct backend *be, struct train_data *data, bool classes,
                          struct resident **ret, struct as_err *err)
{
    struct dataset *set = &data->set;
    AS_AUTO(resident_freep) struct resident *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *r = (struct resident){.be = be, .data = data};
    measure(r, classes);
    as_status st = put_x(r, set, err);
    if (st == AS_OK && data->context)
        st = put(be, BUF_I32, set->tokens, set->n_rows, &r->codes, err);
    else if (st == AS_OK)
        st = put(be, BUF_I32, data->codes, set->n_rows * r->n_codes, &r->codes, err);
    if (st == AS_OK && !data->context && classes)
        st = put(be, BUF_I32, set->labels, set->n_rows, &r->y, err);
    else if (st == AS_OK && !data->context)
        st = put(be, BUF_F32, set->targets, set->n_rows * r->n_y, &r->y, err);
    if (st == AS_OK)
        st = put_held(r, err);
    if (st == AS_OK)
        *ret = as_steal(r);
    return st;
}

size_t resident_bytes(const struct train_data *d)
{
    size_t held = d->n_val * (d->context ? d->context : 1);
    size_t n_x = d->context ? 0 : d->set.n_features;
    size_t row = d->context ? 1 : d->n_codes + (d->n_targets ? d->n_targets : 1);
    size_t x = d->is_bytes ? gather_bytes_len(d->set.n_rows, n_x) + 2 * n_x : d->set.n_rows * n_x;
    return (x + d->set.n_rows * row + held) * 4;
}

/* ---- of each cell ---- */

void batches_free(struct batches *b)
{
    if (!b)
        return;
    buf_free(b->order);
    buf_free(b->x);
    buf_free(b->codes);
    buf_free(b->y);
    buf_free(b->augmented);
    free(b->places);
    free(b);
}

static as_status make(struct batches *b, buf_kind kind, size_t per_slot, struct buf **ret,
                      struct as_err *err)
{
    size_t n;
    if (per_slot == 0)
        return AS_OK;
    if (__builtin_mul_overflow(b->slots, per_slot, &n))
        return as_fail(err, AS_E_TOO_LARGE, "batches of %zu rows are too large", b->max_rows);
    return buf_create(b->resident->be, kind, n, ret, err);
}

as_status batches_create(struct resident *r, size_t slots, size_t max_rows, bool augment,
                         struct batches **ret, struct as_err *err)
{
    size_t places = r->data->n_train * r->per_row;
    AS_AUTO(batches_freep) struct batches *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *b = (struct batches){.resident = r, .slots = slots, .max_rows = max_rows};
    b->places = as_calloc(places, sizeof *b->places);
    if (!b->places)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", places);
    as_status st = make(b, BUF_I32, places, &b->order, err);
    if (st == AS_OK)
        st = make(b, BUF_F32, max_rows * r->n_x, &b->x, err);
    if (st == AS_OK)
        st = make(b, BUF_I32, max_rows * r->per_row * r->n_codes, &b->codes, err);
    if (st == AS_OK)
        st = make(b, r->y_kind, max_rows * r->per_row * r->n_y, &b->y, err);
    if (st == AS_OK && augment)
        st = make(b, BUF_F32, max_rows * r->n_x, &b->augmented, err);
    if (st == AS_OK)
        *ret = as_steal(b);
    return st;
}

size_t batches_bytes(const struct resident *r, size_t max_rows, bool augment)
{
    size_t row = r->n_x * (augment ? 2 : 1) + r->per_row * (r->n_codes + r->n_y);
    return (r->data->n_train * r->per_row + max_rows * row) * 4;
}

as_status batches_shuffle(struct batches *b, size_t slot, uint64_t seed, int64_t epoch,
                          struct as_err *err)
{
    const struct train_data *d = b->resident->data;
    size_t n = d->n_train * b->resident->per_row;
    if (d->context) {
        AS_AUTO(as_freep) int32_t *offsets = as_calloc(d->n_train, sizeof *offsets);
        if (!offsets)
            return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", d->n_train);
        train_data_order(d, seed, epoch, offsets);
        expand(offsets, d->n_train, d->context, b->places);
    } else {
        train_data_order(d, seed, epoch, b->places);
    }
    return buf_upload(b->order, slot * n, b->places, n, err);
}

/* Where a batch's places come from. */
struct source {
    size_t members; /* from slot `first` on */
    size_t first;
    struct tensor index, at;   /* of these members; at: absent, or which micro-batch of the index */
    size_t at_rows, index_len; /* of `at` */
};

/* Gather `width` elements of src for each place into dst [slots, max_rows, …]. */
static as_status take(struct backend *lane, const struct source *from, struct tensor src,
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

/* The inputs of a batch out of bytes. */
static as_status take_bytes(struct backend *lane, const struct source *from,
                            const struct resident *r, size_t places, struct tensor dst,
                            struct as_err *err)
{
    struct gather_bytes_args a = {.members = from->members,
                                  .rows = r->data->set.n_rows,
                                  .batch = places,
                                  .width = r->n_x,
                                  .src = tensor_at(r->x, 0, 0),
                                  .index = from->index,
                                  .at = from->at,
                                  .at_rows = from->at_rows,
                                  .index_len = from->index_len,
                                  .mean = tensor_at(r->mean, 0, 0),
                                  .scale = tensor_at(r->scale, 0, 0),
                                  .dst = tensor_from(dst, from->first)};
    return backend_gather_bytes(lane, &a, err);
}

static as_status gather(struct batches *b, struct backend *lane, const struct source *from,
                        size_t rows, struct batch *ret, struct as_err *err)
{
    const struct resident *r = b->resident;
    size_t n_rows = r->data->set.n_rows, places = rows * r->per_row;
    struct batch out = {.rows = rows, .y = tensor_at(b->y, 0, b->max_rows * r->per_row * r->n_y)};
    as_status st = AS_OK;
    if (b->x) {
        out.x = tensor_at(b->x, 0, b->max_rows * r->n_x);
        st = r->mean ? take_bytes(lane, from, r, places, out.x, err)
                     : take(lane, from, tensor_at(r->x, 0, 0), n_rows, r->n_x, places, out.x, err);
    }
    if (st == AS_OK && b->codes) {
        out.codes = tensor_at(b->codes, 0, b->max_rows * r->per_row * r->n_codes);
        st =
            take(lane, from, tensor_at(r->codes, 0, 0), n_rows, r->n_codes, places, out.codes, err);
    }
    if (st == AS_OK && r->data->context) /* the token one place further */
        st = take(lane, from, tensor_at(r->codes, 1, 0), n_rows - 1, 1, places, out.y, err);
    else if (st == AS_OK)
        st = take(lane, from, tensor_at(r->y, 0, 0), n_rows, r->n_y, places, out.y, err);
    if (st == AS_OK)
        *ret = out;
    return st;
}

as_status batches_train(struct batches *b, struct backend *lane, size_t first, size_t n,
                        struct tensor at, size_t micro, size_t rows, struct batch *ret,
                        struct as_err *err)
{
    size_t per_row = b->resident->per_row, len = b->resident->data->n_train * per_row;
    struct source from = {.members = n,
                          .first = first,
                          .index = tensor_at(b->order, first * len, len),
                          .at = tensor_from(at, first),
                          .at_rows = micro * per_row,
                          .index_len = len};
    return gather(b, lane, &from, rows, ret, err);
}

as_status batches_held(struct batches *b, struct backend *lane, size_t first, size_t at,
                       size_t rows, struct batch *ret, struct as_err *err)
{
    struct batch out = {0};
    struct source from = {.members = 1,
                          .first = first,
                          .index = tensor_at(b->resident->held, at * b->resident->per_row, 0)};
    as_status st = gather(b, lane, &from, rows, &out, err);
    if (st != AS_OK)
        return st;
    struct tensor *all[] = {&out.x, &out.codes, &out.y};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        *all[i] = (struct tensor){all[i]->buf, all[i]->offset + first * all[i]->stride, 0};
    *ret = out;
    return AS_OK;
}
