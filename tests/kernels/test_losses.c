/* Cross-entropy with class weights and top-5, binary cross-entropy, Huber's loss: twins,
 * bits alone and in a group, finite differences, values from PyTorch 1.13, bad values. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/case.h"

/* One list of places for all losses; a place that a loss lacks is absent. */
enum { Z, TARGET, LABELS, SMOOTHING, WEIGHTS, DELTA, DZ, CLASS, CORRECT, TOP5, ROW_LOSS, LOSS, N };

struct loss_shape {
    size_t batch, width; /* classes or outputs */
    bool smooth, weighted, accumulate, in_place;
    float weight; /* of loss_out; 0: 1 */
};

static struct loss_out out_of(const struct loss_shape *s, const struct tensor *t)
{
    return (struct loss_out){t[ROW_LOSS], t[LOSS], s->weight != 0 ? s->weight : 1, s->accumulate};
}

static as_status ce(struct backend *be, size_t members, const struct tensor *t, const void *shape,
                    struct as_err *err)
{
    const struct loss_shape *s = shape;
    struct softmax_ce_args a = {.members = members,
                                .batch = s->batch,
                                .classes = s->width,
                                .logits = t[Z],
                                .labels = t[LABELS],
                                .smoothing = t[SMOOTHING],
                                .class_weights = t[WEIGHTS],
                                .dlogits = s->in_place ? t[Z] : t[DZ],
                                .grad_scale = 1,
                                .row_class = t[CLASS],
                                .correct = t[CORRECT],
                                .top5 = t[TOP5],
                                .out = out_of(s, t)};
    return backend_softmax_ce(be, &a, err);
}

static as_status bce(struct backend *be, size_t members, const struct tensor *t, const void *shape,
                     struct as_err *err)
{
    const struct loss_shape *s = shape;
    struct bce_args a = {.members = members,
                         .batch = s->batch,
                         .outputs = s->width,
                         .logits = t[Z],
                         .target = t[TARGET],
                         .smoothing = t[SMOOTHING],
                         .class_weights = t[WEIGHTS],
                         .dlogits = s->in_place ? t[Z] : t[DZ],
                         .grad_scale = 1,
                         .row_class = t[CLASS],
                         .correct = t[CORRECT],
                         .out = out_of(s, t)};
    return backend_bce(be, &a, err);
}

static as_status huber(struct backend *be, size_t members, const struct tensor *t,
                       const void *shape, struct as_err *err)
{
    const struct loss_shape *s = shape;
    struct huber_args a = {.mse = {.members = members,
                                   .batch = s->batch,
                                   .outputs = s->width,
                                   .pred = t[Z],
                                   .target = t[TARGET],
                                   .dpred = s->in_place ? t[Z] : t[DZ],
                                   .grad_scale = 1,
                                   .out = out_of(s, t)},
                           .delta = t[DELTA]};
    return backend_huber(be, &a, err);
}

static as_status no_backward(struct backend *be, size_t members, const struct tensor *t,
                             const void *shape, struct as_err *err)
{
    (void)be;
    (void)members;
    (void)t;
    (void)shape;
    (void)err;
    return AS_OK; /* the loss itself writes the gradient */
}

static struct case_op loss_op(const struct loss_shape *s, case_call *call)
{
    size_t n = s->batch * s->width, n_weights = call == ce ? s->width : 2;
    unsigned unless_ce = call == ce ? 0 : CASE_ABSENT,
             unless_huber = call == huber ? CASE_ABSENT : 0;
    unsigned smooth = s->smooth && call != huber ? CASE_SHARED : CASE_ABSENT;
    unsigned weighted = s->weighted && call != huber ? CASE_SHARED : CASE_ABSENT;
    return (struct case_op){
        .call = call,
        .shape = s,
        .n_places = N,
        .atol = 3e-6f,
        .rtol = 3e-6f,
        .places = {[Z] = {"logits", BUF_F32, n, -4, 4, 0},
                   [TARGET] = {"target", BUF_F32, n, 0, 1, call == ce ? CASE_ABSENT : CASE_SHARED},
                   [LABELS] = {"labels", BUF_I32, s->batch, 0, (float)s->width,
                               unless_ce | CASE_SHARED},
                   [SMOOTHING] = {"smoothing", BUF_F32, 1, 0.05f, 0.3f, smooth},
                   [WEIGHTS] = {"class_weights", BUF_F32, n_weights, 0.2f, 3, weighted},
                   [DELTA] = {"delta", BUF_F32, 1, 0.5f, 2,
                              call == huber ? CASE_SHARED : CASE_ABSENT},
                   [DZ] = {"dlogits", BUF_F32, n, 5, 6, 0},
                   [CLASS] = {"row_class", BUF_I32, s->batch, 5, 6, unless_huber},
                   [CORRECT] = {"correct", BUF_I32, 1, 5, 6, unless_huber},
                   [TOP5] = {"top5", BUF_I32, 1, 5, 6, unless_ce},
                   [ROW_LOSS] = {"row_loss", BUF_F32, s->batch, 5, 6, 0},
                   [LOSS] = {"loss", BUF_F32, 1, 5, 6, 0}},
    };
}

