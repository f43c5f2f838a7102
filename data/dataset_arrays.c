/* Data sets that are arrays: features and targets side by side (two files, two arrays of one file,
 * or the two halves of a CIFAR file), or one array of two dimensions with its targets among the
 * columns. Two dimensions are a table, three and four are images. A safetensors file may name the
 * classes (metadata `classes`, a list of names in JSON): its targets are then indices of names. */
#include "data/dataset_arrays.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/formats/array.h"
#include "data/formats/csv.h"
#include "data/dataset_alloc.h"
#include "data/names_json.h"
#include "data/target.h"
#include "base/json.h"

_Static_assert(ARRAY_MAX_VALUES == DATASET_MAX_VALUES, "an array holds what a data set may hold");

#define BLOCK_VALUES ((size_t)4096) /* that are read at once: 32 KiB */
#define KNOWN_CLASSES 256

/* Rows of an array that were read together: a row of a few values is not worth a call. */
struct row_block {
    double *values; /* [room, columns], owned */
    size_t columns, room;
    size_t n, at; /* rows in it, and the next one */
};

struct arrays {
    struct array features, targets; /* targets is empty when they are columns of `features` */
    size_t n_rows, n_columns;       /* values of a row of `features` */
    size_t n_targets;               /* values of a row's target */
    size_t *target;                 /* [n_targets] columns of `features`; NULL: use `targets` */
    bool channels_first;
    size_t height, width, channels; /* images */
    struct row_block rows, target_rows;
    double *row,
        *target_row;    /* the current ones, n_columns and n_targets values; views of the blocks
                               * (target_row without `targets`: its own) */
    double *own_target; /* [n_targets] */
    float *out;         /* n_columns values */
    int32_t known[KNOWN_CLASSES]; /* 1 + the label of target i; 0: not looked up yet */
    char **names;                 /* [n_names] of the classes that targets are indices of, owned; */
    size_t n_names;               /* 0: the targets themselves are classes or numbers */
    size_t *missing;              /* tables: [n_columns] rows whose value is missing */
};

static void arrays_done(struct arrays *a)
{
    array_done(&a->features);
    array_done(&a->targets);
    free(a->target);
    free(a->rows.values);
    free(a->target_rows.values);
    free(a->own_target);
    free(a->out);
    free(a->missing);
    for (size_t i = 0; i < a->n_names; i++)
        free(a->names[i]);
    free(a->names);
}

static as_status open_files(const struct dataset_paths *paths, dataset_format format,
                            const struct dataset_options *o, struct arrays *a, struct as_err *err)
{
    const char *one = paths->table;
    const char *x = o->x ? o->x : "x", *y = o->y ? o->y : "y";
    as_status st = AS_OK;
    a->channels_first = o->channels_first || format == DATASET_CIFAR;
    switch (format) {
    case DATASET_NPZ:
        st = array_open_npz(one, x, &a->features, err);
        return st == AS_OK ? array_open_npz(one, y, &a->targets, err) : st;
    case DATASET_SAFETENSORS:
        st = array_open_safetensors(one, x, &a->features, err);
        return st == AS_OK ? array_open_safetensors(one, y, &a->targets, err) : st;
    case DATASET_CIFAR:
        st = array_open_cifar(one, false, &a->features, err);
        return st == AS_OK ? array_open_cifar(one, true, &a->targets, err) : st;
    case DATASET_IDX:
        st = array_open_idx(paths->features, &a->features, err);
        return st == AS_OK ? array_open_idx(paths->targets, &a->targets, err) : st;
    default:
        st = array_open_npy(one ? one : paths->features, &a->features, err);
        return st == AS_OK && !one ? array_open_npy(paths->targets, &a->targets, err) : st;
    }
}

/* The shape of the features decides: a table or images. */
static as_status check_features(struct arrays *a, struct as_err *err)
{
    const struct array *x = &a->features;
    const size_t *s = x->shape;
    if (x->n_dims < 2 || x->n_dims > 4)
        return as_fail(err, AS_E_INVAL,
                       "%.200s has %zu dimension%s, expected 2 (rows, columns), 3 (rows, height, "
                       "width) or 4 (with channels)",
                       x->name, x->n_dims, x->n_dims == 1 ? "" : "s");
    a->n_rows = s[0];
    a->n_columns = s[1];
    for (size_t i = 2; i < x->n_dims; i++)
        if (__builtin_mul_overflow(a->n_columns, s[i], &a->n_columns))
            return as_fail(err, AS_E_TOO_LARGE, "%.200s: its rows are too large", x->name);
    if (x->n_dims == 2)
        return AS_OK;
    bool first = x->n_dims == 4 && a->channels_first;
    a->channels = x->n_dims == 3 ? 1 : first ? s[1] : s[3];
    a->height = first ? s[2] : s[1];
    a->width = first ? s[3] : s[2];
    return AS_OK;
}

