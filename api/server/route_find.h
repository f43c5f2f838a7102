/* Find the row of a route table for a request. Pure: the table is a parameter. */
#ifndef ASSAY_API_SERVER_ROUTE_FIND_H
#define ASSAY_API_SERVER_ROUTE_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "api/server/route.h"
#include "base/arena.h"
#include "base/status.h"

typedef enum route_outcome { ROUTE_FOUND, ROUTE_WRONG_METHOD, ROUTE_UNKNOWN } route_outcome;

struct route_match {
    route_outcome outcome;
    const struct route *route;            /* ROUTE_FOUND; a row of the table */
    const char *params[ROUTE_PARAMS_MAX]; /* in the order of the path; in the arena */
    char allow[64]; /* the Allow header of a known path: "GET, HEAD, OPTIONS, PUT" */
};

/* Find the row of this method and path among the n rows of `routes`. HEAD finds the GET of its path
 * if it has no row of its own. AS_E_NOMEM. */
AS_MUST_CHECK as_status route_find(const struct route *routes, size_t n, const char *method,
                                   const char *path, struct arena *arena, struct route_match *ret,
                                   struct as_err *err);

/* Is `name` among the query parameters of the route? */
bool route_has_query(const struct route *r, const char *name);

#endif
