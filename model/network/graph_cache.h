/* A cache of recorded steps. A step that repeats is recorded on the device once, and then launched
 * as one graph. Everything that changes from step to step is in buffers (step_table.h), so a
 * recording is valid as long as its key is the same. If the back end cannot record, the calls are
 * made each time. */
#ifndef ASSAY_MODEL_NETWORK_GRAPH_CACHE_H
#define ASSAY_MODEL_NETWORK_GRAPH_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/backend.h"

#define GRAPH_CACHE_ENTRIES 8

/* The values on the host that decide the calls of a step. */
struct graph_cache_key {
    size_t first, n, rows; /* slots; rows of the batch */
    unsigned flags;        /* what the members need together */
};

struct graph_cache_entry {
    struct graph_cache_key key;
    size_t seen;     /* number of calls with this key; 0: the entry is free */
    struct graph *g; /* NULL: not recorded yet */
};

/* {0} is empty. */
struct graph_cache {
    struct graph_cache_entry entries[GRAPH_CACHE_ENTRIES];
    size_t next; /* index of the entry that the next new key replaces */
    bool off;    /* the back end cannot record */
};

/* Free the recordings. Call this before freeing the back end and the buffers that they use. */
void graph_cache_done(struct graph_cache *c);

/* Do what calls(arg) does. With a new key, the calls are made (so that the device loads what it
 * needs); the second time they are recorded and launched; from then on the recording is launched.
 * For equal keys, `calls` must do the same operations with the same host values. It must move
 * nothing between host and device. */
AS_MUST_CHECK as_status graph_cache_step(struct graph_cache *c, struct backend *be,
                                         struct graph_cache_key key,
                                         as_status (*calls)(void *arg, struct as_err *err),
                                         void *arg, struct as_err *err);

#endif
