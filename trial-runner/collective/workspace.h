/* Memory that the algorithms over one mesh use again in each operation, so that none of them
 * allocates once the largest operation has run. One thread at a time, as the mesh. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_WORKSPACE_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_WORKSPACE_H

#include <stddef.h>

#include "base/mem.h"

/* What a piece is for. Pieces of different uses live side by side. */
typedef enum workspace_use {
    WORKSPACE_TRANSFERS,
    WORKSPACE_LATEST,  /* ring: the last receive of each chunk */
    WORKSPACE_PASSING, /* halving: sums on their way to other ranks */
    WORKSPACE_LEAVES,  /* tree */
    WORKSPACE_OWN,
    WORKSPACE_ALL,
    WORKSPACE_BLOCKS,
    WORKSPACE_OWN_VALUES,
    WORKSPACE_SLICE_VALUES,
    WORKSPACE_USES,
} workspace_use;

struct workspace {
    void *pieces[WORKSPACE_USES];
    size_t bytes[WORKSPACE_USES];
};

/* A zeroed struct workspace is empty and ready. */
void workspace_done(struct workspace *w);

/* n * size bytes of unknown content, aligned for any type; a view of w until the next call with the
 * same use. NULL when memory is out or the product overflows. */
void *workspace_get(struct workspace *w, workspace_use use, size_t n, size_t size);

#endif
