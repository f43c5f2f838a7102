/* Layer normalisation, embedding: twins at odd shapes, bits alone and in a group,
 * finite differences, values from PyTorch 1.13, arguments. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/case.h"

/* ---- layer normalisation ---- */

struct norm_shape {
    size_t rows, width;
};

enum { X, GAMMA, BETA, MEAN, INV_STD, Y, DY, DX, DGAMMA, DBETA, NORM_PLACES };

static struct layer_norm_args norm_args(size_t members, const struct tensor *t, const void *shape)
{
    const struct norm_shape *s = shape;
    return (struct layer_norm_args){.members = members,
                                    .rows = s->rows,
                                    .width = s->width,
                                    .x = t[X],
                                    .gamma = t[GAMMA],
                                    .beta = t[BETA],
                                    .mean = t[MEAN],
                                    .inv_std = t[INV_STD],
                                    .eps = 1e-5f};
}

static as_status norm_forward(struct backend *be, size_t members, const struct tensor *t,
                              const void *shape, struct as_err *err)
{
    struct layer_norm_args a = norm_args(members, t, shape);
    return backend_layer_norm_forward(be, &a, t[Y], err);
}

static as_status norm_backward(struct backend *be, size_t members, const struct tensor *t,
                               const void *shape, struct as_err *err)
{
    struct layer_norm_args a = norm_args(members, t, shape);
    return backend_layer_norm_backward(be, &a, t[DY], t[DX], t[DGAMMA], t[DBETA], err);
}

static as_status norm_both(struct backend *be, size_t members, const struct tensor *t,
                           const void *shape, struct as_err *err)
{
    as_status st = norm_forward(be, members, t, shape, err);
    return st < 0 ? st : norm_backward(be, members, t, shape, err);
}

/* Forward; backward, in place over dy; the input normalised in place. */
static as_status norm_in_place(struct backend *be, size_t members, const struct tensor *t,
                               const void *shape, struct as_err *err)
{
    struct layer_norm_args a = norm_args(members, t, shape);
    as_status st = backend_layer_norm_forward(be, &a, t[Y], err);
    if (st == AS_OK)
        st = backend_layer_norm_backward(be, &a, t[DY], t[DY], t[DGAMMA], t[DBETA], err);
    return st < 0 ? st : backend_layer_norm_forward(be, &a, t[X], err);
}

static struct case_op norm_op(const struct norm_shape *s, case_call *call)
{
    size_t n = s->rows * s->width;
    return (struct case_op){
        .call = call,
        .shape = s,
        .n_places = NORM_PLACES,
        .atol = 4e-6f,
        .rtol = 4e-6f,
        .places = {[X] = {"x", BUF_F32, n, -2, 2, 0},
                   [GAMMA] = {"gamma", BUF_F32, s->width, 0.5f, 1.5f, CASE_SHARED},
                   [BETA] = {"beta", BUF_F32, s->width, -1, 1, CASE_SHARED},
                   [MEAN] = {"mean", BUF_F32, s->rows, 5, 6, 0},
                   [INV_STD] = {"inv_std", BUF_F32, s->rows, 5, 6, 0},
                   [Y] = {"y", BUF_F32, n, 5, 6, 0},
                   [DY] = {"dy", BUF_F32, n, -1, 1, 0},
                   [DX] = {"dx", BUF_F32, n, 5, 6, 0},
                   [DGAMMA] = {"dgamma", BUF_F32, s->width, 5, 6, 0},
                   [DBETA] = {"dbeta", BUF_F32, s->width, 5, 6, 0}},
    };
}

/* The variance of one element is 0, so inv_std is 316 and multiplies the rounding error. Widths of
 * 2 are out: two elements may happen to be close. */
START_TEST(layer_norm)
{
    static const struct norm_shape shapes[] = {{0, 5},  {3, 0},   {1, 1},    {7, 1},
                                               {5, 16}, {9, 15},  {33, 33},  {4, 64},
                                               {3, 65}, {2, 130}, {300, 24}, {1, 769}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct case_op op = norm_op(&shapes[i], norm_both);
        if (shapes[i].width == 1)
            op.atol = 5e-5f;
        case_twin(&op);
        case_slots(&op);
        op.call = norm_in_place;
        case_twin(&op);
    }
}
END_TEST

START_TEST(layer_norm_gradients)
{
    static const struct norm_shape shape = {4, 19};
    static const struct case_gradient holds[] = {
        {norm_backward, X, DX, Y, DY, 5e-3f, 2e-3f},
        {norm_backward, GAMMA, DGAMMA, Y, DY, 5e-3f, 2e-3f},
        {norm_backward, BETA, DBETA, Y, DY, 5e-3f, 2e-3f},
    };
    struct case_op op = norm_op(&shape, norm_forward);
    for (size_t i = 0; i < AS_ARRAY_LEN(holds); i++)
        case_differences(&op, &holds[i]);
}
END_TEST

