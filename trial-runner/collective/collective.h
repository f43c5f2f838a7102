/* Operations in which all ranks of a world take part.
 *
 * Every rank calls the same operations in the same order, with equal ids and sizes. An operation
 * leaves its input as it is, so it can be repeated in the next epoch if a peer is lost in the
 * middle; its output is then undefined. All ranks get equal bits from an operation.
 *
 * Threads: any; operations that are begun while another runs wait for it, in order. A thread of the
 * collective runs those that were begun with coll_begin, and shows the peers that this rank lives
 * while it computes.
 *
 * Errors of all operations:
 *   AS_E_UNAVAILABLE   a peer is lost or the epoch is over; every later operation fails likewise
 *   AS_E_CONFLICT      a peer is at another tensor or step; the message names both
 *   AS_E_NOMEM */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_COLLECTIVE_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_COLLECTIVE_H

#include "trial-runner/collective/mesh.h"
#include "trial-runner/collective/operation.h"
#include "trial-runner/collective/reduction.h"

struct coll;

/* As mesh_create. `ret` is the caller's, free with coll_free(). */
AS_MUST_CHECK as_status coll_create(const struct listener *listener, const struct world *world,
                                    const struct mesh_opts *opts, struct coll **ret,
                                    int32_t *ret_missing, struct as_err *err);
/* Ends the thread and closes the connections. No operation may run. */
void coll_free(struct coll *c);
AS_DEFINE_FREEP(struct coll, coll_free)

int32_t coll_rank(const struct coll *c);
int32_t coll_size(const struct coll *c);
/* Payload bytes that this rank has sent, by mailboxes of this epoch too. Exact when nothing is on
 * its way. */
uint64_t coll_bytes_sent(const struct coll *c);
int32_t coll_lost(const struct coll *c); /* as mesh_lost */
void coll_interrupt(struct coll *c);     /* as mesh_interrupt; from any thread */
/* Has coll_interrupt been called? For who computes long between two operations. */
bool coll_is_over(const struct coll *c);

/* The world that it was created for; its peers are NULL. A view of c. */
const struct world *coll_world(const struct coll *c);
/* As mesh_opts_of. */
const struct mesh_opts *coll_mesh_opts(const struct coll *c);
/* Where this rank listens. A view of c. */
const char *coll_address(const struct coll *c);

/* Whether an epoch is over, for who outlives the collective: it is set by coll_interrupt and by
 * coll_free. */
struct coll_end;
struct coll_end *coll_end_get(struct coll *c);  /* coll_end_free() */
bool coll_end_is_set(const struct coll_end *e); /* from any thread */
/* Readable, and never read, once it is set: for who waits in poll(). A view of e. */
int coll_end_fd(const struct coll_end *e);
/* Counts payload bytes that were sent beside the operations. */
void coll_end_count(struct coll_end *e, uint64_t bytes);
void coll_end_free(struct coll_end *e);

typedef enum coll_algorithm {
    COLL_AUTO = 0, /* the faster of the two for this size, by a measurement in this world */
    COLL_RING,     /* 2 (P-1)/P N bytes from each rank, 2 (P-1) steps (Patarasuk and Yuan 2009) */
    COLL_HALVING,  /* recursive halving and doubling: 2 log2 P steps, log2 P up to 64 KiB (128 KiB
                    * for P = 2; Thakur et al. 2005); for P that is no power of two the ranks
                    * beyond one fold theirs into others' first */
} coll_algorithm;

/* out = the reduction of all ranks' in, n items. Ring and halving add in orders that depend on P.
 * `out` may be `in`, but then a lost peer cannot be made up for. */
AS_MUST_CHECK as_status coll_allreduce(struct coll *c, struct coll_id id, coll_algorithm algorithm,
                                       const struct reduction *reduce, const void *in, void *out,
                                       size_t n, struct as_err *err);

