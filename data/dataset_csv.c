/* CSV tables as data sets: inspect and load.
 *
 * Inspection reads the file once for the kinds of the columns, the target and the number of rows.
 * If a column may be categories, it reads the file a second time and counts the values of those
 * columns only: counting all columns in the first pass would keep every distinct number in memory.
 *
 * Loading takes columns, classes and targets from dataset_info. It checks that rows, columns and
 * missing values are those that were inspected, because a file that was edited since would give a
 * model of other data without an error.
 *
 * The rows of a test file are read by the decisions of the training part: its header or none, its
 * columns by their names, its categories. A class that the training part has not is an error here,
 * with the line. */
#include "data/dataset_csv.h"

#include <string.h>

#include "base/str.h"
#include "data/column.h"
#include "data/csv_table.h"
#include "data/formats/written_number.h"
#include "data/dataset_alloc.h"
#include "data/target.h"

/* ---- targets ---- */

static as_status scan_target(const struct csv_table *t, const struct csv_row *row,
                             dataset_task task, struct target_scan *scan, struct as_err *err)
{
    struct target_value v;
    dataset_task read_as = t->n_targets > 1 ? DATASET_REGRESSION : task;
    if (task == DATASET_CLUSTERING)
        return AS_OK;
    for (size_t i = 0; i < t->n_targets; i++) {
        as_status st = csv_table_target(t, row, t->targets[i], read_as, &v, err);
        if (st != AS_OK)
            return st;
    }
    if (t->n_targets > 1)
        return AS_OK;
    as_status st = target_scan_add(scan, &v, err);
    return st < 0 ? csv_table_prefix(t, row, t->targets[0], st, err) : st;
}

/* ---- inspecting ---- */

