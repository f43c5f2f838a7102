/* Handlers of the registry of models. A path's version may be a number, an alias or `default`; it
 * is resolved by the call that answers, so an alias that moves between two requests is not mixed
 * with an old version. Content is sent by its digest, which is the ETag. */
#include "api/server/handlers.h"

#include "api/codec/wire.h"
#include "api/server/answer_blob.h"
#include "api/server/call.h"
#include "scheduler/services/models.h"

as_status h_model_list(struct call *c, struct as_err *err)
{
    struct page_req page;
    struct model_page rows;
    as_status st = call_page(c, &page, err);
    if (st < 0)
        return st;
    st = model_list(c->db, c->arena, &page, &rows, err);
    return st < 0 ? st : call_ok(c, model_page_encode(&rows), err);
}

as_status h_model_get(struct call *c, struct as_err *err)
{
    struct model_row row;
    as_status st = model_get(c->db, c->arena, call_param(c, "model"), &row, err);
    return st < 0 ? st : call_ok(c, model_encode(&row), err);
}

as_status h_model_delete(struct call *c, struct as_err *err)
{
    as_status st = model_delete(c->db, call_param(c, "model"), err);
    return st < 0 ? st : call_done(c);
}

as_status h_model_version_add(struct call *c, struct as_err *err)
{
    struct model_request q;
    struct model_version_row row;
    bool created = false;
    as_status st = model_request_decode(c->body, &q, err);
    if (st < 0)
        return st;
    q.by = c->who.id;
    st = model_add(c->db, c->arena, call_param(c, "model"), &q, &row, &created, err);
    if (st < 0)
        return st;
    if (!created)
        return call_ok(c, model_version_encode(&row), err);
    return call_created(
        c, model_version_encode(&row),
        arena_printf(c->arena, "/v1/models/%s/versions/%lld", row.model, (long long)row.version),
        err);
}

as_status h_model_version_list(struct call *c, struct as_err *err)
{
    struct page_req page;
    struct model_version_page rows;
    as_status st = call_page(c, &page, err);
    if (st < 0)
        return st;
    st = model_version_list(c->db, c->arena, call_param(c, "model"), &page, &rows, err);
    return st < 0 ? st : call_ok(c, model_version_page_encode(&rows), err);
}

static as_status find_version(struct call *c, struct model_version_row *ret, struct as_err *err)
{
    return model_version_get(c->db, c->arena, call_param(c, "model"), call_param(c, "version"), ret,
                             err);
}

as_status h_model_version_get(struct call *c, struct as_err *err)
{
    struct model_version_row row;
    as_status st = find_version(c, &row, err);
    return st < 0 ? st : call_ok(c, model_version_encode(&row), err);
}

as_status h_model_content(struct call *c, struct as_err *err)
{
    struct model_version_row row;
    as_status st = find_version(c, &row, err);
    return st < 0 ? st : answer_blob(c, row.sha256, err);
}

as_status h_model_version_delete(struct call *c, struct as_err *err)
{
    as_status st =
        model_version_delete(c->db, call_param(c, "model"), call_param(c, "version"), err);
    return st < 0 ? st : call_done(c);
}

as_status h_model_alias_set(struct call *c, struct as_err *err)
{
    struct model_row row;
    int64_t version = 0;
    as_status st = alias_request_decode(c->body, &version, err);
    if (st < 0)
        return st;
    st = model_alias_set(c->db, c->arena, call_param(c, "model"), call_param(c, "alias"), version,
                         &row, err);
    return st < 0 ? st : call_ok(c, model_encode(&row), err);
}

as_status h_model_alias_delete(struct call *c, struct as_err *err)
{
    as_status st = model_alias_delete(c->db, call_param(c, "model"), call_param(c, "alias"), err);
    return st < 0 ? st : call_done(c);
}
