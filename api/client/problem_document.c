/* Answers that are not 2xx: from RFC 9457 problem documents to a status and a message. */
#include "api/client/client_priv.h"

#include <string.h>

static as_status status_of(int http, const char *code)
{
    switch (http) {
    case 400:
    case 422:
        return AS_E_INVAL;
    case 401:
    case 403:
        return AS_E_DENIED;
    case 404:
        return AS_E_NOT_FOUND;
    case 405:
    case 415:
        return AS_E_UNSUPPORTED;
    case 409:
        return as_starts_with(code, "stale") ? AS_E_STALE : AS_E_CONFLICT;
    case 413:
        return AS_E_TOO_LARGE;
    case 429:
    case 502:
    case 503:
    case 504:
        return AS_E_UNAVAILABLE;
    default:
        return AS_E_INTERNAL;
    }
}

static const char *text_of(const json_t *obj, const char *name)
{
    const char *s = json_string_value(json_object_get(obj, name));
    return s ? s : "";
}

/* Set err from a problem: its detail, then the detail of the first field if the former does not
 * contain it. */
static as_status fill_error(const json_t *problem, as_status st, struct as_err *err)
{
    const json_t *errors = json_object_get(problem, "errors");
    const json_t *first = json_array_get(errors, 0);
    const char *detail = text_of(problem, "detail"), *pointer = text_of(first, "pointer");
    const char *field = text_of(first, "detail");
    if (!*detail)
        detail = text_of(problem, "title");
    bool both = *field && !strstr(detail, field);
    size_t more = json_array_size(errors) > 1 ? json_array_size(errors) - 1 : 0;
    char tail[48] = "";
    if (more)
        snprintf(tail, sizeof tail, " (and %zu more)", more);
    return as_fail_at(err, st, pointer, "%s%s%s%s", detail, both ? ": " : "", both ? field : "",
                      tail);
}

as_status client_problem_read(int http_status, const json_t *problem, const char **ret_code,
                              struct as_err *err)
{
    const char *code = text_of(problem, "code");
    as_status st = status_of(http_status, code);
    *ret_code = code;
    if (*text_of(problem, "detail") || *text_of(problem, "title"))
        return fill_error(problem, st, err);
    return as_fail(err, st, "a part of the request was answered HTTP %d", http_status);
}

as_status problem_status(struct client *c, const struct http_request *q,
                         const struct http_response *r, struct as_err *err)
{
    c->problem_code[0] = '\0';
    json_decref(c->problem);
    c->problem = NULL;
    if (r->stopped || (r->status >= 200 && r->status < 300))
        return AS_OK;
    const char *code;
    json_t *problem = NULL;
    if (as_starts_with(r->content_type, "application/problem+json") && r->body.len)
        problem = json_loadb(r->body.s, r->body.len, JSON_REJECT_DUPLICATES, NULL);
    as_status st = client_problem_read(r->status, problem, &code, err);
    snprintf(c->problem_code, sizeof c->problem_code, "%s", code);
    if (!*text_of(problem, "detail") && !*text_of(problem, "title"))
        as_fail(err, st, "%s %s%s answered HTTP %d", q->method, c->base_url, q->path, r->status);
    c->problem = problem;
    return st;
}