static as_status scan_features(const struct csv_table *t, const struct csv_row *row,
                               struct column_scan *columns, struct as_err *err)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        if (t->input[i] == SIZE_MAX)
            continue;
        struct column_cell cell = csv_table_cell(t, row, i);
        as_status st = column_scan_add(&columns[t->input[i]], &cell, row->line, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status scan_rows(const struct csv_table *t, dataset_task task, struct target_scan *scan,
                           struct column_scan *columns, struct dataset_info *info,
                           struct as_err *err)
{
    struct csv_row row;
    as_status st;
    for (info->n_rows = 0; (st = csv_table_next(t, &row, err)) == AS_OK; info->n_rows++) {
        st = dataset_check_size(info->n_rows + 1, t->n_inputs, err);
        if (st != AS_OK)
            return st;
        st = scan_target(t, &row, task, scan, err);
        if (st != AS_OK)
            return st;
        st = scan_features(t, &row, columns, err);
        if (st != AS_OK)
            return st;
    }
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

/* The second pass: count the values of the columns that may be categories. */
static as_status count_rows(const struct dataset_paths *paths, const struct csv_table *first,
                            const struct dataset_info *info, struct column_scan *columns,
                            struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table t = {0};
    struct csv_row row;
    as_status st = csv_table_open(paths->table, csv_table_target_of(info), &info->options, &t, err);
    if (st != AS_OK)
        return st;
    if (t.n_columns != first->n_columns)
        return as_fail(err, AS_E_IO, "%.200s changed while it was read", paths->table);
    while ((st = csv_table_next(&t, &row, err)) == AS_OK)
        for (size_t i = 0; i < t.n_columns; i++) {
            size_t k = t.input[i];
            if (k == SIZE_MAX || !column_scan_counts(&columns[k], info->n_rows))
                continue;
            struct column_cell cell = csv_table_cell(&t, &row, i);
            st = column_scan_count(&columns[k], &cell, err);
            if (st < 0)
                return as_err_prefix(err, st, "column '%.80s'", t.name[i]);
        }
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

static as_status check_describable(const struct csv_table *t, const char *name,
                                   const struct column_scan *c, struct as_err *err)
{
    if (t->n_inputs <= DATASET_MAX_COLUMNS || (c->n_missing == 0 && c->n_text == 0 && !c->is_text))
        return AS_OK;
    return as_fail(err, AS_E_TOO_LARGE,
                   "column '%.80s' has %s, and the table has %zu columns: at most %zu where "
                   "values are missing or text",
                   name, c->n_text || c->is_text ? "text" : "missing values", t->n_columns,
                   DATASET_MAX_COLUMNS);
}

/* Decide the kind of each column, and count the features. */
static as_status count_features(const struct csv_table *t, struct column_scan *columns,
                                struct dataset_info *info, struct as_err *err)
{
    size_t buckets = info->options.buckets ? info->options.buckets : DATASET_BUCKETS;
    info->n_features = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t k = t->input[i];
        if (k == SIZE_MAX)
            continue;
        as_status st = check_describable(t, t->name[i], &columns[k], err);
        if (st != AS_OK)
            return st;
        info->n_features += column_scan_decide(&columns[k], info->n_rows, buckets);
    }
    return dataset_check_size(info->n_rows, info->n_features, err);
}

/* Check every column. Describe the columns if there are at most DATASET_MAX_COLUMNS. */
static as_status describe_columns(const struct csv_table *t, struct column_scan *columns,
                                  struct dataset_info *info, struct as_err *err)
{
    size_t total = 0, at = 0;
    bool wanted = t->n_inputs <= DATASET_MAX_COLUMNS;
    as_status st = count_features(t, columns, info, err);
    if (st != AS_OK)
        return st;
    info->columns = wanted ? as_calloc(info->n_features, sizeof *info->columns) : NULL;
    if (wanted && !info->columns)
        return as_fail(err, AS_E_NOMEM, "out of memory for columns");
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t k = t->input[i];
        struct dataset_column plain = {0};
        if (k == SIZE_MAX)
            continue;
        struct dataset_column *c = wanted ? &info->columns[at] : &plain;
        st = column_scan_end(&columns[k], wanted ? t->name[i] : NULL, info->n_rows, c, err);
        if (st != AS_OK)
            return as_err_prefix(err, st, "column '%.80s'", t->name[i]);
        total += c->n_values;
        at += columns[k].width;
    }
    if (total > DATASET_MAX_ALL_CATEGORIES)
        return as_fail(err, AS_E_TOO_LARGE, "%zu categories in all columns, at most %zu", total,
                       DATASET_MAX_ALL_CATEGORIES);
    return AS_OK;
}

static as_status find_task(dataset_task task, const struct csv_table *t, struct target_scan *scan,
                           struct dataset_info *info, struct as_err *err)
{
    if (task != DATASET_CLUSTERING)
        return t->n_targets > 1 ? target_several(task, t->n_targets, info, err)
                                : target_scan_end(scan, info, err);
    info->task = task;
    info->n_outputs = DATASET_CLUSTER_OUTPUTS;
    return AS_OK;
}

static as_status inspect_columns(const struct dataset_paths *paths, dataset_task task,
                                 const struct csv_table *t, struct column_scan *columns,
                                 struct dataset_info *info, struct as_err *err)
{
    AS_AUTO(target_scan_done) struct target_scan scan = {.task = task};
    bool any_text = false;
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->input[i] != SIZE_MAX)
            columns[t->input[i]].is_text = dataset_names_match(&info->options.text, t->name[i]);
    as_status st = scan_rows(t, task, &scan, columns, info, err);
    for (size_t i = 0; i < t->n_inputs; i++)
        any_text = any_text || (column_scan_counts(&columns[i], info->n_rows) &&
                                t->n_inputs <= DATASET_MAX_COLUMNS);
    if (st != AS_OK)
        return st;
    if (info->n_rows < 2)
        return as_fail(err, AS_E_INVAL, "the table has %zu row%s of data, expected 2 or more",
                       info->n_rows, info->n_rows == 1 ? "" : "s");
    st = find_task(task, t, &scan, info, err);
    if (st != AS_OK)
        return st;
    if (any_text)
        st = count_rows(paths, t, info, columns, err);
    if (st != AS_OK)
        return st;
    return describe_columns(t, columns, info, err);
}

/* Keep what was found of the dialect, so that it is not searched for again. */
static void keep_dialect(const struct csv *csv, struct dataset_options *o)
{
    const struct csv_dialect d = csv_dialect_of(csv);
    o->separator = d.separator == ',' ? 0 : d.separator;
    o->decimal = d.decimal == '.' ? 0 : d.decimal;
}