START_TEST(layer_norm_as_torch)
{
    static const struct norm_shape shape = {2, 3};
    struct case_op op = norm_op(&shape, norm_both);
    struct case_run r = case_make(&op, 1, false);
    case_put(&r, X, (const float[]){1, 2, 4, -1, 0.5f, 0.25f});
    case_put(&r, GAMMA, (const float[]){1, -2, 0.5f});
    case_put(&r, BETA, (const float[]){0, 1, -1});
    case_put(&r, DY, (const float[]){1, -1, 2, 0.5f, 1, -0.25f});
    case_do(&r, op.call);
    case_expect(&r, Y,
                (const float[]){-1.0690414f, 1.5345206f, -0.3318491f, -1.3969852f, -0.77798116f,
                                -0.74600267f},
                2e-6f);
    case_expect(
        &r, DX,
        (const float[]){-0.34362f, 0.51543069f, -0.1718111f, -0.21503639f, -1.0754182f, 1.2904551f},
        2e-6f);
    case_expect(&r, DGAMMA, (const float[]){-1.767534f, 1.156251f, 2.5456049f}, 2e-6f);
    case_expect(&r, DBETA, (const float[]){1.5f, 0, 1.75f}, 1e-6f);
}
END_TEST

/* A NaN stays in its row, and reaches the sums over the rows. */
START_TEST(layer_norm_nan)
{
    static const struct norm_shape shape = {3, 20};
    struct case_op op = norm_op(&shape, norm_both);
    struct case_run r = case_make(&op, 2, false);
    twin_set_f32(&r.at[X], 0, 20 + 3, NAN);
    case_do(&r, op.call);
    case_same(&r);
    ck_assert_float_nan(twin_get_f32(&r.at[Y], 1, 0, 20));
    ck_assert(isfinite(twin_get_f32(&r.at[Y], 1, 0, 0)));
    ck_assert(isfinite(twin_get_f32(&r.at[DX], 1, 0, 40)));
    ck_assert_float_nan(twin_get_f32(&r.at[DGAMMA], 1, 0, 0));
    ck_assert(isfinite(twin_get_f32(&r.at[DGAMMA], 1, 1, 0)));
}
END_TEST

/* ---- embedding ---- */

struct lookup_shape {
    size_t batch, seq, vocab, width;
    bool positions;
};

enum { TOKENS, TABLE, POSITIONS, OUT, DOUT, DTABLE, DPOSITIONS, LOOKUP_PLACES };

static struct embedding_args lookup_args(size_t members, const struct tensor *t, const void *shape)
{
    const struct lookup_shape *s = shape;
    return (struct embedding_args){.members = members,
                                   .batch = s->batch,
                                   .seq = s->seq,
                                   .vocab = s->vocab,
                                   .width = s->width,
                                   .tokens = t[TOKENS],
                                   .table = t[TABLE],
                                   .positions = t[POSITIONS]};
}

static as_status lookup_forward(struct backend *be, size_t members, const struct tensor *t,
                                const void *shape, struct as_err *err)
{
    struct embedding_args a = lookup_args(members, t, shape);
    return backend_embedding_forward(be, &a, t[OUT], err);
}

static as_status lookup_backward(struct backend *be, size_t members, const struct tensor *t,
                                 const void *shape, struct as_err *err)
{
    struct embedding_args a = lookup_args(members, t, shape);
    return backend_embedding_backward(be, &a, t[DOUT], t[DTABLE], t[DPOSITIONS], err);
}

static as_status lookup_both(struct backend *be, size_t members, const struct tensor *t,
                             const void *shape, struct as_err *err)
{
    as_status st = lookup_forward(be, members, t, shape, err);
    return st < 0 ? st : lookup_backward(be, members, t, shape, err);
}

/* Tokens in [lo, hi). */
static struct case_op lookup_op(const struct lookup_shape *s, case_call *call, float lo, float hi)
{
    size_t n = s->batch * s->seq * s->width;
    unsigned positions = s->positions ? 0 : CASE_ABSENT;
    return (struct case_op){
        .call = call,
        .shape = s,
        .n_places = LOOKUP_PLACES,
        .atol = 2e-6f,
        .rtol = 2e-6f,
        .places = {[TOKENS] = {"tokens", BUF_I32, s->batch * s->seq, lo, hi, CASE_SHARED},
                   [TABLE] = {"table", BUF_F32, s->vocab * s->width, -1, 1, 0},
                   [POSITIONS] = {"positions", BUF_F32, s->seq * s->width, -1, 1, positions},
                   [OUT] = {"y", BUF_F32, n, 5, 6, 0},
                   [DOUT] = {"dy", BUF_F32, n, -1, 1, 0},
                   [DTABLE] = {"dtable", BUF_F32, s->vocab * s->width, 5, 6, 0},
                   [DPOSITIONS] = {"dpositions", BUF_F32, s->seq * s->width, 5, 6, positions}},
    };
}

