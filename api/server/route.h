/* One route: an operation of api/openapi.yaml, the roles that may call it, and its handler. */
#ifndef ASSAY_API_SERVER_ROUTE_H
#define ASSAY_API_SERVER_ROUTE_H

#include "base/status.h"

/* Roles as bits: 1 << token_role. A route without roles is open to everybody. */
#define ROUTE_VIEWER 1u
#define ROUTE_USER 2u
#define ROUTE_RUNNER 4u
#define ROUTE_ADMIN 8u
/* The process of a trial: dispatch.c lets it reach its own trial and sweep alone. Every route with
 * this role has {sweep} in its path. */
#define ROUTE_TRIAL 16u

typedef enum route_body {
    ROUTE_BODY_NONE,
    ROUTE_BODY_JSON,
    ROUTE_BODY_MERGE_PATCH,
    ROUTE_BODY_BYTES,
} route_body;

#define ROUTE_PARAMS_MAX 4 /* in one path */

#define ROUTE_IDEMPOTENCY 1u /* takes an Idempotency-Key */
#define ROUTE_SLOW 2u        /* may take seconds: runs in the slow pool */
#define ROUTE_LOCAL 4u       /* needs no database: answered in the I/O thread */
#define ROUTE_EPOCH 8u       /* AS_E_STALE means the runner's epoch, not an attempt */
#define ROUTE_REFERS 16u     /* AS_E_UNSUPPORTED: the body does not fit what is stored (422) */
#define ROUTE_WAKES 32u      /* may create work for waiting runners */
#define ROUTE_URGENT 64u     /* a runner or a client waits for it: has workers of its own */
#define ROUTE_BEAT 128u /* a heartbeat: it keeps somebody alive, and shares no worker with others */
#define ROUTE_VIEW 256u /* reads a table that the server keeps: waits for no slow route */
#define ROUTE_PARTS 512u /* its body is many parts: the handler checks their texts for a NUL */

struct call;
/* A handler: see call.h. AS_OK: the call was answered, or it waits. */
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

#endif
