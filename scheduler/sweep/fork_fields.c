/* A parameter reaches trial.train through the texts that name it, so the fields that differ
 * between a fork and its parent are the places of these texts. That is known from the document
 * alone: no trial has to be formed for it. */
#include "scheduler/sweep/fork_fields.h"

#include "base/json.h"
#include "base/str.h"
#include "base/template.h"
#include "search/stopping/stop_spec.h"

static bool has_name(const json_t *names, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)names, i, item)
    {
        if (as_streq(json_string_value(item), name))
            return true;
    }
    return false;
}

/* Does the parameter's condition name one of them? */
static bool depends(const json_t *parameter, const json_t *names)
{
    const char *other;
    json_t *value;
    json_object_foreach(json_object_get(parameter, "when"), other, value)
    {
        if (has_name(names, other))
            return true;
    }
    return false;
}

as_status fork_names(const json_t *parameters, const json_t *explore, json_t **ret,
                     struct as_err *err)
{
    const char *name;
    json_t *parameter;
    bool grows = true;
    JSON_AUTO list = json_copy((json_t *)explore);
    if (!list)
        return as_fail_nomem(err);
    while (grows) {
        grows = false;
        json_object_foreach((json_t *)parameters, name, parameter)
        {
            if (has_name(list, name) || !depends(parameter, list))
                continue;
            if (json_array_append_new(list, json_string(name)) < 0)
                return as_fail_nomem(err);
            grows = true;
        }
    }
    *ret = as_steal(list);
    return AS_OK;
}

/* A text that is looked at. */
struct looking {
    const json_t *names;
    bool found;
};

static as_status look_at(void *arg, const struct template_ref *ref, struct as_err *err)
{
    struct looking *l = arg;
    (void)err;
    l->found |= has_name(l->names, ref->name);
    return AS_OK;
}

static as_status add_fields(const json_t *tree, const char *pointer, const json_t *names,
                            json_t *list, struct as_err *err);

static as_status add_text(const json_t *text, const char *pointer, const json_t *names,
                          json_t *list, struct as_err *err)
{
    struct looking l = {.names = names};
    as_status st = template_visit(text, pointer, look_at, &l, err);
    if (st != AS_OK || !l.found)
        return st;
    return json_array_append_new(list, json_string(pointer)) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status add_object(const json_t *tree, const char *pointer, const json_t *names,
                            json_t *list, struct as_err *err)
{
    const char *key;
    json_t *value;
    char at[AS_ERR_POINTER_MAX];
    json_object_foreach((json_t *)tree, key, value)
    {
        json_pointer_child(pointer, key, at);
        as_status st = add_fields(value, at, names, list, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* Documents are bounded in depth by their parser. */
static as_status add_fields(const json_t *tree, const char *pointer, const json_t *names,
                            json_t *list, struct as_err *err)
{
    size_t i;
    json_t *item;
    char at[AS_ERR_POINTER_MAX];
    if (json_is_string(tree))
        return add_text(tree, pointer, names, list, err);
    if (json_is_object(tree))
        return add_object(tree, pointer, names, list, err);
    json_array_foreach((json_t *)tree, i, item)
    {
        json_pointer_index(pointer, i, at);
        as_status st = add_fields(item, at, names, list, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status fork_fields(const json_t *train, const json_t *names, json_t **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    if (!list)
        return as_fail_nomem(err);
    as_status st = add_fields(train, "", names, list, err);
    if (st == AS_OK)
        *ret = as_steal(list);
    return st;
}

as_status fork_rule_read(const json_t *document, struct fork_rule *ret, struct as_err *err)
{
    const json_t *section = json_object_get(document, "early_stopping");
    const json_t *train = json_object_get(json_object_get(document, "trial"), "train");
    *ret = (struct fork_rule){0};
    if (!as_streq(json_string_value(json_object_get(section, "method")),
                  stop_method_name(STOP_PBT)))
        return AS_OK;
    JSON_AUTO names = NULL;
    json_t *list = NULL;
    as_status st = fork_names(json_object_get(document, "parameters"),
                              json_object_get(section, "explore"), &names, err);
    if (st == AS_OK && train)
        st = fork_fields(train, names, &list, err);
    if (st == AS_OK)
        *ret =
            (struct fork_rule){.every = json_integer_value(json_object_get(section, "period")),
                               .until = json_integer_value(json_object_get(section, "max_steps")),
                               .may_differ = list};
    return st;
}

void fork_rule_done(struct fork_rule *r)
{
    json_decref(r->may_differ);
    *r = (struct fork_rule){0};
}
