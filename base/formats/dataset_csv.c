#include <string.h>

#include "base/formats/csv.h"
#include "base/formats/dataset_priv.h"
#include "base/formats/target.h"

struct table {
    struct csv *csv;
    size_t n_columns, target;
};

static as_status find_target(const char *target, struct table *ret, struct as_err *err)
{
    ret->n_columns = csv_columns(ret->csv);
    AS_AUTO(as_freep) const char **names = as_calloc(ret->n_columns, sizeof *names);
    if (!names)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < ret->n_columns; i++)
        names[i] = csv_column_name(ret->csv, i);
    as_status st = target_find_column(target, ret->n_columns, names, &ret->target, err);
    return st < 0 ? st : dataset_check_size(0, ret->n_columns - 1, err);
}

/* A first record that does not look like a header is one all the same when it names the target. */
static as_status open_with_header(const char *path, const char *target, struct table *t)
{
    struct table with = {0};
    as_status st = csv_open(path, CSV_HEADER_YES, &with.csv, NULL);
    if (st == AS_OK)
        st = find_target(target, &with, NULL);
    if (st < 0) {
        csv_free(with.csv);
        return st;
    }
    csv_free(t->csv);
    *t = with;
    return AS_OK;
}

static as_status open_table(const char *path, const char *target, struct table *ret,
                            struct as_err *err)
{
    as_status st = csv_open(path, CSV_HEADER_AUTO, &ret->csv, err);
    if (st < 0)
        return st;
    st = find_target(target, ret, err);
    if (st == AS_E_INVAL && !csv_has_header(ret->csv) &&
        open_with_header(path, target, ret) == AS_OK)
        st = AS_OK;
    return st;
}

static as_status at_cell(const struct table *t, const struct csv_row *row, size_t column,
                         as_status st, struct as_err *err)
{
    return as_err_prefix(err, st, "column '%.80s', line %zu", csv_column_name(t->csv, column),
                         row->line);
}

/* All cells but the target's, as float32. */
static as_status read_features(const struct table *t, const struct csv_row *row, float *out,
                               struct as_err *err)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        double v;
        if (i == t->target)
            continue;
        as_status st = csv_number(t->csv, row, i, &v, err);
        if (st < 0)
            return st;
        st = target_check_float(v, err);
        if (st < 0)
            return at_cell(t, row, i, st, err);
        *out++ = (float)v;
    }
    return AS_OK;
}

static as_status read_target(const struct table *t, const struct csv_row *row, dataset_task task,
                             struct target_value *ret, struct as_err *err)
{
    const struct csv_cell *cell = &row->cells[t->target];
    struct target_value v = {.text = cell->s, .len = cell->len};
    csv_kind kind = csv_cell_kind(cell, &v.number);
    v.is_number = kind == CSV_NUMBER;
    if (kind == CSV_EMPTY)
        return at_cell(t, row, t->target,
                       as_fail(err, AS_E_INVAL, "the cell is empty, expected a target"), err);
    if (task == DATASET_REGRESSION || kind == CSV_NOT_FINITE) {
        as_status st = csv_number(t->csv, row, t->target, &v.number, err);
        if (st < 0)
            return st;
    }
    if (v.is_number && task != DATASET_CLASSIFICATION) {
        as_status st = target_check_float(v.number, err);
        if (st < 0)
            return at_cell(t, row, t->target, st, err);
    }
    for (; *v.text == ' ' || *v.text == '\t'; v.text++)
        v.len--;
    while (v.len && (v.text[v.len - 1] == ' ' || v.text[v.len - 1] == '\t'))
        v.len--;
    *ret = v;
    return AS_OK;
}