static as_status check_targets(struct arrays *a, struct as_err *err)
{
    const struct array *y = &a->targets;
    size_t n = y->n_dims == 2 ? y->shape[1] : 1;
    if (y->n_dims == 0 || y->n_dims > 2 || n == 0 || n > DATASET_MAX_TARGETS)
        return as_fail(err, AS_E_INVAL,
                       "%.200s: the targets must have the shape (rows,), or (rows, outputs) with "
                       "at most %zu outputs",
                       y->name, DATASET_MAX_TARGETS);
    if (y->shape[0] != a->n_rows)
        return as_fail(err, AS_E_INVAL, "the targets (%.100s) have %zu rows, the features %zu",
                       y->name, y->shape[0], a->n_rows);
    a->n_targets = n;
    return AS_OK;
}

static as_status find_columns(const char *target, struct arrays *a, struct as_err *err)
{
    if (a->features.n_dims != 2)
        return as_fail(err, AS_E_INVAL,
                       "%.200s has %zu dimensions: images need their targets in a file of their "
                       "own",
                       a->features.name, a->features.n_dims);
    return target_find_columns(target, a->n_columns, NULL, &a->target, &a->n_targets, err);
}

static bool row_block_init(struct row_block *b, size_t columns)
{
    b->columns = columns;
    b->room = columns > 0 && columns < BLOCK_VALUES ? BLOCK_VALUES / columns : 1;
    b->values = as_calloc(b->room * columns, sizeof *b->values);
    return b->values != NULL;
}

/* The next row of `from`: a view until the next call. */
static as_status row_block_next(struct row_block *b, struct array *from, double **ret,
                                struct as_err *err)
{
    if (b->at == b->n) {
        size_t left = (from->n_values - from->at) / b->columns;
        size_t n = left < 1 ? 1 : left < b->room ? left : b->room;
        as_status st = array_read(from, n * b->columns, b->values, err);
        if (st != AS_OK)
            return st;
        b->n = n;
        b->at = 0;
    }
    *ret = b->values + b->at++ * b->columns;
    return AS_OK;
}

static as_status open_arrays(const struct dataset_paths *paths, dataset_format format,
                             const char *target, const struct dataset_options *o, struct arrays *a,
                             struct as_err *err)
{
    as_status st = open_files(paths, format, o, a, err);
    if (st != AS_OK)
        return st;
    st = check_features(a, err);
    if (st != AS_OK)
        return st;
    st = a->targets.state ? check_targets(a, err)
         : a->n_columns   ? find_columns(target, a, err)
                          : AS_OK;
    if (st != AS_OK)
        return st;
    size_t among = a->targets.state ? 0 : a->n_targets;
    st = dataset_check_size(a->n_rows, a->n_columns - among, err);
    if (st != AS_OK)
        return st;
    a->out = as_calloc(a->n_columns, sizeof *a->out);
    a->missing = as_calloc(a->n_columns, sizeof *a->missing);
    a->own_target = as_calloc(a->n_targets, sizeof *a->own_target);
    a->target_row = a->own_target;
    bool has_room = row_block_init(&a->rows, a->n_columns) &&
                    row_block_init(&a->target_rows, a->targets.state ? a->n_targets : 0);
    return has_room && a->out && a->missing && a->own_target ? AS_OK : as_fail_nomem(err);
}

static size_t n_features(const struct arrays *a)
{
    return a->n_columns - (a->targets.state ? 0 : a->n_targets);
}

static bool is_target(const struct arrays *a, size_t column)
{
    for (size_t i = 0; a->target && i < a->n_targets; i++)
        if (a->target[i] == column)
            return true;
    return false;
}

/* ---- rows ---- */

/* A row whose columns are its features, in their order. False: some value is no finite float32. */
static bool convert_plain(const double *row, size_t n, float *out)
{
    bool fits = true;
    for (size_t i = 0; i < n; i++) {
        fits &= fabs(row[i]) <= (double)FLT_MAX;
        out[i] = (float)row[i];
    }
    return fits;
}

