#include "scheduler/sweep/stored_doc.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"

as_status stored_doc_failed(as_status st, struct as_err *err)
{
    return as_err_prefix(err, st == AS_E_NOMEM ? st : AS_E_INTERNAL,
                         "the stored document cannot be read");
}

as_status stored_doc_read(const char *text, json_t **ret_tree, struct sweep_doc **ret,
                          struct as_err *err)
{
    JSON_AUTO tree = NULL;
    as_status st = json_parse(text, strlen(text), &tree, err);
    if (st != AS_OK)
        return stored_doc_failed(st, err);
    if (ret)
        st = sweep_doc_parse(tree, 0, ret, err); /* its seed is written in it */
    if (st != AS_OK)
        return stored_doc_failed(st, err);
    if (ret_tree)
        *ret_tree = as_steal(tree);
    return AS_OK;
}
