/* The oracle's backward passes against central differences of its forward passes: a two-layer
 * network of K members, through gather-free forward, activation, dropout and both losses.
 *
 * The values are float, so a difference over h has an error of about 1e-7 / h + h^2: with h = 5e-3
 * some 5e-5. The bound is 2e-3. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ops.h"
#include "tests/support/check_main.h"

enum { K = 2, B = 6, I = 5, H = 7, O = 4, LEN = 4096 };

#define STEP 5e-3f
#define BOUND 2e-3f

/* Places in one float buffer, K members each, and in one integer buffer. */
struct net {
    struct backend *be;
    struct buf *f, *w;
    struct tensor x, w1, b1, z1, y1, d1, w2, b2, y2, target, row, loss;
    struct tensor dy2, dd1, dy1, dz1, dx, dw1, db1, dw2, db2, rate, smoothing;
    struct tensor label, row_class, correct, seed, step;
    act_kind act;
    bool classify;
};

static struct tensor place(struct buf *b, size_t *at, size_t n)
{
    struct tensor t = tensor_at(b, *at, n);
    *at += K * n;
    ck_assert_uint_le(*at, LEN);
    return t;
}

static void fill_random(struct net *n)
{
    struct as_err err;
    struct rng r;
    rng_init(&r, 11, 0);
    float f[LEN];
    int32_t w[LEN];
    for (size_t i = 0; i < LEN; i++) {
        f[i] = (float)rng_normal(&r) * 0.7f;
        w[i] = (int32_t)rng_below(&r, O);
    }
    ck_ok(buf_upload(n->f, 0, f, LEN, &err), err);
    ck_ok(buf_upload(n->w, 0, w, LEN, &err), err);
    const float rates[K] = {0.3f, 0.5f}, smoothing[K] = {0, 0.2f};
    ck_ok(buf_upload(n->f, n->rate.offset, rates, K, &err), err);
    ck_ok(buf_upload(n->f, n->smoothing.offset, smoothing, K, &err), err);
}

static void net_open(struct net *n, act_kind act, bool classify)
{
    struct as_err err;
    *n = (struct net){.act = act, .classify = classify};
    ck_ok(backend_open("reference", NULL, &n->be, &err), err);
    ck_ok(buf_create(n->be, BUF_F32, LEN, &n->f, &err), err);
    ck_ok(buf_create(n->be, BUF_I32, LEN, &n->w, &err), err);
    const struct {
        struct tensor *t;
        size_t n;
    } floats[] = {
        {&n->x, B * I},   {&n->w1, I * H},  {&n->b1, H},         {&n->z1, B * H},
        {&n->y1, B * H},  {&n->d1, B * H},  {&n->w2, H * O},     {&n->b2, O},
        {&n->y2, B * O},  {&n->row, B},     {&n->target, B * O}, {&n->loss, 1},
        {&n->dy2, B * O}, {&n->dd1, B * H}, {&n->dy1, B * H},    {&n->dz1, B * H},
        {&n->dx, B * I},  {&n->dw1, I * H}, {&n->db1, H},        {&n->dw2, H * O},
        {&n->db2, O},     {&n->rate, 1},    {&n->smoothing, 1},
    };
    size_t at = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(floats); i++)
        *floats[i].t = place(n->f, &at, floats[i].n);
    at = 0;
    n->label = place(n->w, &at, B);
    n->row_class = place(n->w, &at, B);
    n->correct = place(n->w, &at, 1);
    n->seed = place(n->w, &at, 2);
    n->step = place(n->w, &at, 1);
    fill_random(n);
}

static void net_close(struct net *n)
{
    buf_free(n->f);
    buf_free(n->w);
    backend_free(n->be);
}

static struct linear_args layer1(const struct net *n)
{
    return (struct linear_args){K, B, I, H, n->x, n->w1, n->b1};
}

static struct linear_args layer2(const struct net *n)
{
    return (struct linear_args){K, B, H, O, n->d1, n->w2, n->b2};
}

static void drop(const struct net *n, struct tensor x, struct tensor y)
{
    struct as_err err;
    struct dropout_args d = {K, B, H, x, y, n->rate, n->seed, n->step, 3};
    ck_ok(backend_dropout(n->be, &d, &err), err);
}

