/* The name of a request that may be repeated. */
#ifndef ASSAY_SCHEDULER_ROWS_IDEM_ROW_H
#define ASSAY_SCHEDULER_ROWS_IDEM_ROW_H

struct idem_key {
    const char *scope;       /* the principal and the route: "PRINCIPAL POST /v1/sweeps" */
    const char *key;         /* 1..128 bytes */
    const char *body_sha256; /* the digest of the request's body */
};

#endif
