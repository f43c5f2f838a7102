/* Values of a column for an ensemble that was asked for after the trials had run.
 *
 * Trials leave buckets.json only if their document names the column. For any other column the
 * server has all that is needed: the table, and the rule of the split with its seed, which is
 * written into each document (sweep/split_rule). The held-out rows follow from them as in the
 * trainer, by model/prepare and data/preprocess. The targets of these rows are compared with those
 * that the trials left, so values of other rows are never taken. Only three columns are read: the
 * target for the classes of a stratified split, the column of the split, and the one that is
 * asked for. */
#include "scheduler/lifecycle/ensemble_column.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/template.h"
#include "data/column.h"
#include "data/dataset_view.h"
#include "data/preprocess/split.h"
#include "data/target.h"
#include "model/document/train_spec.h"
#include "model/prepare/prepare_rule.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/sweep_store.h"

struct work {
    struct arena a;
    const char *column;
    const char *sweep; /* its id */
    const char *document;
    struct dataset_row *datasets; /* those that the sweep may name */
    size_t n_datasets;
    const struct dataset_row *dataset;
    struct train_spec spec;
    struct dataset_info info; /* with the rows of the file that is read */
    struct blob_file file;
    unsigned char *part; /* [rows] HOLDOUT_…; NULL: `rows` says it */
    int32_t *labels;     /* [rows] of a classification */
    float *numbers;      /* [rows] of a regression of one target */
    int32_t *rows;       /* [n]: those that were predicted, in their order; NULL: all */
    size_t n;
};

static void work_done(struct work *w)
{
    arena_done(&w->a);
    train_spec_done(&w->spec);
    dataset_info_done(&w->info);
    blob_file_done(&w->file);
    free(w->part);
    free(w->labels);
    free(w->numbers);
    free(w->rows);
}

/* ---- the data set ---- */

static as_status read_sweep(struct tx *t, struct work *w, struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, w->sweep, &key, err);
    if (st == AS_OK)
        st = store_sweep_document(t, &w->a, key, &w->document, err);
    if (st == AS_OK)
        st = store_dataset_of_sweep(t, &w->a, key, &w->datasets, &w->n_datasets, err);
    for (size_t i = 0; st == AS_OK && i < w->n_datasets; i++)
        st = store_dataset_expected(t, &w->a, key, &w->datasets[i], err);
    return st;
}

static void find_dataset(struct work *w, const char *name)
{
    for (size_t i = 0; i < w->n_datasets; i++)
        if (as_streq(w->datasets[i].name, name))
            w->dataset = &w->datasets[i];
}

/* The document of the trial, with its parameters. */
static as_status read_spec(struct work *w, const char *params_text, struct as_err *err)
{
    JSON_AUTO document = NULL;
    JSON_AUTO params = NULL;
    JSON_AUTO train = NULL;
    as_status st = json_parse(w->document, strlen(w->document), &document, err);
    if (st == AS_OK)
        st = json_parse(params_text, strlen(params_text), &params, err);
    if (st != AS_OK)
        return st;
    const json_t *tree = json_object_get(json_object_get(document, "trial"), "train");
    if (!tree)
        return as_fail(
            err, AS_E_UNSUPPORTED,
            "no trial left buckets.json of the column '%.60s', and only of trials of the "
            "built-in trainer the data set is known",
            w->column);
    st = template_apply(tree, params, &train, err);
    if (st == AS_OK)
        st = train_spec_parse(train, "/trial/train", &w->spec, err);
    if (st == AS_OK)
        find_dataset(w, w->spec.dataset);
    if (st != AS_OK || w->dataset)
        return st;
    return as_fail(err, AS_E_NOT_FOUND, "the data set '%.60s' was removed", w->spec.dataset);
}

/* The names of a table's inputs, as far as a message has room. */
static void list_columns(const struct dataset_info *info, struct str *ret)
{
    for (size_t i = 0; i < info->n_features && ret->len < 80; i = dataset_next_column(info, i))
        str_printf(ret, "%s'%.40s'", i ? ", " : "", info->columns[i].name);
}

