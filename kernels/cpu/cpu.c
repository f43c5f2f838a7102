/* The fast back end of the host: opening it, its threads, and its table of operations.
 *
 * One pool of threads serves two uses. cpu_for_each() runs tasks (members) side by side: each
 * thread has a lane, which is a back end without a pool, so an operation in a task runs in one
 * thread. cpu_split() runs the tiles of one large operation side by side. Both never nest. The
 * error of the lowest task is returned, so an error does not depend on timing either. */
#include "kernels/cpu/cpu.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/blas.h"
#include "base/mem.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/pool.h"
#include "kernels/host_buf.h"

/* The back end that a task uses in one thread: the same operations, no pool. */
struct lane {
    struct cpu_side side;
    size_t failed; /* lowest task that failed in this lane, SIZE_MAX: none; err is its error */
    as_status st;
    struct as_err err;
};

struct cpu_backend {
    struct cpu_side side;
    struct pool *pool;  /* NULL: one thread */
    struct lane *lanes; /* one per thread of the pool */
};

/* NULL for a lane, and with one thread. */
static struct pool *pool_of(const struct backend *be)
{
    return be->owner != NULL ? NULL : ((const struct cpu_backend *)be)->pool;
}

size_t cpu_lanes(const struct backend *be)
{
    struct pool *pool = pool_of(be);
    return pool != NULL ? pool_threads(pool) : 1;
}

/* ---- tasks: members side by side ---- */

struct tasks {
    backend_task *task;
    void *arg;
    struct lane *lanes;
};

static void run_task(void *arg, size_t i, size_t who)
{
    const struct tasks *t = arg;
    struct lane *lane = &t->lanes[who];
    struct as_err err = {0};
    as_status st = t->task(&lane->side.base, i, t->arg, &err);
    if (st < 0 && i < lane->failed) {
        lane->failed = i;
        lane->st = st;
        lane->err = err;
    }
}

/* backend_for_each() calls this only if there are lanes. */
static as_status cpu_for_each(struct backend *be, size_t n, backend_task *task, void *arg,
                              struct as_err *err)
{
    struct cpu_backend *c = (struct cpu_backend *)be;
    size_t n_lanes = pool_threads(c->pool);
    if (n > UINT32_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "for each: %zu tasks, the limit is %u", n, UINT32_MAX);
    for (size_t i = 0; i < n_lanes; i++)
        c->lanes[i].failed = SIZE_MAX;
    struct tasks t = {task, arg, c->lanes};
    pool_run(c->pool, n, run_task, &t);
    const struct lane *first = &c->lanes[0];
    for (size_t i = 1; i < n_lanes; i++)
        if (c->lanes[i].failed < first->failed)
            first = &c->lanes[i];
    if (first->failed == SIZE_MAX)
        return AS_OK;
    if (err != NULL)
        *err = first->err;
    return first->st;
}

/* ---- tiles: one operation in pieces ---- */

struct tiles {
    cpu_tile *tile;
    void *arg;
};

static void run_tile(void *arg, size_t i, size_t who)
{
    const struct tiles *t = arg;
    (void)who;
    t->tile(t->arg, i);
}

void cpu_split(struct backend *be, size_t n, cpu_tile *tile, void *arg)
{
    struct pool *pool = pool_of(be);
    if (pool == NULL || n < 2 || n > UINT32_MAX) {
        for (size_t i = 0; i < n; i++)
            tile(arg, i);
        return;
    }
    struct tiles t = {tile, arg};
    pool_run(pool, n, run_tile, &t);
}

struct elements {
    cpu_chunk *chunk;
    void *arg;
    size_t members, n;
    size_t chunks; /* of one member; 0: members are small, and per_tile of them make a tile */
    size_t per_tile;
};

static void run_elements(void *arg, size_t i)
{
    const struct elements *e = arg;
    if (e->chunks > 0) {
        size_t first = i % e->chunks * CPU_CHUNK, left = e->n - first;
        e->chunk(e->arg, i / e->chunks, first, left < CPU_CHUNK ? left : CPU_CHUNK);
        return;
    }
    size_t first = i * e->per_tile, end = first + e->per_tile;
    for (size_t k = first; k < end && k < e->members; k++)
        e->chunk(e->arg, k, 0, e->n);
}

void cpu_split_elements(struct backend *be, size_t members, size_t n, cpu_chunk *chunk, void *arg)
{
    struct elements e = {chunk, arg, members, n, 0, 0};
    if (n == 0)
        return;
    if (members == 1 && n <= CPU_CHUNK) { /* the common small case */
        chunk(arg, 0, 0, n);
        return;
    }
    if (n > CPU_CHUNK) {
        e.chunks = (n + CPU_CHUNK - 1) / CPU_CHUNK;
        cpu_split(be, members * e.chunks, run_elements, &e);
    } else {
        e.per_tile = CPU_CHUNK / n;
        cpu_split(be, (members + e.per_tile - 1) / e.per_tile, run_elements, &e);
    }
}

