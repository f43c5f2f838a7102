/* Reading predictions.npy, targets.npy and weights.npy.
 *
 * The authors of trials write these files, so every property of them is checked. Values are read in
 * pieces, because an array may have millions of them and is needed as float32 only. */
#include "scheduler/lifecycle/ensemble_data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "data/formats/npy.h"
#include "scheduler/content/blob_file.h"

#define PIECE ((size_t)1 << 15) /* values */

void ensemble_data_done(struct ensemble_data *d)
{
    free(d->classes);
    free(d->targets);
    free(d->weights);
    free(d->buckets);
    free(d->bucket_column);
    json_decref(d->bucket_values);
    for (size_t i = 0; d->taken && i < d->n_taken; i++)
        free(d->taken[i]);
    free(d->taken);
    free(d->index);
}

struct score_truth ensemble_data_truth(const struct ensemble_data *d)
{
    return (struct score_truth){d->rows, d->outputs, d->classes, d->targets, d->weights};
}

/* An open array of one or two dimensions. */
struct array {
    struct blob_file file;
    struct npy *npy;
    const char *name;
    npy_type type;
    size_t rows, columns;
};

static void array_done(struct array *a)
{
    npy_free(a->npy);
    blob_file_done(&a->file);
}

/* Messages name the file by the name that people know, not by the temporary one. */
static as_status rename_error(struct as_err *err, as_status st, const char *path, const char *name)
{
    size_t len = strlen(path);
    if (st == AS_OK || !err || strncmp(err->msg, path, len) != 0)
        return st;
    char rest[AS_ERR_MSG_MAX];
    snprintf(rest, sizeof rest, "%s", err->msg + len);
    return as_fail(err, st, "%s%s", name, rest);
}

static as_status array_open_blob(struct store *db, const char *sha256, const char *name,
                                 struct array *a, struct as_err *err)
{
    as_status st = blob_file_init(db, sha256, &a->file, err);
    if (st != AS_OK)
        return st;
    st = rename_error(err, npy_open(a->file.path, &a->npy, err), a->file.path, name);
    if (st != AS_OK)
        return st;
    const struct npy_header *h = npy_header_of(a->npy);
    if (h->n_dims < 1 || h->n_dims > 2 || h->n_values == 0)
        return as_fail(err, AS_E_INVAL, "%s: an array of %zu dimensions and %zu values", name,
                       h->n_dims, h->n_values);
    if (h->n_values > ENSEMBLE_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE, "%s: %zu values, at most %zu are allowed", name,
                       h->n_values, ENSEMBLE_MAX_VALUES);
    a->name = name;
    a->type = h->type;
    a->rows = h->shape[0];
    a->columns = h->n_dims == 2 ? h->shape[1] : 1;
    return AS_OK;
}

/* All values, as classes or as numbers, which must be finite. */
static as_status array_read(struct array *a, int64_t *classes, float *numbers, struct as_err *err)
{
    size_t n = a->rows * a->columns;
    AS_AUTO(as_freep) double *piece = as_calloc(n < PIECE ? n : PIECE, sizeof *piece);
    if (!piece)
        return as_fail_nomem(err);
    for (size_t at = 0, count; at < n; at += count) {
        count = n - at < PIECE ? n - at : PIECE;
        as_status st = npy_read(a->npy, count, piece, err);
        if (st != AS_OK)
            return rename_error(err, st, a->file.path, a->name);
        for (size_t i = 0; i < count; i++) {
            if (classes)
                classes[at + i] = (int64_t)piece[i];
            else if (!isfinite(numbers[at + i] = (float)piece[i]))
                return as_fail(err, AS_E_INVAL, "%s holds a value that is not finite", a->name);
        }
    }
    return AS_OK;
}