/* Must be an input without missing cells, as trial.train.buckets must. */
static as_status check_column(const struct work *w, struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    const struct dataset_info *info = &w->info;
    const char *data = w->dataset->name;
    size_t at = info->columns ? dataset_find_column(info, w->column) : SIZE_MAX;
    if (info->format != DATASET_CSV || !info->columns)
        return as_fail_at(err, AS_E_INVAL, "/by",
                          "/by: found '%.40s', but the data set '%.40s' of the sweep '%.40s' has "
                          "no columns with names",
                          w->column, data, w->sweep);
    if (at == SIZE_MAX) {
        list_columns(info, &names);
        return as_fail_at(err, AS_E_INVAL, "/by",
                          "/by: found '%.40s', expected a column of the data set '%.40s' of the "
                          "sweep '%.40s': %s",
                          w->column, data, w->sweep, str_cstr(&names));
    }
    size_t missing = info->columns[at].n_missing + info->columns[at].n_empty;
    if (missing > 0)
        return as_fail_at(err, AS_E_INVAL, "/by",
                          "/by: column '%.40s' of the data set '%.40s' of the sweep '%.40s' has "
                          "%zu missing cells, expected none",
                          w->column, data, w->sweep, missing);
    return AS_OK;
}

static as_status open_table(struct store *db, struct work *w, bool is_test, struct as_err *err)
{
    const struct dataset_row *d = w->dataset;
    const char *sha256 = NULL;
    if (d->expected_sha256)
        return as_fail(err, AS_E_CONFLICT, "the data set '%.60s' has other content now", d->name);
    as_status st = dataset_row_info(d, &w->info, err);
    if (st == AS_OK)
        st = check_column(w, err);
    if (st != AS_OK)
        return st;
    if (is_test)
        w->info.n_rows = (size_t)d->test_rows;
    for (size_t i = 0; i < d->n_files; i++)
        if (as_streq(d->files[i].role, is_test ? "test" : "table"))
            sha256 = d->files[i].sha256;
    if (!sha256)
        return as_fail(err, AS_E_NOT_FOUND, "the data set '%.60s' has no file of this kind",
                       d->name);
    return blob_file_init(db, sha256, &w->file, err);
}

static struct dataset_paths table_paths(const struct work *w)
{
    return (struct dataset_paths){.table = w->file.path};
}

static as_status read_cells(const struct work *w, const char *column, struct dataset_cells *ret,
                            struct as_err *err)
{
    const struct dataset_paths paths = table_paths(w);
    return dataset_read_cells(&paths, &w->info, column, ret, err);
}

/* ---- the targets ---- */

/* Classes give their indices, one number gives the numbers; several targets are not read. */
static as_status read_targets(struct work *w, struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    bool whole = target_classes_whole(&w->info), classes = w->info.n_classes > 0;
    if (!classes && w->info.n_outputs > 1)
        return AS_OK;
    as_status st = read_cells(w, w->info.target, &cells, err);
    if (st != AS_OK)
        return st;
    w->labels = classes ? as_calloc(cells.n, sizeof *w->labels) : NULL;
    w->numbers = classes ? NULL : as_calloc(cells.n, sizeof *w->numbers);
    if (classes ? !w->labels : !w->numbers)
        return as_fail_nomem(err);
    for (size_t i = 0; st == AS_OK && i < cells.n; i++) {
        const char *text = dataset_cell(&cells, i);
        const struct column_cell cell = column_cell_of_text(text, strlen(text));
        const struct target_value v = {cell.s, cell.len, cell.kind == CSV_NUMBER, cell.number};
        if (classes)
            st = target_class_of(&w->info, whole, &v, &w->labels[i], err);
        else
            w->numbers[i] = (float)cell.number;
    }
    return st;
}