static case_call *const calls[] = {ce, bce, huber};

START_TEST(losses_match)
{
    static const size_t sizes[][2] = {{0, 3},  {1, 1},  {1, 6},   {5, 1},   {7, 5},
                                      {64, 1}, {33, 2}, {13, 10}, {4, 129}, {130, 7}};
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        for (unsigned how = 0; how < 16; how += 5) { /* each flag on and off, in pairs */
            struct loss_shape s = {.batch = sizes[i][0],
                                   .width = sizes[i][1],
                                   .smooth = (how & 1) != 0,
                                   .weighted = (how & 2) != 0,
                                   .accumulate = (how & 4) != 0,
                                   .in_place = (how & 8) != 0,
                                   .weight = 2};
            struct case_op op = loss_op(&s, calls[_i]);
            case_twin(&op);
            if (how == 0 || how == 15)
                case_slots(&op);
        }
    }
}
END_TEST

START_TEST(no_outputs)
{
    struct loss_shape s = {.batch = 3, .width = 0};
    struct case_op op = loss_op(&s, calls[_i]);
    case_twin(&op);
}
END_TEST

START_TEST(gradients)
{
    for (unsigned how = 0; how < 4; how++) {
        struct loss_shape s = {
            .batch = 5, .width = 7, .smooth = (how & 1) != 0, .weighted = (how & 2) != 0};
        struct case_op op = loss_op(&s, calls[_i]);
        struct case_gradient g = {no_backward, Z, DZ, LOSS, CASE_PLACES, 5e-3f, 1e-3f};
        case_differences(&op, &g);
    }
}
END_TEST

static void expect(const struct case_run *r, float loss, const float *dz)
{
    case_expect(r, LOSS, &loss, 1e-6f);
    case_expect(r, DZ, dz, 2e-7f);
}

/* cross_entropy(weight = (0.5, 2, 1), label_smoothing = 0.2) of logits ((7 i mod 11) - 5) / 3. */
START_TEST(cross_entropy_as_torch)
{
    static const float want[] = {-0.070580669f, 0.060392391f, 0.010188282f, 0.13487521f,
                                 0.012907853f,  -0.14778306f, 0.24398679f,  -0.24923973f,
                                 0.0052529406f, 0.24398679f,  -0.24923973f, 0.0052529443f};
    static const int32_t labels[] = {0, 2, 1, 1};
    struct loss_shape s = {.batch = 4, .width = 3, .smooth = true, .weighted = true};
    struct case_op op = loss_op(&s, ce);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < 12; i++)
        twin_set_f32(&r.at[Z], 0, i, (float)((int)(i * 7 % 11) - 5) / 3);
    for (size_t i = 0; i < 4; i++)
        twin_set_i32(&r.at[LABELS], 0, i, labels[i]);
    case_put(&r, WEIGHTS, (const float[]){0.5f, 2, 1});
    case_put(&r, SMOOTHING, (const float[]){0.2f});
    case_do(&r, op.call);
    expect(&r, 1.8387065f, want);
}
END_TEST

/* binary_cross_entropy_with_logits of the same logits with smoothed targets and weights 0.5 and 3
 * divided by their mean. */
START_TEST(binary_cross_entropy_as_torch)
{
    static const float want[] = {-0.2260374f,   0.029083638f, 0.013773506f,
                                 -0.031105468f, -0.10497994f, 0.010425784f};
    struct loss_shape s = {.batch = 6, .width = 1, .smooth = true, .weighted = true};
    struct case_op op = loss_op(&s, bce);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < 6; i++)
        twin_set_f32(&r.at[Z], 0, i, (float)((int)(i * 7 % 11) - 5) / 3);
    case_put(&r, TARGET, (const float[]){1, 0, 0, 1, 1, 0});
    case_put(&r, WEIGHTS, (const float[]){0.5f, 3});
    case_put(&r, SMOOTHING, (const float[]){0.1f});
    case_do(&r, op.call);
    expect(&r, 0.82269526f, want);
}
END_TEST

