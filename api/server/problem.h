/* From a status to HTTP: the one place that knows both.
 *
 * A problem is an RFC 9457 document with a stable `code`, the id of the request, and the JSON
 * pointer of the field at fault. What went wrong inside the server is logged and not told. */
#ifndef ASSAY_API_SERVER_PROBLEM_H
#define ASSAY_API_SERVER_PROBLEM_H

#include "api/http/http.h"
#include "base/status.h"

/* What the HTTP border itself finds; everything else comes as an as_status. */
typedef enum problem_kind {
    PROBLEM_STATUS,        /* by err->code */
    PROBLEM_STALE_EPOCH,   /* AS_E_STALE of a runner's epoch rather than of an attempt */
    PROBLEM_UNAUTHORIZED,  /* no token, or not a valid one */
    PROBLEM_FORBIDDEN,     /* the token's role does not allow it; a foreign Host or Origin */
    PROBLEM_METHOD,        /* the path is there, the method is not */
    PROBLEM_MEDIA_TYPE,    /* the body's type */
    PROBLEM_UNPROCESSABLE, /* what the body refers to is not there; a key with another body */
} problem_kind;

/* Fill x->answer. `request_id` and the answer live in x's arena. */
void problem_answer(struct http_exchange *x, problem_kind kind, const char *request_id,
                    const struct as_err *err);

/* The HTTP status that problem_answer would give. */
int problem_status(problem_kind kind, as_status st, bool has_pointer);

#endif
