#include <stdio.h>
#include <string.h>

#include "base/formats/dataset_priv.h"
#include "base/formats/npy.h"
#include "base/formats/target.h"

/* A table with a target column, or features and targets side by side. */
struct arrays {
    struct npy *features, *targets; /* targets NULL: a column of `features` */
    size_t n_rows, n_columns;       /* of `features` */
    size_t target;                  /* column, or n_columns with a targets file */
    double *row;                    /* n_columns values */
};

static void arrays_done(struct arrays *a)
{
    npy_free(a->features);
    npy_free(a->targets);
    free(a->row);
}

static as_status open_targets(const char *path, struct arrays *a, struct as_err *err)
{
    as_status st = npy_open(path, &a->targets, err);
    if (st < 0)
        return st;
    const struct npy_header *h = npy_header_of(a->targets);
    if (h->n_dims == 0 || h->n_dims > 2 || (h->n_dims == 2 && h->shape[1] != 1))
        return as_fail(err, AS_E_INVAL,
                       "the targets file must have the shape (rows,) or (rows, 1)");
    if (h->shape[0] != a->n_rows)
        return as_fail(err, AS_E_INVAL, "the targets file has %zu rows, the features file %zu",
                       h->shape[0], a->n_rows);
    a->target = a->n_columns;
    return AS_OK;
}

static as_status open_arrays(const struct dataset_paths *paths, const char *target,
                             struct arrays *a, struct as_err *err)
{
    as_status st = npy_open(paths->table ? paths->table : paths->features, &a->features, err);
    if (st < 0)
        return st;
    const struct npy_header *h = npy_header_of(a->features);
    if (h->n_dims != 2)
        return as_fail(err, AS_E_INVAL, "the array has %zu dimension%s, expected 2 (rows, columns)",
                       h->n_dims, h->n_dims == 1 ? "" : "s");
    a->n_rows = h->shape[0];
    a->n_columns = h->shape[1];
    if (paths->table && a->n_columns)
        st = target_find_column(target, a->n_columns, NULL, &a->target, err);
    else if (paths->targets)
        st = open_targets(paths->targets, a, err);
    if (st == AS_OK)
        st = dataset_check_size(a->n_rows, a->n_columns ? a->n_columns - !a->targets : 0, err);
    if (st < 0)
        return st;
    a->row = as_calloc(a->n_columns, sizeof *a->row);
    return a->row ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

static as_status at_place(size_t row, size_t column, as_status st, struct as_err *err)
{
    return as_err_prefix(err, st, "row %zu, column %zu", row, column);
}

/* Row r: features as float32 into out, and the target. */
static as_status read_row(struct arrays *a, size_t r, float *out, struct target_value *ret,
                          struct as_err *err)
{
    as_status st = npy_read(a->features, a->n_columns, a->row, err);
    for (size_t i = 0; st == AS_OK && i < a->n_columns; i++) {
        st = target_check_float(a->row[i], err);
        if (st < 0)
            return at_place(r, i, st, err);
        if (i != a->target)
            *out++ = (float)a->row[i];
    }
    if (st < 0)
        return st;
    struct target_value v = {.is_number = true};
    if (a->targets)
        st = npy_read(a->targets, 1, &v.number, err);
    else
        v.number = a->row[a->target];
    if (st == AS_OK) {
        st = target_check_float(v.number, err);
        if (st < 0)
            return as_err_prefix(err, st, "target of row %zu", r);
        *ret = v;
    }
    return st;
}

static as_status scan_rows(struct arrays *a, dataset_task task, struct dataset_info *info,
                           struct as_err *err)
{
    AS_AUTO(target_scan_done) struct target_scan scan = {.task = task};
    AS_AUTO(as_freep) float *features = as_calloc(a->n_columns, sizeof *features);
    if (!features)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t r = 0; r < a->n_rows; r++) {
        struct target_value v;
        as_status st = read_row(a, r, features, &v, err);
        if (st < 0)
            return st;
        st = target_scan_add(&scan, &v, err);
        if (st < 0)
            return as_err_prefix(err, st, "target of row %zu", r);
    }
    return target_scan_end(&scan, info, err);
}

static as_status inspect_arrays(struct arrays *a, dataset_task task, struct dataset_info *info,
                                struct as_err *err)
{
    info->n_rows = a->n_rows;
    info->n_features = a->n_columns - !a->targets;
    if (a->n_rows < 2)
        return as_fail(err, AS_E_INVAL, "the array has %zu row%s, expected 2 or more", a->n_rows,
                       a->n_rows == 1 ? "" : "s");
    if (!a->targets) {
        char name[24];
        (void)snprintf(name, sizeof name, "%zu", a->target);
        info->target = as_strdup(name);
        if (!info->target)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    return scan_rows(a, task, info, err);
}

as_status dataset_npy_inspect(const struct dataset_paths *paths, const char *target,
                              dataset_task task, struct dataset_info *ret, struct as_err *err)
{
    AS_AUTO(arrays_done) struct arrays a = {0};
    as_status st = open_arrays(paths, target, &a, err);
    return st < 0 ? st : inspect_arrays(&a, task, ret, err);
}

as_status dataset_npy_load(const struct dataset_paths *paths, const struct dataset_info *info,
                           struct dataset *ret, struct as_err *err)
{
    AS_AUTO(arrays_done) struct arrays a = {0};
    as_status st = open_arrays(paths, info->target, &a, err);
    if (st == AS_OK)
        st = dataset_check_match(info, a.n_rows, a.n_columns - !a.targets, err);
    if (st == AS_OK)
        st = dataset_alloc(info, ret, err);
    bool whole = target_classes_whole(info);
    for (size_t r = 0; st == AS_OK && r < a.n_rows; r++) {
        struct target_value v;
        st = read_row(&a, r, ret->x + r * ret->n_features, &v, err);
        if (st != AS_OK)
            return st;
        if (ret->targets)
            ret->targets[r] = (float)v.number;
        else
            st = target_class_of(info, whole, &v, &ret->labels[r], err);
        if (st < 0)
            return as_err_prefix(err, st, "target of row %zu", r);
    }
    return st;
}
