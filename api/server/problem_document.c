/* The one table from statuses to HTTP. A row has the number, the stable code and the title; the
 * kind of the route and a pointer choose between rows of one status (a stale attempt or world, a
 * field or the whole body). Internal messages are logged and replaced: they may hold paths or
 * queries. Text is repaired to UTF-8, because a message may have been cut inside a character. */
#include "api/server/problem_document.h"

#include <jansson.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

struct row {
    int http;
    const char *code, *title;
};

static struct row row_of_status(as_status st, bool has_pointer)
{
    switch (st) {
    case AS_E_INVAL:
    case AS_E_NUMERIC:
        return (struct row){400, "invalid", "The request is wrong"};
    case AS_E_UNSUPPORTED:
        return (struct row){400, "unsupported", "This is not supported"};
    case AS_E_TOO_LARGE: /* of a field, or of the body */
        return has_pointer ? (struct row){400, "too_large", "A value is too large"}
                           : (struct row){413, "too_large", "The body is too large"};
    case AS_E_NOT_FOUND:
        return (struct row){404, "not_found", "It does not exist"};
    case AS_E_CONFLICT:
    case AS_E_EXHAUSTED:
        return (struct row){409, "conflict", "The state does not allow it"};
    case AS_E_STALE:
        if (has_pointer) /* STALE_WORLD */
            return (struct row){409, "stale_world", "The epoch is no longer current"};
        return (struct row){409, "stale_attempt", "The attempt is no longer current"};
    case AS_E_DENIED:
        return (struct row){403, "denied", "Not allowed"};
    case AS_E_UNAVAILABLE:
    case AS_E_TIMEOUT:
    case AS_E_IO: /* of this machine, such as a full disk under uploads: may be temporary */
        return (struct row){503, "unavailable", "Try again later"};
    case AS_E_NOMEM:
        return (struct row){503, "out_of_memory", "Try again later"};
    case AS_OK:
    case AS_E_INTERNAL:
    case AS_E_USAGE:
        break;
    }
    return (struct row){500, "internal", "The server failed"};
}

static struct row row_of(problem_kind kind, as_status st, bool has_pointer)
{
    switch (kind) {
    case PROBLEM_STALE_EPOCH:
        if (st == AS_E_STALE)
            return (struct row){409, "stale_epoch", "The epoch is no longer current"};
        break;
    case PROBLEM_UNAUTHORIZED:
        return (struct row){401, "unauthorized", "A valid token is needed"};
    case PROBLEM_FORBIDDEN:
        return (struct row){403, "denied", "Not allowed"};
    case PROBLEM_NOT_HOLDER:
        return (struct row){403, "not_holder", "It belongs to another runner or client"};
    case PROBLEM_METHOD:
        return (struct row){405, "method_not_allowed", "The method is not allowed here"};
    case PROBLEM_MEDIA_TYPE:
        return (struct row){415, "unsupported_media", "The content type is not the one expected"};
    case PROBLEM_TARGET:
        return (struct row){414, "too_large", "The request target is too long"};
    case PROBLEM_HEAD:
        return (struct row){431, "too_large", "The head of the request is too large"};
    case PROBLEM_TOO_MANY:
        return (struct row){429, "too_many_requests", "Too many requests"};
    case PROBLEM_OVER_RATE:
        return (struct row){429, "over_rate", "Too many requests"};
    case PROBLEM_UNPROCESSABLE:
        return (struct row){422, "unprocessable", "The request does not match what it refers to"};
    case PROBLEM_STATUS:
        break;
    }
    return row_of_status(st, has_pointer);
}

int problem_status(problem_kind kind, as_status st, bool has_pointer)
{
    return row_of(kind, st, has_pointer).http;
}

/* Replace bytes that are not UTF-8 by '?': a message may have been truncated inside a character. */
static void replace_invalid_utf8(char *s)
{
    while (*s) {
        size_t n = 1, left = strlen(s);
        while (n < 4 && n < left && !as_utf8_valid(s, n))
            n++;
        if (!as_utf8_valid(s, n)) {
            *s = '?';
            n = 1;
        }
        s += n;
    }
}