/* huber_loss(delta = 0.75) of the same logits against i / 10. */
START_TEST(huber_as_torch)
{
    static const float want[] = {-0.125f, 0.094444446f, -0.125f, 0.125f, -0.01111111f, -0.125f};
    struct loss_shape s = {.batch = 3, .width = 2};
    struct case_op op = loss_op(&s, huber);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < 6; i++)
        twin_set_f32(&r.at[Z], 0, i, (float)((int)(i * 7 % 11) - 5) / 3);
    case_put(&r, TARGET, (const float[]){0, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f});
    case_put(&r, DELTA, (const float[]){0.75f});
    case_do(&r, op.call);
    expect(&r, 0.51462966f, want);
}
END_TEST

/* Seven classes; the label's rank decides, equal logits by number. */
START_TEST(top5_by_hand)
{
    static const float z[] = {7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7};
    static const struct {
        int32_t label[3], top5;
    } cases[] = {{{4, 4, 2}, 3}, {{5, 4, 2}, 2}, {{5, 5, 2}, 1},
                 {{6, 6, 1}, 0}, {{0, 0, 6}, 3}, {{-1, 7, 6}, 1}};
    struct loss_shape s = {.batch = 3, .width = 7};
    struct case_op op = loss_op(&s, ce);
    struct case_run r = case_make(&op, 1, false);
    case_put(&r, Z, z);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        for (size_t row = 0; row < 3; row++)
            twin_set_i32(&r.at[LABELS], 0, row, cases[i].label[row]);
        case_do(&r, op.call);
        FOR_SIDES(side)
        ck_assert_int_eq(twin_get_i32(&r.at[TOP5], side, 0, 0), cases[i].top5);
    }
    twin_set_f32(&r.at[Z], 0, 14, NAN); /* the last row, which was a hit */
    case_do(&r, op.call);
    FOR_SIDES(side)
    ck_assert_int_eq(twin_get_i32(&r.at[TOP5], side, 0, 0), 0);
}
END_TEST

/* Weights of 0: such rows do not count, and neither does a batch of only such rows. */
START_TEST(weights_of_zero)
{
    struct loss_shape s = {.batch = 3, .width = 4, .weighted = true, .smooth = true};
    for (int smooth = 0; smooth < 2; smooth++) {
        struct case_op op = loss_op(&s, ce);
        struct case_run r = case_make(&op, 1, false);
        twin_set_f32(&r.at[SMOOTHING], 0, 0, smooth != 0 ? 0.2f : 0);
        case_put(&r, WEIGHTS, (const float[]){0, 1, 0, 2});
        for (size_t row = 0; row < 3; row++)
            twin_set_i32(&r.at[LABELS], 0, row, (int32_t)row);
        twin_set_f32(&r.at[Z], 0, 4 + 2, -INFINITY); /* of a class that weighs 0 */
        case_do(&r, op.call);
        case_same(&r);
        ck_assert(isfinite(twin_get_f32(&r.at[LOSS], 1, 0, 0)));
        twin_set_i32(&r.at[LABELS], 0, 1, 0);
        case_do(&r, op.call);
        case_same(&r);
        ck_assert_float_eq(twin_get_f32(&r.at[LOSS], 1, 0, 0), 0);
        twin_set_i32(&r.at[LABELS], 0, 1, 4); /* out of range: in no sum */
        twin_set_i32(&r.at[LABELS], 0, 0, 3);
        case_do(&r, op.call);
        case_same(&r);
        ck_assert(isfinite(twin_get_f32(&r.at[ROW_LOSS], 1, 0, 0)));
        ck_assert_float_nan(twin_get_f32(&r.at[ROW_LOSS], 1, 0, 1));
    }
}
END_TEST

START_TEST(outputs_of_weight_zero)
{
    struct loss_shape s = {.batch = 3, .width = 1, .weighted = true};
    struct case_op op = loss_op(&s, bce);
    struct case_run r = case_make(&op, 1, false);
    case_put(&r, WEIGHTS, (const float[]){0, 2});
    case_put(&r, TARGET, (const float[]){0, 0, 0});
    case_do(&r, op.call);
    case_same(&r);
    ck_assert_float_eq(twin_get_f32(&r.at[LOSS], 1, 0, 0), 0);
    case_put(&r, TARGET, (const float[]){0, 1, 0});
    case_do(&r, op.call);
    case_same(&r);
    ck_assert(isfinite(twin_get_f32(&r.at[LOSS], 1, 0, 0)));
}
END_TEST

