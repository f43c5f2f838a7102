/* Buffers in the host's memory, for the reference and cpu back ends. The functions are rows of
 * their tables: see backend_priv.h. */
#ifndef ASSAY_KERNELS_HOST_BUF_H
#define ASSAY_KERNELS_HOST_BUF_H

#include "kernels/backend_priv.h"

as_status host_buf_alloc(struct buf *b, struct as_err *err);
void host_buf_adopt(struct buf *b, void *data);
void host_buf_release(struct buf *b);
as_status host_buf_upload(struct buf *b, size_t offset, const void *src, size_t n,
                          struct as_err *err);
as_status host_buf_download(const struct buf *b, size_t offset, void *dst, size_t n,
                            struct as_err *err);
as_status host_buf_fill(struct buf *b, size_t offset, size_t n, uint32_t bits, struct as_err *err);
as_status host_buf_copy(struct buf *dst, size_t dst_offset, const struct buf *src,
                        size_t src_offset, size_t n, struct as_err *err);

/* Returns AS_OK at once: on the host every operation is done when its call returns. */
as_status host_sync(struct backend *be, struct as_err *err);

/* Close a back end that owns no other memory. */
void host_close(struct backend *be);

/* The functions above except host_close, for the initialiser of a struct backend_ops. */
#define HOST_BUF_OPS                                                                               \
    .sync = host_sync, .alloc = host_buf_alloc, .adopt = host_buf_adopt,                           \
    .release = host_buf_release, .upload = host_buf_upload, .download = host_buf_download,         \
    .fill = host_buf_fill, .copy = host_buf_copy

#endif
