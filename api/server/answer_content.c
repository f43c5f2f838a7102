#include "api/server/answer_content.h"

#include <string.h>

#include "api/http/http_content.h"
#include "base/hash.h"

#define LEVEL 3 /* two thirds of the size of level 1 cost little more time for JSON */

void answer_version(struct http_exchange *x)
{
    struct http_answer *a = &x->answer;
    char digest[SHA256_HEX_SIZE];
    for (size_t i = 0; i < a->n_headers; i++)
        if (as_streq(a->headers[i].name, "ETag"))
            return;
    if (a->status != 200 || sha256_of(a->bytes, a->len, digest, NULL) < 0)
        return;
    /* weak: the compressed bytes differ, and their meaning does not */
    const char *etag = arena_printf(&x->arena, "W/\"%.32s\"", digest);
    if (!etag)
        return;
    http_answer_header(x, "ETag", etag);
    if (!http_etag_listed(x->head.if_none_match, etag))
        return;
    a->status = 304;
    a->bytes = "";
    a->len = 0;
}

static bool is_text(const char *type)
{
    return type && (as_starts_with(type, "application/json") || as_starts_with(type, "text/"));
}

void answer_compress(struct http_exchange *x)
{
    struct http_answer *a = &x->answer;
    AS_AUTO(str_done) struct str packed = {0};
    if (a->stream || a->len < GZIP_MIN || !is_text(a->content_type))
        return;
    http_answer_header(x, "Vary", "Accept-Encoding");
    if (!http_accepts_gzip(x->head.accept_encoding) ||
        http_gzip(a->bytes, a->len, LEVEL, &packed, NULL) < 0 || packed.len >= a->len)
        return;
    char *kept = arena_alloc(&x->arena, packed.len, 1);
    if (!kept)
        return;
    memcpy(kept, packed.s, packed.len);
    a->bytes = kept;
    a->len = packed.len;
    http_answer_header(x, "Content-Encoding", "gzip");
}
