/* A batch while it is read, and the rows that its members name. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_FIND_PRIV_H
#define ASSAY_SCHEDULER_STORE_BATCH_FIND_PRIV_H

#include "scheduler/store/batch_ops.h"

/* A batch while it is read. */
struct batch_reading {
    struct tx *t;
    struct arena *a;
    const struct batch_ask *asks;
    struct batch_fact *facts;
    size_t n;
    bool is_patient;
    size_t *of;    /* of each member: the first one that names the same attempt as it does */
    size_t *order; /* places of members */
};

/* Find what the members name, put them into the order in which rows are locked, and extend the
 * leases of clients. Sets `of`, `order` and what `facts` say about names. */
AS_MUST_CHECK as_status batch_find(struct batch_reading *b, struct as_err *err);

#endif
