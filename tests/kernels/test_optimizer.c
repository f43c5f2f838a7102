/* Gradient norm, clipping and optimizers: the back end under test against the oracle, and the
 * oracle against figures from PyTorch's formulas worked by hand. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/twin.h"

static const size_t sizes[] = {0, 1, 15, 16, 33, 4099, 20011};

static void stats(size_t members, size_t n, bool bad)
{
    struct twin g = twin_f32(members, n, false, -1, 1), sq = twin_f32(members, 1, false, 5, 6);
    struct twin finite = twin_i32(members, 1, false, 5, 6);
    struct twin active = twin_i32(members, 1, false, 1, 2);
    if (bad && n > 0) {
        twin_set_f32(&g, 0, n - 1, INFINITY);
        if (members > 1)
            twin_set_f32(&g, 1, n / 2, NAN);
    }
    FOR_SIDES(s)
    {
        struct as_err err;
        struct grad_stats_args a = {
            members, n, twin_at(&g, s), twin_at(&sq, s), twin_at(&finite, s), twin_at(&active, s)};
        ck_ok(backend_grad_stats(twin_backend(s), &a, &err), err);
        a.active = tensor_none();
        ck_ok(backend_grad_stats(twin_backend(s), &a, &err), err);
    }
    twin_same_or_nan(&sq, "sq_norm", 0, 1e-6f);
    twin_same(&finite, "finite", 0, 0);
    twin_same(&active, "active", 0, 0);
    if (members > 0)
        ck_assert_int_eq(twin_get_i32(&active, 1, 0, 0), !bad || n == 0);
}

START_TEST(grad_stats)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        stats(0, sizes[i], false);
        stats(1, sizes[i], false);
        stats(3, sizes[i], false);
        stats(1, sizes[i], true);
        stats(3, sizes[i], true);
    }
}
END_TEST

/* Squares of 1e30 overflow float: the norm is infinite, the elements are finite, and clipping
 * does not change the member. */
START_TEST(norm_overflows)
{
    struct twin g = twin_f32(1, 10, false, 1e30f, 2e30f), sq = twin_f32(1, 1, false, 0, 1);
    struct twin finite = twin_i32(1, 1, false, 0, 1), most = twin_f32(1, 1, false, 1, 2);
    FOR_SIDES(s)
    {
        struct as_err err;
        struct grad_stats_args a = {
            1, 10, twin_at(&g, s), twin_at(&sq, s), twin_at(&finite, s), tensor_none()};
        ck_ok(backend_grad_stats(twin_backend(s), &a, &err), err);
        ck_assert(isinf(twin_get_f32(&sq, s, 0, 0)));
        ck_assert_int_eq(twin_get_i32(&finite, s, 0, 0), 1);
        struct grad_clip_args c = {1, 10, twin_at(&g, s), twin_at(&sq, s), twin_at(&most, s)};
        ck_ok(backend_grad_clip(twin_backend(s), &c, &err), err);
        ck_assert_float_ge(twin_get_f32(&g, s, 0, 0), 1e30f);
    }
}
END_TEST

START_TEST(grad_clip)
{
    static const float limits[] = {1, 0, -1, NAN, 1e9f};
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        struct twin g = twin_f32(5, sizes[i], false, -1, 1), sq = twin_f32(5, 1, false, 4, 9);
        struct twin most = twin_f32(5, 1, false, 0, 1);
        for (size_t k = 0; k < AS_ARRAY_LEN(limits); k++)
            twin_set_f32(&most, k, 0, limits[k]);
        FOR_SIDES(s)
        {
            struct as_err err;
            struct grad_clip_args a = {5, sizes[i], twin_at(&g, s), twin_at(&sq, s),
                                       twin_at(&most, s)};
            ck_ok(backend_grad_clip(twin_backend(s), &a, &err), err);
        }
        twin_same(&g, "grads", 0, 1e-6f);
    }
}
END_TEST

/* ---- optimizers ---- */

struct arena {
    size_t members, n;
    struct twin kind, params, grads, m1, m2, lr, decay, momentum, nesterov, beta1, beta2, eps;
    struct twin active, step, work;
    size_t segments[4], n_segments;
};