/* out = all ranks' slices (coll_slice) of n items of item_bytes, in order of the ranks. This rank's
 * slice must stand in out already. By ring: (P-1)/P N bytes. */
AS_MUST_CHECK as_status coll_allgather(struct coll *c, struct coll_id id, void *out, size_t n,
                                       size_t item_bytes, struct as_err *err);

/* data of every rank = data of root. Binomial tree, passed on while it arrives. */
AS_MUST_CHECK as_status coll_broadcast(struct coll *c, struct coll_id id, int32_t root, void *data,
                                       size_t bytes, struct as_err *err);

/* Returns when all ranks have called it. Dissemination (Hensgen, Finkel, Manber 1988). */
AS_MUST_CHECK as_status coll_barrier(struct coll *c, struct coll_id id, struct as_err *err);

/* One message. Both sides must call in the same order. */
AS_MUST_CHECK as_status coll_send(struct coll *c, struct coll_id id, int32_t to, const void *data,
                                  size_t bytes, struct as_err *err);
AS_MUST_CHECK as_status coll_receive(struct coll *c, struct coll_id id, int32_t from, void *data,
                                     size_t bytes, struct as_err *err);

/* One message of an exchange: sent (`from`) or received (`to`). */
struct coll_message {
    int32_t peer; /* another rank */
    const void *from;
    void *to;
    size_t bytes;
};

/* Moves several messages at the same time: who sends much to many. Between two ranks, the messages
 * that one sends are those that the other receives, in the same order. */
AS_MUST_CHECK as_status coll_exchange(struct coll *c, struct coll_id id,
                                      const struct coll_message *sent, size_t n_sent,
                                      const struct coll_message *received, size_t n_received,
                                      struct as_err *err);

/* out = the sum over `total` shards in one fixed order, for any number of ranks: shards are the
 * leaves of a binary tree in which node k of level l covers shards k 2^l to (k+1) 2^l - 1, and a
 * node is the reduction of its left and its right child. So the bits do not depend on who holds
 * which shards.
 *   runs       by rank; they cover 0 to total-1 without gaps or overlap, in order; equal on all
 *              ranks
 *   partials   runs[rank].count pointers to n items each, of this rank's shards; not changed
 * It sends (P-1)/P N bytes for each subtree that this rank holds whole, and as much for its result:
 * 2 (P-1)/P N where P divides `total` into powers of two.
 * AS_E_INVAL: the runs are not as said. */
AS_MUST_CHECK as_status coll_tree_sum(struct coll *c, struct coll_id id,
                                      const struct reduction *reduce, const struct shard_run *runs,
                                      uint32_t total, const void *const *partials, void *out,
                                      size_t n, struct as_err *err);
/* The same sum, where each rank has added up its own subtrees by itself.
 *   merged   one value for each of the fewest nodes of the tree that cover the rank's run, in their
 *            order (shard_tree_largest() cuts the run into them); not changed */
AS_MUST_CHECK as_status coll_tree_sum_merged(struct coll *c, struct coll_id id,
                                             const struct reduction *reduce,
                                             const struct shard_run *runs, uint32_t total,
                                             const void *const *merged, void *out, size_t n,
                                             struct as_err *err);

/* --- operations that run while the caller computes --- */

/* A begun operation; the caller's memory until coll_finish has returned. */
struct coll_job {
    /* Called by the collective's thread; it calls operations of this header, and no other thread's
     * operation runs between them. */
    as_status (*run)(struct coll *c, struct coll_job *job, struct as_err *err);
    /* The collective's: */
    bool done;
    as_status status;
    struct as_err err;
    struct coll_job *next;
};

/* Runs after all operations that were begun before it. */
void coll_begin(struct coll *c, struct coll_job *job);
/* Has it ended, well or not? Waits for nothing. */
bool coll_is_done(struct coll *c, const struct coll_job *job);
/* Waits for the job's end and returns its status. */
AS_MUST_CHECK as_status coll_finish(struct coll *c, struct coll_job *job, struct as_err *err);

#endif
