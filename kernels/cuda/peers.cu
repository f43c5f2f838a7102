/* Messages between the devices of several processes, through NCCL.
 *
 * NCCL hangs easily: when a peer dies, when its abort waits for another thread inside it, when two
 * ranks call it in different orders. So the communicator does not block: each call returns at once,
 * and we ask it and the stream for their state until an end that the caller has set. A communicator
 * that has failed once is aborted and never used again; its process is meant to be replaced. */
#include "kernels/cuda/nccl.cuh"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atomic>

#include "kernels/cuda/cuda.cuh"
#include "kernels/peers_priv.h"

extern "C" {
#include "base/clock.h"
}

#define DEFAULT_LIBRARY "libnccl.so.2"
#define OLDEST 21400 /* major * 10000 + minor * 100: the first that need not block */
#define ASK_EVERY_NS 20000

struct cuda_peers {
    struct peers base; /* first */
    struct nccl_api nccl;
    nccl_comm_t comm; /* NULL once it is aborted */
    cudaEvent_t sent; /* behind the last messages */
    bool sends;       /* `sent` was recorded and not waited for */
    std::atomic<bool> interrupted;
};

template <typename F> static bool find(void *library, const char *name, F *ret)
{
    *ret = (F)dlsym(library, name);
    return *ret != NULL;
}

static const char *missing(void *l, struct nccl_api *a)
{
    return !find(l, "ncclGetVersion", &a->get_version)                   ? "ncclGetVersion"
           : !find(l, "ncclGetUniqueId", &a->get_unique_id)              ? "ncclGetUniqueId"
           : !find(l, "ncclCommInitRank", &a->comm_init_rank)            ? "ncclCommInitRank"
           : !find(l, "ncclCommAbort", &a->comm_abort)                   ? "ncclCommAbort"
           : !find(l, "ncclCommGetAsyncError", &a->comm_get_async_error) ? "ncclCommGetAsyncError"
           : !find(l, "ncclGroupStart", &a->group_start)                 ? "ncclGroupStart"
           : !find(l, "ncclGroupEnd", &a->group_end)                     ? "ncclGroupEnd"
           : !find(l, "ncclSend", &a->send)                              ? "ncclSend"
           : !find(l, "ncclRecv", &a->recv)                              ? "ncclRecv"
           : !find(l, "ncclGetErrorString", &a->error_string)            ? "ncclGetErrorString"
                                                                         : NULL;
}

/* The library stays open for the life of the process: it has threads of its own. */
static as_status nccl_load(struct nccl_api *ret, struct as_err *err)
{
    const char *name = getenv("ASSAY_NCCL");
    if (name == NULL || name[0] == '\0')
        name = DEFAULT_LIBRARY;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        return as_fail(err, AS_E_UNAVAILABLE, "%s does not open: %s", name, why != NULL ? why : "");
    }
    struct nccl_api api = {};
    int version = 0;
    const char *lacks = missing(library, &api);
    if (lacks != NULL)
        return as_fail(err, AS_E_UNAVAILABLE, "%s has no %s", name, lacks);
    if (api.get_version(&version) != NCCL_SUCCESS || version < OLDEST)
        return as_fail(err, AS_E_UNAVAILABLE, "NCCL is version %d, expected %d or newer: %s",
                       version, OLDEST, name);
    *ret = api;
    return AS_OK;
}

static as_status new_id(uint8_t ret[PEERS_ID_BYTES], struct as_err *err)
{
    struct nccl_api nccl;
    struct nccl_id id;
    static_assert(sizeof id == PEERS_ID_BYTES, "an id is passed on as bytes");
    as_status st = nccl_load(&nccl, err);
    if (st < 0)
        return st;
    nccl_result r = nccl.get_unique_id(&id);
    if (r != NCCL_SUCCESS)
        return as_fail(err, AS_E_UNAVAILABLE, "NCCL: a new id: %s", nccl.error_string(r));
    memcpy(ret, &id, sizeof id);
    return AS_OK;
}

/* ---- waiting ---- */

static void abort_comm(struct cuda_peers *p)
{
    if (p->comm != NULL)
        (void)p->nccl.comm_abort(p->comm);
    p->comm = NULL;
}

static as_status give_up(struct cuda_peers *p, const char *what, const char *why,
                         struct as_err *err)
{
    abort_comm(p);
    return as_fail(err, AS_E_UNAVAILABLE, "rank %d of %d devices: %s: %s", (int)p->base.rank,
                   (int)p->base.n, what, why);
}

/* Asks until NCCL has ended what was called, and the messages have arrived if `event` is given. */
static as_status wait_for(struct cuda_peers *p, const char *what, cudaEvent_t event,
                          int64_t until_ns, struct as_err *err)
{
    for (;;) {
        nccl_result state = NCCL_SUCCESS, r = p->nccl.comm_get_async_error(p->comm, &state);
        if (r != NCCL_SUCCESS || (state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS))
            return give_up(p, what, p->nccl.error_string(r != NCCL_SUCCESS ? r : state), err);
        cudaError_t e = state != NCCL_SUCCESS ? cudaErrorNotReady
                        : event != NULL       ? cudaEventQuery(event)
                                              : cudaSuccess;
        if (e == cudaSuccess && event == NULL)
            return AS_OK;
        if (e == cudaSuccess) { /* a message that failed has ended, too */
            r = p->nccl.comm_get_async_error(p->comm, &state);
            return r == NCCL_SUCCESS && state == NCCL_SUCCESS
                       ? AS_OK
                       : give_up(p, what, p->nccl.error_string(r != NCCL_SUCCESS ? r : state), err);
        }
        if (e != cudaErrorNotReady) {
            abort_comm(p);
            return cuda_status(e, what, err);
        }
        if (p->interrupted)
            return give_up(p, what, "the group is over", err);
        if (clock_mono_ns() >= until_ns)
            return give_up(p, what, "a peer does not answer", err);
        struct timespec pause = {.tv_sec = 0, .tv_nsec = ASK_EVERY_NS};
        (void)nanosleep(&pause, NULL);
    }
}

