/* Predictions are read whole before the first fold trains: an array has a row for each row of the
 * table, in its order, because each is held out once. An array of fewer rows is of a trial that
 * held out a part of them, and what it says of the others was learnt from them; it is refused. */
#include "trial-runner/train/stack_rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "data/dataset_view.h"
#include "data/formats/npy.h"

void stack_rows_done(struct stack_rows *s)
{
    dataset_info_done(&s->info);
    free(s->values);
    free(s->sources);
    *s = (struct stack_rows){0};
}

static const json_t *trials_of(const struct job *job)
{
    const json_t *train = job->group || job->n_members != 1 ? NULL : job->members[0].train;
    return json_object_get(train, "stack");
}

bool stack_rows_wanted(const struct job *job)
{
    return trials_of(job) != NULL;
}

static as_status open_predictions(const struct job *job, const char *path, struct npy **ret,
                                  struct as_err *err)
{
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    const struct dataset_info *info = &job->info;
    as_status st = npy_open(path, &npy, err);
    if (st != AS_OK)
        return st;
    const struct npy_header *h = npy_header_of(npy);
    size_t columns = h->n_dims > 1 ? h->shape[1] : 1;
    if (h->n_dims == 0 || h->shape[0] != info->n_rows || columns != info->n_outputs)
        return as_fail(err, AS_E_INVAL,
                       "found predictions of %zu rows and %zu outputs, expected %zu and %zu: each "
                       "row is held out once where a trial has validation.folds",
                       h->n_dims ? h->shape[0] : 0, columns, info->n_rows, info->n_outputs);
    *ret = as_steal(npy);
    return AS_OK;
}

/* Place i behind each row. */
static as_status read_predictions(const struct job *job, const char *path, size_t i,
                                  struct stack_rows *s, struct as_err *err)
{
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    size_t outputs = job->info.n_outputs, width = model_stacked_width(&job->info);
    AS_AUTO(as_freep) double *row = as_calloc(outputs, sizeof *row);
    AS_AUTO(as_freep) float *predicted = as_calloc(outputs, sizeof *predicted);
    if (!row || !predicted)
        return as_fail_nomem(err);
    as_status st = open_predictions(job, path, &npy, err);
    for (size_t r = 0; st == AS_OK && r < job->info.n_rows; r++) {
        st = npy_read(npy, outputs, row, err);
        for (size_t c = 0; st == AS_OK && c < outputs; c++) {
            predicted[c] = (float)row[c];
            if (!isfinite(row[c]))
                st = as_fail(err, AS_E_INVAL, "row %zu: found %g, expected a finite prediction", r,
                             row[c]);
        }
        if (st == AS_OK)
            model_stacked_values(&job->info, predicted, s->values + (r * s->n + i) * width);
    }
    return st;
}

static as_status read_trial(const struct job *job, size_t i, struct stack_rows *s,
                            struct as_err *err)
{
    const json_t *item = json_array_get(job->stack, i);
    const char *predictions = json_string_value(json_object_get(item, "predictions"));
    const char *model = json_string_value(json_object_get(item, "model"));
    const char *sweep = json_string_value(json_object_get(item, "sweep"));
    int64_t trial = json_integer_value(json_object_get(item, "trial"));
    if (!predictions || !model)
        return as_fail(err, AS_E_INVAL, "/stack/%zu: expected the paths `predictions` and `model`",
                       i);
    s->sources[i] =
        (struct model_source){.path = model, .weight = 1, .trial = trial, .sweep = sweep};
    as_status st = read_predictions(job, predictions, i, s, err);
    return st == AS_OK ? AS_OK
                       : as_err_prefix(err, st, "train.stack: %s/%lld", sweep ? sweep : "?",
                                       (long long)trial);
}

as_status stack_rows_read(const struct job *job, struct stack_rows *ret, struct as_err *err)
{
    AS_AUTO(stack_rows_done)
    struct stack_rows s = {.base = &job->info, .n = json_array_size(job->stack)};
    if (s.n != json_array_size(trials_of(job)))
        return as_fail(err, AS_E_INVAL, "/train/stack: found %zu trials, but /stack has %zu",
                       json_array_size(trials_of(job)), s.n);
    as_status st = model_stacked_info(&job->info, s.n, &s.info, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "/train/stack");
    s.values =
        as_calloc(job->info.n_rows, s.n * model_stacked_width(&job->info) * sizeof *s.values);
    s.sources = as_calloc(s.n, sizeof *s.sources);
    if (!s.values || !s.sources)
        return as_fail(err, AS_E_NOMEM, "out of memory for the predictions of %zu trials", s.n);
    for (size_t i = 0; st == AS_OK && i < s.n; i++)
        st = read_trial(job, i, &s, err);
    if (st != AS_OK)
        return st;
    *ret = s;
    s = (struct stack_rows){0};
    return AS_OK;
}

as_status stack_rows_put(const struct stack_rows *s, struct row_roles *roles, struct dataset *set,
                         struct as_err *err)
{
    struct dataset_info info;
    as_status st = dataset_with(set, s->values, s->n * model_stacked_width(s->base), err);
    if (st == AS_OK)
        st = model_stacked_info(&roles->info, s->n, &info, err);
    if (st != AS_OK)
        return st;
    dataset_info_done(&roles->info);
    roles->info = info;
    return AS_OK;
}
