#include "kernels/reference/reference.h"

static void forward_member(const struct linear_args *a, size_t k, act_kind act, struct tensor y,
                           struct tensor z)
{
    const float *x = tensor_f32(a->x, k), *w = tensor_f32(a->w, k), *b = tensor_f32(a->b, k);
    float *out = tensor_f32(y, k), *kept = tensor_f32(z, k);
    for (size_t r = 0; r < a->batch; r++) {
        for (size_t o = 0; o < a->out; o++) {
            double sum = b != NULL ? (double)b[o] : 0;
            for (size_t i = 0; i < a->in; i++)
                sum += (double)x[r * a->in + i] * (double)w[i * a->out + o];
            if (kept != NULL)
                kept[r * a->out + o] = (float)sum;
            out[r * a->out + o] = (float)ref_activate(act, sum);
        }
    }
}

as_status ref_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                             struct tensor y, struct tensor z, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        forward_member(a, k, act, y, z);
    return AS_OK;
}

/* dx[r, i] = sum over o of dy[r, o] w[i, o] */
static void backward_x(const struct linear_args *a, const float *dy, const float *w, float *dx)
{
    for (size_t r = 0; r < a->batch; r++) {
        for (size_t i = 0; i < a->in; i++) {
            double sum = 0;
            for (size_t o = 0; o < a->out; o++)
                sum += (double)dy[r * a->out + o] * (double)w[i * a->out + o];
            dx[r * a->in + i] = (float)sum;
        }
    }
}

/* dw[i, o] (+)= sum over r of x[r, i] dy[r, o] */
static void backward_w(const struct linear_args *a, const float *dy, const float *x, float *dw,
                       bool accumulate)
{
    for (size_t i = 0; i < a->in; i++) {
        for (size_t o = 0; o < a->out; o++) {
            double sum = accumulate ? (double)dw[i * a->out + o] : 0;
            for (size_t r = 0; r < a->batch; r++)
                sum += (double)x[r * a->in + i] * (double)dy[r * a->out + o];
            dw[i * a->out + o] = (float)sum;
        }
    }
}

static void backward_b(const struct linear_args *a, const float *dy, float *db, bool accumulate)
{
    for (size_t o = 0; o < a->out; o++) {
        double sum = accumulate ? (double)db[o] : 0;
        for (size_t r = 0; r < a->batch; r++)
            sum += (double)dy[r * a->out + o];
        db[o] = (float)sum;
    }
}

as_status ref_linear_backward(struct backend *be, const struct linear_args *a,
                              const struct linear_grads *g, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *dy = tensor_f32(g->dy, k);
        if (g->dx.buf != NULL)
            backward_x(a, dy, tensor_f32(a->w, k), tensor_f32(g->dx, k));
        if (g->dw.buf != NULL)
            backward_w(a, dy, tensor_f32(a->x, k), tensor_f32(g->dw, k), g->accumulate);
        if (g->db.buf != NULL)
            backward_b(a, dy, tensor_f32(g->db, k), g->accumulate);
    }
    return AS_OK;
}
