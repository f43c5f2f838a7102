#include "cli/session/list.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/session/request.h"
#include "cli/view/say.h"

as_status list_print_json(const json_t *items, struct as_err *err)
{
    JSON_AUTO answer = json_pack("{s:O}", "items", items);
    return session_print_json(answer, err);
}

/* The array of items, owned by the caller. */
static as_status get_items(const struct session *s, const struct list *l, json_t **ret,
                           struct as_err *err)
{
    if (!l->is_whole)
        return request_list(s->client, l->path, l->query, l->limit, ret, err);
    JSON_AUTO answer = NULL;
    as_status st = client_call(s->client, "GET", l->path, l->query, NULL, NULL, &answer, NULL, err);
    if (st < 0)
        return st;
    *ret = json_incref(json_object_get(answer, "items"));
    return json_is_array(*ret) ? AS_OK : as_fail(err, AS_E_INTERNAL, "the answer has no items");
}

as_status list_print(const struct session *s, const struct list *l, struct as_err *err)
{
    JSON_AUTO items = NULL;
    as_status st = get_items(s, l, &items, err);
    if (st < 0)
        return st;
    if (s->json)
        return list_print_json(items, err);
    AS_AUTO(table_freep) struct table *t = table_create();
    if (!t)
        return as_fail_nomem(err);
    for (const struct list_column *c = l->columns; c->header; c++)
        table_column(t, c->header, c->align, c->min);
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item) l->add_row(s, t, item, clock_wall_ms());
    st = session_print_table(s, t, err);
    if (st < 0)
        return st;
    if (l->none && table_rows(t) == 0)
        say("%s", l->none);
    return AS_OK;
}
