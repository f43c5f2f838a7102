/* NCCL is opened anew for each world, with an id of its own: a communicator that has lost a rank is
 * of no further use. Who waits for a device asks the collective whether the epoch is over, because
 * NCCL itself may never notice that a peer has gone.
 *
 * Every step in which one rank may fail alone (an id, opening, memory) is followed by an agreement
 * over the collective: all go one way, or all the other. */
#include "trial-runner/distributed/device_comm.h"

#include <stdio.h>
#include <string.h>

#define OPEN_MS 30000   /* until NCCL has connected all */
#define STALL_MS 600000 /* a shard may take long; a rank that is dead or frozen is noticed sooner */

enum { TAG_ID = DEVICE_COMM_TAG, TAG_AGREE };

struct device_comm {
    struct coll *coll;
    struct backend *be;
    struct peers *peers;
};

void device_card_read(struct backend *be, struct device_card *ret, struct as_err *why)
{
    size_t free_bytes = 0, total_bytes = 0;
    *ret = (struct device_card){0};
    *why = (struct as_err){0};
    if (backend_memory(be, &free_bytes, &total_bytes, why) < 0 || total_bytes == 0)
        return;
    ret->able = 1;
    if (peers_card(be, &ret->peers, why) < 0)
        ret->peers.version = 0;
}

/* ---- which way ---- */

static bool same_gpu(const struct device_card *a, const struct device_card *b)
{
    return strncmp(a->peers.gpu, b->peers.gpu, sizeof a->peers.gpu) == 0;
}

/* Writes to `why` what rank r lacks, compared with those before it; "" if nothing. */
static void compare(const struct device_card *cards, int32_t r, struct as_err *why)
{
    const struct device_card *card = &cards[r];
    if (!card->able)
        (void)as_fail(why, AS_E_UNSUPPORTED, "rank %d has no device", (int)r);
    else if (card->peers.version == 0)
        (void)as_fail(why, AS_E_UNSUPPORTED, "rank %d has no NCCL", (int)r);
    else if (card->peers.version != cards[0].peers.version)
        (void)as_fail(why, AS_E_UNSUPPORTED, "rank %d has NCCL %d, rank 0 has %d", (int)r,
                      (int)card->peers.version, (int)cards[0].peers.version);
    for (int32_t k = 0; k < r && !why->msg[0]; k++)
        if (same_gpu(&cards[k], card))
            (void)as_fail(why, AS_E_UNSUPPORTED, "ranks %d and %d share %.*s", (int)k, (int)r,
                          (int)sizeof card->peers.gpu, card->peers.gpu);
}

static bool may_be_direct(const struct device_card *cards, int32_t n, struct as_err *why)
{
    bool any = false;
    *why = (struct as_err){0};
    for (int32_t r = 0; r < n; r++)
        any = any || cards[r].able;
    if (!any || (n == 1 && cards[0].able))
        return any;
    for (int32_t r = 0; r < n && !why->msg[0]; r++)
        compare(cards, r, why);
    return !why->msg[0];
}

/* ---- opening ---- */

static bool is_over(void *arg)
{
    return coll_is_over(arg);
}

struct id_message {
    int32_t known;
    uint8_t id[PEERS_ID_BYTES];
};

/* Opens this rank's end. *why: what has failed here. */
static as_status open_peers(struct device_comm *w, struct as_err *why, struct as_err *err)
{
    struct id_message m = {0};
    struct peers_group group = {.rank = coll_rank(w->coll),
                                .n = coll_size(w->coll),
                                .timeout_ms = OPEN_MS,
                                .is_over = is_over,
                                .arg = w->coll};
    if (group.rank == 0)
        m.known = peers_new_id(w->be, m.id, why) == AS_OK;
    as_status st = coll_broadcast(w->coll, (struct coll_id){.tag = TAG_ID, .what = "NCCL's id"}, 0,
                                  &m, sizeof m, err);
    if (st < 0 || !m.known)
        return st;
    memcpy(group.id, m.id, sizeof group.id);
    st = peers_open(w->be, &group, &w->peers, why);
    return st == AS_E_INTERNAL ? as_fail(err, st, "%s", why->msg) : AS_OK;
}

as_status device_comm_open(struct coll *c, struct backend *be, const struct device_card *cards,
                           struct device_comm **ret, struct as_err *why, struct as_err *err)
{
    *ret = NULL;
    if (!may_be_direct(cards, coll_size(c), why))
        return AS_OK;
    AS_AUTO(device_comm_freep) struct device_comm *w = as_calloc(1, sizeof *w);
    if (!w)
        return as_fail_nomem(err);
    bool all = true;
    w->coll = c;
    w->be = be;
    if (coll_size(c) > 1) {
        as_status st = open_peers(w, why, err);
        if (st == AS_OK)
            st = device_comm_agree(w, w->peers != NULL, &all, err);
        if (st < 0)
            return st;
    }
    if (!all && !why->msg[0])
        (void)as_fail(why, AS_E_UNAVAILABLE, "NCCL does not open on another rank");
    if (all)
        *ret = as_steal(w);
    return AS_OK;
}

void device_comm_free(struct device_comm *w)
{
    if (!w)
        return;
    peers_free(w->peers);
    free(w);
}

struct coll *device_comm_coll(const struct device_comm *w)
{
    return w->coll;
}

struct backend *device_comm_backend(const struct device_comm *w)
{
    return w->be;
}

struct peers *device_comm_peers(const struct device_comm *w)
{
    return w->peers;
}

as_status device_comm_agree(struct device_comm *w, bool mine, bool *ret, struct as_err *err)
{
    float no = !mine, anywhere = 0;
    as_status st = coll_allreduce(w->coll, (struct coll_id){.tag = TAG_AGREE, .what = "devices"},
                                  COLL_RING, &reduce_f32_sum, &no, &anywhere, 1, err);
    if (st == AS_OK)
        *ret = anywhere == 0;
    return st;
}

as_status device_comm_wait(struct device_comm *w, struct as_err *err)
{
    if (coll_is_over(w->coll)) /* who is alone, or quick, would never see that others have come */
        return as_fail(err, AS_E_UNAVAILABLE, "the epoch is over");
    if (!w->peers)
        return backend_sync(w->be, err);
    return peers_wait(w->peers, STALL_MS, err);
}
