/* From an as_status to an HTTP answer. No other file maps statuses to HTTP.
 *
 * A problem is an RFC 9457 document with a stable `code`, the id of the request, and the JSON
 * pointer of the wrong field. Details of internal errors are only logged, not sent. */
#ifndef ASSAY_API_SERVER_PROBLEM_DOCUMENT_H
#define ASSAY_API_SERVER_PROBLEM_DOCUMENT_H

#include <jansson.h>

#include "api/http/http.h"
#include "base/faults.h"
#include "base/status.h"

/* Errors that have no as_status of their own. All others use PROBLEM_STATUS. */
typedef enum problem_kind {
    PROBLEM_STATUS,        /* chosen by err->code */
    PROBLEM_STALE_EPOCH,   /* AS_E_STALE of a runner's epoch rather than of an attempt */
    PROBLEM_UNAUTHORIZED,  /* no token, or not a valid one */
    PROBLEM_FORBIDDEN,     /* the token's role does not allow it; a foreign Host or Origin */
    PROBLEM_NOT_HOLDER,    /* the runner or attempt is another's: its secret was not shown */
    PROBLEM_METHOD,        /* the path exists, but not with this method */
    PROBLEM_MEDIA_TYPE,    /* the Content-Type of the body is wrong */
    PROBLEM_TARGET,        /* the request target is too long */
    PROBLEM_HEAD,          /* the head of the request is too large */
    PROBLEM_TOO_MANY,      /* too many requests with tokens that are not valid */
    PROBLEM_OVER_RATE,     /* the token makes requests faster than it may */
    PROBLEM_UNPROCESSABLE, /* the body refers to missing content; a key with another body */
} problem_kind;

/* Fill x->answer. `request_id` and the answer live in x's arena.
 *   faults  all faults of the body, of which *err is the first; NULL or empty: *err is the only
 *           one. They become `errors` of the document */
void problem_answer(struct http_exchange *x, problem_kind kind, const char *request_id,
                    const struct as_err *err, const struct faults *faults);

/* The problem of a part of a request, which has an answer of its own: the document that
 * problem_answer() would send with the status *ret_http. New reference; NULL: memory is out. */
json_t *problem_of_part(const struct http_exchange *x, problem_kind kind, const char *request_id,
                        const struct as_err *err, int *ret_http);

/* The HTTP status that problem_answer would set. */
int problem_status(problem_kind kind, as_status st, bool has_pointer);

#endif
