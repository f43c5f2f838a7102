/* Linear layers: products of each member, cut into tasks for the threads.
 *
 * Small members are joined: one task does several of them whole. A large member's product is cut
 * into pieces (gemm.h), and a task does one piece. Bias and ReLU are done in the registers of the
 * product where nothing else needs the sums; another activation is a pass over the output. */
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/activation.h"
#include "base/cpu_clones.h"
#include "kernels/cpu/gemm.h"

/* Multiply-adds that are worth a task for another thread: some 15 microseconds. */
#define TASK_WORK ((size_t)1 << 20)

/* The number of members, each with so much work, that make one task. */
static size_t members_per_task(size_t pieces, size_t work)
{
    return pieces > 1 || work >= TASK_WORK ? 1 : TASK_WORK / (work + 1) + 1;
}

static size_t tasks_of(size_t members, size_t per_task, size_t pieces)
{
    return (members + per_task - 1) / per_task * pieces;
}

/* ---- forward ---- */

struct forward {
    const struct linear_args *a;
    act_kind act;
    struct tensor y, z;
    struct gemm_grid grid;
    size_t per_task;
};

static void forward_piece(const struct forward *f, size_t k, size_t i)
{
    const struct linear_args *a = f->a;
    float *y = tensor_f32(f->y, k), *z = tensor_f32(f->z, k);
    const float *b = tensor_f32(a->b, k);
    /* the product itself adds the bias and applies the ReLU */
    bool plain = z == NULL && (f->act == ACT_NONE || f->act == ACT_RELU);
    struct gemm whole = {.m = a->batch,
                         .n = a->out,
                         .k = a->in,
                         .a = tensor_f32(a->x, k),
                         .lda = a->in,
                         .b = tensor_f32(a->w, k),
                         .ldb = a->out,
                         .c = y,
                         .ldc = a->out,
                         .bias = plain ? b : NULL,
                         .relu = plain && f->act == ACT_RELU};
    struct gemm p = gemm_piece(&whole, &f->grid, i);
    cpu_gemm(&p);
    size_t col = (size_t)(p.b - whole.b);
    if (!plain)
        cpu_bias_act(f->act, p.c, b != NULL ? b + col : NULL, z != NULL ? z + (p.c - y) : NULL, p.m,
                     p.n, a->out);
}

static void forward_task(void *arg, size_t i)
{
    const struct forward *f = arg;
    size_t first = i / f->grid.n * f->per_task, end = first + f->per_task;
    for (size_t k = first; k < end && k < f->a->members; k++)
        forward_piece(f, k, i % f->grid.n);
}

as_status cpu_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                             struct tensor y, struct tensor z, struct as_err *err)
{
    (void)err;
    struct forward f = {a, act, y, z, gemm_grid(a->batch, a->out, a->in), 1};
    if (a->members == 1 && f.grid.n == 1) { /* the common small case: no divisions */
        forward_piece(&f, 0, 0);
        return AS_OK;
    }
    f.per_task = members_per_task(f.grid.n, a->batch * a->out * a->in);
    cpu_split(be, tasks_of(a->members, f.per_task, f.grid.n), forward_task, &f);
    return AS_OK;
}

/* ---- backward ---- */

#define SUM_COLS 64 /* sums that stay in registers over all rows */

CPU_INLINE void sum_block(const float *restrict dy, float *restrict db, size_t rows, size_t cols,
                          size_t n, bool accumulate)
{
    float sum[SUM_COLS] = {0};
    for (size_t o = 0; accumulate && o < n; o++)
        sum[o] = db[o];
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < n; o++)
            sum[o] += dy[r * cols + o];
    for (size_t o = 0; o < n; o++)
        db[o] = sum[o];
}

