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

/* Write their texts into `c` (zeroed before), which owns them. AS_E_NOMEM. */
AS_MUST_CHECK as_status refs_format(struct refs *c, const struct attempt_ref *refs, size_t n,
                                    struct as_err *err);

#define ARG_REFS(c)                                                                                \
    arg_str(str_cstr(&(c)->ids)), arg_str(str_cstr(&(c)->numbers)),                                \
        arg_str(str_cstr(&(c)->attempts))

#endif
