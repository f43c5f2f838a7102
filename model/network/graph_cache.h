/* Steps that are asked for again and again: each is recorded on the device once, and launched as
 * one graph from then on. All that changes from step to step lies in buffers (step_table.h), so a
 * record stays right as long as its key is the same. Where the back end records nothing, the calls
 * are made each time. */
#ifndef ASSAY_MODEL_NETWORK_GRAPH_CACHE_H
#define ASSAY_MODEL_NETWORK_GRAPH_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/backend.h"

#define GRAPH_CACHE_ENTRIES 8

/* The host values that a step is made with. */
struct graph_cache_key {
    size_t first, n, rows; /* slots; rows of the batch */
    unsigned flags;        /* what the members need between them */
};

struct graph_cache_entry {
    struct graph_cache_key key;
    size_t seen;     /* how often it was asked for; 0: a free place */
    struct graph *g; /* NULL: not recorded yet */
};

/* {0} is empty. */
struct graph_cache {
    struct graph_cache_entry entries[GRAPH_CACHE_ENTRIES];
    size_t next; /* the place that the next new key takes */
    bool off;    /* the back end records nothing */
};

/* Before the back end and the buffers that the calls use. */
void graph_cache_done(struct graph_cache *c);

/* Do what calls(arg) does. The first time of a key the calls are made (so that the device loads
 * what it needs), the second time they are recorded and launched, then the record is launched.
 * `calls` must do the same operations with the same host values whenever the key is the same, and
 * move nothing between host and device. */
AS_MUST_CHECK as_status graph_cache_step(struct graph_cache *c, struct backend *be,
                                         struct graph_cache_key key,
                                         as_status (*calls)(void *arg, struct as_err *err),
                                         void *arg, struct as_err *err);

#endif
