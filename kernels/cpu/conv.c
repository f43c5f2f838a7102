/* Dense convolution without im2col: channels last, KW x C inputs of a patch lie side by side, so a
 * tile of output pixels is a product that reads the (padded) image itself (conv_tile.h). conv.h
 * says how the work is cut.
 *
 *   forward  y[pixel] = patch(pixel) w: panels of w, tiles of pixels. Sums begin at the bias; relu
 *            is applied in registers, other activations over the block while it is in the cache
 *   dw       panels of dy, tiles of w's rows, sums over a block's pixels in registers; one partial
 *            sum per slice, added in order
 *   dx       row i of the kernel adds dy[pixel] w[i]^T to the KW C inputs that it read, in place,
 *            so that no matrix of columns is written
 *
 * Slices of one member run side by side (cpu_split). For dw, so do parts of the weight.
 *
 * This form of dx costs the same for any stride and pad. As a convolution of dy with the flipped
 * kernel a 5 x 5 without padding would take 2.25 times the products (12 x 12 instead of 8 x 8
 * pixels). */
#include "kernels/cpu/conv.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/conv_pack.h"

/* Pixels whose places are computed at once, for all panels. */
#define CHUNK 512
/* Pixels of dy, by a panel's width: 12 KiB, which stay in the first-level cache. */
#define NEAR 96

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The member's workspace, from the next multiple of 64 bytes on. */
static float *work_of(const struct conv_args *a, size_t k)
{
    return (float *)(((uintptr_t)tensor_f32(a->work, k) + 63) / 64 * 64);
}

size_t cpu_conv_work(const struct backend *be, const struct conv_args *a)
{
    (void)be;
    if (a->groups > 1)
        return 0;
    struct conv_plan p = conv_plan(a);
    size_t most = p.forward_work > p.dw_work ? p.forward_work : p.dw_work;
    return (most > p.dx_work ? most : p.dx_work) + 16; /* room for work_of() to align */
}

/* Where a block's pixels read and write: pixel (n, y, x) at n * image + y * row + x * pixel. */
struct jumps {
    size_t image, row, pixel;
};

/* Pixels of images x rows x cols; y changes fastest if `down`. In this order neighbours in a tile
 * write to different rows of dx, and no load waits for a store that it overlaps. */
struct walk {
    size_t images, rows, cols;
    bool down;
    size_t n, y, x; /* the current pixel */
};

/* Move to the next pixel. Returns true if it is the next one along the fastest axis. */
static bool step_walk(struct walk *w)
{
    if (w->down) {
        if (++w->y < w->rows)
            return true;
        w->y = 0;
        if (++w->n < w->images)
            return false;
        w->n = 0;
        w->x++;
        return false;
    }
    if (++w->x < w->cols)
        return true;
    w->x = 0;
    if (++w->y < w->rows)
        return false;
    w->y = 0;
    w->n++;
    return false;
}

static size_t place(const struct walk *w, const struct jumps *j)
{
    return w->n * j->image + w->y * j->row + w->x * j->pixel;
}

/* A product over the pixels of a block: each pixel's patch times all panels of a matrix. */
struct product {
    const struct conv_tile *tile;
    const float *from;
    float *to;
    struct jumps from_jumps, to_jumps;
    size_t runs, run, jump; /* the patch */
    size_t pass;            /* runs in one pass over the pixels, so that the panel stays in cache */
    const float *panels;    /* of [runs * run, cols] */
    const float *start;     /* in panels, one row; NULL: add to the output */
    size_t cols;
    bool relu;
};

struct places {
    size_t n;
    size_t from[CHUNK + CONV_TILE_ROWS_MAX], to[CHUNK];
};

/* One panel's rows of `t`, with all pixels. */
static void multiply_panel(const struct product *p, const struct places *at, size_t from_offset,
                           size_t column, struct pixel_tile *t)
{
    for (size_t i = 0; i < at->n; i += p->tile->rows) {
        t->rows = smaller(at->n - i, p->tile->rows);
        for (size_t r = 0; r < p->tile->rows; r++)
            t->from[r] = p->from + at->from[i + r] + from_offset;
        for (size_t r = 0; r < t->rows; r++)
            t->to[r] = p->to + at->to[i + r] + column;
        p->tile->pixels(t);
    }
}