START_TEST(embedding)
{
    static const struct lookup_shape shapes[] = {
        {0, 3, 4, 5, true},   {2, 0, 4, 5, true},  {1, 1, 1, 1, true},
        {3, 1, 1, 7, false},  {2, 9, 5, 1, true},  {4, 17, 11, 33, true},
        {1, 65, 3, 8, false}, {2, 5, 40, 0, true}, {3, 7, 19, 16, true}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        float vocab = (float)shapes[i].vocab;
        struct case_op op = lookup_op(&shapes[i], lookup_both, 0, vocab);
        case_twin(&op);
        case_slots(&op);
        op = lookup_op(&shapes[i], lookup_both, -1, vocab + 1); /* some out of range */
        case_twin(&op);
    }
}
END_TEST

START_TEST(embedding_gradients)
{
    static const struct lookup_shape shape = {3, 4, 5, 6, true};
    static const struct case_gradient holds[] = {
        {lookup_backward, TABLE, DTABLE, OUT, DOUT, 5e-3f, 2e-3f},
        {lookup_backward, POSITIONS, DPOSITIONS, OUT, DOUT, 5e-3f, 2e-3f},
    };
    struct case_op op = lookup_op(&shape, lookup_forward, 0, 5);
    for (size_t i = 0; i < AS_ARRAY_LEN(holds); i++)
        case_differences(&op, &holds[i]);
}
END_TEST

/* Tokens 1, 1, 9 (of 2): the third row is NaN, and only the first two are in dtable. */
START_TEST(embedding_by_hand)
{
    static const struct lookup_shape shape = {1, 3, 2, 1, true};
    struct case_op op = lookup_op(&shape, lookup_both, 1, 2);
    struct case_run r = case_make(&op, 1, false);
    twin_set_i32(&r.at[TOKENS], 0, 2, 9);
    case_put(&r, TABLE, (const float[]){3, 5});
    case_put(&r, POSITIONS, (const float[]){0.5f, 0.25f, 0});
    case_put(&r, DOUT, (const float[]){1, 2, 4});
    case_do(&r, op.call);
    FOR_SIDES(s)
    {
        ck_assert_float_eq(twin_get_f32(&r.at[OUT], s, 0, 0), 5.5f);
        ck_assert_float_eq(twin_get_f32(&r.at[OUT], s, 0, 1), 5.25f);
        ck_assert_float_nan(twin_get_f32(&r.at[OUT], s, 0, 2));
    }
    case_expect(&r, DTABLE, (const float[]){0, 3}, 0);
    case_expect(&r, DPOSITIONS, (const float[]){1, 2, 4}, 0);
}
END_TEST

/* ---- arguments ---- */

START_TEST(arguments)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct twin floats = twin_f32(2, 64, false, 0, 1), words = twin_i32(2, 64, false, 0, 1);
    struct tensor f = twin_at(&floats, 1), w = twin_at(&words, 1), none = tensor_none();
    struct layer_norm_args n = {2, 3, 4, f, f, f, f, f, 1e-5f};
    ck_fails(backend_layer_norm_forward(be, &n, none, &err), AS_E_INVAL, err,
             "layer norm forward: y is missing");
    ck_fails(backend_layer_norm_backward(be, &n, f, f, f, w, &err), AS_E_INVAL, err,
             "layer norm backward: dbeta is I32");
    n.eps = -1;
    ck_fails(backend_layer_norm_forward(be, &n, f, &err), AS_E_INVAL, err, "eps is -1");
    n.eps = NAN;
    ck_fails(backend_layer_norm_backward(be, &n, f, f, f, f, &err), AS_E_INVAL, err, "eps is nan");
    struct embedding_args e = {2, 1, 2, 3, 4, f, f, none};
    ck_fails(backend_embedding_forward(be, &e, f, &err), AS_E_INVAL, err,
             "embedding forward: tokens is F32, expected I32");
    e.tokens = w;
    ck_fails(backend_embedding_backward(be, &e, f, f, f, &err), AS_E_INVAL, err, "both or neither");
    e.vocab = 40;
    ck_fails(backend_embedding_backward(be, &e, f, f, none, &err), AS_E_INVAL, err,
             "embedding backward: table has 160 elements per member");
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_seq");
    TCase *c = tcase_create("seq");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, layer_norm);
    tcase_add_test(c, layer_norm_gradients);
    tcase_add_test(c, layer_norm_as_torch);
    tcase_add_test(c, layer_norm_nan);
    tcase_add_test(c, embedding);
    tcase_add_test(c, embedding_gradients);
    tcase_add_test(c, embedding_by_hand);
    tcase_add_test(c, arguments);
    suite_add_tcase(s, c);
    return s;
}