/* a->row as float32 into out: columns without the targets, or pixels with the channels last. */
static as_status convert_features(struct arrays *a, size_t r, float *out, struct as_err *err)
{
    bool table = a->features.n_dims == 2, is_plain = !a->target && (table || !a->channels_first);
    size_t plane = a->height * a->width, k = 0;
    if (is_plain && convert_plain(a->row, a->n_columns, out))
        return AS_OK;
    for (size_t i = 0; i < a->n_columns; i++) {
        double v = a->row[i];
        bool missing = table && isnan(v) && !is_target(a, i);
        as_status st = missing ? AS_OK : target_check_float(v, err);
        if (st < 0)
            return as_err_prefix(err, st, "row %zu, column %zu", r, i);
        if (is_target(a, i))
            continue;
        a->missing[k] += missing;
        size_t at = !table && a->channels_first ? i % plane * a->channels + i / plane : k;
        out[at] = (float)v;
        k++;
    }
    return AS_OK;
}

/* Row r: its features into out, its target into a->target_row. */
static as_status read_row(struct arrays *a, size_t r, float *out, struct as_err *err)
{
    as_status st = row_block_next(&a->rows, &a->features, &a->row, err);
    if (st != AS_OK)
        return st;
    st = convert_features(a, r, out, err);
    if (st != AS_OK)
        return st;
    if (a->targets.state)
        st = row_block_next(&a->target_rows, &a->targets, &a->target_row, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < a->n_targets; i++) {
        if (a->target)
            a->target_row[i] = a->row[a->target[i]];
        st = target_check_float(a->target_row[i], err);
        if (st < 0)
            return as_err_prefix(err, st, "target of row %zu", r);
    }
    return AS_OK;
}

/* Read the names of the classes, if the file has them and `task` has classes. */
static as_status read_names(struct arrays *a, dataset_task task, struct as_err *err)
{
    const char *text = a->targets.state ? array_metadata(&a->targets, "classes") : NULL;
    JSON_AUTO list = NULL;
    if (!text || task == DATASET_REGRESSION || a->n_targets != 1)
        return AS_OK;
    as_status st = json_parse(text, strlen(text), &list, err);
    if (st == AS_OK && (json_array_size(list) < 2 || json_array_size(list) > DATASET_MAX_CLASSES))
        st = as_fail(err, AS_E_INVAL, "found %zu names, expected a list of 2 to %zu",
                     json_array_size(list), DATASET_MAX_CLASSES);
    if (st == AS_OK)
        st = names_json_read(list, "", &a->names, &a->n_names, err);
    return st == AS_OK ? AS_OK
                       : as_err_prefix(err, st, "%.120s: its metadata `classes`", a->targets.name);
}

/* The target of row r: a number, or the name of a class. */
static as_status target_of(const struct arrays *a, size_t r, struct target_value *ret,
                           struct as_err *err)
{
    double v = a->target_row[0];
    *ret = (struct target_value){.is_number = true, .number = v};
    if (a->n_names == 0)
        return AS_OK;
    if (!(v >= 0 && v < (double)a->n_names && v == floor(v)))
        return as_fail(
            err, AS_E_INVAL,
            "target of row %zu: found %g, expected the index of one of the %zu classes that "
            "the file names",
            r, v, a->n_names);
    const struct csv_cell name = {a->names[(size_t)v], strlen(a->names[(size_t)v])};
    *ret = (struct target_value){.text = name.s, .len = name.len};
    ret->is_number = csv_cell_kind(&name, &ret->number) == CSV_NUMBER;
    return AS_OK;
}

static as_status scan_rows(struct arrays *a, dataset_task task, struct dataset_info *info,
                           struct as_err *err)
{
    AS_AUTO(target_scan_done)
    struct target_scan scan = {.task = a->n_names ? DATASET_CLASSIFICATION : task};
    for (size_t r = 0; r < a->n_rows; r++) {
        as_status st = read_row(a, r, a->out, err);
        if (st < 0)
            return st;
        struct target_value v;
        st = target_of(a, r, &v, err);
        if (st < 0)
            return st;
        st = a->n_targets == 1 ? target_scan_add(&scan, &v, err) : AS_OK;
        if (st < 0)
            return as_err_prefix(err, st, "target of row %zu", r);
    }
    return a->n_targets == 1 ? target_scan_end(&scan, info, err)
                             : target_several(task, a->n_targets, info, err);
}

/* ---- the description ---- */