/* Logits of 1e4 lose 1e4 at most, infinite ones on the right side nothing, NaN is NaN. */
START_TEST(binary_extremes)
{
    static const float z[] = {1e4f, -1e4f, 1e4f, -1e4f, 100, NAN, 0, 1e-30f};
    static const float t[] = {1, 0, 0, 1, 1, 1, 0, 1};
    static const int32_t class[] = {1, 0, 1, 0, 1, -1, 0, 1};
    struct loss_shape s = {.batch = 8, .width = 1};
    struct case_op op = loss_op(&s, bce);
    struct case_run r = case_make(&op, 2, false);
    case_put(&r, Z, z);
    case_put(&r, TARGET, t);
    case_do(&r, op.call);
    case_same(&r);
    FOR_SIDES(side)
    {
        ck_assert_float_eq(twin_get_f32(&r.at[ROW_LOSS], side, 0, 0), 0);
        ck_assert_float_eq(twin_get_f32(&r.at[ROW_LOSS], side, 0, 1), 0);
        ck_assert_float_eq(twin_get_f32(&r.at[ROW_LOSS], side, 0, 2), 1e4f);
        ck_assert_float_eq(twin_get_f32(&r.at[ROW_LOSS], side, 0, 3), 1e4f);
        ck_assert_float_nan(twin_get_f32(&r.at[ROW_LOSS], side, 0, 5));
        ck_assert_float_nan(twin_get_f32(&r.at[LOSS], side, 0, 0));
        ck_assert(isfinite(twin_get_f32(&r.at[LOSS], side, 1, 0)));
        for (size_t i = 0; i < 8; i++)
            ck_assert_int_eq(twin_get_i32(&r.at[CLASS], side, 0, i), class[i]);
        ck_assert_int_eq(twin_get_i32(&r.at[CORRECT], side, 0, 0), 5);
    }
}
END_TEST

START_TEST(huber_extremes)
{
    struct loss_shape s = {.batch = 4, .width = 1};
    struct case_op op = loss_op(&s, huber);
    struct case_run r = case_make(&op, 1, false);
    case_put(&r, Z, (const float[]){1e30f, NAN, INFINITY, 2});
    case_put(&r, TARGET, (const float[]){0, 0, 0, 2});
    case_put(&r, DELTA, (const float[]){1});
    case_do(&r, op.call);
    case_same(&r);
    FOR_SIDES(side)
    {
        ck_assert_float_eq(twin_get_f32(&r.at[ROW_LOSS], side, 0, 0), 1e30f);
        ck_assert_float_eq(twin_get_f32(&r.at[DZ], side, 0, 0), 0.25f);
        ck_assert_float_nan(twin_get_f32(&r.at[DZ], side, 0, 1));
        ck_assert(isinf(twin_get_f32(&r.at[ROW_LOSS], side, 0, 2)));
        ck_assert_float_eq(twin_get_f32(&r.at[ROW_LOSS], side, 0, 3), 0);
    }
}
END_TEST

START_TEST(arguments)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct twin floats = twin_f32(2, 64, false, 0, 1), words = twin_i32(2, 64, false, 0, 1);
    struct tensor f = twin_at(&floats, 1), w = twin_at(&words, 1), none = tensor_none();
    struct bce_args b = {.members = 2, .batch = 4, .outputs = 2, .logits = f, .target = w};
    ck_fails(backend_bce(be, &b, &err), AS_E_INVAL, err,
             "binary cross-entropy: target is I32, expected F32");
    b.target = f;
    ck_fails(backend_bce(be, &b, &err), AS_E_INVAL, err, "row_class is missing");
    b.row_class = b.correct = w;
    b.class_weights = tensor_at(floats.side[1], 0, 1);
    ck_fails(backend_bce(be, &b, &err), AS_E_INVAL, err, "class_weights has 2 elements");
    b.class_weights = none;
    b.out = (struct loss_out){f, f, NAN, false};
    ck_fails(backend_bce(be, &b, &err), AS_E_INVAL, err, "weight is not finite");
    struct huber_args h = {{2, 4, 2, f, f, none, 1, {f, f, 1, false}}, none};
    ck_fails(backend_huber(be, &h, &err), AS_E_INVAL, err, "huber loss: delta is missing");
    h.mse.pred = none;
    ck_fails(backend_huber(be, &h, &err), AS_E_INVAL, err, "huber loss: pred is missing");
    struct softmax_ce_args c = {.members = 2,
                                .batch = 4,
                                .classes = 3,
                                .logits = f,
                                .labels = w,
                                .class_weights = w,
                                .row_class = w,
                                .correct = w};
    ck_fails(backend_softmax_ce(be, &c, &err), AS_E_INVAL, err, "class_weights is I32");
    c.class_weights = none;
    c.top5 = f;
    ck_fails(backend_softmax_ce(be, &c, &err), AS_E_INVAL, err, "top5 is F32, expected I32");
}
END_TEST

