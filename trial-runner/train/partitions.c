/* On the device lie the held-out rows, then the partitions in their order. Each begins at a
 * multiple of four rows, so that the bytes of images begin at whole elements. When the partitions
 * change, the rows that stay are copied from place to place on the device, and only new ones are
 * read. */
#include "trial-runner/train/partitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct partitions {
    struct dataset_map map;
    const struct dataset_info *info;
    struct train_data *data;
    struct device_data *device;
    uint32_t first, count; /* as held last */
    bool begun;            /* something was held */
    size_t n_read;         /* partitions that were read after the first ones */
    bool *wanted;          /* [data->parts.n] */
    struct device_run *runs;
};

/* ---- what people are told ---- */

/* The bytes of a row on the device. */
static size_t row_bytes(const struct partitions *p)
{
    const struct device_data *d = p->device;
    return d->n_x * (d->mean ? 1 : 4) + (d->n_codes + d->n_y) * 4;
}

static size_t part_rows(const struct partitions *p, size_t part)
{
    const struct row_parts *parts = &p->data->parts;
    return row_parts_first(parts, part + 1) - row_parts_first(parts, part);
}

static size_t held_bytes(const struct partitions *p)
{
    size_t rows = 0;
    for (size_t i = 0; i < p->data->parts.n; i++)
        rows += p->data->parts.base[i] >= 0 ? part_rows(p, i) : 0;
    return rows * row_bytes(p);
}

/* For people, and for tests. */
static void print_held(const struct partitions *p, size_t n_read)
{
    const struct row_parts *parts = &p->data->parts;
    size_t held = 0;
    for (size_t i = 0; i < parts->n; i++)
        held += parts->base[i] >= 0;
    (void)printf("partitions: %zu of %zu are here, %zu of them read now: %zu of %zu bytes of "
                 "training rows, and %zu of rows held out\n",
                 held, parts->n, n_read, held_bytes(p), parts->n_rows * row_bytes(p),
                 p->data->n_val * row_bytes(p));
}

/* ---- life ---- */

void partitions_free(struct partitions *p)
{
    if (!p)
        return;
    if (p->begun)
        (void)printf("partitions: %zu were read from the data set after the first ones\n",
                     p->n_read);
    dataset_map_close(&p->map);
    free(p->wanted);
    free(p->runs);
    free(p);
}

as_status partitions_open(const struct dataset_paths *paths, const struct dataset_info *info,
                          const struct preprocess_opts *opts, struct row_parts parts,
                          struct train_data *ret_data, struct partitions **ret, struct as_err *err)
{
    AS_AUTO(partitions_freep) struct partitions *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    p->info = info;
    p->data = ret_data;
    p->wanted = as_calloc(parts.n, sizeof *p->wanted);
    p->runs = as_calloc(parts.n + 1, sizeof *p->runs);
    if (!p->wanted || !p->runs)
        return as_fail_nomem(err);
    as_status st = dataset_map_open(paths, info, &p->map, err);
    if (st == AS_OK)
        st = train_data_prepare_held(&p->map, info, opts, parts, ret_data, err);
    if (st != AS_OK)
        return st;
    dataset_map_forget(&p->map);
    *ret = as_steal(p);
    return AS_OK;
}

void partitions_place(struct partitions *p, struct device_data *device)
{
    p->device = device;
}

/* ---- holding ---- */

static size_t whole_elements(size_t rows)
{
    return (rows + 3) / 4 * 4;
}

/* Where every row will be. Returns how many rows are new; *ret_rows: of all. */
static size_t plan_runs(struct partitions *p, size_t *ret_n, size_t *ret_rows)
{
    const struct train_data *d = p->data;
    size_t at = whole_elements(d->n_val), n = 0, fresh = 0;
    p->runs[n++] = (struct device_run){.n = d->n_val};
    for (size_t i = 0; i < d->parts.n; i++) {
        if (!p->wanted[i])
            continue;
        bool is_new = d->parts.base[i] < 0;
        p->runs[n] = (struct device_run){.from = is_new ? fresh : (size_t)d->parts.base[i],
                                         .n = part_rows(p, i),
                                         .to = at,
                                         .fresh = is_new};
        fresh += is_new ? p->runs[n].n : 0;
        at += whole_elements(p->runs[n++].n);
    }
    *ret_n = n;
    *ret_rows = at;
    return fresh;
}

/* The rows of the partitions that are wanted and not here, encoded. */
static as_status read_fresh(struct partitions *p, size_t n, struct dataset *ret,
                            int32_t **ret_codes, struct as_err *err)
{
    const struct train_data *d = p->data;
    AS_AUTO(as_freep) int32_t *rows = as_calloc(n, sizeof *rows);
    size_t at = 0;
    if (!rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < d->parts.n; i++)
        if (p->wanted[i] && d->parts.base[i] < 0) {
            memcpy(rows + at, d->train_rows + row_parts_first(&d->parts, i),
                   part_rows(p, i) * sizeof *rows);
            at += part_rows(p, i);
        }
    as_status st = dataset_map_rows(&p->map, p->info, rows, n, ret, err);
    dataset_map_forget(&p->map);
    return st == AS_OK ? train_data_encode(d, p->info, ret, ret_codes, err) : st;
}

static as_status rearrange(struct partitions *p, size_t *ret_read, struct as_err *err)
{
    struct train_data *d = p->data;
    AS_AUTO(dataset_done) struct dataset set = {0};
    AS_AUTO(as_freep) int32_t *codes = NULL;
    size_t n_runs, n_rows, fresh = plan_runs(p, &n_runs, &n_rows), run = 1;
    as_status st = fresh > 0 ? read_fresh(p, fresh, &set, &codes, err) : AS_OK;
    const struct device_fresh new = {&set, codes};
    if (st == AS_OK)
        st = device_data_rearrange(p->device, n_rows, p->runs, n_runs, &new, err);
    if (st != AS_OK)
        return st;
    *ret_read = 0;
    for (size_t i = 0; i < d->parts.n; i++) {
        *ret_read += p->wanted[i] && d->parts.base[i] < 0;
        d->parts.base[i] = p->wanted[i] ? (int64_t)p->runs[run++].to : -1;
    }
    d->set.n_rows = n_rows;
    return AS_OK;
}

as_status partitions_hold(struct partitions *p, uint32_t first, uint32_t count, uint32_t also,
                          bool *ret_moved, struct as_err *err)
{
    const struct row_parts *parts = &p->data->parts;
    bool same = p->begun && p->first == first && p->count == count;
    bool changes = false;
    size_t n_read = 0;
    *ret_moved = false;
    for (uint32_t i = 0; i < parts->n; i++) {
        bool here = parts->base[i] >= 0;
        p->wanted[i] = i - first < count || i == also || (same && here);
        changes = changes || p->wanted[i] != here;
    }
    as_status st = changes ? rearrange(p, &n_read, err) : AS_OK;
    if (st != AS_OK)
        return st;
    p->first = first;
    p->count = count;
    if (!changes)
        return AS_OK;
    p->n_read += p->begun ? n_read : 0;
    p->begun = *ret_moved = true;
    print_held(p, n_read);
    return AS_OK;
}
