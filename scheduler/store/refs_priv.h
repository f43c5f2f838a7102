/* The attempts that a runner names, as three parameters of a statement: $2 to $4. */
#ifndef ASSAY_SCHEDULER_STORE_REFS_PRIV_H
#define ASSAY_SCHEDULER_STORE_REFS_PRIV_H

#include "scheduler/rows/runner_row.h"
#include "scheduler/store/pg_priv.h"

#define LISTED "unnest($2::text[], $3::int[], $4::int[]) as l(id, number, attempt)"

struct refs {
    struct str ids, numbers, attempts;
};
void refs_done(struct refs *c);

/* Add them to the arguments; `c`, zeroed, holds their text until the statement ran. AS_E_NOMEM. */
AS_MUST_CHECK as_status args_refs(struct args *a, struct refs *c, const struct attempt_ref *refs,
                                  size_t n, struct as_err *err);

#endif
