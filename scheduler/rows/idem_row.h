/* Names a request that may be repeated. */
#ifndef ASSAY_SCHEDULER_ROWS_IDEM_ROW_H
#define ASSAY_SCHEDULER_ROWS_IDEM_ROW_H

struct idem_key {
    const char *scope;       /* who and what: "PRINCIPAL POST /v1/sweeps" */
    const char *key;         /* 1..128 bytes */
    const char *body_sha256; /* of the body */
};

#endif
