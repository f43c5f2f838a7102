/* Upload and download of content.
 *
 * An upload goes into the temporary file of blob_put: dispatch.c passes each chunk to it while the
 * body arrives, and the handler commits it. */
#include "api/server/handlers.h"

#include "api/codec/wire.h"
#include "api/server/answer_blob.h"
#include "api/server/server_priv.h"

as_status h_blob_put(struct call *c, struct as_err *err)
{
    bool created = false;
    as_status st = blob_put_commit(c->db, c->upload, &created, err);
    if (st < 0)
        return st;
    return created ? call_created_empty(c) : call_ok_empty(c);
}

as_status h_blob_parts(struct call *c, struct as_err *err)
{
    struct parts_request r;
    bool created = false;
    as_status st = parts_decode(c->body, c->arena, &r, err);
    if (st < 0)
        return st;
    if (r.size > c->server->opts.max_blob_bytes)
        return as_fail_at(err, AS_E_TOO_LARGE, "/size",
                          "/size: found %lld, expected at most %lld (--max-blob)",
                          (long long)r.size, (long long)c->server->opts.max_blob_bytes);
    struct blob_parts parts = {.size = r.size, .sha256 = r.sha256, .n = r.n};
    st = blob_put_parts(c->db, c->arena, call_param(c, "sha256"), &parts, &created, err);
    if (st < 0)
        return st;
    json_t *body = parts_missing_encode(parts.missing, parts.n_missing);
    return created ? call_created(c, body, NULL, err) : call_ok(c, body, err);
}

as_status h_blob_has(struct call *c, struct as_err *err)
{
    return answer_blob_size(c, call_param(c, "sha256"), err);
}

as_status h_blob_get(struct call *c, struct as_err *err)
{
    return answer_blob(c, call_param(c, "sha256"), err);
}
