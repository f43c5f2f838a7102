/* The one table of routes. tests/api/server/test_openapi.c holds it against api/openapi.yaml, both ways.
 */
#ifndef ASSAY_API_SERVER_ROUTES_H
#define ASSAY_API_SERVER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"

#define ROUTE_PARAMS_MAX 3

/* Roles as bits: 1 << token_role. A route without any is open to everybody. */
#define ROUTE_VIEWER 1u
#define ROUTE_USER 2u
#define ROUTE_RUNNER 4u
#define ROUTE_ADMIN 8u

typedef enum route_body {
    ROUTE_BODY_NONE,
    ROUTE_BODY_JSON,
    ROUTE_BODY_MERGE_PATCH,
    ROUTE_BODY_BYTES,
} route_body;

#define ROUTE_IDEMPOTENCY 1u /* takes an Idempotency-Key */
#define ROUTE_SLOW 2u        /* may take seconds: has threads of its own */
#define ROUTE_LOCAL 4u       /* needs no database: answered in the I/O thread */
#define ROUTE_EPOCH 8u       /* AS_E_STALE means the runner's epoch, not an attempt */
#define ROUTE_REFERS 16u     /* AS_E_UNSUPPORTED means that a digest in the body is not stored */
#define ROUTE_WAKES 32u      /* may make work for runners that wait */

struct call;
/* Decode, one call, encode. AS_OK: the call was answered, or waits. */
typedef as_status route_fn(struct call *c, struct as_err *err);

struct route {
    const char *operation; /* operationId */
    const char *method, *path;
    unsigned roles;
    route_body body;
    unsigned flags;
    const char *query; /* names of query parameters, one blank between them */
    route_fn *run;
};

extern const struct route routes[];
extern const size_t n_routes;

typedef enum route_outcome { ROUTE_FOUND, ROUTE_WRONG_METHOD, ROUTE_UNKNOWN } route_outcome;

struct route_match {
    route_outcome outcome;
    const struct route *route;            /* ROUTE_FOUND */
    const char *params[ROUTE_PARAMS_MAX]; /* by their order in the path; in the arena */
    char allow[64]; /* for Allow, when the path is known: "GET, HEAD, OPTIONS, PUT" */
};

/* Which route is it? HEAD finds the GET of its path when it has no row of its own. AS_E_NOMEM. */
AS_MUST_CHECK as_status route_find(const char *method, const char *path, struct arena *arena,
                                   struct route_match *ret, struct as_err *err);

/* Is `name` among the query parameters of the route? */
bool route_has_query(const struct route *r, const char *name);

#endif
