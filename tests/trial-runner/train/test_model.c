/* The whole model's gradient against finite differences, on the reference back end: each
 * activation, with and without dropout, both losses, two members with parameters of their own. */
#include <math.h>
#include <string.h>

#include "tests/check_main.h"
#include "trial-runner/train/draw.h"
#include "trial-runner/train/model_mlp.h"

#define K 2
#define B 5
#define FEATURES 4
#define OUTPUTS 3

static struct as_err err;

struct rig {
    struct backend *be;
    struct model *model;
    struct buf *x, *labels, *targets, *row_loss, *row_class, *correct, *loss;
    struct buf *rate, *seed, *step;
    struct model_dropout dropout;
    const struct model_dropout *use_dropout;
    bool classify;
};

static struct buf *new_f32(struct rig *r, size_t n, struct rng *rng)
{
    struct buf *b = NULL;
    ck_ok(buf_create(r->be, BUF_F32, n, &b, &err), err);
    for (size_t i = 0; rng && i < n; i++) {
        float v = (float)rng_normal(rng);
        ck_ok(buf_upload(b, i, &v, 1, &err), err);
    }
    return b;
}

static struct buf *new_i32(struct rig *r, size_t n)
{
    struct buf *b = NULL;
    ck_ok(buf_create(r->be, BUF_I32, n, &b, &err), err);
    return b;
}

static void rig_open(struct rig *r, train_activation activation, bool dropout, bool classify)
{
    struct train_model_spec spec = {.n_layers = 2, .layers = {6, 5}, .activation = activation};
    struct model_shape shape;
    struct rng rng = draw_stream(11, DRAW_SHUFFLE, 0);
    *r = (struct rig){.classify = classify};
    ck_ok(backend_open("reference", NULL, &r->be, &err), err);
    model_shape_of(&spec, FEATURES, OUTPUTS, &shape);
    ck_assert_uint_eq(shape.n_params, 4 * 6 + 6 + 6 * 5 + 5 + 5 * 3 + 3);
    ck_ok(model_create(r->be, &shape, K, B + 2, dropout, &r->model, &err), err);
    for (size_t k = 0; k < K; k++)
        ck_ok(model_init(r->model, k, 5 + k, &err), err);
    r->x = new_f32(r, B * FEATURES, &rng);
    r->targets = new_f32(r, B * OUTPUTS, &rng);
    r->labels = new_i32(r, B);
    for (int32_t i = 0; i < B; i++)
        ck_ok(buf_fill_i32(r->labels, (size_t)i, 1, i % OUTPUTS, &err), err);
    r->row_loss = new_f32(r, K * B, NULL);
    r->row_class = new_i32(r, K * B);
    r->correct = new_i32(r, K);
    r->loss = new_f32(r, K, NULL);
    r->rate = new_f32(r, K, NULL);
    r->seed = new_i32(r, 2 * K);
    r->step = new_i32(r, K);
    ck_ok(buf_fill_f32(r->rate, 0, K, 0.4f, &err), err);
    ck_ok(buf_fill_i32(r->seed, 2, 1, 77, &err), err);
    ck_ok(buf_fill_i32(r->step, 0, K, 3, &err), err);
    r->dropout = (struct model_dropout){tensor_at(r->rate, 0, 1), tensor_at(r->seed, 0, 2),
                                        tensor_at(r->step, 0, 1)};
    r->use_dropout = dropout ? &r->dropout : NULL;
}

static void rig_close(struct rig *r)
{
    struct buf *all[] = {r->x,       r->labels, r->targets, r->row_loss, r->row_class,
                         r->correct, r->loss,   r->rate,    r->seed,     r->step};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]);
    model_free(r->model);
    backend_free(r->be);
}

/* Forward and loss; the gradient by the outputs is left in their place when `gradient`. */
static void run_loss(struct rig *r, bool gradient)
{
    struct tensor x = tensor_at(r->x, 0, 0), out = model_outputs(r->model);
    struct tensor grad = gradient ? out : tensor_none();
    struct loss_out sums = {
        .row_loss = tensor_at(r->row_loss, 0, B), .loss = tensor_at(r->loss, 0, 1), .weight = 1};
    ck_ok(model_forward(r->model, x, B, r->use_dropout, &err), err);
    if (r->classify) {
        struct softmax_ce_args a = {.members = K,
                                    .batch = B,
                                    .classes = OUTPUTS,
                                    .logits = out,
                                    .labels = tensor_at(r->labels, 0, 0),
                                    .dlogits = grad,
                                    .grad_scale = 1,
                                    .row_class = tensor_at(r->row_class, 0, B),
                                    .correct = tensor_at(r->correct, 0, 1),
                                    .out = sums};
        ck_ok(backend_softmax_ce(r->be, &a, &err), err);
    } else {
        struct mse_args a = {.members = K,
                             .batch = B,
                             .outputs = OUTPUTS,
                             .pred = out,
                             .target = tensor_at(r->targets, 0, 0),
                             .dpred = grad,
                             .grad_scale = 1,
                             .out = sums};
        ck_ok(backend_mse(r->be, &a, &err), err);
    }
}

/* The mean of the rows' losses in double, which the float sum would blur. */
static double loss_of(struct rig *r, size_t k)
{
    float rows[K * B];
    double sum = 0;
    run_loss(r, false);
    ck_ok(buf_download(r->row_loss, 0, rows, K * B, &err), err);
    for (size_t i = 0; i < B; i++)
        sum += (double)rows[k * B + i];
    return sum / B;
}