/* Member k is of kind (k + first) mod OPTIM_KINDS; two in three have momentum. */
static struct arena make_arena(size_t members, size_t n, int first)
{
    struct arena a = {
        .members = members,
        .n = n,
        .kind = twin_i32(members, 1, false, 0, 1),
        .params = twin_f32(members, n, false, -1, 1),
        .grads = twin_f32(members, n, false, 0.2f, 1), /* no sums that cancel */
        .m1 = twin_f32(members, n, false, 0, 0),
        .m2 = twin_f32(members, n, false, 0, 0),
        .lr = twin_f32(members, 1, false, 0.01f, 0.1f),
        .decay = twin_f32(members, 1, false, 0, 0.1f),
        .momentum = twin_f32(members, 1, false, 0.5f, 0.95f),
        .nesterov = twin_i32(members, 1, false, 0, 2),
        .beta1 = twin_f32(members, 1, false, 0.8f, 0.95f),
        .beta2 = twin_f32(members, 1, false, 0.95f, 0.999f),
        .eps = twin_f32(members, 1, false, 1e-8f, 1e-6f),
        .active = twin_i32(members, 1, false, 1, 2),
        .step = twin_i32(members, 1, false, 0, 1),
        .work = twin_f32(members, 8, false, 5, 6),
        .segments = {0, n / 3, n / 3, n - n / 5}, /* one is empty */
        .n_segments = 4,
    };
    for (size_t k = 0; k < members; k++) {
        twin_set_i32(&a.kind, k, 0, (int32_t)(((size_t)first + k) % OPTIM_KINDS));
        if (k % 3 == 2)
            twin_set_f32(&a.momentum, k, 0, 0);
    }
    return a;
}

/* `bare` leaves out every tensor that may be absent. */
static struct opt_args args_of(const struct arena *a, int s, bool bare)
{
    struct tensor none = tensor_none();
    return (struct opt_args){
        .members = a->members,
        .n = a->n,
        .kind = twin_at(&a->kind, s),
        .params = twin_at(&a->params, s),
        .grads = twin_at(&a->grads, s),
        .m1 = twin_at(&a->m1, s),
        .m2 = twin_at(&a->m2, s),
        .lr = twin_at(&a->lr, s),
        .weight_decay = bare ? none : twin_at(&a->decay, s),
        .momentum = bare ? none : twin_at(&a->momentum, s),
        .nesterov = bare ? none : twin_at(&a->nesterov, s),
        .beta1 = bare ? none : twin_at(&a->beta1, s),
        .beta2 = bare ? none : twin_at(&a->beta2, s),
        .eps = bare ? none : twin_at(&a->eps, s),
        .active = bare ? none : twin_at(&a->active, s),
        .step = twin_at(&a->step, s),
        .segments = bare ? NULL : a->segments,
        .n_segments = bare ? 0 : a->n_segments,
        .work = twin_at(&a->work, s),
    };
}

static void step_both(const struct arena *a, bool bare)
{
    FOR_SIDES(s)
    {
        struct as_err err;
        struct opt_args args = args_of(a, s, bare);
        ck_ok(backend_optimize(twin_backend(s), &args, &err), err);
    }
}

/* Mixed kinds in one call, several steps on the same gradients. */
START_TEST(optimizers_match)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        for (int first = 0; first < OPTIM_KINDS; first += 2) {
            for (size_t members = 0; members <= OPTIM_KINDS; members += 3) {
                bool bare = first == 2;
                struct arena a = make_arena(members, sizes[i], first);
                if (members > 1)
                    twin_set_i32(&a.active, 1, 0, 0);
                for (int step = 0; step < 5; step++)
                    step_both(&a, bare);
                twin_same(&a.params, "params", 2e-6f, 4e-6f);
                twin_same(&a.m1, "m1", 1e-6f, 4e-6f);
                twin_same(&a.m2, "m2", 1e-6f, 4e-6f);
                twin_same(&a.step, "step", 0, 0);
                twin_same(&a.work, "work", 1e-6f, 4e-6f);
                if (members > 0)
                    ck_assert_int_eq(twin_get_i32(&a.step, 1, 0, 0), 5);
                if (members > 1)
                    ck_assert_int_eq(twin_get_i32(&a.step, 1, 1, 0), bare ? 5 : 0);
            }
            twin_close();
            twin_open();
        }
    }
}
END_TEST

/* One member's state in double, stepped with the formulas of torch.optim. */
#define FEW 7
struct model {
    double p[FEW], g[FEW], m1[FEW], m2[FEW];
    double lr, decay, momentum, beta1, beta2, eps;
    bool nesterov;
};

