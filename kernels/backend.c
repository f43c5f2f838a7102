/* The public functions of back ends, buffers, lanes and graphs. Each checks its arguments and calls
 * the back end's table. The functions of operations are in ops_X.c.
 *
 * backend_open() chooses: a name in the call, else $ASSAY_BACKEND, else cuda, else cpu. A named
 * back end that does not open is an error. Without a name, a machine without a GPU is the common
 * case, so the reason why cuda did not open is dropped. */
#include "kernels/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/backend_priv.h"
#include "kernels/host_buf.h"
#include "kernels/plugin.h"

#define DEVICE_LIMIT 1024
#define THREAD_LIMIT 1024

static const struct {
    const char *name;
    as_status (*open)(const struct backend_opts *opts, struct backend **ret, struct as_err *err);
} known[] = {{"reference", reference_open}, {"cpu", cpu_open}, {"cuda", plugin_open}};

static as_status open_named(const char *name, const char *from, const struct backend_opts *opts,
                            struct backend **ret, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(known); i++)
        if (strcmp(name, known[i].name) == 0) {
            if (opts->bf16 && known[i].open != plugin_open)
                return as_fail(err, AS_E_UNSUPPORTED, "back end %s: bf16 is for cuda only", name);
            return known[i].open(opts, ret, err);
        }
    return as_fail(err, AS_E_INVAL,
                   "%s '%.40s' is not known, expected one of: reference, cpu, cuda", from, name);
}

as_status backend_open(const char *name, const struct backend_opts *opts, struct backend **ret,
                       struct as_err *err)
{
    static const struct backend_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    if (opts->threads < 0 || opts->threads > THREAD_LIMIT)
        return as_fail(err, AS_E_INVAL, "threads is %d, expected 0 to %d", opts->threads,
                       THREAD_LIMIT);
    if (opts->device < 0 || opts->device > DEVICE_LIMIT)
        return as_fail(err, AS_E_INVAL, "device is %d, expected 0 to %d", opts->device,
                       DEVICE_LIMIT);
    if (name != NULL)
        return open_named(name, "back end", opts, ret, err);
    const char *forced = getenv("ASSAY_BACKEND");
    if (forced != NULL && forced[0] != '\0')
        return open_named(forced, "ASSAY_BACKEND", opts, ret, err);
    if (plugin_open(opts, ret, NULL) == AS_OK)
        return AS_OK;
    return open_named("cpu", "back end", opts, ret, err);
}

void backend_free(struct backend *be)
{
    if (be != NULL)
        be->ops->close(be);
}

void backend_freep(struct backend **be)
{
    backend_free(*be);
    *be = NULL;
}

const char *backend_name(const struct backend *be)
{
    return be->ops->name;
}

const char *backend_device(const struct backend *be)
{
    return be->device;
}

as_status backend_sync(struct backend *be, struct as_err *err)
{
    return be->ops->sync(be, err);
}

as_status backend_step_end(struct backend *be, struct as_err *err)
{
    return be->ops->step_end != NULL ? be->ops->step_end(be, err) : AS_OK;
}

as_status backend_memory(struct backend *be, size_t *ret_free, size_t *ret_total,
                         struct as_err *err)
{
    if (be->ops->memory != NULL)
        return be->ops->memory(be, ret_free, ret_total, err);
    *ret_free = *ret_total = 0;
    return AS_OK;
}

as_status backend_gpus(struct backend_gpu *ret, size_t most, size_t *ret_n, struct as_err *err)
{
    return plugin_gpus(ret, most, ret_n, err);
}

/* ---- lanes ---- */

size_t backend_lanes(const struct backend *be)
{
    return be->ops->lanes != NULL ? be->ops->lanes(be) : 1;
}