as_status dataset_csv_inspect(const struct dataset_paths *paths, const char *target,
                              dataset_task task, struct dataset_info *ret, struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table t = {0};
    const char *without = task == DATASET_CLUSTERING ? CSV_NO_TARGET : NULL;
    as_status st = csv_table_find(paths->table, target ? target : without, &ret->options, &t, err);
    if (st != AS_OK)
        return st;
    keep_dialect(t.csv, &ret->options);
    ret->n_features = t.n_inputs;
    if (t.n_targets > 0)
        st = target_name(t.targets, t.n_targets, t.n_columns, t.name, &ret->target, err);
    struct column_scan *columns = as_calloc(t.n_inputs, sizeof *columns);
    if (!columns)
        return as_fail_nomem(err);
    if (st == AS_OK)
        st = inspect_columns(paths, task, &t, columns, ret, err);
    for (size_t i = 0; i < t.n_inputs; i++)
        column_scan_done(&columns[i]);
    free(columns);
    return st;
}

/* ---- loading ---- */

/* May a test row have this cell? What predicting takes may stand there (decision 2010): a category
 * that the training part lacks is another one, and the median stands for a missing number. Only
 * columns without a record have no median. `c` is the first feature of the column. */
static as_status check_seen(const struct dataset_column *c, const struct column_cell *cell,
                            struct as_err *err)
{
    if (c || !cell->missing)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "the value is missing, and no row of the training part lacks it: expected a "
                   "number");
}

/* `missing` counts the missing cells of each input column. */
static as_status load_features(const struct csv_table *t, const struct csv_row *row,
                               const struct dataset_info *info, size_t *missing, float *out,
                               struct as_err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t k = t->input[i];
        if (k == SIZE_MAX)
            continue;
        struct column_cell cell = csv_table_cell(t, row, i);
        at = t->feature ? t->feature[i] : at;
        const struct dataset_column *c = info->columns ? &info->columns[at] : NULL;
        as_status st = column_values_of(c, &cell, &out[at], err);
        if (st == AS_OK && t->is_test)
            st = check_seen(c, &cell, err);
        if (st < 0)
            return csv_table_prefix(t, row, i, st, err);
        missing[k] += cell.missing;
        at += c ? dataset_column_width(c) : 1;
    }
    return AS_OK;
}

static as_status load_target(const struct csv_table *t, const struct csv_row *row,
                             const struct dataset_info *info, bool whole, size_t n,
                             struct dataset *d, struct as_err *err)
{
    struct target_value v;
    for (size_t i = 0; info->task != DATASET_CLUSTERING && i < t->n_targets; i++) {
        as_status st = csv_table_target(t, row, t->targets[i], info->task, &v, err);
        if (st != AS_OK)
            return st;
        if (d->targets)
            d->targets[n * t->n_targets + i] = (float)v.number;
        else
            st = target_class_of(info, whole, &v, &d->labels[n], err);
        if (st < 0)
            return csv_table_prefix(t, row, t->targets[i], st, err);
    }
    return AS_OK;
}

static as_status load_rows(const struct csv_table *t, const struct dataset_info *info,
                           size_t *missing, struct dataset *d, struct as_err *err)
{
    bool whole = target_classes_whole(info);
    struct csv_row row;
    size_t n = 0;
    as_status st;
    for (; (st = csv_table_next(t, &row, err)) == AS_OK; n++) {
        if (n == info->n_rows)
            return dataset_check_match(info, n + 1, d->n_features, err);
        st = load_features(t, &row, info, missing, d->x + n * d->n_features, err);
        if (st != AS_OK)
            return st;
        st = load_target(t, &row, info, whole, n, d, err);
        if (st != AS_OK)
            return st;
    }
    return st == AS_E_EXHAUSTED ? dataset_check_match(info, n, d->n_features, err) : st;
}

static as_status check_targets(const struct csv_table *t, const struct dataset_info *info,
                               struct as_err *err)
{
    size_t expected = info->task == DATASET_CLASSIFICATION ? 1 : info->n_outputs;
    if (t->n_targets != expected && info->task != DATASET_CLUSTERING)
        return as_fail(err, AS_E_INVAL, "the target names %zu columns, the data set says %zu",
                       t->n_targets, expected);
    return AS_OK;
}

