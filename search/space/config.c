/* An entry is a level, or a double for a continuous float, so two configurations are equal exactly
 * when their values are (decision 4001). config_settle() switches parameters on and off in the
 * order of the space, which has parents before children. The digest goes over names and values, so
 * it is the same for any order of a document. */
#include "search/space/config.h"

#include <string.h>

#include "base/json.h"

struct config *config_create(const struct space *s)
{
    AS_AUTO(config_freep) struct config *c = as_calloc(1, sizeof *c);
    if (!c || !(c->entries = as_calloc(s->n, sizeof *c->entries)))
        return NULL;
    c->n = s->n;
    return as_steal(c);
}

void config_free(struct config *c)
{
    if (!c)
        return;
    free(c->entries);
    free(c);
}

struct config *config_copy(const struct config *c)
{
    AS_AUTO(config_freep) struct config *copy = as_calloc(1, sizeof *copy);
    if (!copy || !(copy->entries = as_calloc(c->n, sizeof *copy->entries)))
        return NULL;
    copy->n = c->n;
    memcpy(copy->entries, c->entries, c->n * sizeof *c->entries);
    return as_steal(copy);
}

bool config_wants(const struct space *s, const struct config *c, size_t i)
{
    const struct space_param *p = &s->params[i];
    for (size_t k = 0; k < p->n_conds; k++) {
        const struct config_entry *e = &c->entries[p->conds[k].parent];
        if (!e->active || !cond_holds(&s->params[p->conds[k].parent], &p->conds[k], e->value))
            return false;
    }
    return true;
}

void config_settle(const struct space *s, struct config *c)
{
    for (size_t k = 0; k < s->n; k++) {
        struct config_entry *e = &c->entries[s->order[k]];
        e->active = config_wants(s, c, s->order[k]);
        if (!e->active)
            *e = (struct config_entry){0};
    }
}

json_t *config_to_json(const struct space *s, const struct config *c)
{
    JSON_AUTO j = json_object();
    int bad = j ? 0 : -1;
    for (size_t i = 0; i < s->n; i++)
        if (c->entries[i].active)
            bad |= json_object_set_new(j, s->params[i].name,
                                       param_value_to_json(&s->params[i], c->entries[i].value));
    return bad ? NULL : as_steal(j);
}

static as_status read_entry(const struct space *s, struct config *c, size_t i, const json_t *j,
                            const char *pointer, struct as_err *err)
{
    const struct space_param *p = &s->params[i];
    const json_t *v = json_object_get(j, p->name);
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, p->name, at);
    bool wanted = config_wants(s, c, i);
    if (!v && wanted)
        return as_fail_at(err, AS_E_INVAL, at, "%s is missing", at);
    if (v && !wanted)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: this parameter is not active here, because its `when` does not hold",
                          at);
    if (!wanted)
        return AS_OK;
    c->entries[i].active = true;
    return param_value_from_json(p, v, at, &c->entries[i].value, err);
}

as_status config_from_json(const struct space *s, const json_t *j, const char *pointer,
                           struct config **ret, struct as_err *err)
{
    if (!json_is_object(j))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %s, expected an object", pointer,
                          json_type_name(j));
    AS_AUTO(config_freep) struct config *c = config_create(s);
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a configuration");
    for (void *it = json_object_iter((json_t *)j); it;
         it = json_object_iter_next((json_t *)j, it)) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(pointer, json_object_iter_key(it), at);
        if (space_find(s, json_object_iter_key(it)) < 0)
            return as_fail_at(err, AS_E_INVAL, at, "%s: there is no parameter '%.64s'", at,
                              json_object_iter_key(it));
    }
    for (size_t k = 0; k < s->n; k++) {
        as_status st = read_entry(s, c, s->order[k], j, pointer, err);
        if (st < 0)
            return st;
    }
    *ret = as_steal(c);
    return AS_OK;
}

static bool same_entry(const struct space_param *p, const struct config_entry *a,
                       const struct config_entry *b)
{
    if (a->active != b->active)
        return false;
    return !a->active || param_compare(p, a->value, b->value) == 0;
}

bool config_equal(const struct space *s, const struct config *a, const struct config *b)
{
    for (size_t i = 0; i < s->n; i++)
        if (!same_entry(&s->params[i], &a->entries[i], &b->entries[i]))
            return false;
    return true;
}
