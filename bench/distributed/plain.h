/* Floors of an all-reduce over TCP: what its bytes cost through plain sockets.
 *
 * Ranks stand in a ring of connections of their own. A socket takes and gives at most
 * PLAIN_PIECE_BYTES in a call, and a rank waits in poll() for what either can do. Nothing names the
 * bytes or checks them: no heads, no checksums, no steps, no losses. */
#ifndef ASSAY_BENCH_DISTRIBUTED_PLAIN_H
#define ASSAY_BENCH_DISTRIBUTED_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIN_PIECE_BYTES ((size_t)1 << 18)

struct plain {
    int32_t rank, n;
    int next, before;  /* sockets to and from the neighbours */
    const float *from; /* of `items` */
    float *to;         /* of `items` */
    size_t items;
    char *buffer; /* of PLAIN_PIECE_BYTES, which stay in the cache */
};

/* What a rank of a ring sends and receives in an all-reduce: 2 (P-1)/P of the vector, in bytes. */
size_t plain_bytes(const struct plain *p);

/* The whole work, to = the sum over all ranks: in the order of a ring, each slice's sums sent on as
 * soon as they are there. `whole`: two ranks send each other the whole vector, and both add. False
 * if a socket fails. */
bool plain_allreduce(const struct plain *p, bool whole);

/* As many bytes, which nobody adds: from vector to vector, or (`cached`) from the buffer and into
 * it. */
bool plain_pass(const struct plain *p, bool cached);

#endif