static void multiply_chunk(const struct product *p, const struct places *at)
{
    const float *panel = p->panels;
    for (size_t c = 0; c < p->cols; c += p->tile->cols) {
        size_t width = conv_panel_width(p->tile, c, p->cols);
        for (size_t run = 0; run < p->runs; run += p->pass) {
            struct pixel_tile t = {.runs = smaller(p->runs - run, p->pass),
                                   .run = p->run,
                                   .jump = p->jump,
                                   .panel = panel,
                                   .cols = smaller(p->cols - c, width)};
            if (run == 0 && p->start != NULL)
                t.start = p->start + c;
            t.relu = p->relu && run + t.runs == p->runs;
            multiply_panel(p, at, run * p->jump, c, &t);
            panel += t.runs * p->run * width;
        }
    }
}

static void multiply(const struct product *p, struct walk w)
{
    struct places at;
    size_t left = w.images * w.rows * w.cols, from = 0, to = 0;
    size_t from_next = w.down ? p->from_jumps.row : p->from_jumps.pixel;
    size_t to_next = w.down ? p->to_jumps.row : p->to_jumps.pixel;
    while (left > 0) {
        at.n = smaller(left, CHUNK);
        for (size_t i = 0; i < at.n; i++) {
            at.from[i] = from;
            at.to[i] = to;
            bool next = step_walk(&w);
            from = next ? from + from_next : place(&w, &p->from_jumps);
            to = next ? to + to_next : place(&w, &p->to_jumps);
        }
        for (size_t i = at.n; i < at.n + CONV_TILE_ROWS_MAX; i++)
            at.from[i] =
                at.from[at.n - 1]; /* a tile reads ROWS places, so the rest must be readable */
        multiply_chunk(p, &at);
        left -= at.n;
    }
}

/* ---- the input of a block ---- */

struct input {
    const float *at; /* the first patch */
    struct jumps jumps;
};

/* The block in x itself, or a padded copy in `room`. */
static struct input input_of(const struct conv_plan *p, const struct conv_block *b, const float *x,
                             float *room)
{
    const struct conv_args *a = p->a;
    size_t c = a->channels;
    struct input in = {.jumps = {.row = a->stride * p->wp * c, .pixel = a->stride * c}};
    if (a->pad == 0) {
        in.jumps.image = a->height * a->width * c;
        in.at = x + b->image * in.jumps.image + b->row * in.jumps.row;
        return in;
    }
    conv_pad(p, b, x, room);
    in.jumps.image = ((b->rows - 1) * a->stride + a->kernel_h) * p->wp * c;
    in.at = room;
    return in;
}

/* ---- forward ---- */

struct forward {
    const struct conv_plan *p;
    const float *x;
    float *y, *z;
    act_kind act;
    const float *panels, *bias; /* packed */
};

static void forward_block(const struct forward *f, const struct conv_block *b, float *room)
{
    const struct conv_plan *p = f->p;
    size_t out = p->a->out, row = p->ow * out, first = (b->image * p->oh + b->row) * row;
    struct input in = input_of(p, b, f->x, room);
    bool fused = f->z == NULL && (f->act == ACT_NONE || f->act == ACT_RELU);
    struct product m = {.tile = p->tile,
                        .from = in.at,
                        .to = f->y + first,
                        .from_jumps = in.jumps,
                        .to_jumps = {p->oh * row, row, out},
                        .runs = p->a->kernel_h,
                        .run = p->run,
                        .pass = p->pass,
                        .jump = p->wp * p->a->channels,
                        .panels = f->panels,
                        .start = f->bias,
                        .cols = out,
                        .relu = fused && f->act == ACT_RELU};
    multiply(&m, (struct walk){.images = b->images, .rows = b->rows, .cols = p->ow});
    if (!fused)
        cpu_bias_act(f->act, f->y + first, NULL, f->z != NULL ? f->z + first : NULL,
                     b->images * b->rows * p->ow, out, out);
}