static as_status check_missing(const struct csv_table *t, const struct dataset_info *info,
                               const size_t *missing, struct as_err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t k = t->input[i];
        if (k == SIZE_MAX)
            continue;
        const struct dataset_column *c = info->columns ? &info->columns[at] : NULL;
        size_t expected = c ? c->n_missing + c->n_empty : 0;
        if (missing[k] != expected)
            return as_fail(err, AS_E_INVAL,
                           "column '%.80s' has %zu missing values, the data set says %zu",
                           t->name[i], missing[k], expected);
        at += c ? dataset_column_width(c) : 1;
    }
    return AS_OK;
}

/* Do the columns of the file give the features that were registered? */
static as_status check_features(const struct csv_table *t, const struct dataset_info *info,
                                struct as_err *err)
{
    size_t at = 0, n = 0;
    for (; info->columns && at < info->n_features; n++)
        at += dataset_column_width(&info->columns[at]);
    if (!info->columns || n == info->n_features)
        return dataset_check_match(info, info->n_rows, t->n_inputs, err);
    if (n != t->n_inputs || at != info->n_features)
        return as_fail(err, AS_E_INVAL,
                       "the file has %zu columns that are inputs, the data set says %zu",
                       t->n_inputs, n);
    return AS_OK;
}

as_status dataset_csv_load(const struct dataset_paths *paths, const struct dataset_info *info,
                           struct dataset *ret, struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table t = {0};
    AS_AUTO(as_freep) size_t *missing = as_calloc(info->n_features, sizeof *missing);
    if (!missing)
        return as_fail_nomem(err);
    as_status st = csv_table_open(paths->table, csv_table_target_of(info), &info->options, &t, err);
    if (st != AS_OK)
        return st;
    st = check_features(&t, info, err);
    if (st != AS_OK)
        return st;
    st = check_targets(&t, info, err);
    if (st != AS_OK)
        return st;
    st = dataset_alloc(info, false, ret, err);
    if (st != AS_OK)
        return st;
    st = load_rows(&t, info, missing, ret, err);
    if (st != AS_OK)
        return st;
    return check_missing(&t, info, missing, err);
}

/* ---- one row after another ---- */

static as_status visit_rows(const struct csv_table *t, const struct dataset_info *info,
                            size_t *missing, struct dataset *one, dataset_row_fn *visit, void *ctx,
                            struct as_err *err)
{
    bool whole = target_classes_whole(info);
    struct csv_row row;
    size_t n = 0;
    as_status st;
    for (; (st = csv_table_next(t, &row, err)) == AS_OK; n++) {
        if (n == info->n_rows)
            return dataset_check_match(info, n + 1, info->n_features, err);
        if ((st = load_features(t, &row, info, missing, one->x, err)) != AS_OK ||
            (st = load_target(t, &row, info, whole, 0, one, err)) != AS_OK)
            return st;
        const struct dataset_row_view view = {one->x, one->labels ? one->labels[0] : 0,
                                              one->targets};
        if ((st = visit(ctx, &view, err)) != AS_OK)
            return st;
    }
    return st == AS_E_EXHAUSTED ? dataset_check_match(info, n, info->n_features, err) : st;
}

as_status dataset_csv_rows(const struct dataset_paths *paths, const struct dataset_info *info,
                           dataset_row_fn *visit, void *ctx, struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table t = {0};
    AS_AUTO(dataset_done) struct dataset one = {0};
    AS_AUTO(as_freep) size_t *missing = as_calloc(info->n_features, sizeof *missing);
    struct dataset_info row = *info; /* borrows all that info owns */
    row.n_rows = 1;
    if (!missing)
        return as_fail_nomem(err);
    as_status st = csv_table_open(paths->table, info->target, &info->options, &t, err);
    if (st != AS_OK || (st = check_features(&t, info, err)) != AS_OK ||
        (st = check_targets(&t, info, err)) != AS_OK ||
        (st = dataset_alloc(&row, false, &one, err)) != AS_OK ||
        (st = visit_rows(&t, info, missing, &one, visit, ctx, err)) != AS_OK)
        return st;
    return check_missing(&t, info, missing, err);
}

/* ---- the rows of a test file ---- */

