/* The connections of one rank to all others of one world, and the loop that moves bytes on them.
 *
 * One mesh is for one epoch. When a peer is lost, the mesh is broken: the owner asks the server for
 * the next world and opens another. Threads: one at a time (collective.h has the lock). */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_MESH_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_MESH_H

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/collective/listener.h"
#include "trial-runner/collective/transfer.h"
#include "trial-runner/collective/workspace.h"
#include "trial-runner/collective/world.h"

struct mesh;

struct mesh_opts {
    int64_t join_ms;     /* until all peers are connected; 0: 30,000 */
    int64_t silence_ms;  /* a peer that shows no life so long is lost; 0: 5,000 */
    int64_t prove_ms;    /* a stranger that has proven nothing so long is closed; 0: 5,000 */
    int64_t stall_ms;    /* a wait so long in which nothing arrives is reported; 0: 5,000 */
    bool tcp_only;       /* no shared memory, for tests and measurements */
    bool outlives_peers; /* a lost peer ends its own link (mesh_has_lost), and the mesh goes on */
    int over_fd;         /* while mesh_create connects: readable when the epoch is over, so that it
                          * need not wait for ranks that are gone; borrowed; 0: none */
    /* A wait has taken stall_ms although the peer lives; it is called once for each wait. NULL: not
     * reported. `t` is the transfer that waits. */
    void (*on_stall)(void *arg, const struct transfer *t, int64_t waited_ms);
    /* The mesh has just been broken; it is called once, by the thread that notices it. Then
     * mesh_lost() and mesh_is_silent() say by whom. NULL: not reported. */
    void (*on_break)(void *arg, struct mesh *m);
    /* mesh_create calls it for each rank that has not connected in time. NULL: not reported. */
    void (*on_missing)(void *arg, int32_t rank);
    void *arg;
};

/* Connects to every peer, each by shared memory if it is on this host, else by TCP. Peers that do
 * not prove that they belong to this world are refused.
 *   listener, world   borrowed; the world's peers are copied as far as they are needed
 *   ret               owned by the caller, free with mesh_free()
 * AS_E_UNAVAILABLE   not all peers connected in time; *ret_missing (may be NULL) is the first. Or
 *                    the epoch was over before; *ret_missing is -1 */
AS_MUST_CHECK as_status mesh_create(const struct listener *listener, const struct world *world,
                                    const struct mesh_opts *opts, struct mesh **ret,
                                    int32_t *ret_missing, struct as_err *err);
/* Says goodbye to the peers and closes. Transfers that are not done stay as they are. */
void mesh_free(struct mesh *m);
AS_DEFINE_FREEP(struct mesh, mesh_free)

/* The options it was created with; where they were 0, the values that hold. A view of m. */
const struct mesh_opts *mesh_opts_of(const struct mesh *m);
int32_t mesh_rank(const struct mesh *m);
int32_t mesh_size(const struct mesh *m);
uint64_t mesh_bytes_sent(const struct mesh *m); /* payload bytes of all messages so far */

/* Memory for the algorithms over this mesh; a view of m. */
struct workspace *mesh_workspace(struct mesh *m);

/* Begin a transfer; it moves in mesh_wait and mesh_idle. `t` is borrowed until it is done. */
void mesh_post(struct mesh *m, struct transfer *t);

/* Move bytes until all n transfers are done.
 * AS_E_UNAVAILABLE   a peer is lost; mesh_lost() says which. The mesh is broken from now on. A peer
 *                    is lost too if bytes are damaged on their way from it, or are no frames
 * AS_E_CONFLICT      a peer is at another tensor or step; the message names both */
AS_MUST_CHECK as_status mesh_wait(struct mesh *m, const struct transfer *t, size_t n,
                                  struct as_err *err);

/* Is the mesh whole, and its epoch not over? A rank that is alone waits for no peer, so that only
 * this says it to it. AS_E_UNAVAILABLE and others, as mesh_wait. */
AS_MUST_CHECK as_status mesh_check(struct mesh *m, struct as_err *err);

/* Move what can be moved without waiting, show life, look for lost peers. To be called every
 * 25 ms or so while nothing waits. Errors as mesh_wait. */
AS_MUST_CHECK as_status mesh_idle(struct mesh *m, struct as_err *err);

/* One round, for an owner that waits for whatever comes first: move what can be moved; if nothing
 * moved, sleep until something has happened, mesh_wake() or 100 ms. Errors as mesh_wait. */
AS_MUST_CHECK as_status mesh_poll(struct mesh *m, struct as_err *err);
/* From any thread: end the sleep of mesh_poll. */
void mesh_wake(struct mesh *m);

/* With outlives_peers: is this peer lost? Its transfers were forgotten; no more may be posted. */
bool mesh_has_lost(const struct mesh *m, int32_t peer);
/* With outlives_peers: lose this peer, because it sends what it must not. */
void mesh_drop(struct mesh *m, int32_t peer);

/* From any thread: break the mesh, because the server has said that the epoch is over. Who waits
 * gets AS_E_UNAVAILABLE, and mesh_lost() is -1. */
void mesh_interrupt(struct mesh *m);
bool mesh_is_interrupted(const struct mesh *m);

/* Whether a wait may spin for a short time before it sleeps: not while another thread of this
 * process computes. It may at first. It yields its processor meanwhile, to a peer that has none. */
void mesh_may_spin(struct mesh *m, bool may);

/* The peer whose loss broke the mesh, or -1: none, or one that has left the epoch by itself and
 * knows better who is lost. */
int32_t mesh_lost(const struct mesh *m);

/* When the mesh broke, had this peer shown no life for half of silence_ms? Where a whole host is
 * lost, its other ranks need not be missed one after another. */
bool mesh_is_silent(const struct mesh *m, int32_t peer);

#endif
