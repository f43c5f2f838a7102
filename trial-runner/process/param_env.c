#include "trial-runner/process/param_env.h"

#include <string.h>

#include "base/param_name.h"
#include "base/str.h"
#include "base/template.h"

/* Note which parameter has its variable; the empty text: none. */
static as_status claim_variable(json_t *owners, const char *param, struct as_err *err)
{
    AS_AUTO(str_done) struct str name = {0};
    param_name_variable(param, &name);
    as_status st = str_check(&name, err);
    if (st < 0 || name.len == 0)
        return st;
    bool is_exact = as_streq(name.s + strlen(PARAM_VARIABLE_PREFIX), param);
    const char *other = json_string_value(json_object_get(owners, name.s));
    if (other && !is_exact) {
        bool other_is_exact = as_streq(name.s + strlen(PARAM_VARIABLE_PREFIX), other);
        param = other_is_exact ? other : "";
    }
    if (json_object_set_new(owners, name.s, json_string(param)) < 0)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status find_owners(json_t *owners, const json_t *params, const json_t *inactive,
                             struct as_err *err)
{
    const char *name;
    json_t *v;
    size_t i;
    as_status st = owners ? AS_OK : as_fail_nomem(err);
    json_object_foreach((json_t *)params, name, v)
    {
        if (st == AS_OK)
            st = claim_variable(owners, name, err);
    }
    json_array_foreach((json_t *)inactive, i, v)
    {
        if (st == AS_OK && json_is_string(v))
            st = claim_variable(owners, json_string_value(v), err);
    }
    return st;
}

static as_status format_param(const char *param, const json_t *params, char **ret,
                              struct as_err *err)
{
    AS_AUTO(str_done) struct str text = {0};
    str_printf(&text, "${%s}", param);
    as_status st = str_check(&text, err);
    return st < 0 ? st : template_apply_text(text.s, params, ret, err);
}

as_status param_env_set(struct child_env *e, const json_t *params, const json_t *inactive,
                        struct as_err *err)
{
    json_t *owners = json_object();
    const char *variable;
    json_t *owner;
    size_t total = 0;
    as_status st = find_owners(owners, params, inactive, err);
    json_object_foreach(owners, variable, owner)
    {
        AS_AUTO(as_freep) char *value = NULL;
        const char *param = json_string_value(owner);
        if (st < 0 || !json_object_get(params, param))
            continue;
        st = format_param(param, params, &value, err);
        if (st < 0)
            continue;
        size_t len = strlen(value), added = len + strlen(variable);
        if (len > PARAM_ENV_VALUE_MAX || total + added > PARAM_ENV_TOTAL_MAX)
            continue;
        total += added;
        st = child_env_set(e, variable, value, err);
    }
    json_decref(owners);
    return st;
}