static void torch_sgd(struct model *m)
{
    for (size_t i = 0; i < FEW; i++) {
        double d_p = m->g[i] + m->decay * m->p[i];
        m->m1[i] = m->momentum * m->m1[i] + d_p;
        d_p = m->nesterov ? d_p + m->momentum * m->m1[i] : m->m1[i];
        m->p[i] += -m->lr * d_p;
    }
}

static void torch_adam(struct model *m, int t, bool decoupled)
{
    for (size_t i = 0; i < FEW; i++) {
        double grad = m->g[i];
        if (decoupled)
            m->p[i] *= 1 - m->lr * m->decay;
        else
            grad += m->decay * m->p[i];
        m->m1[i] = m->m1[i] * m->beta1 + grad * (1 - m->beta1);
        m->m2[i] = m->m2[i] * m->beta2 + grad * grad * (1 - m->beta2);
        double step_size = m->lr / (1 - pow(m->beta1, t));
        double denom = sqrt(m->m2[i]) / sqrt(1 - pow(m->beta2, t)) + m->eps;
        m->p[i] -= step_size * m->m1[i] / denom;
    }
}

static void torch_rmsprop(struct model *m)
{
    for (size_t i = 0; i < FEW; i++) {
        double grad = m->g[i] + m->decay * m->p[i];
        m->m2[i] = m->m2[i] * m->beta2 + (1 - m->beta2) * grad * grad;
        double avg = sqrt(m->m2[i]) + m->eps;
        if (m->momentum > 0) {
            m->m1[i] = m->m1[i] * m->momentum + grad / avg;
            m->p[i] -= m->lr * m->m1[i];
        } else {
            m->p[i] -= m->lr * grad / avg;
        }
    }
}

static void torch_adagrad(struct model *m)
{
    for (size_t i = 0; i < FEW; i++) {
        double grad = m->g[i] + m->decay * m->p[i];
        m->m2[i] += grad * grad;
        m->p[i] -= m->lr * grad / (sqrt(m->m2[i]) + m->eps);
    }
}

/* You et al. 2020, algorithm 2, over the places [from, to). */
static void paper_lamb(struct model *m, int t, size_t from, size_t to)
{
    double r[FEW] = {0}, p_norm = 0, r_norm = 0;
    for (size_t i = from; i < to; i++) {
        m->m1[i] = m->beta1 * m->m1[i] + (1 - m->beta1) * m->g[i];
        m->m2[i] = m->beta2 * m->m2[i] + (1 - m->beta2) * m->g[i] * m->g[i];
        double m_hat = m->m1[i] / (1 - pow(m->beta1, t));
        double v_hat = m->m2[i] / (1 - pow(m->beta2, t));
        r[i] = m_hat / (sqrt(v_hat) + m->eps) + m->decay * m->p[i];
        p_norm += m->p[i] * m->p[i];
        r_norm += r[i] * r[i];
    }
    double trust = p_norm > 0 && r_norm > 0 ? sqrt(p_norm) / sqrt(r_norm) : 1;
    for (size_t i = from; i < to; i++)
        m->p[i] -= m->lr * trust * r[i];
}

/* Chen et al. 2023, algorithm 2. */
static void paper_lion(struct model *m)
{
    for (size_t i = 0; i < FEW; i++) {
        double c = m->beta1 * m->m1[i] + (1 - m->beta1) * m->g[i];
        m->p[i] -= m->lr * ((c > 0) - (c < 0) + m->decay * m->p[i]);
        m->m1[i] = m->beta2 * m->m1[i] + (1 - m->beta2) * m->g[i];
    }
}

static void model_step(struct model *m, int kind, int t, const struct arena *a)
{
    switch (kind) {
    case OPT_SGD:
        torch_sgd(m);
        break;
    case OPT_ADAM:
    case OPT_ADAMW:
        torch_adam(m, t, kind == OPT_ADAMW);
        break;
    case OPT_RMSPROP:
        torch_rmsprop(m);
        break;
    case OPT_LAMB:
        for (size_t s = 0; s < a->n_segments; s++)
            paper_lamb(m, t, a->segments[s], s + 1 < a->n_segments ? a->segments[s + 1] : FEW);
        break;
    case OPT_LION:
        paper_lion(m);
        break;
    case OPT_ADAGRAD:
        torch_adagrad(m);
        break;
    }
}