/* Integers are classes; other values are targets of a regression. */
static as_status read_targets(struct store *db, struct ensemble_data *d, struct as_err *err)
{
    AS_AUTO(array_done) struct array a = {0};
    as_status st = array_open_blob(db, d->candidates[0].targets, "targets.npy", &a, err);
    if (st != AS_OK)
        return st;
    bool classes = a.type != NPY_F4 && a.type != NPY_F8;
    if (classes && a.columns != 1)
        return as_fail(err, AS_E_INVAL, "targets.npy has %zu columns of classes", a.columns);
    d->rows = a.rows;
    d->outputs = classes ? 0 : a.columns;
    if (classes)
        d->classes = as_calloc(a.rows, sizeof *d->classes);
    else
        d->targets = as_calloc(a.rows * a.columns, sizeof *d->targets);
    if (!d->classes && !d->targets)
        return as_fail_nomem(err);
    return array_read(&a, d->classes, d->targets, err);
}

static as_status read_weights(struct store *db, struct ensemble_data *d, struct as_err *err)
{
    AS_AUTO(array_done) struct array a = {0};
    if (!d->candidates[0].weights[0])
        return AS_OK;
    as_status st = array_open_blob(db, d->candidates[0].weights, "weights.npy", &a, err);
    if (st != AS_OK)
        return st;
    if (a.rows != d->rows || a.columns != 1)
        return as_fail(err, AS_E_INVAL, "weights.npy is %zu x %zu, the targets ask for %zu x 1",
                       a.rows, a.columns, d->rows);
    d->weights = as_calloc(a.rows, sizeof *d->weights);
    if (!d->weights)
        return as_fail_nomem(err);
    st = array_read(&a, NULL, d->weights, err);
    for (size_t i = 0; st == AS_OK && i < d->rows; i++)
        if (d->weights[i] < 0)
            return as_fail(err, AS_E_INVAL, "weights.npy has %g in row %zu, expected 0 or more",
                           (double)d->weights[i], i);
    return st;
}

/* The predictions of one candidate. They must have the shape of the targets and of the first
 * candidate. */
static as_status read_predictions(struct store *db, struct ensemble_data *d, const char *sha256,
                                  float **ret, struct as_err *err)
{
    AS_AUTO(array_done) struct array a = {0};
    as_status st = array_open_blob(db, sha256, "predictions.npy", &a, err);
    if (st != AS_OK)
        return st;
    if (a.rows != d->rows || (d->outputs != 0 && a.columns != d->outputs))
        return as_fail(err, AS_E_INVAL,
                       "predictions.npy is %zu x %zu, the targets ask for %zu x %zu", a.rows,
                       a.columns, d->rows, d->outputs);
    AS_AUTO(as_freep) float *f = as_calloc(a.rows * a.columns, sizeof *f);
    if (!f)
        return as_fail_nomem(err);
    if ((st = array_read(&a, NULL, f, err)) != AS_OK)
        return st;
    d->outputs = a.columns;
    *ret = as_steal(f);
    return AS_OK;
}

as_status ensemble_data_read(struct store *db, const struct ensemble_candidate *candidates,
                             size_t n, struct ensemble_data *d, struct as_err *err)
{
    d->candidates = candidates;
    as_status st = read_targets(db, d, err);
    if (st == AS_OK)
        st = read_weights(db, d, err);
    if (st != AS_OK)
        return st;
    d->taken = as_calloc(n, sizeof *d->taken);
    d->index = as_calloc(n, sizeof *d->index);
    if (!d->taken || !d->index)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct as_err why = {0};
        if (d->n_taken > 0 && (d->n_taken + 1) * d->rows * d->outputs > ENSEMBLE_MAX_VALUES) {
            d->n_no_room = n - i;
            break;
        }
        st = read_predictions(db, d, candidates[i].predictions, &d->taken[d->n_taken], &why);
        if (st == AS_E_UNAVAILABLE || st == AS_E_NOMEM)
            return as_fail(err, st, "%s", why.msg);
        if (st == AS_OK)
            d->index[d->n_taken++] = i;
        else
            log_write(LOG_WARN, "predictions left out of the ensemble",
                      "trial=%s/%lld error=\"%s\"", candidates[i].sweep,
                      (long long)candidates[i].number, why.msg);
    }
    return AS_OK;
}
