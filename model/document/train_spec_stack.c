/* The parser of `train.stack`: the trials whose predictions a training of a further layer sees
 * behind the columns of its data set, in this order. They are texts, and who needs the trials reads
 * them again. Whether the trials exist and fit is checked where they are known
 * (scheduler/services/sweep_stack.h). */
#include "base/trial_name.h"
#include "model/document/train_spec_priv.h"

#define TRAIN_MAX_STACK 32

static as_status check_trials(const json_t *list, const char *pointer, struct as_err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct trial_name trial;
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        struct as_err why = {0};
        as_status st = trial_name_parse(json_string_value(json_array_get(list, i)), &trial, &why);
        if (st != AS_OK)
            return as_fail_at(err, st, at, "%s: %s", at, why.msg);
        for (size_t k = 0; k < i; k++)
            if (json_equal(json_array_get(list, i), json_array_get(list, k)))
                return as_fail_at(err, AS_E_INVAL, at, "%s: found '%s/%lld' twice", at, trial.sweep,
                                  (long long)trial.number);
    }
    return AS_OK;
}

as_status train_spec_parse_stack(struct json_fields *doc, const struct train_spec *spec,
                                 struct as_err *err)
{
    json_t *list = NULL;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(doc, "stack", JSON_OPTIONAL, &list, err);
    if (st != AS_OK || !list)
        return st;
    json_pointer_child(doc->pointer, "stack", at);
    size_t n = json_array_size(list);
    if (n == 0 || n > TRAIN_MAX_STACK)
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %zu trials, expected 1 to %d", at, n,
                          TRAIN_MAX_STACK);
    if (spec->folds == 0)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found without validation.folds, expected folds: a row sees only "
                          "predictions of models that were trained without it",
                          at);
    if (spec->boost.given)
        return as_fail_at(err, AS_E_INVAL, at, "%s: found beside boost, expected one of the two",
                          at);
    return check_trials(list, at, err);
}
