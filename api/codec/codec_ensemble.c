#include "api/codec/wire.h"
#include "api/codec/wire_priv.h"

json_t *ensemble_asked_encode(const struct ensemble_asked *r)
{
    struct out o = out_begin();
    out_i64(&o, "number", r->number);
    out_time(&o, "created_at", r->created_ms);
    out_json(&o, "request", r->request);
    out_json(&o, "ensemble", r->result ? r->result : "{\"state\": \"pending\"}");
    return out_end(&o);
}

json_t *ensemble_asked_list_encode(const struct ensemble_asked_list *l)
{
    struct out o = out_begin();
    json_t *items = json_array();
    for (size_t i = 0; i < l->n; i++)
        items = list_add(items, ensemble_asked_encode(&l->rows[i]));
    out_child(&o, "items", items);
    return out_end(&o);
}
