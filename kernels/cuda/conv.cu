/* Convolution with groups = 1 as products of matrices: the taps of an output pixel side by side are
 * a row of [pixels, KH KW C] (im2col), the weight is [KH KW C, O]. The rows are made piece by piece
 * in the caller's workspace. The size of a piece depends on the shape alone, and so does the order
 * of the sums. A 1 x 1 convolution of stride 1 needs no copy: its rows are x itself.
 *
 * With ASSAY_CUDA_CONV=cudnn, cuDNN runs the shapes that it can (conv_cudnn.cu). */
#include "kernels/cuda/conv.cuh"

#ifndef CONV_PIECE_FLOATS /* the emulated build has small pieces, so that tests cross their ends */
#define CONV_PIECE_FLOATS ((size_t)4 << 20) /* 16 MiB of each member */
#endif

static size_t row_len(const struct conv_sizes &s)
{
    return s.kernel_h * s.kernel_w * s.channels;
}

static bool is_plain(const struct conv_args *a)
{
    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride == 1 && a->pad == 0;
}

/* Output pixels of a piece. */
static size_t piece_of(const struct conv_sizes &s)
{
    size_t len = row_len(s), all = s.pixels();
    size_t fit = len == 0 || CONV_PIECE_FLOATS / len > all ? all : CONV_PIECE_FLOATS / len;
    return fit < 1 ? 1 : fit;
}

size_t cuda_conv_work(const struct backend *be, const struct conv_args *a)
{
    (void)be;
    if (a->groups > 1 || is_plain(a))
        return 0;
    struct conv_sizes s = conv_sizes_of(a);
    return s.pixels() == 0 ? 0 : piece_of(s) * row_len(s);
}

struct piece {
    size_t from, pixels; /* of the output */
};

/* A warp writes the row of one output pixel. */
__global__ static void im2col(struct conv_sizes s, struct piece piece, size_t members,
                              struct dev_f32 x, struct dev_f32 rows)
{
    uint32_t channels = (uint32_t)s.channels, kernel_w = (uint32_t)s.kernel_w;
    size_t len = s.kernel_h * s.kernel_w * s.channels;
    FOR_MEMBERS(k, members)
    {
        FOR_ROWS(r, piece.pixels)
        {
            float *row = rows.at(k) + r * len;
            for (uint32_t q = threadIdx.x % WARP; q < len; q += WARP) { /* [KH, KW, C] */
                uint32_t t = q / channels;
                size_t pixel = s.tap(piece.from + r, t / kernel_w, t % kernel_w);
                row[q] = pixel != SIZE_MAX ? x.at(k)[pixel * channels + q % channels] : 0.0f;
            }
        }
    }
}

/* The sum of one input element's gradients in the rows of the piece; e in [B, H, W, C]. */
__device__ static float taps_of(const struct conv_sizes &s, const struct piece &piece, size_t e,
                                const float *rows)
{
    size_t c = e % s.channels, p = e / s.channels, h = p / s.width % s.height, w = p % s.width;
    size_t image = p / (s.height * s.width), len = s.kernel_h * s.kernel_w * s.channels;
    float sum = 0.0f;
    for (size_t i = 0; i < s.kernel_h; i++) {
        size_t y = 0, x = 0;
        if (!tap_reader(h, i, s.pad, s.stride, s.out_h, &y))
            continue;
        for (size_t j = 0; j < s.kernel_w; j++) {
            if (!tap_reader(w, j, s.pad, s.stride, s.out_w, &x))
                continue;
            size_t pixel = (image * s.out_h + y) * s.out_w + x;
            if (pixel >= piece.from && pixel - piece.from < piece.pixels)
                sum += rows[(pixel - piece.from) * len + (i * s.kernel_w + j) * s.channels + c];
        }
    }
    return sum;
}

/* Add the gradients of a piece's rows to the images [first, first + images) that it contains. If
 * the pixels of an image lie in several pieces, the first piece overwrites and the others add. */
__global__ static void col2im(struct conv_sizes s, struct piece piece, size_t first, size_t images,
                              struct dev_f32 rows, struct dev_f32 dx)
{
    size_t image = s.height * s.width * s.channels;
    FOR_MEMBERS(k, s.members)
    {
        FOR_ELEMENTS(i, images * image)
        {
            size_t e = first * image + i;
            bool begun = e / image * s.out_h * s.out_w < piece.from;
            float sum = taps_of(s, piece, e, rows.at(k));
            dx.at(k)[e] = begun ? dx.at(k)[e] + sum : sum;
        }
    }
}

/* The rows of a piece: in the workspace, or x itself. The rows of a shared x are made once. */
static struct tensor rows_of(struct backend *be, const struct conv_args *a,
                             const struct conv_sizes &s, struct piece piece)
{
    if (is_plain(a))
        return tensor_at(a->x.buf, a->x.offset + piece.from * s.channels, a->x.stride);
    bool shared = a->x.stride == 0;
    size_t members = shared ? 1 : s.members;
    struct tensor rows = tensor_at(a->work.buf, a->work.offset, shared ? 0 : a->work.stride);
    if (row_len(s) > 0)
        LAUNCH(im2col, grid_over_rows(piece.pixels, members), THREADS, 0, cuda_of(be)->stream, s,
               piece, members, f32_of(a->x), f32_of(rows));
    return rows;
}