static struct model model_of(const struct arena *a, size_t k)
{
    struct model m = {
        .lr = (double)twin_get_f32(&a->lr, 0, k, 0),
        .decay = (double)twin_get_f32(&a->decay, 0, k, 0),
        .momentum = (double)twin_get_f32(&a->momentum, 0, k, 0),
        .beta1 = (double)twin_get_f32(&a->beta1, 0, k, 0),
        .beta2 = (double)twin_get_f32(&a->beta2, 0, k, 0),
        .eps = (double)twin_get_f32(&a->eps, 0, k, 0),
        .nesterov = twin_get_i32(&a->nesterov, 0, k, 0) != 0,
    };
    for (size_t i = 0; i < FEW; i++) {
        m.p[i] = (double)twin_get_f32(&a->params, 0, k, i);
        m.g[i] = (double)twin_get_f32(&a->grads, 0, k, i);
    }
    return m;
}

/* Each kind twice, ten steps with gradients that move. */
START_TEST(formulas)
{
    enum { K = 2 * OPTIM_KINDS };
    struct arena a = make_arena(K, FEW, 0);
    struct model m[K];
    for (size_t k = 0; k < K; k++) {
        for (size_t i = 0; i < FEW; i += 2)
            twin_set_f32(&a.grads, k, i, -twin_get_f32(&a.grads, 0, k, i));
        m[k] = model_of(&a, k);
    }
    for (int t = 1; t <= 10; t++) {
        step_both(&a, false);
        for (size_t k = 0; k < K; k++) {
            model_step(&m[k], (int)(k % OPTIM_KINDS), t, &a);
            for (size_t i = 0; i < FEW; i++) {
                FOR_SIDES(s)
                ck_assert_msg(fabs((double)twin_get_f32(&a.params, s, k, i) - m[k].p[i]) < 3e-6,
                              "kind %zu, step %d, parameter %zu, side %d: %.9g, expected %.9g",
                              k % OPTIM_KINDS, t, i, s, (double)twin_get_f32(&a.params, s, k, i),
                              m[k].p[i]);
                m[k].g[i] = (double)(float)(0.9 * m[k].g[i] + 0.01);
                twin_set_f32(&a.grads, k, i, (float)m[k].g[i]);
            }
        }
    }
}
END_TEST

/* p = 1, -2, 0.5, three steps with g = (0.5, -1, 0.25) * step, lr 0.1, weight decay 0.1. Values of
 * PyTorch 1.13 for the same steps (float32): SGD with Nesterov's momentum 0.9; Adam, AdamW with
 * betas 0.9 and 0.99; RMSprop with alpha 0.99 and momentum 0.9. */
START_TEST(as_torch)
{
    static const float want[4][3] = {
        {0.20166861f, -0.40333721f, 0.1008343f},
        {0.70604366f, -1.7061366f, 0.20585725f},
        {0.68131196f, -1.651611f, 0.19616252f},
        {-4.0939202f, 3.1340981f, -4.4933414f},
    };
    static const int32_t kinds[] = {OPT_SGD, OPT_ADAM, OPT_ADAMW, OPT_RMSPROP};
    static const float p[3] = {1, -2, 0.5f}, g[3] = {0.5f, -1, 0.25f};
    struct arena a = make_arena(4, 3, 0);
    for (size_t k = 0; k < 4; k++) {
        twin_set_i32(&a.kind, k, 0, kinds[k]);
        twin_set_i32(&a.nesterov, k, 0, 1);
        twin_set_f32(&a.lr, k, 0, 0.1f);
        twin_set_f32(&a.decay, k, 0, 0.1f);
        twin_set_f32(&a.momentum, k, 0, 0.9f);
        twin_set_f32(&a.beta1, k, 0, 0.9f);
        twin_set_f32(&a.beta2, k, 0, 0.99f);
        twin_set_f32(&a.eps, k, 0, 1e-8f);
        for (size_t i = 0; i < 3; i++)
            twin_set_f32(&a.params, k, i, p[i]);
    }
    for (int t = 1; t <= 3; t++) {
        for (size_t i = 0; i < 12; i++)
            twin_set_f32(&a.grads, i / 3, i % 3, g[i % 3] * (float)t);
        step_both(&a, false);
    }
    FOR_SIDES(s)
    for (size_t i = 0; i < 12; i++)
        ck_assert_float_eq_tol(twin_get_f32(&a.params, s, i / 3, i % 3), want[i / 3][i % 3],
                               1e-6f + 3e-6f * fabsf(want[i / 3][i % 3]));
}
END_TEST