/* db[o] (+)= sum of dy over the rows, in the order of the rows. */
CPU_CLONES static void sum_rows(const float *dy, float *db, size_t rows, size_t cols,
                                bool accumulate)
{
    size_t at = 0;
    for (; at + SUM_COLS <= cols; at += SUM_COLS)
        sum_block(dy + at, db + at, rows, cols, SUM_COLS, accumulate);
    for (; at + SUM_COLS / 4 <= cols; at += SUM_COLS / 4)
        sum_block(dy + at, db + at, rows, cols, SUM_COLS / 4, accumulate);
    sum_block(dy + at, db + at, rows, cols, cols - at, accumulate);
}

/* The tasks of each member: first the pieces of dw, then those of dx, then db. */
struct backward {
    const struct linear_args *a;
    const struct linear_grads *g;
    struct gemm_grid dw, dx;
    size_t pieces;
    size_t per_task;
};

static void piece_of_dw(const struct backward *w, size_t k, size_t i)
{
    const struct linear_args *a = w->a;
    struct gemm whole = {.ta = true,
                         .add = w->g->accumulate,
                         .m = a->in,
                         .n = a->out,
                         .k = a->batch,
                         .a = tensor_f32(a->x, k),
                         .lda = a->in,
                         .b = tensor_f32(w->g->dy, k),
                         .ldb = a->out,
                         .c = tensor_f32(w->g->dw, k),
                         .ldc = a->out};
    struct gemm p = gemm_piece(&whole, &w->dw, i);
    cpu_gemm(&p);
}

static void piece_of_dx(const struct backward *w, size_t k, size_t i)
{
    const struct linear_args *a = w->a;
    struct gemm whole = {.tb = true,
                         .m = a->batch,
                         .n = a->in,
                         .k = a->out,
                         .a = tensor_f32(w->g->dy, k),
                         .lda = a->out,
                         .b = tensor_f32(a->w, k),
                         .ldb = a->out,
                         .c = tensor_f32(w->g->dx, k),
                         .ldc = a->in};
    struct gemm p = gemm_piece(&whole, &w->dx, i);
    cpu_gemm(&p);
}

static void backward_piece(const struct backward *w, size_t k, size_t i)
{
    if (i < w->dw.n)
        piece_of_dw(w, k, i);
    else if (i - w->dw.n < w->dx.n)
        piece_of_dx(w, k, i - w->dw.n);
    else
        sum_rows(tensor_f32(w->g->dy, k), tensor_f32(w->g->db, k), w->a->batch, w->a->out,
                 w->g->accumulate);
}

/* A task is several small members, or one piece of a large member. */
static void backward_task(void *arg, size_t i)
{
    const struct backward *w = arg;
    if (w->per_task == 1) {
        backward_piece(w, i / w->pieces, i % w->pieces);
        return;
    }
    size_t first = i * w->per_task, end = first + w->per_task;
    for (size_t k = first; k < end && k < w->a->members; k++)
        for (size_t p = 0; p < w->pieces; p++)
            backward_piece(w, k, p);
}

as_status cpu_linear_backward(struct backend *be, const struct linear_args *a,
                              const struct linear_grads *g, struct as_err *err)
{
    (void)err;
    struct backward w = {.a = a, .g = g};
    if (g->dw.buf != NULL)
        w.dw = gemm_grid(a->in, a->out, a->batch);
    if (g->dx.buf != NULL)
        w.dx = gemm_grid(a->batch, a->in, a->out);
    w.pieces = w.dw.n + w.dx.n + (g->db.buf != NULL ? 1 : 0);
    if (a->members == 1 && a->batch * a->out * a->in < TASK_WORK) { /* as above */
        for (size_t p = 0; p < w.pieces; p++)
            backward_piece(&w, 0, p);
        return AS_OK;
    }
    w.per_task = members_per_task(1, a->batch * a->out * a->in);
    cpu_split(be, tasks_of(a->members, w.per_task, w.per_task == 1 ? w.pieces : 1), backward_task,
              &w);
    return AS_OK;
}