/* Do the rows that were found have the targets that the trials left? */
static as_status compare_targets(const struct work *w, const struct ensemble_data *d,
                                 struct as_err *err)
{
    bool same = w->n == d->rows && (!w->labels || d->classes) && (!w->numbers || d->targets);
    for (size_t i = 0; same && i < w->n; i++) {
        size_t row = w->rows ? (size_t)w->rows[i] : i;
        same = w->labels    ? w->labels[row] == d->classes[i]
               : w->numbers ? w->numbers[row] == d->targets[i]
                            : true;
    }
    return same ? AS_OK
                : as_fail(err, AS_E_CONFLICT,
                          "the held-out rows of the data set '%.60s' have other targets than the "
                          "trials left",
                          w->dataset->name);
}

/* ---- which rows ---- */

/* The rows that one training held out, in the order of its predictions
 * (data/preprocess/train_data.h). */
static as_status find_held(struct work *w, struct as_err *err)
{
    size_t n = w->info.n_rows;
    const struct dataset_paths paths = table_paths(w);
    struct preprocess_opts opts = prepare_rule_opts(&w->spec, w->info.task, n);
    struct preprocess_rows rows;
    as_status st = prepare_rule_part(&w->spec, &paths, &w->info, &w->part, err);
    if (st != AS_OK)
        return st;
    opts.part = w->part;
    w->rows = as_calloc(n, sizeof *w->rows);
    if (!w->rows)
        return as_fail_nomem(err);
    st = split_rows(&opts, w->labels, n, w->info.n_classes, w->rows, &rows, err);
    if (st == AS_OK)
        w->n = rows.n_held;
    return st;
}

/* With folds each row is held out once, and their predictions are in the order of the file, as
 * those of test rows are. */
static as_status find_rows(struct work *w, bool is_test, struct as_err *err)
{
    as_status st = read_targets(w, err);
    w->n = w->info.n_rows;
    if (st != AS_OK || is_test || w->spec.folds > 0)
        return st;
    return find_held(w, err);
}

/* ---- the values ---- */

static as_status list_values(const struct work *w, json_t *list, struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    as_status st = read_cells(w, w->column, &cells, err);
    return st == AS_OK ? dataset_list_values(&w->info, w->column, &cells, w->rows, w->n, list, err)
                       : st;
}

as_status ensemble_column_read(struct store *db, const struct ensemble_candidate *trial,
                               const char *column, bool is_test, const struct ensemble_data *d,
                               json_t **ret, struct as_err *err)
{
    AS_AUTO(work_done) struct work w = {.column = column, .sweep = trial->sweep};
    JSON_AUTO list = json_array();
    if (!list)
        return as_fail_nomem(err);
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_sweep(run.tx, &w, err);
    as_status st = run.status;
    if (st == AS_OK)
        st = read_spec(&w, trial->params, err);
    if (st == AS_OK)
        st = open_table(db, &w, is_test, err);
    if (st == AS_OK)
        st = find_rows(&w, is_test, err);
    if (st == AS_OK)
        st = compare_targets(&w, d, err);
    if (st == AS_OK)
        st = list_values(&w, list, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(list);
    return AS_OK;
}

as_status ensemble_column_check(struct tx *t, const char *sweep, const char *column,
                                struct as_err *err)
{
    AS_AUTO(work_done) struct work w = {.column = column, .sweep = sweep};
    JSON_AUTO document = NULL;
    as_status st = read_sweep(t, &w, err);
    if (st == AS_OK)
        st = json_parse(w.document, strlen(w.document), &document, err);
    if (st != AS_OK)
        return st;
    const json_t *train = json_object_get(json_object_get(document, "trial"), "train");
    const char *name = json_string_value(json_object_get(train, "dataset"));
    if (name)
        find_dataset(&w, name);
    if (!w.dataset || dataset_row_info(w.dataset, &w.info, NULL) != AS_OK)
        return AS_OK;
    return check_column(&w, err);
}