struct forward_job {
    const struct conv_plan *p;
    act_kind act;
    struct tensor y, z;
};

static void forward_pack(void *arg, size_t k)
{
    const struct conv_plan *p = ((const struct forward_job *)arg)->p;
    const struct conv_args *a = p->a;
    float *panels = work_of(a, k), *bias = panels + p->patch * p->out_cols;
    conv_pack(p->tile, tensor_f32(a->w, k), p->patch, a->out, panels);
    memset(bias, 0, p->out_cols * sizeof(*bias));
    if (a->b.buf != NULL)
        memcpy(bias, tensor_f32(a->b, k), a->out * sizeof(*bias));
}

/* One slice of one member. */
static void forward_tile(void *arg, size_t i)
{
    const struct forward_job *job = arg;
    const struct conv_plan *p = job->p;
    size_t k = i / p->slices, s = i % p->slices;
    float *panels = work_of(p->a, k);
    struct forward f = {.p = p,
                        .x = tensor_f32(p->a->x, k),
                        .y = tensor_f32(job->y, k),
                        .z = tensor_f32(job->z, k),
                        .act = job->act,
                        .panels = panels,
                        .bias = panels + p->patch * p->out_cols};
    float *room = panels + (p->forward_work - (p->slices - s) * p->x_size);
    for (size_t n = s * p->blocks / p->slices; n < (s + 1) * p->blocks / p->slices; n++) {
        struct conv_block b = conv_block(p, n);
        forward_block(&f, &b, room);
    }
}

as_status cpu_conv_forward(struct backend *be, const struct conv_args *a, act_kind act,
                           struct tensor y, struct tensor z, struct as_err *err)
{
    (void)err;
    if (a->groups > 1)
        return cpu_depthwise_forward(be, a, act, y, z);
    struct conv_plan p = conv_plan(a);
    struct forward_job job = {&p, act, y, z};
    if (p.slices == 0)
        return AS_OK;
    cpu_split(be, a->members, forward_pack, &job);
    cpu_split(be, a->members * p.slices, forward_tile, &job);
    return AS_OK;
}

/* ---- gradient by the weight and the bias ---- */

struct weight_gradient {
    const struct conv_plan *p;
    const float *x, *dy;
    bool dw, db;
};

/* Some pixels of a block. dw's inner loops use them all before they go to the next strip. */
struct pixels {
    struct conv_block part; /* of the block, counted from its first image and row */
    const float *panel;     /* of dy, [pixels][width] */
};

/* Strips of the weight's rows [first, last) with one panel of dy. */
static void weight_strips(const struct conv_plan *p, const struct pixels *px,
                          const struct input *in, size_t first, size_t last, float *sum,
                          size_t width)
{
    size_t rows = last - first, strips = (rows + p->tile->rows - 1) / p->tile->rows;
    size_t jump = p->wp * p->a->channels; /* from one row of a patch to the next */
    const float *from = in->at + px->part.image * in->jumps.image + px->part.row * in->jumps.row;
    struct weight_tile t = {.images = px->part.images,
                            .height = px->part.rows,
                            .width = p->ow,
                            .image_jump = in->jumps.image,
                            .row_jump = in->jumps.row,
                            .pixel_jump = in->jumps.pixel,
                            .panel = px->panel,
                            .cols = width};
    for (size_t s = 0; s < strips; s++) {
        size_t at = first + s * rows / strips, end = first + (s + 1) * rows / strips;
        size_t run = at / p->run, place = at % p->run;
        t.rows = end - at;
        t.sum = sum + at * width;
        for (size_t r = 0; r < t.rows; r++, place++) {
            if (place == p->run) {
                run++;
                place = 0;
            }
            t.from[r] = from + run * jump + place;
        }
        p->tile->weights(&t);
    }
}

