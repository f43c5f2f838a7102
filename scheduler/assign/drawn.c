#include "scheduler/assign/drawn.h"

#include "base/json.h"
#include "search/suggest.h"

as_status draw_suggestion(struct arena *a, const struct sweep_doc *doc, int64_t number,
                          int64_t index, struct made_trial *ret, struct as_err *err)
{
    AS_AUTO(suggestion_done) struct suggestion drawn = {0};
    struct search_spec spec;
    sweep_doc_search_spec(doc, &spec);
    as_status st = suggest(&spec, NULL, NULL, (uint64_t)number, (uint64_t)index, NULL, &drawn, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO params = config_to_json(spec.space, drawn.config);
    bool bad = json_object_set_new(drawn.reason, "index", json_integer(index)) != 0;
    AS_AUTO(as_freep)
    char *params_text = params ? json_format_ordered(params) : NULL; /* as the document has them */
    AS_AUTO(as_freep) char *reason_text = bad ? NULL : json_format_ordered(drawn.reason);
    *ret = (struct made_trial){.number = number,
                               .index = index,
                               .seen = -1,
                               .params = arena_strdup(a, params_text),
                               .suggestion = arena_strdup(a, reason_text)};
    return ret->params && ret->suggestion ? AS_OK : as_fail_nomem(err);
}

struct made_trial prepared_suggestion(const struct prepared *p, int64_t number)
{
    return (struct made_trial){.number = number,
                               .index = p->index,
                               .seen = p->seen,
                               .params = p->params,
                               .suggestion = p->reason};
}

as_status inactive_names(struct arena *a, const json_t *doc, const json_t *params,
                         const char ***ret, size_t *ret_n, struct as_err *err)
{
    json_t *all = json_object_get(doc, "parameters");
    const char **names = arena_alloc(a, json_object_size(all) + 1, sizeof *names);
    const char *name;
    json_t *v;
    size_t n = 0;
    if (!names)
        return as_fail_nomem(err);
    json_object_foreach(all, name, v)
    {
        if (json_object_get(params, name))
            continue;
        names[n] = arena_strdup(a, name);
        if (!names[n++])
            return as_fail_nomem(err);
    }
    *ret = names;
    *ret_n = n;
    return AS_OK;
}
