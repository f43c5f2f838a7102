/* The state of the method: {"models": {name: …}, "trust": {…}, "relevance": {…}, "bends": {…},
 * "idle": {…}, "influence": {…}, "calibration": {…}}. */
#include "search/gp/gp_priv.h"

#include <string.h>

#include "base/json.h"

const json_t *gp_state_theta(const struct gp_ask *a, const char *model)
{
    const json_t *models = json_object_get(a->state, "models");
    return json_object_get(json_object_get(models, model), "theta");
}

/* Takes `part`: null is left out, NULL is out of memory. */
static int add_part(json_t *state, const char *name, json_t *part)
{
    if (part && !json_is_null(part))
        return json_object_set_new(state, name, part);
    int rc = part ? 0 : -1;
    json_decref(part);
    return rc;
}

as_status gp_state_write(const struct gp_ask *a, json_t **ret, struct as_err *err)
{
    JSON_AUTO state = json_pack("{s:{}, s:o*}", "models", "trust", trust_region_write(&a->trust));
    json_t *models = json_object_get(state, "models");
    const json_t *old = json_object_get(a->state, "models");
    int rc = state ? 0 : -1;
    if (rc == 0)
        rc = add_part(state, "relevance", relevance_write(&a->relevance));
    if (rc == 0)
        rc = add_part(state, "bends", bends_write(&a->bends));
    if (rc == 0)
        rc = add_part(state, "idle", idle_write(&a->idle));
    if (rc == 0)
        rc = add_part(state, "influence", influence_write(&a->influence));
    if (rc == 0)
        rc = add_part(state, "calibration", reliability_write(&a->reliability));
    if (rc == 0 && json_is_object(old))
        rc = json_object_update(models, (json_t *)old);
    for (size_t i = 0; i < a->n_models && rc == 0; i++) {
        size_t after = i - a->acquisition.n_objectives;
        bool is_objective = i < a->acquisition.n_objectives;
        struct surrogate_spec spec = {.target = a->models[i].target,
                                      .k = is_objective                               ? i
                                           : a->models[i].target == SURROGATE_FAILURE ? 0
                                                                                      : after};
        char name[16];
        surrogate_name(&spec, name);
        rc = json_object_set(models, *a->own_model ? a->own_model : name, a->models[i].state);
    }
    if (rc < 0)
        return as_fail_nomem(err);
    *ret = as_steal(state);
    return AS_OK;
}
