/* Page-locked memory of the host, and copies into it that run beside the operations.
 *
 * All copies of a back end share one stream: a device has one engine for copies to the host, and
 * who waits for a copy wants to know that those before it have ended too. A copy waits for the
 * operations that were called before it (an event of the back end's stream); each has an event of
 * its own behind it, from a ring. */
#include "kernels/cuda/cuda.cuh"

#include <cstdlib>
#include <cstring>

#define COPIES_MAX 64 /* begun and not asked about; the host waits for the oldest then */

struct copies {
    cudaStream_t stream;
    cudaEvent_t ready;             /* behind the operations that the next copy waits for */
    cudaEvent_t ended[COPIES_MAX]; /* copy k: k % COPIES_MAX */
    uint64_t begun;
};

void cuda_copies_free(struct cuda_backend *c)
{
    struct copies *s = c->copies;
    if (s == NULL)
        return;
    if (s->stream != NULL)
        (void)cudaStreamDestroy(s->stream);
    if (s->ready != NULL)
        (void)cudaEventDestroy(s->ready);
    for (cudaEvent_t e : s->ended)
        if (e != NULL)
            (void)cudaEventDestroy(e);
    free(s);
    c->copies = NULL;
}

static as_status make_event(cudaEvent_t *ret, struct as_err *err)
{
    return cuda_status(cudaEventCreateWithFlags(ret, cudaEventDisableTiming), "event", err);
}

static as_status copies_open(struct cuda_backend *c, struct as_err *err)
{
    if (c->copies != NULL)
        return AS_OK;
    struct copies *s = (struct copies *)calloc(1, sizeof *s);
    if (s == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cuda: out of memory");
    c->copies = s;
    as_status st = cuda_status(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
                               "stream of copies", err);
    if (st == AS_OK)
        st = make_event(&s->ready, err);
    for (size_t i = 0; st == AS_OK && i < COPIES_MAX; i++)
        st = make_event(&s->ended[i], err);
    if (st < 0)
        cuda_copies_free(c);
    return st;
}

as_status cuda_host_alloc(struct backend *be, size_t bytes, void **ret, struct as_err *err)
{
    void *p = NULL;
    as_status st = cuda_not_recording(be, "new host memory", err);
    if (st < 0)
        return st;
    cuda_use(be);
    cudaError_t e = cudaHostAlloc(&p, bytes, cudaHostAllocDefault);
    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* this error does not persist: clear it */
        return cuda_status(e, "page-locked memory", err);
    }
    memset(p, 0, bytes);
    *ret = p;
    return AS_OK;
}

void cuda_host_free(struct backend *be, void *p)
{
    cuda_use(be);
    if (cuda_of(be)->copies != NULL) /* one may still write there */
        (void)cudaStreamSynchronize(cuda_of(be)->copies->stream);
    (void)cudaFreeHost(p);
}

as_status cuda_download_begin(const struct buf *b, size_t offset, void *dst, size_t n,
                              uint64_t *ret, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(b->be);
    as_status st = cuda_not_recording(b->be, "download", err);
    if (st < 0)
        return st;
    cuda_use(b->be);
    if ((st = copies_open(c, err)) < 0)
        return st;
    struct copies *s = c->copies;
    cudaEvent_t ended = s->ended[s->begun % COPIES_MAX];
    const char *from = (const char *)b->data + offset * sizeof(float);
    cudaError_t e = cudaEventSynchronize(ended); /* returns at once if it was never recorded */
    if (e == cudaSuccess)
        e = cudaEventRecord(s->ready, c->stream);
    if (e == cudaSuccess)
        e = cudaStreamWaitEvent(s->stream, s->ready, 0);
    if (e == cudaSuccess && n > 0)
        e = cudaMemcpyAsync(dst, from, n * sizeof(float), cudaMemcpyDeviceToHost, s->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(ended, s->stream);
    if (e != cudaSuccess)
        return cuda_status(e, "download", err);
    *ret = s->begun++;
    return AS_OK;
}

as_status cuda_copied(struct backend *be, uint64_t copy, bool wait, bool *ret, struct as_err *err)
{
    const struct copies *s = cuda_of(be)->copies;
    bool known = s != NULL && copy < s->begun;
    if (known && s->begun - copy > COPIES_MAX) { /* its event is another copy's: it has ended */
        *ret = true;
        return AS_OK;
    }
    if (!known)
        return as_fail(err, AS_E_INVAL, "back end cuda: copy %llu was not begun",
                       (unsigned long long)copy);
    cuda_use(be);
    cudaEvent_t ended = s->ended[copy % COPIES_MAX];
    cudaError_t e = wait ? cudaEventSynchronize(ended) : cudaEventQuery(ended);
    if (e != cudaSuccess && e != cudaErrorNotReady)
        return cuda_status(e, "an operation failed", err);
    *ret = e == cudaSuccess;
    return AS_OK;
}
