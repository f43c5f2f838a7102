#include "cli/files/trial_folder.h"

#include "base/mem.h"
#include "base/str.h"

/* Append a path. In the document "${" begins a parameter, so it is written as "$${". */
static void add_literal(struct str *b, const char *path)
{
    for (; *path; path++) {
        if (as_starts_with(path, "${"))
            str_putc(b, '$');
        str_putc(b, *path);
    }
}

as_status trial_folder_set(json_t *document, const char *here, struct as_err *err)
{
    json_t *trial = json_object_get(document, "trial");
    const json_t *given = json_object_get(trial, "directory");
    const char *relative = json_string_value(given);
    if (!json_object_get(trial, "command") || (given && (!relative || !*relative)) ||
        (relative && *relative == '/'))
        return AS_OK;
    AS_AUTO(str_done) struct str b = {0};
    add_literal(&b, here);
    if (relative)
        str_printf(&b, "/%s", relative);
    as_status st = str_check(&b, err);
    if (st < 0)
        return st;
    if (json_object_set_new(trial, "directory", json_string(b.s)) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}