/* [{pointer, detail}]: each fault, or `err` alone. New reference; NULL when memory is out. */
static json_t *format_errors(const struct as_err *err, const struct faults *faults)
{
    const struct as_err *list = faults && faults->n ? faults->list : err;
    size_t n = faults && faults->n ? faults->n : 1;
    JSON_AUTO errors = json_array();
    int bad = errors ? 0 : -1;
    for (size_t i = 0; i < n; i++) {
        struct as_err e = list[i];
        replace_invalid_utf8(e.msg);
        replace_invalid_utf8(e.pointer);
        bad |= json_array_append_new(
            errors, json_pack("{s:s, s:s}", "pointer", e.pointer, "detail", e.msg));
    }
    return bad ? NULL : as_steal(errors);
}

/* The detail begins with the pointer of its field. New reference; NULL when memory is out. */
static json_t *make_problem(const struct row *row, const char *path, const char *request_id,
                            const struct as_err *given, const struct faults *faults)
{
    struct as_err copy = *given, *err = &copy;
    if (err->code == AS_E_STALE) /* it only told the code, and names no field of the body */
        err->pointer[0] = '\0';
    replace_invalid_utf8(copy.msg);
    replace_invalid_utf8(copy.pointer);
    const char *text = row->http == 500
                           ? "an internal error; the server's log describes it under the "
                             "request_id"
                           : err->msg;
    AS_AUTO(str_done) struct str detail_text = {0};
    if (row->http != 500 && !as_starts_with(text, err->pointer))
        str_printf(&detail_text, "%s: ", err->pointer);
    str_puts(&detail_text, text);
    if (detail_text.failed)
        return NULL;
    const char *detail = str_cstr(&detail_text);
    JSON_AUTO doc = json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "about:blank", "title",
                              row->title, "status", row->http, "code", row->code, "detail", detail);
    if (!doc || json_object_set_new(doc, "request_id", json_string(request_id)) < 0)
        return NULL;
    if (path && json_object_set_new(doc, "instance", json_string(path)) < 0)
        return NULL;
    if (err->pointer[0] && row->http != 500 &&
        json_object_set_new(doc, "errors", format_errors(err, faults)) < 0)
        return NULL;
    return as_steal(doc);
}

static void log_failure(const struct http_exchange *x, const char *request_id,
                        const struct row *row, const struct as_err *err)
{
    if (row->http == 500 || err->code == AS_E_IO)
        log_write(LOG_ERROR, "request failed", "request_id=%s path=%s status=%s detail=\"%s\"",
                  request_id, x->head.path ? x->head.path : "-", as_status_name(err->code),
                  err->msg);
}

json_t *problem_of_part(const struct http_exchange *x, problem_kind kind, const char *request_id,
                        const struct as_err *err, int *ret_http)
{
    struct row row = row_of(kind, err->code, err->pointer[0] != '\0');
    log_failure(x, request_id, &row, err);
    *ret_http = row.http;
    return make_problem(&row, x->head.path, request_id, err, NULL);
}

void problem_answer(struct http_exchange *x, problem_kind kind, const char *request_id,
                    const struct as_err *err, const struct faults *faults)
{
    struct row row = row_of(kind, err->code, err->pointer[0] != '\0');
    log_failure(x, request_id, &row, err);
    JSON_AUTO doc = make_problem(&row, x->head.path, request_id, err, faults);
    AS_AUTO(as_freep) char *text = doc ? json_format_ordered(doc) : NULL;
    char *kept = arena_strdup(&x->arena, text);
    x->answer.status = row.http;
    x->answer.content_type = kept ? "application/problem+json" : NULL;
    x->answer.bytes = kept ? kept : "";
    x->answer.len = kept ? strlen(kept) : 0;
    http_answer_header(x, "Cache-Control", "no-store");
    http_answer_header(x, "X-Request-Id", request_id);
    if (row.http == 503)
        http_answer_header(x, "Retry-After", "2");
    if (kind == PROBLEM_TOO_MANY)
        http_answer_header(x, "Retry-After", "60");
    if (row.http == 401)
        http_answer_header(x, "WWW-Authenticate", "Bearer");
}