/* A masked member, one of an unknown kind, and those whose second moment or workspace is absent
 * keep parameters, moments and step to the bit, NaN gradients or not. */
START_TEST(left_alone)
{
    struct arena a = make_arena(OPTIM_KINDS, 9, 0);
    float before[OPTIM_KINDS];
    for (size_t k = 0; k < OPTIM_KINDS; k++)
        before[k] = twin_get_f32(&a.params, 1, k, 4);
    twin_set_f32(&a.grads, OPT_LION, 4, NAN);
    twin_set_i32(&a.active, OPT_LION, 0, 0);
    twin_set_i32(&a.kind, OPT_ADAM, 0, OPTIM_KINDS);
    twin_set_i32(&a.kind, OPT_RMSPROP, 0, -1);
    FOR_SIDES(s)
    {
        struct as_err err;
        struct opt_args args = args_of(&a, s, false);
        args.work = tensor_none();
        ck_ok(backend_optimize(twin_backend(s), &args, &err), err);
        for (size_t k = 0; k < OPTIM_KINDS; k++) {
            bool first = k == OPT_SGD || k == OPT_ADAMW, steps = first || k == OPT_ADAGRAD;
            ck_assert_int_eq(twin_get_i32(&a.step, s, k, 0), steps);
            ck_assert_int_eq(twin_get_f32(&a.params, s, k, 4) != before[k], steps);
            ck_assert_int_eq(twin_get_f32(&a.m1, s, k, 4) != 0, first);
        }
        args.m2 = tensor_none();
        ck_ok(backend_optimize(twin_backend(s), &args, &err), err);
        ck_assert_int_eq(twin_get_i32(&a.step, s, OPT_SGD, 0), 2);
        ck_assert_int_eq(twin_get_i32(&a.step, s, OPT_ADAMW, 0), 1);
        ck_assert_int_eq(twin_get_i32(&a.step, s, OPT_ADAGRAD, 0), 1);
    }
    twin_same(&a.params, "params", 2e-6f, 4e-6f);
    twin_same(&a.m2, "m2", 2e-6f, 4e-6f);
}
END_TEST

/* A NaN gradient reaches the parameter with every kind. */
START_TEST(nan_gradient)
{
    struct arena a = make_arena(OPTIM_KINDS, 9, 0);
    for (size_t k = 0; k < OPTIM_KINDS; k++)
        twin_set_f32(&a.grads, k, 4, NAN);
    step_both(&a, false);
    FOR_SIDES(s)
    for (size_t k = 0; k < OPTIM_KINDS; k++)
        ck_assert_float_nan(twin_get_f32(&a.params, s, k, 4));
    twin_same_or_nan(&a.params, "params", 2e-6f, 4e-6f);
}
END_TEST

/* All kinds in one call, and each of them alone: the same bits. */
START_TEST(alone_or_in_a_group)
{
    struct arena group = make_arena(OPTIM_KINDS, 4099, 0), single = group;
    single.params = twin_f32(OPTIM_KINDS, 4099, false, 0, 1);
    single.m1 = twin_f32(OPTIM_KINDS, 4099, false, 0, 0);
    single.m2 = twin_f32(OPTIM_KINDS, 4099, false, 0, 0);
    single.step = twin_i32(OPTIM_KINDS, 1, false, 0, 1);
    FOR_SIDES(s)
    {
        struct as_err err;
        ck_ok(buf_copy(single.params.side[s], 0, group.params.side[s], 0, group.params.n, &err),
              err);
        struct opt_args all = args_of(&group, s, false);
        ck_ok(backend_optimize(twin_backend(s), &all, &err), err);
        for (size_t k = 0; k < OPTIM_KINDS; k++) {
            struct opt_args one = args_of(&single, s, false);
            struct tensor *places[] = {&one.kind,  &one.params,   &one.grads,        &one.m1,
                                       &one.m2,    &one.lr,       &one.weight_decay, &one.momentum,
                                       &one.beta1, &one.nesterov, &one.beta2,        &one.eps,
                                       &one.step,  &one.active,   &one.work};
            for (size_t i = 0; i < AS_ARRAY_LEN(places); i++)
                *places[i] = tensor_from(*places[i], k);
            one.members = 1;
            ck_ok(backend_optimize(twin_backend(s), &one, &err), err);
            for (size_t i = 0; i < 4099; i += 97)
                ck_assert(twin_get_f32(&group.params, s, k, i) ==
                          twin_get_f32(&single.params, s, k, i));
        }
    }
}
END_TEST