/* ---- open and close ---- */

void cpu_close(struct backend *be)
{
    struct cpu_backend *c = (struct cpu_backend *)be;
    pool_free(c->pool);
    free(c->lanes);
    free(c);
}

const struct backend_ops cpu_ops = {
    .name = CPU_NAME,
    HOST_BUF_OPS,
    .close = cpu_close,
    .gather = cpu_gather,
    .gather_bytes = cpu_gather_bytes,
    .columns = cpu_columns,
    .linear_forward = cpu_linear_forward,
    .linear_backward = cpu_linear_backward,
    .act_backward = cpu_act_backward,
    .dropout = cpu_dropout,
    .softmax_ce = cpu_softmax_ce,
    .mse = cpu_mse,
    .grad_stats = cpu_grad_stats,
    .grad_clip = cpu_grad_clip,
    .tick = cpu_tick,
    .augment = cpu_augment,
    .add = cpu_add,
    .layer_norm_forward = cpu_layer_norm_forward,
    .layer_norm_backward = cpu_layer_norm_backward,
    .embedding_forward = cpu_embedding_forward,
    .embedding_backward = cpu_embedding_backward,
    .attention_work = cpu_attention_work,
    .attention_forward = cpu_attention_forward,
    .attention_backward = cpu_attention_backward,
    .huber = cpu_huber,
    .bce = cpu_bce,
    .weigh_rows = cpu_weigh_rows,
    .grad_accumulate = cpu_grad_accumulate,
    .optimize = cpu_optimize,
    .ema = cpu_ema,
    .lanes = cpu_lanes,
    .for_each = cpu_for_each,
    .graph_begin = cpu_graph_begin,
    .graph_end = cpu_graph_end,
    .graph_run = cpu_graph_run,
    .graph_free = cpu_graph_free,
    .conv_work = cpu_conv_work,
    .conv_forward = cpu_conv_forward,
    .conv_backward = cpu_conv_backward,
    .pool_forward = cpu_pool_forward,
    .pool_backward = cpu_pool_backward,
    .batch_norm_train = cpu_batch_norm_train,
    .batch_norm_eval = cpu_batch_norm_eval,
    .batch_norm_backward = cpu_batch_norm_backward,
};

/* OpenBLAS keeps to the thread that calls it: its own second thread makes small products slower,
 * and the pool's threads call it side by side. Every thread sets the number, because OpenMP's build
 * of OpenBLAS asks OpenMP, which keeps the number per thread. */
static void one_blas_thread(void)
{
    if (blas_get() != NULL)
        blas_get()->set_num_threads(1);
}

static as_status start_lanes(struct cpu_backend *c, size_t threads, struct as_err *err)
{
    c->lanes = as_calloc(threads, sizeof(*c->lanes));
    if (c->lanes == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cpu: out of memory");
    for (size_t i = 0; i < threads; i++) {
        c->lanes[i].side.base = c->side.base;
        c->lanes[i].side.base.owner = &c->side.base;
    }
    return pool_create(threads, one_blas_thread, &c->pool, err);
}

/* Write the source of the matrix products and the number of threads. */
static void describe_device(char *device, size_t len, int threads)
{
    const char *const own[] = {[GEMM_AVX2] = "AVX2", [GEMM_AVX512] = "AVX-512"};
    const char *plural = threads == 1 ? "" : "s";
    gemm_isa best = gemm_best();
    if (best == GEMM_BLAS)
        snprintf(device, len, "OpenBLAS %s, %d thread%s", blas_get()->get_corename(), threads,
                 plural);
    else
        snprintf(device, len, "%s, %d thread%s", own[best], threads, plural);
}

as_status cpu_open(const struct backend_opts *opts, struct backend **ret, struct as_err *err)
{
    as_status st = cpu_gemm_ready(err);
    if (st < 0)
        return st;
    struct cpu_backend *c = as_calloc(1, sizeof(*c));
    if (c == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cpu: out of memory");
    int threads = opts->threads > 0 ? opts->threads : 1;
    c->side.base.ops = &cpu_ops;
    describe_device(c->side.base.device, sizeof(c->side.base.device), threads);
    one_blas_thread();
    st = threads > 1 ? start_lanes(c, (size_t)threads, err) : AS_OK;
    if (st < 0) {
        cpu_close(&c->side.base);
        return st;
    }
    *ret = &c->side.base;
    return AS_OK;
}