static as_status scan_rows(const struct table *t, struct target_scan *scan, float *row_buf,
                           struct dataset_info *info, struct as_err *err)
{
    struct csv_row row;
    struct target_value v;
    as_status st;
    for (info->n_rows = 0; (st = csv_next(t->csv, &row, err)) == AS_OK; info->n_rows++) {
        st = dataset_check_size(info->n_rows + 1, info->n_features, err);
        if (st == AS_OK)
            st = read_features(t, &row, row_buf, err);
        if (st == AS_OK)
            st = read_target(t, &row, scan->task, &v, err);
        if (st < 0)
            return st;
        st = target_scan_add(scan, &v, err);
        if (st < 0)
            return at_cell(t, &row, t->target, st, err);
    }
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

static as_status feature_names(const struct table *t, struct dataset_info *info, struct as_err *err)
{
    info->columns = as_calloc(info->n_features, sizeof *info->columns);
    for (size_t i = 0, k = 0; info->columns && i < t->n_columns; i++) {
        if (i == t->target)
            continue;
        info->columns[k].name = as_strdup(csv_column_name(t->csv, i));
        if (!info->columns[k++].name)
            return as_fail(err, AS_E_NOMEM, "out of memory for column names");
    }
    return info->columns ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory for column names");
}

static as_status inspect_table(const struct table *t, dataset_task task, struct dataset_info *info,
                               struct as_err *err)
{
    info->n_features = t->n_columns - 1;
    info->target = as_strdup(csv_column_name(t->csv, t->target));
    AS_AUTO(as_freep) float *row_buf = as_calloc(info->n_features, sizeof *row_buf);
    if (!info->target || !row_buf)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    AS_AUTO(target_scan_done) struct target_scan scan = {.task = task};
    as_status st = scan_rows(t, &scan, row_buf, info, err);
    if (st == AS_OK && info->n_rows < 2)
        st = as_fail(err, AS_E_INVAL, "the table has %zu row%s of data, expected 2 or more",
                     info->n_rows, info->n_rows == 1 ? "" : "s");
    if (st == AS_OK)
        st = target_scan_end(&scan, info, err);
    if (st == AS_OK && info->n_features <= DATASET_MAX_COLUMNS)
        st = feature_names(t, info, err);
    return st;
}

as_status dataset_csv_inspect(const struct dataset_paths *paths, const char *target,
                              dataset_task task, struct dataset_info *ret, struct as_err *err)
{
    struct table t = {0};
    as_status st = open_table(paths->table, target, &t, err);
    if (st == AS_OK)
        st = inspect_table(&t, task, ret, err);
    csv_free(t.csv);
    return st;
}

static as_status load_rows(const struct table *t, const struct dataset_info *info,
                           struct dataset *d, struct as_err *err)
{
    bool whole = target_classes_whole(info);
    struct csv_row row;
    struct target_value v;
    size_t n = 0;
    as_status st;
    for (; (st = csv_next(t->csv, &row, err)) == AS_OK; n++) {
        if (n == info->n_rows)
            return dataset_check_match(info, n + 1, d->n_features, err);
        st = read_features(t, &row, d->x + n * d->n_features, err);
        if (st == AS_OK)
            st = read_target(t, &row, info->task, &v, err);
        if (st != AS_OK)
            return st;
        if (d->targets)
            d->targets[n] = (float)v.number;
        else
            st = target_class_of(info, whole, &v, &d->labels[n], err);
        if (st < 0)
            return at_cell(t, &row, t->target, st, err);
    }
    return st == AS_E_EXHAUSTED ? dataset_check_match(info, n, d->n_features, err) : st;
}

as_status dataset_csv_load(const struct dataset_paths *paths, const struct dataset_info *info,
                           struct dataset *ret, struct as_err *err)
{
    struct table t = {0};
    as_status st = open_table(paths->table, info->target, &t, err);
    if (st == AS_OK)
        st = dataset_check_match(info, info->n_rows, t.n_columns - 1, err);
    if (st == AS_OK)
        st = dataset_alloc(info, ret, err);
    if (st == AS_OK)
        st = load_rows(&t, info, ret, err);
    csv_free(t.csv);
    return st;
}
