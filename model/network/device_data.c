/* The features of the data set are handed to the back end (buf_adopt), which on the host keeps the
 * same memory: no copy is made there. Bytes stay bytes with one mean and scale for each column; the
 * gather scales them. Labels, targets, weights and held-out rows lie beside them, so that a step
 * uploads nothing. */
#include "model/network/device_data.h"

#include <string.h>

void device_data_free(struct device_data *device)
{
    if (!device)
        return;
    buf_free(device->x);
    buf_free(device->mean);
    buf_free(device->scale);
    buf_free(device->codes);
    buf_free(device->y);
    buf_free(device->weights);
    buf_free(device->held);
    free(device);
}

/* Create a buffer with this content; do nothing if there is none. */
static as_status upload_values(struct backend *be, buf_kind kind, const void *src, size_t n,
                               struct buf **ret, struct as_err *err)
{
    if (!src || n == 0)
        return AS_OK;
    as_status st = buf_create(be, kind, n, ret, err);
    if (st != AS_OK)
        return st;
    return buf_upload(*ret, 0, src, n, err);
}

void device_data_window_places(const int32_t *offsets, size_t n, size_t context, int32_t *ret)
{
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < context; t++)
            ret[i * context + t] = offsets[i] + (int32_t)t;
}

static as_status upload_held(struct device_data *device, struct as_err *err)
{
    const struct train_data *d = device->data;
    if (d->context == 0)
        return upload_values(device->be, BUF_I32, d->val_rows, d->n_val, &device->held, err);
    size_t n = d->n_val * d->context;
    AS_AUTO(as_freep) int32_t *places = as_calloc(n, sizeof *places);
    if (!places)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu tokens", n);
    device_data_window_places(d->val_rows, d->n_val, d->context, places);
    return upload_values(device->be, BUF_I32, places, n, &device->held, err);
}

static void set_sizes(struct device_data *device, bool classes)
{
    const struct train_data *d = device->data;
    const struct dataset *set = &d->set;
    device->per_row = d->context ? d->context : 1;
    device->n_x = d->context ? 0 : set->n_features;
    device->n_codes = d->context ? 1 : d->n_codes;
    device->n_y = d->context || classes ? 1 : d->n_targets;
    device->y_kind = d->context || classes ? BUF_I32 : BUF_F32;
}

/* Upload one value for each column of an image's rows, from one for each channel. */
static as_status upload_columns(struct device_data *device, const float *values, struct buf **ret,
                                struct as_err *err)
{
    AS_AUTO(as_freep) float *each = as_calloc(device->n_x, sizeof *each);
    if (!each)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu columns", device->n_x);
    for (size_t c = 0; c < device->n_x; c++)
        each[c] = values[c % device->data->fit.n_scales];
    return upload_values(device->be, BUF_F32, each, device->n_x, ret, err);
}

static as_status upload_inputs(struct device_data *device, struct dataset *set, struct as_err *err)
{
    size_t n = set->n_rows * device->n_x;
    if (n == 0)
        return AS_OK;
    if (!device->data->is_bytes)
        return buf_adopt(device->be, BUF_F32, n, as_steal(set->x), &device->x, err);
    as_status st = buf_adopt(device->be, BUF_I32, gather_bytes_len(set->n_rows, device->n_x),
                             as_steal(set->bytes), &device->x, err);
    if (st != AS_OK)
        return st;
    st = upload_columns(device, device->data->fit.mean, &device->mean, err);
    if (st != AS_OK)
        return st;
    return upload_columns(device, device->data->fit.scale, &device->scale, err);
}