/* About NEAR pixels at a time: some whole images, or some rows of each. */
static void weight_panel(const struct conv_plan *p, const struct conv_block *b,
                         const struct input *in, size_t first, size_t last, const float *panel,
                         float *sum, size_t width)
{
    size_t image = b->rows * p->ow;
    size_t images = image < NEAR ? NEAR / image : 1;
    size_t rows = image <= NEAR ? b->rows : (NEAR + p->ow - 1) / p->ow;
    for (size_t n = 0; n < b->images; n += images) {
        for (size_t y = 0; y < b->rows; y += rows) {
            struct pixels px = {{n, smaller(images, b->images - n), y, smaller(rows, b->rows - y)},
                                panel + (n * image + y * p->ow) * width};
            weight_strips(p, &px, in, first, last, sum, width);
        }
    }
}

static void weight_block(const struct weight_gradient *g, const struct conv_block *b, size_t part,
                         float *sum, float *room)
{
    const struct conv_plan *p = g->p;
    size_t out = p->a->out, pixels = b->images * b->rows * p->ow;
    const float *dy = g->dy + (b->image * p->oh + b->row) * p->ow * out;
    if (g->db && part == 0)
        conv_sum_rows(dy, pixels, out, out, sum + p->patch * p->out_cols);
    if (!g->dw)
        return;
    size_t first = part * p->patch / p->dw_parts, last = (part + 1) * p->patch / p->dw_parts;
    struct input in = input_of(p, b, g->x, room);
    float *panel = room + p->x_size;
    conv_pack(p->tile, dy, pixels, out, panel);
    for (size_t c = 0; c < out; c += p->tile->cols) {
        size_t width = conv_panel_width(p->tile, c, out);
        weight_panel(p, b, &in, first, last, panel, sum, width);
        panel += pixels * width;
        sum += p->patch * width;
    }
}

struct backward_job {
    const struct conv_plan *p;
    const struct conv_grads *g;
};

/* The workspace of dw: for each slice its sums (dw_size: [patch] in panels, then a row for db),
 * then for each slice and part x_size and dy_size. This clears the sums that a part adds to. */
static void clear_part(const struct conv_plan *p, size_t part, float *sum)
{
    size_t first = part * p->patch / p->dw_parts, last = (part + 1) * p->patch / p->dw_parts;
    for (size_t c = 0; c < p->a->out; c += p->tile->cols) {
        size_t width = conv_panel_width(p->tile, c, p->a->out);
        memset(sum + first * width, 0, (last - first) * width * sizeof(*sum));
        sum += p->patch * width;
    }
    if (part == 0)
        memset(sum, 0, p->out_cols * sizeof(*sum));
}

/* One part of one slice of one member. */
static void weight_tile(void *arg, size_t i)
{
    const struct backward_job *job = arg;
    const struct conv_plan *p = job->p;
    size_t pieces = p->dw_slices * p->dw_parts, k = i / pieces;
    size_t s = i % pieces / p->dw_parts, part = i % p->dw_parts;
    float *work = work_of(p->a, k), *sum = work + s * p->dw_size;
    float *room = work + p->dw_slices * p->dw_size + i % pieces * (p->x_size + p->dy_size);
    struct weight_gradient g = {.p = p,
                                .x = tensor_f32(p->a->x, k),
                                .dy = tensor_f32(job->g->dy, k),
                                .dw = job->g->dw.buf != NULL,
                                .db = job->g->db.buf != NULL};
    size_t last = (s + 1) * p->blocks / p->dw_slices;
    clear_part(p, part, sum);
    for (size_t n = s * p->blocks / p->dw_slices; n < last; n++) {
        struct conv_block b = conv_block(p, n);
        weight_block(&g, &b, part, sum, room);
    }
}

static void weight_merge(void *arg, size_t k)
{
    const struct backward_job *job = arg;
    const struct conv_plan *p = job->p;
    const float *sums = work_of(p->a, k);
    if (job->g->dw.buf != NULL)
        conv_merge(p->tile, sums, p->dw_slices, p->dw_size, p->patch, p->a->out,
                   tensor_f32(job->g->dw, k));
    if (job->g->db.buf != NULL)
        conv_merge(p->tile, sums + p->patch * p->out_cols, p->dw_slices, p->dw_size, 1, p->a->out,
                   tensor_f32(job->g->db, k));
}

/* ---- gradient by the input ---- */

struct input_gradient {
    const struct conv_plan *p;
    const float *dy;
    float *dx;
    const float *panels; /* for each row of the kernel w^T, [O, run] */
};

