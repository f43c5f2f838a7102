#include "scheduler/sweep/split_rule.h"

#include <stdbool.h>

#include "base/json.h"

/* A shallow copy of parent[name] in its place: what is changed in it does not change the original.
 * Returns a borrowed reference, or NULL when memory is out. */
static json_t *own_child(json_t *parent, const char *name)
{
    json_t *child = json_object_get(parent, name);
    json_t *own = child ? json_clone_flat(child) : json_object();
    return json_object_set_new(parent, name, own) == 0 ? own : NULL;
}

/* Does the section say how rows are held out? A column says it too. */
static bool chooses(const json_t *validation)
{
    return json_object_get(validation, "split") || json_object_get(validation, "column") ||
           json_object_get(validation, "order") || json_object_get(validation, "groups");
}

as_status split_rule_choose(const json_t *doc, json_t **ret, struct as_err *err)
{
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    json_t *validation = json_object_get(train, "validation");
    bool wrong = validation && !json_is_object(validation); /* the parser refuses it */
    if (!json_is_object(train) || wrong || chooses(validation)) {
        *ret = json_incref((json_t *)doc);
        return AS_OK;
    }
    JSON_AUTO copy = json_clone_flat(doc);
    json_t *at = copy ? own_child(copy, "trial") : NULL;
    at = at ? own_child(at, "train") : NULL;
    at = at ? own_child(at, "validation") : NULL;
    if (!at || json_object_set_new(at, "split", json_string("stratified")) != 0)
        return as_fail_nomem(err);
    *ret = as_steal(copy);
    return AS_OK;
}