/* Biases of 0 put a row whose inputs were all dropped exactly on the kink of relu: move them off.
 */
static void move_parameters(struct rig *r)
{
    struct rng rng = draw_stream(12, DRAW_SHUFFLE, 0);
    for (size_t i = 0; i < K * r->model->shape.n_params; i++) {
        float p;
        ck_ok(buf_download(r->model->params, i, &p, 1, &err), err);
        p += 0.2f * (float)rng_normal(&rng);
        ck_ok(buf_upload(r->model->params, i, &p, 1, &err), err);
    }
}

static void check_gradients(train_activation activation, bool dropout, bool classify)
{
    struct rig r;
    rig_open(&r, activation, dropout, classify);
    move_parameters(&r);
    size_t n = r.model->shape.n_params;
    AS_AUTO(as_freep) float *grads = as_calloc(K * n, sizeof *grads);
    run_loss(&r, true);
    ck_ok(model_backward(r.model, tensor_at(r.x, 0, 0), B, r.use_dropout, &err), err);
    ck_ok(buf_download(r.model->grads, 0, grads, K * n, &err), err);
    double largest = 0;
    for (size_t i = 0; i < K * n; i++) {
        const float h = 2e-3f;
        float p, moved;
        ck_ok(buf_download(r.model->params, i, &p, 1, &err), err);
        moved = p + h;
        ck_ok(buf_upload(r.model->params, i, &moved, 1, &err), err);
        double up = loss_of(&r, i / n);
        moved = p - h;
        ck_ok(buf_upload(r.model->params, i, &moved, 1, &err), err);
        double down = loss_of(&r, i / n);
        ck_ok(buf_upload(r.model->params, i, &p, 1, &err), err);
        double want = (up - down) / (2 * (double)h), e = fabs(want - (double)grads[i]);
        ck_assert_msg(e <= 2e-3 + 1e-2 * fabs(want),
                      "activation %d, dropout %d, parameter %zu: %g, finite difference %g",
                      activation, dropout, i, (double)grads[i], want);
        largest = fabs(want) > largest ? fabs(want) : largest;
    }
    ck_assert_double_gt(largest, 0.05); /* it was a gradient worth checking */
    rig_close(&r);
}

START_TEST(gradients_of_cross_entropy)
{
    for (int a = TRAIN_RELU; a <= TRAIN_GELU; a++) {
        check_gradients((train_activation)a, false, true);
        check_gradients((train_activation)a, true, true);
    }
}
END_TEST

START_TEST(gradients_of_squared_error)
{
    for (int a = TRAIN_RELU; a <= TRAIN_GELU; a++) {
        check_gradients((train_activation)a, false, false);
        check_gradients((train_activation)a, true, false);
    }
}
END_TEST

START_TEST(linear_model_is_a_product)
{
    struct train_model_spec spec = {.kind = TRAIN_LINEAR};
    struct model_shape shape;
    struct backend *be = NULL;
    struct model *m = NULL;
    struct buf *x = NULL;
    float in[4] = {1, 2, 3, 4}, out[2], params[6] = {1, 10, 100, 1000, 0, 5};
    ck_ok(backend_open("cpu", NULL, &be, &err), err);
    model_shape_of(&spec, 2, 2, &shape);
    ck_assert_uint_eq(shape.n_linear, 1);
    ck_ok(model_create(be, &shape, 1, 2, false, &m, &err), err);
    ck_ok(buf_upload(m->params, 0, params, 6, &err), err);
    ck_ok(buf_create(be, BUF_F32, 4, &x, &err), err);
    ck_ok(buf_upload(x, 0, in, 4, &err), err);
    ck_ok(model_forward(m, tensor_at(x, 0, 0), 2, NULL, &err), err);
    ck_ok(buf_download(model_outputs(m).buf, 2, out, 2, &err), err);
    ck_assert_float_eq(out[0], 3 * 1 + 4 * 100);
    ck_assert_float_eq(out[1], 3 * 10 + 4 * 1000 + 5);
    buf_free(x);
    model_free(m);
    backend_free(be);
}
END_TEST

START_TEST(init_is_by_seed)
{
    struct rig a, b;
    rig_open(&a, TRAIN_RELU, false, true);
    rig_open(&b, TRAIN_RELU, false, true);
    size_t n = a.model->shape.n_params;
    float p[2][K * 200];
    ck_ok(buf_download(a.model->params, 0, p[0], K * n, &err), err);
    ck_ok(buf_download(b.model->params, 0, p[1], K * n, &err), err);
    ck_assert_mem_eq(p[0], p[1], K * n * sizeof(float));
    ck_assert_mem_ne(p[0], p[0] + n, n * sizeof(float)); /* members differ */
    double squares = 0;
    for (size_t i = 0; i < 24; i++)
        squares += (double)p[0][i] * (double)p[0][i];
    ck_assert_double_gt(squares / 24, 0.15); /* around 2 / 4 */
    ck_assert_double_lt(squares / 24, 1.5);
    ck_assert_float_eq(p[0][24], 0); /* biases */
    rig_close(&a);
    rig_close(&b);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("train_model");
    TCase *t = tcase_create("train_model");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, gradients_of_cross_entropy);
    tcase_add_test(t, gradients_of_squared_error);
    tcase_add_test(t, linear_model_is_a_product);
    tcase_add_test(t, init_is_by_seed);
    suite_add_tcase(s, t);
    return s;
}
