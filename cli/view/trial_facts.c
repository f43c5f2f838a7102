#include "cli/view/trial_facts.h"

#include "base/json.h"

/* Append the keys of an object that are not known yet. */
static bool add_names(json_t *names, json_t *known, const json_t *object)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)object, name, v)
    {
        if (json_object_get(known, name))
            continue;
        if (json_object_set_new(known, name, json_true()) != 0 ||
            json_array_append_new(names, json_string(name)) != 0)
            return false;
    }
    return true;
}

static bool note_used(json_t *used, const json_t *object)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)object, name, v)
    {
        if (!json_object_get(used, name) && json_object_set_new(used, name, json_true()) != 0)
            return false;
    }
    return true;
}

as_status trial_facts_init(struct trial_facts *f, const json_t *sweep, struct as_err *err)
{
    const json_t *document = json_object_get(sweep, "document");
    *f = (struct trial_facts){.params = json_array(),
                              .metrics = json_array(),
                              .used_params = json_object(),
                              .known_params = json_object(),
                              .known_metrics = json_object()};
    if (!f->params || !f->metrics || !f->used_params || !f->known_params || !f->known_metrics ||
        !add_names(f->params, f->known_params, json_object_get(document, "parameters")))
        return as_fail_nomem(err);
    return AS_OK;
}

void trial_facts_done(struct trial_facts *f)
{
    json_decref(f->params);
    json_decref(f->metrics);
    json_decref(f->used_params);
    json_decref(f->known_params);
    json_decref(f->known_metrics);
    *f = (struct trial_facts){0};
}

as_status trial_facts_add(struct trial_facts *f, const json_t *items, struct as_err *err)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)items, i, trial)
    {
        const json_t *params = json_object_get(trial, "params");
        if (!add_names(f->params, f->known_params, params) || !note_used(f->used_params, params) ||
            !add_names(f->metrics, f->known_metrics, json_object_get(trial, "metrics")))
            return as_fail_nomem(err);
        f->has_groups = f->has_groups || json_is_string(json_object_get(trial, "group"));
        f->has_reasons = f->has_reasons || json_is_string(json_object_get(trial, "reason"));
    }
    return AS_OK;
}