static as_status describe_columns(const struct arrays *a, struct dataset_info *info,
                                  struct as_err *err)
{
    size_t first = 0, n = info->n_features;
    while (first < n && !a->missing[first])
        first++;
    if (first == n)
        return AS_OK;
    if (n > DATASET_MAX_COLUMNS)
        return as_fail(err, AS_E_TOO_LARGE,
                       "feature %zu has missing values, and there are %zu: at most %zu features "
                       "when values are missing",
                       first, n, DATASET_MAX_COLUMNS);
    info->columns = as_calloc(n, sizeof *info->columns);
    for (size_t i = 0, column = 0; info->columns && i < n; i++, column++) {
        char name[24];
        while (is_target(a, column))
            column++;
        (void)snprintf(name, sizeof name, "%zu", column);
        info->columns[i] =
            (struct dataset_column){.name = as_strdup(name), .n_missing = a->missing[i]};
        if (!info->columns[i].name)
            return as_fail(err, AS_E_NOMEM, "out of memory for column names");
    }
    return info->columns ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory for column names");
}

as_status dataset_arrays_inspect(const struct dataset_paths *paths, const char *target,
                                 dataset_task task, struct dataset_info *info, struct as_err *err)
{
    AS_AUTO(arrays_done) struct arrays a = {0};
    as_status st = open_arrays(paths, info->format, target, &info->options, &a, err);
    if (st != AS_OK)
        return st;
    info->n_rows = a.n_rows;
    info->n_features = n_features(&a);
    info->input = a.features.n_dims == 2 ? DATASET_TABLE : DATASET_IMAGE;
    info->height = a.height;
    info->width = a.width;
    info->channels = a.channels;
    if (a.n_rows < 2)
        return as_fail(err, AS_E_INVAL, "%.200s has %zu row%s, expected 2 or more", a.features.name,
                       a.n_rows, a.n_rows == 1 ? "" : "s");
    if (a.target)
        st = target_name(a.target, a.n_targets, a.n_columns, NULL, &info->target, err);
    if (st != AS_OK)
        return st;
    st = read_names(&a, task, err);
    if (st != AS_OK)
        return st;
    st = scan_rows(&a, task, info, err);
    if (st != AS_OK)
        return st;
    return info->input == DATASET_TABLE ? describe_columns(&a, info, err) : AS_OK;
}

/* ---- loading ---- */

/* Each feature must have as many missing values as when the data set was inspected. */
static as_status check_missing(const struct arrays *a, const struct dataset_info *info,
                               struct as_err *err)
{
    for (size_t i = 0; i < info->n_features; i++) {
        size_t expected = info->columns ? info->columns[i].n_missing : 0;
        if (a->missing[i] != expected)
            return as_fail(err, AS_E_INVAL,
                           "feature %zu has %zu missing values, the data set says %zu", i,
                           a->missing[i], expected);
    }
    return AS_OK;
}

static as_status check_shape(const struct arrays *a, const struct dataset_info *info,
                             struct as_err *err)
{
    if (a->height != info->height || a->width != info->width || a->channels != info->channels)
        return as_fail(err, AS_E_INVAL,
                       "the file has images of %zu x %zu x %zu, the data set says %zu x %zu x %zu",
                       a->height, a->width, a->channels, info->height, info->width, info->channels);
    size_t outputs = info->task == DATASET_CLASSIFICATION ? 1 : info->n_outputs;
    if (a->n_targets != outputs)
        return as_fail(err, AS_E_INVAL, "the file has %zu targets, the data set says %zu",
                       a->n_targets, outputs);
    return dataset_check_match(info, a->n_rows, n_features(a), err);
}

/* The target of row r of the file, at place `at` of d. */
static as_status store_target(struct arrays *a, const struct dataset_info *info, bool whole,
                              size_t r, size_t at, struct dataset *d, struct as_err *err)
{
    for (size_t i = 0; d->targets && i < a->n_targets; i++)
        d->targets[at * a->n_targets + i] = (float)a->target_row[i];
    if (d->targets)
        return AS_OK;
    double number = a->target_row[0];
    bool is_small = number >= 0 && number < KNOWN_CLASSES && number == floor(number);
    int32_t *known = is_small ? &a->known[(size_t)number] : NULL;
    if (known && *known > 0) { /* looking a class up compares names */
        d->labels[at] = *known - 1;
        return AS_OK;
    }
    struct target_value v;
    as_status st = target_of(a, r, &v, err);
    if (st < 0)
        return st;
    st = target_class_of(info, whole, &v, &d->labels[at], err);
    if (st < 0)
        return as_err_prefix(err, st, "target of row %zu", r);
    if (known)
        *known = d->labels[at] + 1;
    return AS_OK;
}

