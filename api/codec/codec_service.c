#include "api/codec/wire.h"

#include <string.h>

#include "api/codec/wire_priv.h"
#include "base/json.h"
#include "base/mem.h"
#include "scheduler/services/tokens.h"

json_t *event_encode(const struct event_row *r)
{
    struct out o = out_begin();
    out_decimal(&o, "id", r->id);
    out_str(&o, "type", r->type);
    out_time(&o, "time", r->time_ms);
    if (r->sweep)
        out_str(&o, "sweep", r->sweep);
    if (r->has_number)
        out_i64(&o, "number", r->number);
    if (r->state)
        out_str(&o, "state", r->state);
    if (r->attempt)
        out_i64(&o, "attempt", r->attempt);
    if (r->has_value)
        out_number(&o, "value", r->value);
    if (r->reason)
        out_str(&o, "reason", r->reason);
    if (r->runner)
        out_str(&o, "runner", r->runner);
    if (r->has_epoch)
        out_i64(&o, "epoch", r->epoch);
    if (r->has_seat)
        out_i64(&o, "seat", r->seat);
    if (r->model)
        out_str(&o, "model", r->model);
    if (r->dataset)
        out_str(&o, "dataset", r->dataset);
    return out_end(&o);
}

json_t *token_encode(const struct token_row *r)
{
    struct out o = out_begin();
    out_str(&o, "id", r->id);
    out_str(&o, "role", token_role_format(r->role));
    out_str(&o, "name", r->name);
    out_time(&o, "created_at", r->created_ms);
    out_time(&o, "expires_at", r->expires_ms);
    out_time(&o, "last_used_at", r->last_used_ms);
    return out_end(&o);
}

json_t *token_page_encode(const struct token_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, token_encode(&p->rows[i]));
    return page_end(items, p->next_cursor);
}

as_status token_decode(const json_t *doc, struct token_request *ret, struct as_err *err)
{
    static const char *const roles[] = {"viewer", "user", "runner", "admin", NULL};
    struct json_fields f;
    struct token_request r = {0};
    int role = 0;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_word(&f, "role", JSON_REQUIRED, roles, &role, err)) < 0 ||
        (st = json_fields_text(&f, "name", JSON_OPTIONAL, 0, 80, &r.name, err)) < 0 ||
        (st = json_fields_duration(&f, "ttl", JSON_OPTIONAL, &r.ttl_ms, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (json_object_get(doc, "ttl") && !json_is_null(json_object_get(doc, "ttl")) && r.ttl_ms <= 0)
        return as_fail_at(err, AS_E_INVAL, "/ttl", "must be longer than 0");
    r.role = (token_role)role;
    *ret = r;
    return AS_OK;
}
