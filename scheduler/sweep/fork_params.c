#include "scheduler/sweep/fork_params.h"

#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/stored_doc.h"
#include "search/space/config.h"
#include "search/stopping/explore.h"

static as_status read_parent(const struct sweep_doc *d, const char *params, struct config **ret,
                             struct as_err *err)
{
    JSON_AUTO tree = NULL;
    as_status st = json_parse(params, strlen(params), &tree, err);
    if (st == AS_OK)
        st = config_from_json(d->space, tree, "/params", ret, err);
    return st == AS_OK ? st : stored_doc_failed(st, err);
}

as_status fork_params(const struct sweep_doc *d, const struct fork_made *f, const char *params,
                      json_t **ret_params, json_t **ret_reason, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *parent = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    as_status st = read_parent(d, params, &parent, err);
    if (st == AS_OK)
        st = explore(d->space, &d->stopping.pbt, d->seed, (uint64_t)f->number, parent, &c, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO own = config_to_json(d->space, c);
    JSON_AUTO reason = json_pack("{s:s, s:I, s:I, s:I}", "method", stop_method_name(STOP_PBT),
                                 "parent", (json_int_t)f->parent, "replaces",
                                 (json_int_t)f->replaced, "step", (json_int_t)f->step);
    if (!own || !reason)
        return as_fail_nomem(err);
    *ret_params = as_steal(own);
    *ret_reason = as_steal(reason);
    return AS_OK;
}