as_status device_data_create(struct backend *be, struct train_data *data, bool classes,
                             struct device_data **ret, struct as_err *err)
{
    struct dataset *set = &data->set;
    AS_AUTO(device_data_freep) struct device_data *device = as_calloc(1, sizeof *device);
    if (!device)
        return as_fail_nomem(err);
    *device = (struct device_data){.be = be, .data = data};
    set_sizes(device, classes);
    as_status st = upload_inputs(device, set, err);
    if (st != AS_OK)
        return st;
    if (data->context)
        st = upload_values(be, BUF_I32, set->tokens, set->n_rows, &device->codes, err);
    else
        st = upload_values(be, BUF_I32, data->codes, set->n_rows * device->n_codes, &device->codes,
                           err);
    if (st != AS_OK)
        return st;
    if (!data->context && classes)
        st = upload_values(be, BUF_I32, set->labels, set->n_rows, &device->y, err);
    else if (!data->context)
        st = upload_values(be, BUF_F32, set->targets, set->n_rows * device->n_y, &device->y, err);
    if (st != AS_OK)
        return st;
    st = upload_values(be, BUF_F32, data->weights, set->n_rows, &device->weights, err);
    if (st != AS_OK)
        return st;
    st = upload_held(device, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(device);
    return AS_OK;
}

/* ---- other rows ---- */

/* Rows of one buffer: `width` values of 1 or 4 bytes each. */
struct moving {
    const struct device_run *runs;
    size_t n_runs, n_rows, width, value_bytes;
    const void *fresh;
};

/* Where row `row` begins, in elements of 4 bytes. */
static size_t element_of(const struct moving *m, size_t row)
{
    return row * m->width * m->value_bytes / 4;
}

static size_t elements(const struct moving *m, size_t rows)
{
    return (rows * m->width * m->value_bytes + 3) / 4;
}

static as_status move_run(const struct moving *m, const struct device_run *r, const struct buf *old,
                          struct buf *now, struct as_err *err)
{
    size_t to = element_of(m, r->to), n = elements(m, r->n);
    if (!r->fresh)
        return buf_copy(now, to, old, element_of(m, r->from), n, err);
    const char *from = (const char *)m->fresh + r->from * m->width * m->value_bytes;
    size_t whole = r->n * m->width * m->value_bytes / 4;
    int32_t last = 0;
    as_status st = whole > 0 ? buf_upload(now, to, from, whole, err) : AS_OK;
    if (st != AS_OK || whole == n)
        return st;
    memcpy(&last, from + whole * 4, r->n * m->width * m->value_bytes % 4);
    return buf_upload(now, to + whole, &last, 1, err);
}

static as_status move_rows(struct device_data *device, const struct moving *m, struct buf **b,
                           struct as_err *err)
{
    AS_AUTO(buf_freep) struct buf *now = NULL;
    if (!*b)
        return AS_OK;
    as_status st = buf_create(device->be, buf_kind_get(*b), elements(m, m->n_rows), &now, err);
    for (size_t i = 0; st == AS_OK && i < m->n_runs; i++)
        st = move_run(m, &m->runs[i], *b, now, err);
    if (st != AS_OK)
        return st;
    buf_free(*b);
    *b = as_steal(now);
    return AS_OK;
}

as_status device_data_rearrange(struct device_data *device, size_t n_rows,
                                const struct device_run *runs, size_t n_runs,
                                const struct device_fresh *fresh, struct as_err *err)
{
    const struct dataset *set = fresh->set;
    struct moving m = {.runs = runs, .n_runs = n_runs, .n_rows = n_rows, .value_bytes = 4};
    as_status st;
    m.width = device->n_y;
    m.fresh = device->y_kind == BUF_I32 ? (const void *)set->labels : (const void *)set->targets;
    if ((st = move_rows(device, &m, &device->y, err)) != AS_OK)
        return st;
    m.width = device->n_codes;
    m.fresh = fresh->codes;
    if ((st = move_rows(device, &m, &device->codes, err)) != AS_OK)
        return st;
    m.width = device->n_x;
    m.value_bytes = device->mean ? 1 : 4;
    m.fresh = device->mean ? (const void *)set->bytes : (const void *)set->x;
    return move_rows(device, &m, &device->x, err);
}

size_t device_data_bytes(const struct train_data *d)
{
    size_t held = d->n_val * (d->context ? d->context : 1);
    size_t n_x = d->context ? 0 : d->set.n_features;
    size_t row = d->context ? 1 : d->n_codes + (d->n_targets ? d->n_targets : 1);
    row += d->weights != NULL;
    size_t x = d->is_bytes ? gather_bytes_len(d->set.n_rows, n_x) + 2 * n_x : d->set.n_rows * n_x;
    return (x + d->set.n_rows * row + held) * 4;
}
