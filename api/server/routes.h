/* The one table of routes. tests/api/server/test_openapi.c holds it against api/openapi.yaml, both
 * ways. */
#ifndef ASSAY_API_SERVER_ROUTES_H
#define ASSAY_API_SERVER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "api/server/route.h"
#include "base/arena.h"
#include "base/status.h"

#define ROUTE_PARAMS_MAX 3

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
