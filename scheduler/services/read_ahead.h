/* A table that is read by parts: while the rows of one are put into it, the database computes the
 * next one. That takes as long as the slower of both, in place of their sum. */
#ifndef ASSAY_SCHEDULER_SERVICES_READ_AHEAD_H
#define ASSAY_SCHEDULER_SERVICES_READ_AHEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/services/table_kind.h"
#include "scheduler/store/tx.h"

#define READ_AHEAD_PLACES 2

/* What the two functions share, they reach by `arg`. A place is 0 or 1; read() has one of them
 * while put() has the other one, on another thread. */
struct read_ahead {
    void *arg;
    /* Read the next part into the place; `a` lasts until it is put. *ret_is_left: is there another
     * part after it? */
    as_status (*read)(void *arg, size_t place, struct arena *a, bool *ret_is_left,
                      struct as_err *err);
    /* Put what the place has into the table; the parts come in their order. */
    as_status (*put)(void *arg, size_t place, struct as_err *err);
};

/* Read one part, and all that are left after it. After a failure, which is that of either function,
 * a part may have been read and not put. */
AS_MUST_CHECK as_status read_ahead(const struct read_ahead *x, struct as_err *err);

/* Trials that changed, which are read and put again by parts, one after another. */
struct read_again {
    void *arg;
    size_t most; /* trials of a part */
    /* Read these trials; `a` lasts until they are put. The transaction may run again. */
    as_status (*read)(void *arg, struct tx *t, struct arena *a, const struct table_change *changes,
                      size_t n, struct as_err *err);
    /* Put what was read. */
    as_status (*put)(void *arg, struct as_err *err);
};
AS_MUST_CHECK as_status read_again(const struct read_again *x, struct store *db,
                                   const struct table_news *news, struct as_err *err);

#endif