as_status dataset_arrays_load(const struct dataset_paths *paths, const struct dataset_info *info,
                              struct dataset *ret, struct as_err *err)
{
    AS_AUTO(arrays_done) struct arrays a = {0};
    as_status st = open_arrays(paths, info->format, info->target, &info->options, &a, err);
    if (st != AS_OK)
        return st;
    st = check_shape(&a, info, err);
    if (st != AS_OK)
        return st;
    st = read_names(&a, info->task, err);
    if (st != AS_OK)
        return st;
    st = dataset_alloc(info, false, ret, err);
    if (st != AS_OK)
        return st;
    bool whole = target_classes_whole(info);
    for (size_t r = 0; r < a.n_rows; r++) {
        st = read_row(&a, r, ret->x + r * ret->n_features, err);
        if (st != AS_OK)
            return st;
        st = store_target(&a, info, whole, r, r, ret, err);
        if (st != AS_OK)
            return st;
    }
    return check_missing(&a, info, err);
}

/* ---- the rows of test files ---- */

/* A row may lack the values that rows of the training part lack. */
static as_status check_seen(const struct dataset_info *info, const float *x, size_t r,
                            struct as_err *err)
{
    for (size_t i = 0; i < info->n_features; i++)
        if (isnan(x[i]) && !(info->columns && info->columns[i].n_missing > 0))
            return as_fail(err, AS_E_INVAL,
                           "row %zu, feature %zu: the value is missing, and no row of the training "
                           "part lacks it",
                           r, i);
    return AS_OK;
}

/* Read all rows into `d`, one after another into the same place if it has room for one alone. */
static as_status read_test_rows(struct arrays *a, const struct dataset_info *info, bool one,
                                struct dataset *d, struct as_err *err)
{
    bool whole = target_classes_whole(info);
    for (size_t r = 0; r < a->n_rows; r++) {
        size_t at = one ? 0 : r;
        as_status st = read_row(a, r, d->x + at * d->n_features, err);
        if (st == AS_OK)
            st = check_seen(info, d->x + at * d->n_features, r, err);
        if (st == AS_OK)
            st = store_target(a, info, whole, r, at, d, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status dataset_arrays_test(const struct dataset_paths *paths, const struct dataset_info *info,
                              size_t *ret_rows, struct dataset *ret, struct as_err *err)
{
    AS_AUTO(arrays_done) struct arrays a = {0};
    AS_AUTO(dataset_done) struct dataset one = {0};
    struct dataset_info rows = *info; /* borrows all that info owns */
    as_status st = open_arrays(paths, info->format, info->target, &info->options, &a, err);
    if (st != AS_OK)
        return st;
    rows.n_rows = ret ? *ret_rows : a.n_rows;
    st = check_shape(&a, &rows, err);
    if (st != AS_OK)
        return st;
    *ret_rows = a.n_rows;
    rows.n_rows = ret ? a.n_rows : 1;
    st = dataset_alloc(&rows, false, ret ? ret : &one, err);
    return st == AS_OK ? read_test_rows(&a, &rows, !ret, ret ? ret : &one, err) : st;
}

/* ---- one row after another ---- */

as_status dataset_arrays_rows(const struct dataset_paths *paths, const struct dataset_info *info,
                              dataset_row_fn *visit, void *ctx, struct as_err *err)
{
    AS_AUTO(arrays_done) struct arrays a = {0};
    AS_AUTO(dataset_done) struct dataset one = {0};
    struct dataset_info row = *info; /* borrows all that info owns */
    bool whole = target_classes_whole(info);
    as_status st = open_arrays(paths, info->format, info->target, &info->options, &a, err);
    if (st == AS_OK)
        st = check_shape(&a, info, err);
    if (st == AS_OK)
        st = read_names(&a, info->task, err);
    row.n_rows = 1;
    if (st == AS_OK)
        st = dataset_alloc(&row, false, &one, err);
    for (size_t r = 0; st == AS_OK && r < a.n_rows; r++) {
        st = read_row(&a, r, one.x, err);
        if (st == AS_OK)
            st = store_target(&a, info, whole, r, 0, &one, err);
        const struct dataset_row_view view = {one.x, one.labels ? one.labels[0] : 0, one.targets};
        if (st == AS_OK)
            st = visit(ctx, &view, err);
    }
    return st == AS_OK ? check_missing(&a, info, err) : st;
}