static bool is_number(const char *name)
{
    return !name[strspn(name, "0123456789,-")];
}

bool dataset_csv_named(const struct dataset_info *info)
{
    const struct dataset_options *o = &info->options;
    size_t n = 0; /* columns, if all are inputs or targets */
    bool all = o->drop.n == 0 && o->select.n == 0;
    for (size_t i = 0; info->columns && i < info->n_features; n++)
        i += dataset_column_width(&info->columns[i]);
    n += info->task == DATASET_CLASSIFICATION ? 1 : info->n_outputs;
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        int64_t index;
        if (!is_number(info->columns[i].name) ||
            (all &&
             (as_parse_i64(info->columns[i].name, &index, NULL) != AS_OK || (size_t)index >= n)))
            return true;
    }
    return info->target && !is_number(info->target);
}

/* Without names the first record is data, unless it is the indices themselves (csv.h): text above
 * numbers, which would be a header elsewhere, is a row like others here. */
static as_status open_like(const char *path, const struct dataset_info *info, struct csv_table *ret,
                           struct as_err *err)
{
    csv_header header = dataset_csv_named(info) ? CSV_HEADER_YES : CSV_HEADER_AUTO;
    as_status st =
        csv_table_open_as(path, csv_table_target_of(info), &info->options, header, ret, err);
    if (header == CSV_HEADER_YES || !ret->csv || !csv_has_header(ret->csv))
        return st;
    for (size_t i = 0; i < csv_columns(ret->csv); i++)
        if (!is_number(csv_column_name(ret->csv, i))) {
            csv_table_done(ret);
            return csv_table_open_as(path, csv_table_target_of(info), &info->options, CSV_HEADER_NO,
                                     ret, err);
        }
    return st;
}

/* Without names columns are known by their places. */
static as_status check_count(const struct csv_table *t, const struct dataset_info *info,
                             struct as_err *err)
{
    size_t columns = info->columns ? dataset_file_columns(info) : info->n_features;
    if (t->n_inputs == columns)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "line 1: found %zu columns beside the target, the training part has %zu",
                   t->n_inputs, columns);
}

static as_status find_input(const struct csv_table *t, const char *name, size_t *ret,
                            struct as_err *err)
{
    size_t hits = 0;
    for (size_t i = 0; i < t->n_columns; i++)
        if (as_streq(t->name[i], name)) {
            *ret = i;
            hits++;
        }
    if (hits == 1)
        return AS_OK;
    if (hits > 1)
        return as_fail(err, AS_E_INVAL, "line 1: %zu columns are named '%.80s', expected one", hits,
                       name);
    AS_AUTO(str_done) struct str list = {0};
    csv_table_list(t, 80, &list);
    return as_fail(err, AS_E_INVAL,
                   "line 1: there is no column '%.60s', which the training part has; the columns "
                   "are: %s",
                   name, str_cstr(&list));
}

/* The inputs are the columns with the names of the training part's, wherever they stand. */
static as_status name_inputs(struct csv_table *t, const struct dataset_info *info,
                             struct as_err *err)
{
    t->feature = as_calloc(t->n_columns, sizeof *t->feature);
    if (!t->feature)
        return as_fail_nomem(err);
    for (size_t i = 0; i < t->n_columns; i++)
        t->input[i] = SIZE_MAX;
    t->n_inputs = 0;
    for (size_t at = 0; at < info->n_features; at = dataset_next_column(info, at)) {
        const char *name = info->columns[at].name;
        size_t column = 0;
        as_status st = find_input(t, name, &column, err);
        if (st != AS_OK)
            return st;
        t->input[column] = t->n_inputs++;
        t->feature[column] = at;
        t->numeric[column] = dataset_names_match(&info->options.numeric, name);
    }
    return AS_OK;
}

/* Columns that are no inputs of the training part may be there or not, so its lists do not
 * count. */
static as_status open_by_names(const char *path, const struct dataset_info *info,
                               struct csv_table *ret, struct as_err *err)
{
    const struct dataset_options *o = &info->options;
    const struct dataset_options form = {.separator = o->separator,
                                         .comment = o->comment,
                                         .decimal = o->decimal,
                                         .missing = o->missing,
                                         .drop_unlabelled = o->drop_unlabelled};
    as_status st =
        csv_table_open_as(path, csv_table_target_of(info), &form, CSV_HEADER_YES, ret, err);
    return st == AS_OK ? name_inputs(ret, info, err) : st;
}

