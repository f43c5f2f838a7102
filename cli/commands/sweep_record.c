#include "cli/commands/sweep_record.h"

#include "base/file.h"
#include "base/json.h"

as_status sweep_record_add_checks(struct client *c, const struct trial_ref *ref, json_t *sweep,
                                  struct as_err *err)
{
    JSON_AUTO checks = NULL;
    as_status st = request_get(c, ref, "regret/checks", NULL, &checks, err);
    if (st < 0)
        return st;
    return json_object_set(sweep, "regret_checks", json_object_get(checks, "items")) == 0
               ? AS_OK
               : as_fail_nomem(err);
}

as_status sweep_record_fetch(struct client *c, const char *name, json_t **ret_sweep,
                             json_t **ret_items, struct as_err *err)
{
    struct trial_ref ref;
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO sweep = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st < 0)
        return st;
    st = request_get(c, &ref, NULL, NULL, &sweep, err);
    if (st < 0)
        return st;
    request_path(&path, &ref, "trials");
    st = str_check(&path, err);
    if (st < 0)
        return st;
    /* the trials last: they are then at least as new as the bounds */
    if ((st = sweep_record_add_checks(c, &ref, sweep, err)) < 0 ||
        (st = request_list(c, path.s, NULL, 0, ret_items, err)) < 0)
        return st;
    *ret_sweep = as_steal(sweep);
    return AS_OK;
}

as_status sweep_record_read_file(const char *path, json_t **ret_sweep, json_t **ret_items,
                                 struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO tree = NULL;
    size_t len;
    as_status st = file_read_input(path, SWEEP_RECORD_MAX_BYTES, &text, &len, err);
    if (st < 0)
        return st;
    st = json_parse_file(text, len, &tree, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", path);
    json_t *sweep = json_object_get(tree, "sweep"), *items = json_object_get(tree, "items");
    if (!json_is_object(sweep) || !json_is_array(items))
        return as_fail(err, AS_E_INVAL,
                       "%s: expected what `assay export --json` writes, {\"sweep\": …, \"items\": "
                       "[…]}",
                       path);
    *ret_sweep = json_incref(sweep);
    *ret_items = json_incref(items);
    return AS_OK;
}
