#include "kernels/host_buf.h"

#include <stdlib.h>
#include <string.h>

/* A cache line, and one AVX-512 register. */
#define HOST_ALIGN 64u

as_status host_buf_alloc(struct buf *b, struct as_err *err)
{
    /* buf_create keeps n below SIZE_MAX / 8, so rounding up does not overflow. */
    size_t bytes = (b->n * sizeof(float) + HOST_ALIGN - 1) / HOST_ALIGN * HOST_ALIGN;
    b->data = aligned_alloc(HOST_ALIGN, bytes);
    if (b->data == NULL)
        return as_fail(err, AS_E_NOMEM, "buffer: out of memory for %zu bytes", bytes);
    memset(b->data, 0, bytes);
    return AS_OK;
}

void host_buf_adopt(struct buf *b, void *data)
{
    b->data = data;
}

void host_buf_release(struct buf *b)
{
    free(b->data);
}

static uint32_t *at(const struct buf *b, size_t offset)
{
    return (uint32_t *)b->data + offset;
}

as_status host_buf_upload(struct buf *b, size_t offset, const void *src, size_t n,
                          struct as_err *err)
{
    (void)err;
    memcpy(at(b, offset), src, n * sizeof(uint32_t));
    return AS_OK;
}

as_status host_buf_download(const struct buf *b, size_t offset, void *dst, size_t n,
                            struct as_err *err)
{
    (void)err;
    memcpy(dst, at(b, offset), n * sizeof(uint32_t));
    return AS_OK;
}

as_status host_buf_fill(struct buf *b, size_t offset, size_t n, uint32_t bits, struct as_err *err)
{
    (void)err;
    uint32_t *p = at(b, offset);
    for (size_t i = 0; i < n; i++)
        p[i] = bits;
    return AS_OK;
}

as_status host_buf_copy(struct buf *dst, size_t dst_offset, const struct buf *src,
                        size_t src_offset, size_t n, struct as_err *err)
{
    (void)err;
    memcpy(at(dst, dst_offset), at(src, src_offset), n * sizeof(uint32_t));
    return AS_OK;
}

as_status host_sync(struct backend *be, struct as_err *err)
{
    (void)be;
    (void)err;
    return AS_OK;
}

void host_close(struct backend *be)
{
    free(be);
}
