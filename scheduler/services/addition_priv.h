/* Trials that people add, as their request describes them: read and checked without a
 * transaction. */
#ifndef ASSAY_SCHEDULER_SERVICES_ADDITION_PRIV_H
#define ASSAY_SCHEDULER_SERVICES_ADDITION_PRIV_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/addition_store.h"

#define ADDITIONS_MAX 5000 /* trials of one request */

/* What an added trial must fit. */
struct addition_target {
    const char *id; /* of the sweep */
    int64_t key;
    const char *document;
    struct dataset_row *datasets;
    size_t n_datasets;
};

struct addition_list {
    struct added_trial *rows; /* their numbers are not set yet */
    const char **keys;        /* the idempotency key of each; NULL: the rows have none */
    const char **digests;     /* with keys: the SHA-256 of each body */
    size_t n;
};

/* Check how many rows a list has, before the sweep is looked for. AS_E_INVAL, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status additions_check_size(const json_t *body, struct as_err *err);

/* Read a TrialCreate of the API, or a list of them, and check it completely against the sweep: its
 * space, its constraints, its metrics. Texts are in `a` or views of `body`. AS_E_INVAL,
 * AS_E_TOO_LARGE with the pointer of the field (/params/lr; in a list /17/params/lr).
 * AS_E_CONFLICT: a grid. AS_E_NOMEM. */
AS_MUST_CHECK as_status additions_read(struct arena *a, const json_t *body,
                                       const struct addition_target *to, struct addition_list *ret,
                                       struct as_err *err);

#endif