static void lose(const struct net *n)
{
    struct as_err err;
    struct loss_out out = {n->row, n->loss, 1, false};
    if (n->classify) {
        struct softmax_ce_args c = {.members = K,
                                    .batch = B,
                                    .classes = O,
                                    .logits = n->y2,
                                    .labels = n->label,
                                    .smoothing = n->smoothing,
                                    .dlogits = n->dy2,
                                    .grad_scale = 1,
                                    .row_class = n->row_class,
                                    .correct = n->correct,
                                    .out = out};
        ck_ok(backend_softmax_ce(n->be, &c, &err), err);
    } else {
        struct mse_args m = {K, B, O, n->y2, n->target, n->dy2, 1, out};
        ck_ok(backend_mse(n->be, &m, &err), err);
    }
}

static void forward(const struct net *n)
{
    struct as_err err;
    struct linear_args one = layer1(n), two = layer2(n);
    ck_ok(backend_linear_forward(n->be, &one, n->act, n->y1, n->z1, &err), err);
    drop(n, n->y1, n->d1);
    ck_ok(backend_linear_forward(n->be, &two, ACT_NONE, n->y2, tensor_none(), &err), err);
    lose(n);
}

static void backward(const struct net *n)
{
    struct as_err err;
    struct linear_args one = layer1(n), two = layer2(n);
    struct linear_grads g2 = {n->dy2, n->dd1, n->dw2, n->db2, false};
    ck_ok(backend_linear_backward(n->be, &two, &g2, &err), err);
    drop(n, n->dd1, n->dy1);
    struct act_args a = {K, B * H, n->act, act_keeps_input(n->act) ? n->z1 : n->y1, n->dy1, n->dz1};
    ck_ok(backend_act_backward(n->be, &a, &err), err);
    struct linear_grads g1 = {n->dz1, n->dx, n->dw1, n->db1, false};
    ck_ok(backend_linear_backward(n->be, &one, &g1, &err), err);
}

static float read_at(const struct net *n, struct tensor t, size_t k, size_t i)
{
    struct as_err err;
    float v;
    ck_ok(buf_download(n->f, t.offset + k * t.stride + i, &v, 1, &err), err);
    return v;
}

static float loss_with(const struct net *n, struct tensor t, size_t k, size_t i, float value)
{
    struct as_err err;
    ck_ok(buf_upload(n->f, t.offset + k * t.stride + i, &value, 1, &err), err);
    forward(n);
    return read_at(n, n->loss, k, 0);
}

/* d loss[k] / d t[k, i] for every element, by differences, against the tensor `grad`. */
static void hold(const struct net *n, const char *what, struct tensor t, struct tensor grad,
                 size_t len)
{
    for (size_t k = 0; k < K; k++) {
        for (size_t i = 0; i < len; i++) {
            float at = read_at(n, t, k, i), want = read_at(n, grad, k, i);
            float up = loss_with(n, t, k, i, at + STEP), down = loss_with(n, t, k, i, at - STEP);
            loss_with(n, t, k, i, at);
            float got = (up - down) / (2 * STEP);
            ck_assert_msg(fabsf(got - want) <= BOUND, "%s[%zu, %zu]: %g by differences, %g", what,
                          k, i, (double)got, (double)want);
        }
    }
}

START_TEST(network)
{
    struct net n;
    net_open(&n, (act_kind)(_i / 2), _i % 2 != 0);
    forward(&n);
    backward(&n);
    hold(&n, "w1", n.w1, n.dw1, I * H);
    hold(&n, "b1", n.b1, n.db1, H);
    hold(&n, "w2", n.w2, n.dw2, H * O);
    hold(&n, "b2", n.b2, n.db2, O);
    hold(&n, "x", n.x, n.dx, B * I);
    net_close(&n);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kernels_gradients");
    TCase *c = tcase_create("finite_differences");
    tcase_add_loop_test(c, network, 0, 2 * (ACT_GELU + 1)); /* each activation, each loss */
    suite_add_tcase(s, c);
    return s;
}
