/* Graphs by stream capture: CUDA records the launches of the operations and later launches them all
 * at once. Operations allocate nothing and wait for nothing, so all of them can be captured. The
 * mode is thread-local, so that the calls of another back end in another thread are not
 * disturbed. */
#include "kernels/cuda/cuda.cuh"

#include <cstdlib>

struct cuda_graph {
    struct graph base; /* must be first: a struct graph * points to one of these */
    cudaGraphExec_t exec;
};

as_status cuda_graph_begin(struct backend *be, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    if (c->recording)
        return as_fail(err, AS_E_CONFLICT, "graph: one is being recorded already");
    cuda_use(be);
    as_status st = cuda_status(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal),
                               "graph", err);
    c->recording = st == AS_OK;
    return st;
}

as_status cuda_graph_end(struct backend *be, struct graph **ret, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    if (!c->recording)
        return as_fail(err, AS_E_CONFLICT, "graph: none is being recorded");
    cuda_use(be);
    cudaGraph_t record = NULL;
    c->recording = false;
    as_status st = cuda_status(cudaStreamEndCapture(c->stream, &record), "graph", err);
    if (st < 0) {
        (void)cudaGetLastError(); /* the recording is broken, the stream is not */
        return st;
    }
    struct cuda_graph *g = (struct cuda_graph *)calloc(1, sizeof(*g));
    if (g == NULL)
        st = as_fail(err, AS_E_NOMEM, "graph: out of memory");
    else
        st = cuda_status(cudaGraphInstantiate(&g->exec, record, 0), "graph", err);
    (void)cudaGraphDestroy(record);
    if (st < 0) {
        free(g);
        return st;
    }
    g->base.be = be;
    *ret = &g->base;
    return AS_OK;
}

as_status cuda_graph_run(struct backend *be, struct graph *g, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    if (g->be != be)
        return as_fail(err, AS_E_INVAL, "graph: it is of another back end");
    if (c->recording)
        return as_fail(err, AS_E_CONFLICT, "graph: run while another is recorded");
    cuda_use(be);
    return cuda_status(cudaGraphLaunch(((struct cuda_graph *)g)->exec, c->stream), "graph", err);
}

void cuda_graph_free(struct graph *g)
{
    struct cuda_graph *own = (struct cuda_graph *)g;
    cuda_use(g->be);
    (void)cudaStreamSynchronize(cuda_of(g->be)->stream); /* it may still run */
    (void)cudaGraphExecDestroy(own->exec);
    free(own);
}