/* Row i of the kernel: output row y read row y * stride + i of the padded input. */
static void input_row(const struct input_gradient *g, const struct conv_block *b, size_t i,
                      float *to, size_t to_image)
{
    const struct conv_plan *p = g->p;
    const struct conv_args *a = p->a;
    size_t first = b->row <= i ? 0 : (b->row - i + a->stride - 1) / a->stride;
    size_t last = b->row + b->rows <= i ? 0 : (b->row + b->rows - i - 1) / a->stride + 1;
    last = smaller(last, p->oh);
    if (first >= last)
        return;
    size_t row = p->ow * a->out, line = p->wp * a->channels;
    struct product m = {.tile = p->tile,
                        .from = g->dy + (b->image * p->oh + first) * row,
                        .to = to + (first * a->stride + i - b->row) * line,
                        .from_jumps = {p->oh * row, row, a->out},
                        .to_jumps = {to_image, a->stride * line, a->stride * a->channels},
                        .runs = 1,
                        .pass = 1,
                        .run = a->out,
                        .panels = g->panels + i * a->out * p->run_cols,
                        .cols = p->run};
    multiply(&m,
             (struct walk){.images = b->images, .rows = last - first, .cols = p->ow, .down = true});
}

static void input_block(const struct input_gradient *g, const struct conv_block *b, float *room)
{
    const struct conv_plan *p = g->p;
    const struct conv_args *a = p->a;
    size_t line = p->wp * a->channels, image = b->rows * line;
    float *to = room;
    assert(g->dx != NULL);
    if (a->pad == 0) {
        to = g->dx + (b->image * a->height + b->row) * line;
        image = a->height * line;
    }
    for (size_t n = 0; n < b->images; n++)
        memset(to + n * image, 0, b->rows * line * sizeof(*to));
    for (size_t i = 0; i < a->kernel_h; i++)
        input_row(g, b, i, to, image);
    if (a->pad > 0)
        conv_unpad(p, b, room, g->dx);
}

/* One row of the kernel of one member. */
static void input_pack(void *arg, size_t i)
{
    const struct conv_plan *p = ((const struct backward_job *)arg)->p;
    const struct conv_args *a = p->a;
    size_t k = i / a->kernel_h, row = i % a->kernel_h;
    conv_pack_transposed(p->tile, tensor_f32(a->w, k) + row * p->run * a->out, p->run, a->out,
                         work_of(a, k) + row * a->out * p->run_cols);
}

/* One slice of one member. */
static void input_tile(void *arg, size_t i)
{
    const struct backward_job *job = arg;
    const struct conv_plan *p = job->p;
    size_t k = i / p->dx_slices, s = i % p->dx_slices;
    float *panels = work_of(p->a, k);
    struct input_gradient g = {
        .p = p, .dy = tensor_f32(job->g->dy, k), .dx = tensor_f32(job->g->dx, k), .panels = panels};
    float *room = panels + (p->dx_work - (p->dx_slices - s) * p->dx_size);
    size_t last = (s + 1) * p->dx_blocks / p->dx_slices;
    for (size_t n = s * p->dx_blocks / p->dx_slices; n < last; n++) {
        struct conv_block b = conv_dx_block(p, n);
        input_block(&g, &b, room);
    }
}

as_status cpu_conv_backward(struct backend *be, const struct conv_args *a,
                            const struct conv_grads *g, struct as_err *err)
{
    (void)err;
    if (a->groups > 1)
        return cpu_depthwise_backward(be, a, g);
    struct conv_plan p = conv_plan(a);
    struct backward_job job = {&p, g};
    if (g->dw.buf != NULL || g->db.buf != NULL) {
        cpu_split(be, a->members * p.dw_slices * p.dw_parts, weight_tile, &job);
        cpu_split(be, a->members, weight_merge, &job);
    }
    if (g->dx.buf != NULL) {
        cpu_split(be, a->members * a->kernel_h, input_pack, &job);
        cpu_split(be, a->members * p.dx_slices, input_tile, &job);
    }
    return AS_OK;
}