/* The piece that begins at output pixel `from`. */
static struct piece next_piece(const struct conv_sizes &s, size_t from)
{
    size_t each = piece_of(s), left = s.pixels() - from;
    return {from, left < each ? left : each};
}

static struct tensor from_pixel(struct tensor t, size_t pixel, size_t channels)
{
    t.offset += pixel * channels;
    return t;
}

/* Run the operation through cuDNN if it can; *ret_done says whether it did. */
static as_status by_cudnn(struct backend *be, const struct conv_args *a, conv_op op,
                          struct tensor x, struct tensor w, struct tensor y, bool *ret_done,
                          struct as_err *err)
{
    *ret_done = false;
    if (cuda_of(be)->conv_cudnn == NULL || a->groups > 1)
        return AS_OK;
    return conv_cudnn_run(be, a, op, x, w, y, ret_done, err);
}

const char *cuda_conv_path(const struct backend *be)
{
    const struct cuda_backend *c = (const struct cuda_backend *)be;
    return c->conv_cudnn == NULL ? "own" : conv_cudnn_text(c->conv_cudnn);
}

as_status cuda_conv_forward(struct backend *be, const struct conv_args *a, act_kind act,
                            struct tensor y, struct tensor z, struct as_err *err)
{
    struct conv_sizes s = conv_sizes_of(a);
    bool done = a->groups > 1;
    if (s.members == 0 || s.pixels() == 0 || s.out == 0)
        return AS_OK;
    cuda_use(be);
    as_status st = done ? cuda_depthwise_forward(be, a, y, err)
                        : by_cudnn(be, a, CONV_FORWARD, a->x, a->w, y, &done, err);
    for (size_t at = 0; !done && st == AS_OK && at < s.pixels();) {
        struct piece p = next_piece(s, at);
        st = cuda_gemm(be, s.members, p.pixels, s.out, row_len(s),
                       {rows_of(be, a, s, p), false, row_len(s)}, {a->w, false, s.out}, 0.0f,
                       from_pixel(y, at, s.out), err);
        at += p.pixels;
    }
    return st < 0 ? st : cuda_bias_act(be, act, s.members, s.pixels(), s.out, y, a->b, z, err);
}

static as_status backward_w(struct backend *be, const struct conv_args *a,
                            const struct conv_grads *g, struct as_err *err)
{
    struct conv_sizes s = conv_sizes_of(a);
    if (s.pixels() == 0) /* an empty sum */
        return cuda_gemm(be, s.members, row_len(s), s.out, 0, {a->x, true, row_len(s)},
                         {g->dy, false, s.out}, 0.0f, g->dw, err);
    bool done;
    as_status st = by_cudnn(be, a, CONV_DW, a->x, g->dw, g->dy, &done, err);
    for (size_t at = 0; !done && st == AS_OK && at < s.pixels();) {
        struct piece p = next_piece(s, at);
        st = cuda_gemm(
            be, s.members, row_len(s), s.out, p.pixels, {rows_of(be, a, s, p), true, row_len(s)},
            {from_pixel(g->dy, at, s.out), false, s.out}, at > 0 ? 1.0f : 0.0f, g->dw, err);
        at += p.pixels;
    }
    return st;
}

static as_status backward_x(struct backend *be, const struct conv_args *a,
                            const struct conv_grads *g, struct as_err *err)
{
    struct conv_sizes s = conv_sizes_of(a);
    size_t image = s.height * s.width * s.channels, per_image = s.out_h * s.out_w;
    if (image == 0)
        return AS_OK;
    if (s.pixels() == 0)
        return cuda_zero(be, g->dx, s.members, s.batch * image, err);
    bool done;
    as_status st = by_cudnn(be, a, CONV_DX, g->dx, a->w, g->dy, &done, err);
    if (st < 0 || done)
        return st;
    struct factor w = {a->w, true, s.out};
    if (is_plain(a))
        return cuda_gemm(be, s.members, s.pixels(), s.channels, s.out, {g->dy, false, s.out}, w,
                         0.0f, g->dx, err);
    for (size_t at = 0; st == AS_OK && at < s.pixels();) {
        struct piece p = next_piece(s, at);
        size_t first = at / per_image, images = (at + p.pixels - 1) / per_image - first + 1;
        st = cuda_gemm(be, s.members, p.pixels, row_len(s), s.out,
                       {from_pixel(g->dy, at, s.out), false, s.out}, w, 0.0f, a->work, err);
        if (st < 0)
            return st;
        LAUNCH(col2im, grid_over(images * image, s.members), THREADS, 0, cuda_of(be)->stream, s, p,
               first, images, f32_of(a->work), f32_of(g->dx));
        st = cuda_launched("convolution backward", err);
        at += p.pixels;
    }
    return st;
}

as_status cuda_conv_backward(struct backend *be, const struct conv_args *a,
                             const struct conv_grads *g, struct as_err *err)
{
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    as_status st = AS_OK;
    if (a->groups > 1)
        st = cuda_depthwise_backward(be, a, g, err);
    else if (g->dw.buf != NULL)
        st = backward_w(be, a, g, err);
    if (st == AS_OK && a->groups == 1 && g->dx.buf != NULL)
        st = backward_x(be, a, g, err);
    if (st == AS_OK && g->db.buf != NULL)
        st = cuda_sum_rows(be, a->members, conv_sizes_of(a).pixels(), a->out, g->dy, g->db, false,
                           err);
    return st;
}