as_status backend_for_each(struct backend *be, size_t n, backend_task *task, void *arg,
                           struct as_err *err)
{
    if (be->ops->for_each != NULL && backend_lanes(be) > 1)
        return be->ops->for_each(be, n, task, arg, err);
    as_status first = AS_OK;
    for (size_t i = 0; i < n; i++) {
        as_status st = task(be, i, arg, first == AS_OK ? err : NULL);
        if (first == AS_OK)
            first = st;
    }
    return first;
}

/* ---- graphs ---- */

static as_status no_graphs(const struct backend *be, struct as_err *err)
{
    return as_fail(err, AS_E_UNSUPPORTED, "graph: back end %s records none", be->ops->name);
}

as_status backend_graph_begin(struct backend *be, struct as_err *err)
{
    return be->ops->graph_begin != NULL ? be->ops->graph_begin(be, err) : no_graphs(be, err);
}

as_status backend_graph_end(struct backend *be, struct graph **ret, struct as_err *err)
{
    return be->ops->graph_end != NULL ? be->ops->graph_end(be, ret, err) : no_graphs(be, err);
}

as_status backend_graph_run(struct backend *be, struct graph *g, struct as_err *err)
{
    return be->ops->graph_run != NULL ? be->ops->graph_run(be, g, err) : no_graphs(be, err);
}

void graph_free(struct graph *g)
{
    if (g != NULL)
        g->be->ops->graph_free(g);
}

void graph_freep(struct graph **g)
{
    graph_free(*g);
    *g = NULL;
}

/* ---- buffers ---- */

/* Allocate the struct of a buffer, without the memory of its elements. */
static as_status buf_make(struct backend *be, buf_kind kind, size_t n, struct buf **ret,
                          struct as_err *err)
{
    if (kind != BUF_F32 && kind != BUF_I32)
        return as_fail(err, AS_E_INVAL, "buffer: kind %d is not known", (int)kind);
    if (n > SIZE_MAX / 2 / sizeof(float))
        return as_fail(err, AS_E_TOO_LARGE, "buffer: %zu elements overflow", n);
    AS_AUTO(as_freep) struct buf *b = as_calloc(1, sizeof(*b));
    if (b == NULL)
        return as_fail(err, AS_E_NOMEM, "buffer: out of memory");
    b->be = be->owner != NULL ? be->owner : be;
    b->kind = kind;
    b->n = n;
    *ret = as_steal(b);
    return AS_OK;
}

