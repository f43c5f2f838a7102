/* The one table of routes. tests/api/server/test_openapi.c compares it with api/openapi.yaml in
 * both directions. */
#ifndef ASSAY_API_SERVER_ROUTES_H
#define ASSAY_API_SERVER_ROUTES_H

#include <stddef.h>

#include "api/server/route.h"

extern const struct route routes[];
extern const size_t n_routes;

#endif
