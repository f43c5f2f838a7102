#include "scheduler/services/sweep_stack.h"

#include <string.h>

#include "base/trial_name.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/sweep_row_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"

#define STACK_AT "/trial/train/stack"

/* Its data set, and whether each row is held out once, as its sweep's document says. */
static as_status check_document(struct tx *t, struct arena *a, int64_t key, const json_t *train,
                                const char *at, struct as_err *err)
{
    struct sweep_row sweep;
    JSON_AUTO document = NULL;
    as_status st = store_sweep_get(t, a, key, &sweep, err);
    if (st == AS_OK)
        st = json_parse(sweep.document, strlen(sweep.document), &document, err);
    if (st != AS_OK)
        return st;
    const json_t *own = json_object_get(json_object_get(document, "trial"), "train");
    const json_t *validation = json_object_get(own, "validation");
    if (!json_is_object(own))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found a trial of a program, expected one of the built-in trainer",
                          at);
    if (!json_equal(json_object_get(own, "dataset"), json_object_get(train, "dataset")))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found a trial of another data set (/trial/train/dataset)", at);
    if (!json_object_get(validation, "folds"))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found a trial that held out a part of the rows, expected one with "
                          "validation.folds: it has predictions of all rows",
                          at);
    return AS_OK;
}

static as_status check_files(struct tx *t, struct arena *a, int64_t key, int64_t number,
                             const char *at, struct as_err *err)
{
    static const char *const names[] = {"model.safetensors", "predictions.npy"};
    struct file_list files = {0};
    as_status st = store_file_list(t, a, key, number, "artifact", &files, err);
    for (size_t k = 0; st == AS_OK && k < AS_ARRAY_LEN(names); k++) {
        bool found = false;
        for (size_t i = 0; i < files.n; i++)
            found = found || as_streq(files.rows[i].path, names[k]);
        if (!found)
            return as_fail_at(err, AS_E_INVAL, at, "%s: the trial has no %s", at, names[k]);
    }
    return st;
}

static as_status check_trial(struct tx *t, struct arena *a, const char *text, const json_t *train,
                             const char *at, struct as_err *err)
{
    struct trial_name name;
    struct trial_row trial;
    int64_t key = 0;
    as_status st = trial_name_parse(text, &name, err);
    if (st == AS_OK)
        st = store_sweep_key(t, name.sweep, &key, err);
    if (st == AS_OK)
        st = store_trial_get(t, a, key, name.number, &trial, err);
    if (st == AS_E_NOT_FOUND || st == AS_E_INVAL)
        return as_fail_at(err, AS_E_INVAL, at, "%s: there is no trial '%.80s'", at,
                          text ? text : "");
    if (st != AS_OK)
        return st;
    if (trial.state != TRIAL_COMPLETED)
        return as_fail_at(err, AS_E_INVAL, at, "%s: the trial is %s, expected a completed one", at,
                          trial_state_format(trial.state));
    st = check_document(t, a, key, train, at, err);
    return st == AS_OK ? check_files(t, a, key, name.number, at, err) : st;
}

as_status sweep_check_stack(struct tx *t, struct arena *a, const struct sweep_doc *doc,
                            struct faults *faults, struct as_err *err)
{
    const json_t *train = doc->trial.kind == TRIAL_TRAIN ? doc->trial.train : NULL;
    const json_t *list = json_object_get(train, "stack");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(STACK_AT, i, at);
        const char *text = json_string_value(json_array_get(list, i));
        as_status st = faults_note(faults, check_trial(t, a, text, train, at, err), err);
        if (st != AS_OK)
            return st;
    }
    return faults_first(faults, err);
}
