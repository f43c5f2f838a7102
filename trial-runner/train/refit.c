#include "trial-runner/train/refit.h"

#include <math.h>

#include "base/json.h"
#include "model/document/train_spec.h"

/* Epochs of a schedule: it must be able to rise and to fall within them. */
static int64_t epochs_of(const struct train_spec *spec, double best_step)
{
    int64_t least = (int64_t)ceil(spec->schedule.warmup_epochs), n = llround(best_step);
    least = spec->schedule.cycles > least ? spec->schedule.cycles : least;
    return n < least ? least : n;
}

static int set_length(json_t *train, const struct train_spec *spec, double best_step)
{
    json_t *model = json_object_get(train, "model");
    if (!train_model_is_network(&spec->model))
        return json_object_set_new(model, "n_estimators", json_integer(llround(best_step)));
    return json_object_set_new(train, "epochs", json_integer(epochs_of(spec, best_step)));
}

as_status refit_document(const json_t *train, double best_step, json_t **ret, struct as_err *err)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    JSON_AUTO own = json_deep_copy(train);
    if (!own)
        return as_fail_nomem(err);
    as_status st = train_spec_parse(train, "/train", &spec, err);
    if (st != AS_OK)
        return st;
    (void)json_object_del(own, "patience"); /* it may be absent */
    (void)json_object_del(json_object_get(own, "model"), "early_stopping_rounds");
    if (isfinite(best_step) && set_length(own, &spec, best_step) != 0)
        return as_fail_nomem(err);
    *ret = as_steal(own);
    return AS_OK;
}