static as_status wait_messages(struct peers *base, int64_t timeout_ms, struct as_err *err)
{
    struct cuda_peers *p = (struct cuda_peers *)base;
    if (p->comm == NULL)
        return give_up(p, "messages", "the group is over", err);
    if (!p->sends)
        return AS_OK;
    cuda_use(base->be);
    as_status st = wait_for(p, "messages", p->sent, clock_mono_ns() + timeout_ms * NS_PER_MS, err);
    p->sends = st < 0;
    return st;
}

static void interrupt(struct peers *base)
{
    ((struct cuda_peers *)base)->interrupted = true;
}

/* ---- messages ---- */

static nccl_result call_all(struct cuda_peers *p, const struct peers_message *messages, size_t n)
{
    cudaStream_t stream = cuda_of(p->base.be)->stream;
    nccl_result r = p->nccl.group_start();
    for (size_t i = 0; i < n && r == NCCL_SUCCESS; i++) {
        const struct peers_message *m = &messages[i];
        float *at = tensor_f32(tensor_at(m->buf, m->at, 0), 0);
        r = m->sends ? p->nccl.send(at, m->n, NCCL_FLOAT32, m->peer, p->comm, stream)
                     : p->nccl.recv(at, m->n, NCCL_FLOAT32, m->peer, p->comm, stream);
        r = r == NCCL_IN_PROGRESS ? NCCL_SUCCESS : r;
    }
    nccl_result end = p->nccl.group_end();
    return r != NCCL_SUCCESS ? r : end;
}

#define CALL_MS 30000 /* until NCCL has put messages on the stream; it connects to new peers then */

static as_status exchange(struct peers *base, const struct peers_message *messages, size_t n,
                          struct as_err *err)
{
    struct cuda_peers *p = (struct cuda_peers *)base;
    if (p->comm == NULL)
        return give_up(p, "messages", "the group is over", err);
    if (cuda_of(base->be)->recording)
        return as_fail(err, AS_E_CONFLICT, "back end cuda: messages while a graph is recorded");
    cuda_use(base->be);
    nccl_result r = call_all(p, messages, n);
    if (r != NCCL_SUCCESS && r != NCCL_IN_PROGRESS)
        return give_up(p, "messages", p->nccl.error_string(r), err);
    as_status st = wait_for(p, "messages", NULL, clock_mono_ns() + CALL_MS * NS_PER_MS, err);
    if (st < 0)
        return st;
    p->sends = true;
    return cuda_status(cudaEventRecord(p->sent, cuda_of(base->be)->stream), "messages", err);
}

/* ---- life ---- */

static void free_peers(struct peers *base)
{
    struct cuda_peers *p = (struct cuda_peers *)base;
    cuda_use(base->be);
    abort_comm(p); /* not ncclCommDestroy(): that waits for the others */
    if (p->sent != NULL)
        (void)cudaEventDestroy(p->sent);
    free(p);
}

static as_status open_peers(struct backend *be, const uint8_t bytes[PEERS_ID_BYTES], int32_t rank,
                            int32_t n, int64_t timeout_ms, struct peers **ret, struct as_err *err);

extern "C" __attribute__((visibility("default"))) const struct peers_ops assay_peers_ops;
const struct peers_ops assay_peers_ops = {.abi = PEERS_ABI,
                                          .new_id = new_id,
                                          .open = open_peers,
                                          .exchange = exchange,
                                          .wait = wait_messages,
                                          .interrupt = interrupt,
                                          .free = free_peers};

static as_status open_peers(struct backend *be, const uint8_t bytes[PEERS_ID_BYTES], int32_t rank,
                            int32_t n, int64_t timeout_ms, struct peers **ret, struct as_err *err)
{
    struct nccl_api nccl;
    struct nccl_id id;
    memcpy(&id, bytes, sizeof id);
    (void)setenv("NCCL_COMM_BLOCKING", "0", 1);
    as_status st = nccl_load(&nccl, err);
    if (st < 0)
        return st;
    struct cuda_peers *p = (struct cuda_peers *)calloc(1, sizeof *p);
    if (p == NULL)
        return as_fail_nomem(err);
    p->base = {.ops = &assay_peers_ops, .be = be, .rank = rank, .n = n};
    p->nccl = nccl;
    cuda_use(be);
    st = cuda_status(cudaEventCreateWithFlags(&p->sent, cudaEventDisableTiming), "an event", err);
    nccl_result r = st < 0 ? NCCL_SUCCESS : nccl.comm_init_rank(&p->comm, n, id, rank);
    if (st == AS_OK && r != NCCL_SUCCESS && r != NCCL_IN_PROGRESS)
        st = give_up(p, "meeting", nccl.error_string(r), err);
    if (st == AS_OK)
        st = wait_for(p, "meeting", NULL, clock_mono_ns() + timeout_ms * NS_PER_MS, err);
    if (st < 0) {
        free_peers(&p->base);
        return st;
    }
    *ret = &p->base;
    return AS_OK;
}