/* On cpu, without a gradient, moments become 0 and not subnormal, because subnormal numbers are
 * slow. */
START_TEST(decayed_moments_end)
{
    enum { N = 37 };
    bool cpu = strcmp(backend_name(twin_backend(1)), "cpu") == 0;
    for (int kind = 0; cpu && kind < OPTIM_KINDS; kind++) {
        if (kind == OPT_ADAGRAD)
            continue; /* its sum stays */
        struct twin f = twin_f32(1, 7 * N, false, 0, 1), w = twin_i32(1, 2, false, 0, 1);
        struct as_err err;
        struct tensor at[8];
        for (size_t i = 0; i < AS_ARRAY_LEN(at); i++)
            at[i] = tensor_at(f.side[1], f.offset + i * N, 0);
        struct buf *b = f.side[1];
        ck_ok(buf_fill_f32(b, at[1].offset, N, 0, &err), err);      /* gradient */
        ck_ok(buf_fill_f32(b, at[2].offset, N, 1e-29f, &err), err); /* first moment */
        ck_ok(buf_fill_f32(b, at[3].offset, N, 1e-37f, &err), err); /* second moment */
        ck_ok(buf_fill_f32(b, at[4].offset, N, 0.9f, &err), err);   /* momentum, betas */
        twin_set_i32(&w, 0, 0, kind);
        twin_set_i32(&w, 0, 1, 0);
        struct opt_args a = {.members = 1,
                             .n = N,
                             .kind = tensor_at(w.side[1], w.offset, 0),
                             .params = at[0],
                             .grads = at[1],
                             .m1 = at[2],
                             .m2 = at[3],
                             .lr = at[5],
                             .momentum = at[4],
                             .beta1 = at[4],
                             .beta2 = at[4],
                             .step = tensor_at(w.side[1], w.offset + 1, 0),
                             .work = at[6]};
        for (int step = 0; step < 250; step++)
            ck_ok(backend_optimize(twin_backend(1), &a, &err), err);
        float moments[2 * N];
        ck_ok(buf_download(b, at[2].offset, moments, (size_t)2 * N, &err), err);
        bool has_second = kind != OPT_SGD && kind != OPT_LION;
        for (size_t i = 0; i < (has_second ? 2 * N : N); i++)
            ck_assert_msg(moments[i] == 0.0f, "kind %d: moment %zu is %g", kind, i,
                          (double)moments[i]);
    }
}
END_TEST

/* Adam where an estimate of the square root or the quotient gives NaN: second moments of 0, at both
 * ends of the range of floats and past them, rates and eps of 0. */
START_TEST(adam_ends)
{
    static const float second[] = {0, 2e-38f, 1e-30f, 0.5f, 1e30f, 3e38f, INFINITY, NAN};
    enum { N = 37 };
    for (int i = 0; i < 4; i++) {
        struct arena a = make_arena(1, N, i % 2 == 0 ? OPT_ADAM : OPT_ADAMW);
        twin_set_f32(&a.lr, 0, 0, i < 2 ? 0.01f : 0);
        for (size_t j = 0; j < N; j++) {
            twin_set_f32(&a.m2, 0, j, second[j % AS_ARRAY_LEN(second)]);
            twin_set_f32(&a.grads, 0, j, j < N / 2 ? 0 : 1e-3f);
            twin_set_f32(&a.m1, 0, j, 1e-9f);
        }
        step_both(&a, false);
        twin_same_or_nan(&a.params, "params", 1e-7f, 1e-6f);
        ck_assert_float_nan(twin_get_f32(&a.params, 1, 0, 7));
        ck_assert(isfinite(twin_get_f32(&a.params, 1, 0, 0)));
    }
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_optimizer");
    TCase *c = tcase_create("optimizer");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, grad_stats);
    tcase_add_test(c, norm_overflows);
    tcase_add_test(c, grad_clip);
    tcase_add_test(c, optimizers_match);
    tcase_add_test(c, formulas);
    tcase_add_test(c, as_torch);
    tcase_add_test(c, left_alone);
    tcase_add_test(c, nan_gradient);
    tcase_add_test(c, alone_or_in_a_group);
    tcase_add_test(c, decayed_moments_end);
    tcase_add_test(c, adam_ends);
    suite_add_tcase(s, c);
    return s;
}