as_status buf_create(struct backend *be, buf_kind kind, size_t n, struct buf **ret,
                     struct as_err *err)
{
    AS_AUTO(buf_freep) struct buf *b = NULL;
    as_status st = buf_make(be, kind, n, &b, err);
    if (st != AS_OK)
        return st;
    if (n > 0)
        st = be->ops->alloc(b, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(b);
    return AS_OK;
}

as_status buf_adopt(struct backend *be, buf_kind kind, size_t n, void *data, struct buf **ret,
                    struct as_err *err)
{
    AS_AUTO(as_freep) void *own = data;
    AS_AUTO(buf_freep) struct buf *b = NULL;
    as_status st = buf_make(be, kind, n, &b, err);
    if (st != AS_OK)
        return st;
    if (n > 0 && be->ops->adopt != NULL)
        be->ops->adopt(b, as_steal(own));
    else if (n > 0 && (st = be->ops->alloc(b, err)) == AS_OK)
        st = be->ops->upload(b, 0, own, n, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(b);
    return AS_OK;
}

void buf_free(struct buf *b)
{
    if (b == NULL)
        return;
    if (b->data != NULL)
        b->be->ops->release(b);
    free(b);
}

void buf_freep(struct buf **b)
{
    buf_free(*b);
    *b = NULL;
}

buf_kind buf_kind_get(const struct buf *b)
{
    return b->kind;
}

size_t buf_len(const struct buf *b)
{
    return b->n;
}

static as_status check_range(const char *what, const struct buf *b, size_t offset, size_t n,
                             struct as_err *err)
{
    if (offset > b->n || n > b->n - offset)
        return as_fail(err, AS_E_INVAL, "buffer %s: %zu elements at %zu, but there are %zu", what,
                       n, offset, b->n);
    return AS_OK;
}

as_status buf_upload(struct buf *b, size_t offset, const void *src, size_t n, struct as_err *err)
{
    as_status st = check_range("upload", b, offset, n, err);
    return st < 0 || n == 0 ? st : b->be->ops->upload(b, offset, src, n, err);
}

as_status buf_download(const struct buf *b, size_t offset, void *dst, size_t n, struct as_err *err)
{
    as_status st = check_range("download", b, offset, n, err);
    return st < 0 || n == 0 ? st : b->be->ops->download(b, offset, dst, n, err);
}

as_status backend_host_alloc(struct backend *be, size_t n, void **ret, struct as_err *err)
{
    if (n > SIZE_MAX / 2 / sizeof(float))
        return as_fail(err, AS_E_TOO_LARGE, "host memory: %zu elements overflow", n);
    if (be->ops->host_alloc != NULL)
        return be->ops->host_alloc(be, (n > 0 ? n : 1) * sizeof(float), ret, err);
    void *p = as_calloc(n, sizeof(float));
    if (p == NULL)
        return as_fail(err, AS_E_NOMEM, "host memory: out of memory for %zu elements", n);
    *ret = p;
    return AS_OK;
}

void backend_host_free(struct backend *be, void *p)
{
    if (p != NULL && be->ops->host_free != NULL)
        be->ops->host_free(be, p);
    else
        free(p);
}

as_status buf_download_begin(const struct buf *b, size_t offset, void *dst, size_t n, uint64_t *ret,
                             struct as_err *err)
{
    as_status st = check_range("download", b, offset, n, err);
    if (st < 0)
        return st;
    if (b->be->ops->download_begin != NULL)
        return b->be->ops->download_begin(b, offset, dst, n, ret, err);
    *ret = 0;
    return n == 0 ? AS_OK : b->be->ops->download(b, offset, dst, n, err);
}

as_status backend_copied(struct backend *be, uint64_t copy, bool wait, bool *ret,
                         struct as_err *err)
{
    if (be->ops->copied != NULL)
        return be->ops->copied(be, copy, wait, ret, err);
    *ret = true;
    return AS_OK;
}

static as_status buf_fill(struct buf *b, buf_kind kind, size_t offset, size_t n, uint32_t bits,
                          struct as_err *err)
{
    if (b->kind != kind)
        return as_fail(err, AS_E_INVAL, "buffer fill: the value is of the other kind");
    as_status st = check_range("fill", b, offset, n, err);
    return st < 0 || n == 0 ? st : b->be->ops->fill(b, offset, n, bits, err);
}

as_status buf_fill_f32(struct buf *b, size_t offset, size_t n, float value, struct as_err *err)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return buf_fill(b, BUF_F32, offset, n, bits, err);
}

as_status buf_fill_i32(struct buf *b, size_t offset, size_t n, int32_t value, struct as_err *err)
{
    return buf_fill(b, BUF_I32, offset, n, (uint32_t)value, err);
}

const void *buf_host(const struct buf *b)
{
    return b->be->ops->download == host_buf_download ? b->data : NULL;
}

as_status buf_copy(struct buf *dst, size_t dst_offset, const struct buf *src, size_t src_offset,
                   size_t n, struct as_err *err)
{
    if (dst->be != src->be || dst->kind != src->kind)
        return as_fail(err, AS_E_INVAL, "buffer copy: the two differ in back end or kind");
    as_status st = check_range("copy, to", dst, dst_offset, n, err);
    if (st < 0 || (st = check_range("copy, from", src, src_offset, n, err)) < 0)
        return st;
    bool apart = dst_offset + n <= src_offset || src_offset + n <= dst_offset;
    if (dst == src && n > 0 && !apart)
        return as_fail(err, AS_E_INVAL, "buffer copy: the ranges overlap");
    return n == 0 ? AS_OK : dst->be->ops->copy(dst, dst_offset, src, src_offset, n, err);
}
