#include "cli/view/feature_view.h"

bool feature_view_knows(const json_t *importance)
{
    size_t i;
    const json_t *c;
    const json_t *columns = json_object_get(importance, "columns");
    json_array_foreach(columns, i, c)
    {
        if (!json_is_string(json_object_get(c, "column")) ||
            !json_is_number(json_object_get(c, "share")))
            return false;
    }
    return json_is_array(columns);
}

void feature_view_rows(struct pairs *p, const json_t *importance)
{
    const json_t *columns = json_object_get(importance, "columns");
    size_t n = json_array_size(columns);
    size_t shown = p->terminal.tty && n > FEATURE_VIEW_ROWS ? FEATURE_VIEW_ROWS : n;
    for (size_t i = 0; i < shown; i++) {
        const json_t *c = json_array_get(columns, i);
        struct str label = {0};
        str_printf(&label, "importance.%s", json_string_value(json_object_get(c, "column")));
        pairs_add_json(p, str_cstr(&label), json_object_get(c, "share"));
        p->text.failed = p->text.failed || label.failed;
        str_done(&label);
    }
    if (shown < n)
        pairs_addf(p, "importance", "%zu more columns in " FEATURE_VIEW_FILE, n - shown);
}