/* ---- weights of rows ---- */

enum { W_WEIGHTS, W_GRADIENT, W_ROW_LOSS, W_LOSS, W_N };

static as_status weigh(struct backend *be, size_t members, const struct tensor *t,
                       const void *shape, struct as_err *err)
{
    const struct loss_shape *s = shape;
    struct weigh_rows_args a = {.members = members,
                                .batch = s->batch,
                                .width = s->width,
                                .weights = t[W_WEIGHTS],
                                .gradient = t[W_GRADIENT],
                                .out = {t[W_ROW_LOSS], t[W_LOSS], 2, s->accumulate}};
    return backend_weigh_rows(be, &a, err);
}

static struct case_op weigh_op(const struct loss_shape *s)
{
    return (struct case_op){
        .call = weigh,
        .shape = s,
        .n_places = W_N,
        .atol = 1e-6f,
        .rtol = 1e-6f,
        .places = {[W_WEIGHTS] = {"weights", BUF_F32, s->batch, 0, 3, CASE_SHARED},
                   [W_GRADIENT] = {"gradient", BUF_F32, s->batch * s->width, -2, 2,
                                   s->width ? 0 : CASE_ABSENT},
                   [W_ROW_LOSS] = {"row_loss", BUF_F32, s->batch, 0, 5, 0},
                   [W_LOSS] = {"loss", BUF_F32, 1, 5, 6, 0}},
    };
}

START_TEST(weights_of_rows_match)
{
    static const size_t sizes[][2] = {{1, 1}, {5, 0}, {7, 5}, {64, 1}, {33, 2}, {130, 7}, {4, 129}};
    for (size_t i = 0; i < 2 * AS_ARRAY_LEN(sizes); i++) {
        struct loss_shape s = {
            .batch = sizes[i / 2][0], .width = sizes[i / 2][1], .accumulate = i % 2};
        struct case_op op = weigh_op(&s);
        case_twin(&op);
        case_slots(&op);
    }
}
END_TEST

/* A row of weight 0 is out, whatever its loss and gradient are. */
START_TEST(weights_of_rows_by_hand)
{
    struct loss_shape s = {.batch = 3, .width = 2};
    struct case_op op = weigh_op(&s);
    struct case_run r = case_make(&op, 1, false);
    case_put(&r, W_WEIGHTS, (const float[]){2, 0, 0.5f});
    case_put(&r, W_ROW_LOSS, (const float[]){1, INFINITY, 4});
    case_put(&r, W_GRADIENT, (const float[]){1, -1, NAN, INFINITY, 8, 0});
    case_do(&r, op.call);
    case_expect(&r, W_ROW_LOSS, (const float[]){2, 0, 2}, 0);
    case_expect(&r, W_GRADIENT, (const float[]){2, -2, 0, 0, 4, 0}, 0);
    case_expect(&r, W_LOSS, (const float[]){8.0f / 3}, 1e-6f);
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_losses");
    TCase *c = tcase_create("losses");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_loop_test(c, losses_match, 0, 3);
    tcase_add_loop_test(c, no_outputs, 1, 3);
    tcase_add_loop_test(c, gradients, 0, 3);
    tcase_add_test(c, cross_entropy_as_torch);
    tcase_add_test(c, binary_cross_entropy_as_torch);
    tcase_add_test(c, huber_as_torch);
    tcase_add_test(c, top5_by_hand);
    tcase_add_test(c, weights_of_zero);
    tcase_add_test(c, outputs_of_weight_zero);
    tcase_add_test(c, binary_extremes);
    tcase_add_test(c, huber_extremes);
    tcase_add_test(c, weights_of_rows_match);
    tcase_add_test(c, weights_of_rows_by_hand);
    tcase_add_test(c, arguments);
    suite_add_tcase(s, c);
    return s;
}
