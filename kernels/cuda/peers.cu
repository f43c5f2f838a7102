/* Messages between the devices of several processes, through NCCL.
 *
 * NCCL hangs easily: when a peer dies, when its abort waits for another thread inside it, when two
 * ranks call it in different orders. So the communicator does not block: each call returns at once,
 * and we ask it and the stream for their state until an end that the caller has set. A communicator
 * that has failed once is aborted and never used again. The abort itself runs in a thread that is
 * waited for until an end, too: a process whose abort hangs is meant to be replaced. */
#include "kernels/cuda/nccl.cuh"

#include <dlfcn.h>
#include <pthread.h>
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
#define ABORT_MS 10000

struct cuda_peers {
    struct peers base; /* first */
    struct nccl_api nccl;
    nccl_comm_t comm; /* NULL once it is aborted */
    cudaEvent_t sent; /* behind the last messages */
    bool sends;       /* `sent` was recorded and not waited for */
    bool stuck;       /* the abort does not return, and the stream waits behind it */
    bool (*is_over)(void *arg);
    void *arg;
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

static as_status card_of(struct backend *be, struct peers_card *ret, struct as_err *err)
{
    struct nccl_api nccl;
    struct cudaDeviceProp prop;
    int version = 0;
    as_status st = cuda_status(cudaGetDeviceProperties(&prop, cuda_of(be)->device), "device", err);
    if (st < 0)
        return st;
    *ret = {};
    cuda_format_uuid(&prop, ret->gpu);
    if (strncmp(ret->gpu, "MIG", 3) == 0)
        return as_fail(err, AS_E_UNSUPPORTED, "%s is a part of a GPU: NCCL moves nothing to it",
                       ret->gpu);
    if ((st = nccl_load(&nccl, err)) < 0)
        return st;
    (void)nccl.get_version(&version); /* it was checked */
    ret->version = version;
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

/* ---- the end of a communicator ---- */

/* An abort in a thread of its own: NCCL's may wait for a kernel or a peer that never ends. */
struct aborting {
    struct nccl_api nccl;
    nccl_comm_t comm;
    int device;
    std::atomic<bool> done;
};

static void *abort_main(void *arg)
{
    struct aborting *a = (struct aborting *)arg;
    (void)cudaSetDevice(a->device);
    (void)a->nccl.comm_abort(a->comm);
    a->done = true;
    return NULL;
}

/* Waits for the thread, but not for ever. What hangs is left to it. */
static bool await_abort(struct aborting *a, pthread_t thread)
{
    int64_t until_ns = clock_mono_ns() + ABORT_MS * NS_PER_MS;
    struct timespec pause = {.tv_sec = 0, .tv_nsec = ASK_EVERY_NS};
    while (!a->done && clock_mono_ns() < until_ns)
        (void)nanosleep(&pause, NULL);
    if (!a->done) {
        (void)pthread_detach(thread);
        return false;
    }
    (void)pthread_join(thread, NULL);
    free(a);
    return true;
}

static void abort_comm(struct cuda_peers *p)
{
    nccl_comm_t comm = p->comm;
    p->comm = NULL;
    if (comm == NULL)
        return;
    pthread_t thread;
    struct aborting *a = (struct aborting *)calloc(1, sizeof *a);
    if (a != NULL) {
        a->nccl = p->nccl;
        a->comm = comm;
        a->device = cuda_of(p->base.be)->device;
        if (pthread_create(&thread, NULL, abort_main, a) == 0) {
            p->stuck = !await_abort(a, thread);
            return;
        }
        free(a);
    }
    (void)p->nccl.comm_abort(comm);
}

/* After an abort that hangs, so does the stream: only another process can go on. */
static as_status give_up(struct cuda_peers *p, const char *what, const char *why,
                         struct as_err *err)
{
    abort_comm(p);
    if (p->stuck)
        return as_fail(err, AS_E_INTERNAL, "rank %d of %d devices: %s: %s; and NCCL does not end",
                       (int)p->base.rank, (int)p->base.n, what, why);
    return as_fail(err, AS_E_UNAVAILABLE, "rank %d of %d devices: %s: %s", (int)p->base.rank,
                   (int)p->base.n, what, why);
}

/* ---- waiting ---- */

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
        if (p->interrupted || (p->is_over != NULL && p->is_over(p->arg)))
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

static as_status open_peers(struct backend *be, const struct peers_group *group, struct peers **ret,
                            struct as_err *err);

extern "C" __attribute__((visibility("default"))) const struct peers_ops assay_peers_ops;
const struct peers_ops assay_peers_ops = {.abi = PEERS_ABI,
                                          .card = card_of,
                                          .new_id = new_id,
                                          .open = open_peers,
                                          .exchange = exchange,
                                          .wait = wait_messages,
                                          .interrupt = interrupt,
                                          .free = free_peers};

static as_status open_peers(struct backend *be, const struct peers_group *group, struct peers **ret,
                            struct as_err *err)
{
    struct nccl_api nccl;
    struct nccl_id id;
    memcpy(&id, group->id, sizeof id);
    (void)setenv("NCCL_COMM_BLOCKING", "0", 1);
    as_status st = nccl_load(&nccl, err);
    if (st < 0)
        return st;
    struct cuda_peers *p = (struct cuda_peers *)calloc(1, sizeof *p);
    if (p == NULL)
        return as_fail_nomem(err);
    p->base = {.ops = &assay_peers_ops, .be = be, .rank = group->rank, .n = group->n};
    p->nccl = nccl;
    p->is_over = group->is_over;
    p->arg = group->arg;
    cuda_use(be);
    st = cuda_status(cudaEventCreateWithFlags(&p->sent, cudaEventDisableTiming), "an event", err);
    nccl_result r =
        st < 0 ? NCCL_SUCCESS : nccl.comm_init_rank(&p->comm, group->n, id, group->rank);
    if (st == AS_OK && r != NCCL_SUCCESS && r != NCCL_IN_PROGRESS)
        st = give_up(p, "meeting", nccl.error_string(r), err);
    if (st == AS_OK)
        st = wait_for(p, "meeting", NULL, clock_mono_ns() + group->timeout_ms * NS_PER_MS, err);
    if (st < 0) {
        free_peers(&p->base);
        return st;
    }
    *ret = &p->base;
    return AS_OK;
}
