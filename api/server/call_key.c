#include "api/server/call_key.h"

#include <string.h>

#include "api/server/refuse.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"

/* Hash the query and the body. Two requests with one key are the same if these are equal. */
static as_status digest_request(const struct call *c, char *digest, struct as_err *err)
{
    const struct http_head *h = &c->x->head;
    AS_AUTO(str_done) struct str whole = {0};
    for (size_t i = 0; i < h->n_query; i++)
        str_printf(&whole, "%s=%s&", h->query[i].name, h->query[i].value);
    if (whole.len)
        str_putc(&whole, '\n');
    str_add(&whole, c->x->body.s, c->x->body.len);
    as_status st = str_check(&whole, err);
    if (st < 0)
        return st;
    return sha256_of(whole.s, whole.len, digest, err);
}

as_status call_key_read(struct call *c, struct as_err *err)
{
    const struct http_head *h = &c->x->head;
    if (!(c->route->flags & ROUTE_IDEMPOTENCY) || !h->idempotency_key)
        return AS_OK;
    struct idem_key *k = arena_alloc(c->arena, 1, sizeof *k);
    char *digest = arena_alloc(c->arena, SHA256_HEX_SIZE, 1);
    const char *scope = arena_printf(c->arena, "%s %s %s", c->who.id, h->method, h->path);
    if (!k || !digest || !scope)
        return as_fail(err, AS_E_NOMEM, "out of memory for the idempotency key");
    *k = (struct idem_key){.scope = scope, .key = h->idempotency_key, .body_sha256 = digest};
    c->idem = k;
    return digest_request(c, digest, err);
}

static void answer_stored(struct call *c, const struct idem_answer *a)
{
    struct http_answer *out = &c->x->answer;
    (void)call_bytes(c, "application/json", a->body, strlen(a->body));
    out->status = (int)a->status;
    http_answer_header(c->x, "Idempotent-Replayed", "true");
    if (a->location)
        http_answer_header(c->x, "Location", a->location);
}

bool call_key_answer(struct call *c)
{
    struct idem_answer a = {0};
    struct as_err err = {0};
    if (!c->idem)
        return false;
    if (idempotency_find(c->db, c->arena, c->idem, &a, &err) < 0) {
        refuse(c, PROBLEM_STATUS, &err);
        return true;
    }
    if (a.outcome == IDEM_OTHER_BODY)
        refuse_with(c, PROBLEM_UNPROCESSABLE, AS_E_CONFLICT,
                    "this Idempotency-Key was used with another body");
    if (a.outcome == IDEM_REPEATED)
        answer_stored(c, &a);
    return a.outcome != IDEM_NEW;
}

void call_key_store(struct call *c)
{
    const struct http_answer *a = &c->x->answer;
    struct as_err err = {0};
    const char *location = NULL;
    if (!c->idem || a->status < 200 || a->status > 299)
        return;
    for (size_t i = 0; i < a->n_headers; i++)
        if (as_streq(a->headers[i].name, "Location"))
            location = a->headers[i].value;
    if (idempotency_store(c->db, c->idem, a->status, a->bytes, location, &err) < 0)
        log_write(LOG_WARN, "answer not stored", "request_id=%s detail=\"%s\"", c->request_id,
                  err.msg);
}