static as_status open_test(const char *path, const struct dataset_info *info, struct csv_table *ret,
                           struct as_err *err)
{
    bool named = info->columns && dataset_csv_named(info);
    as_status st = named ? open_by_names(path, info, ret, err) : open_like(path, info, ret, err);
    if (st == AS_OK && !named)
        st = check_count(ret, info, err);
    ret->is_test = true;
    return st == AS_OK ? check_targets(ret, info, err) : st;
}

/* Read all rows into the one row of `d`, and count them. */
static as_status count_test_rows(const struct csv_table *t, const struct dataset_info *info,
                                 size_t *missing, struct dataset *d, size_t *ret,
                                 struct as_err *err)
{
    bool whole = target_classes_whole(info);
    struct csv_row row;
    as_status st;
    for (*ret = 0; (st = csv_table_next(t, &row, err)) == AS_OK; ++*ret) {
        st = dataset_check_size(*ret + 1, info->n_features, err);
        if (st == AS_OK)
            st = load_features(t, &row, info, missing, d->x, err);
        if (st == AS_OK)
            st = load_target(t, &row, info, whole, 0, d, err);
        if (st != AS_OK)
            return st;
    }
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

as_status dataset_csv_test(const struct dataset_paths *paths, const struct dataset_info *info,
                           size_t *ret_rows, struct dataset *ret, struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table t = {0};
    AS_AUTO(dataset_done) struct dataset one = {0};
    AS_AUTO(as_freep) size_t *missing = as_calloc(info->n_features, sizeof *missing);
    struct dataset_info rows = *info; /* borrows all that info owns */
    if (!missing)
        return as_fail_nomem(err);
    as_status st = open_test(paths->table, info, &t, err);
    if (st != AS_OK)
        return st;
    rows.n_rows = ret ? *ret_rows : 1;
    st = dataset_alloc(&rows, false, ret ? ret : &one, err);
    if (st != AS_OK)
        return st;
    return ret ? load_rows(&t, &rows, missing, ret, err)
               : count_test_rows(&t, &rows, missing, &one, ret_rows, err);
}

/* ---- the text of one column ---- */

static as_status find_cells(const struct csv_table *t, const char *name, size_t *ret,
                            struct as_err *err)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (as_streq(t->name[i], name)) {
            *ret = i;
            return AS_OK;
        }
    return as_fail(err, AS_E_INVAL, "the table has no column '%.80s'", name);
}

static bool is_target(const struct csv_table *t, size_t column)
{
    for (size_t i = 0; i < t->n_targets; i++)
        if (t->targets[i] == column)
            return true;
    return false;
}

/* A number that is written with signs, where the options say that the column has such, is added in
 * its plain form. */
static as_status add_text_of(const struct csv_table *t, const struct csv_row *row, size_t column,
                             struct dataset_cells *ret, struct as_err *err)
{
    char plain[WRITTEN_NUMBER_MAX];
    uint32_t sign;
    struct column_cell cell =
        is_target(t, column) ? column_cell_of(&row->cells[column]) : csv_table_cell(t, row, column);
    size_t n = t->numeric[column] && !cell.missing
                   ? written_number(cell.s, cell.len, csv_dialect_of(t->csv).decimal, plain, &sign)
                   : 0;
    return n ? dataset_cells_add(ret, plain, n, err)
             : dataset_cells_add(ret, cell.s, cell.missing ? 0 : cell.len, err);
}

as_status dataset_csv_cells(const struct dataset_paths *paths, const struct dataset_info *info,
                            const char *name, struct dataset_cells *ret, struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table t = {0};
    struct csv_row row;
    size_t column = 0;
    as_status st = csv_table_open(paths->table, csv_table_target_of(info), &info->options, &t, err);
    if (st != AS_OK)
        return st;
    st = find_cells(&t, name, &column, err);
    if (st != AS_OK)
        return st;
    while ((st = csv_table_next(&t, &row, err)) == AS_OK) {
        st = add_text_of(&t, &row, column, ret, err);
        if (st != AS_OK)
            return st;
    }
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}
