#include "api/server/handlers.h"

#include "api/codec/wire.h"
#include "api/server/server_priv.h"
#include "scheduler/services/tokens.h"

as_status h_token_list(struct call *c, struct as_err *err)
{
    struct page_req page;
    struct token_page rows;
    as_status st = call_page(c, &page, err);
    if (st < 0)
        return st;
    st = token_list(c->db, c->arena, &page, &rows, err);
    return st < 0 ? st : call_ok(c, token_page_encode(&rows), err);
}

as_status h_token_create(struct call *c, struct as_err *err)
{
    struct token_request req;
    struct token_row row;
    char text[TOKEN_TEXT_SIZE];
    as_status st = token_decode(c->body, &req, err);
    if (st < 0)
        return st;
    st = token_create(c->db, c->arena, req.role, req.name, req.ttl_ms, &row, text, err);
    if (st < 0)
        return st;
    json_t *body = token_encode(&row);
    if (body && json_object_set_new(body, "token", json_string(text)) < 0) {
        json_decref(body);
        body = NULL;
    }
    return call_created(c, body, NULL, err);
}

as_status h_token_revoke(struct call *c, struct as_err *err)
{
    as_status st = token_revoke(c->db, call_param(c, "token"), err);
    if (st < 0)
        return st;
    auth_forget(c->server->auth);
    return call_done(c);
}
