/* Convolution: the back end under test against the oracle, both against differences and against
 * values by hand; bits that do not depend on the member; faults. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/twin.h"

struct shape {
    size_t members, batch, height, width, channels, out, kernel_h, kernel_w, stride, pad, groups;
};

static const struct shape shapes[] = {
    /* K B  H   W   C   O  KH KW s  p  g */
    {0, 2, 4, 4, 2, 3, 3, 3, 1, 1, 1},     /* nothing */
    {1, 0, 4, 4, 2, 3, 3, 3, 1, 1, 1},     /* */
    {1, 2, 4, 4, 0, 3, 3, 3, 1, 0, 1},     /* */
    {1, 2, 4, 4, 2, 0, 3, 3, 1, 1, 1},     /* */
    {2, 2, 2, 2, 3, 3, 3, 3, 1, 0, 1},     /* the kernel is larger than the image */
    {2, 2, 2, 5, 3, 3, 3, 3, 1, 0, 3},     /* */
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1},     /* 1 x 1 everything */
    {3, 3, 1, 1, 7, 5, 1, 1, 1, 0, 1},     /* a linear layer */
    {2, 3, 1, 1, 2, 3, 3, 3, 1, 2, 1},     /* mostly padding */
    {2, 2, 5, 4, 3, 17, 5, 4, 1, 0, 1},    /* kernel = image */
    {3, 2, 9, 8, 3, 5, 2, 2, 3, 0, 1},     /* stride > kernel: pixels never read */
    {2, 3, 11, 7, 4, 33, 3, 3, 2, 1, 1},   /* stride 2, one column past a panel */
    {1, 5, 13, 13, 1, 20, 5, 5, 1, 0, 1},  /* LeNet's first */
    {2, 9, 12, 12, 20, 50, 5, 5, 1, 0, 1}, /* and second: several blocks and slices */
    {1, 17, 6, 6, 6, 16, 5, 5, 1, 0, 1},   /* */
    {3, 3, 6, 7, 5, 1, 3, 2, 1, 1, 1},     /* O = 1, kernel not square */
    {2, 2, 7, 7, 3, 40, 1, 1, 2, 0, 1},    /* 1 x 1 with a stride */
    {1, 2, 40, 40, 24, 24, 3, 3, 1, 1, 1}, /* an image in bands, dx too */
    {1, 1, 41, 37, 30, 19, 3, 5, 2, 2, 1}, /* */
    {1, 3, 3, 3, 140, 130, 3, 3, 1, 1, 1}, /* dw in parts */
    {3, 2, 6, 5, 4, 4, 3, 3, 1, 1, 4},     /* depthwise */
    {2, 3, 7, 8, 19, 19, 3, 3, 2, 1, 19},  /* off a vector, stride 2 */
    {2, 2, 9, 9, 32, 32, 5, 3, 1, 2, 32},  /* */
    {2, 2, 5, 5, 3, 12, 3, 3, 1, 2, 3},    /* multiplier 4 */
    {1, 3, 8, 8, 2, 34, 2, 2, 3, 0, 2},    /* multiplier 17, stride > kernel */
};

static size_t y_len(const struct shape *s)
{
    return s->batch * conv_out_len(s->height, s->kernel_h, s->stride, s->pad) *
           conv_out_len(s->width, s->kernel_w, s->stride, s->pad) * s->out;
}

static size_t x_len(const struct shape *s)
{
    return s->batch * s->height * s->width * s->channels;
}

static size_t w_len(const struct shape *s)
{
    return s->kernel_h * s->kernel_w * (s->channels / s->groups) * s->out;
}

static struct conv_args args_of(const struct shape *s)
{
    return (struct conv_args){.members = s->members,
                              .batch = s->batch,
                              .height = s->height,
                              .width = s->width,
                              .channels = s->channels,
                              .out = s->out,
                              .kernel_h = s->kernel_h,
                              .kernel_w = s->kernel_w,
                              .stride = s->stride,
                              .pad = s->pad,
                              .groups = s->groups};
}

/* A workspace of exactly the required length, full of NaN; *ret is owned by the caller. */
static struct tensor work_for(struct backend *be, const struct conv_args *a, struct buf **ret)
{
    struct as_err err;
    size_t n = backend_conv_work(be, a);
    ck_ok(buf_create(be, BUF_F32, n * a->members + 1, ret, &err), err);
    ck_ok(buf_fill_f32(*ret, 0, n * a->members + 1, NAN, &err), err);
    return tensor_at(*ret, 1, n);
}

static void forward(const struct shape *s, act_kind act, bool shared_x, bool bias, bool keep)
{
    struct as_err err;
    struct twin x = twin_f32(s->members, x_len(s), shared_x, -1, 1);
    struct twin w = twin_f32(s->members, w_len(s), false, -1, 1);
    struct twin b = twin_f32(s->members, s->out, false, -1, 1);
    struct twin y = twin_f32(s->members, y_len(s), false, 5, 6);
    struct twin z = twin_f32(s->members, y_len(s), false, 5, 6);
    FOR_SIDES(i)
    {
        struct buf *work = NULL;
        struct conv_args a = args_of(s);
        a.x = twin_at(&x, i);
        a.w = twin_at(&w, i);
        a.b = bias ? twin_at(&b, i) : tensor_none();
        a.work = work_for(twin_backend(i), &a, &work);
        ck_ok(backend_conv_forward(twin_backend(i), &a, act, twin_at(&y, i),
                                   keep ? twin_at(&z, i) : tensor_none(), &err),
              err);
        buf_free(work);
    }
    /* float sums of up to 1260 products of size 1 */
    twin_same(&y, "y", 1e-4f, 1e-5f);
    twin_same(&z, "z", 1e-4f, 1e-5f);
}

/* Large shapes take most of the time, fourfold in the emulator. */
static bool is_large(const struct shape *s)
{
    return s->members * y_len(s) * s->kernel_h * s->kernel_w * (s->channels / s->groups) > 300000;
}

/* Each large shape with one activation: how a path sums does not depend on what is applied to the
 * sum. */
START_TEST(conv_forward)
{
    act_kind act = (act_kind)_i;
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        if (is_large(&shapes[i]) && i % (ACT_GELU + 1) != act)
            continue;
        forward(&shapes[i], act, false, true, false);
        forward(&shapes[i], act, true, false, true);
    }
}
END_TEST

static void backward(const struct shape *s, bool shared_x, unsigned wanted)
{
    struct as_err err;
    struct twin x = twin_f32(s->members, x_len(s), shared_x, -1, 1);
    struct twin w = twin_f32(s->members, w_len(s), false, -1, 1);
    struct twin dy = twin_f32(s->members, y_len(s), false, -1, 1);
    struct twin dx = twin_f32(s->members, x_len(s), false, 5, 6);
    struct twin dw = twin_f32(s->members, w_len(s), false, 5, 6);
    struct twin db = twin_f32(s->members, s->out, false, 5, 6);
    FOR_SIDES(i)
    {
        struct buf *work = NULL;
        struct conv_args a = args_of(s);
        a.x = twin_at(&x, i);
        a.w = twin_at(&w, i);
        a.work = work_for(twin_backend(i), &a, &work);
        struct conv_grads g = {.dy = twin_at(&dy, i),
                               .dx = wanted & 1 ? twin_at(&dx, i) : tensor_none(),
                               .dw = wanted & 2 ? twin_at(&dw, i) : tensor_none(),
                               .db = wanted & 4 ? twin_at(&db, i) : tensor_none()};
        ck_ok(backend_conv_backward(twin_backend(i), &a, &g, &err), err);
        buf_free(work);
    }
    twin_same(&dx, "dx", 1e-4f, 1e-5f);
    twin_same(&dw, "dw", 1e-4f, 1e-5f);
    twin_same(&db, "db", 1e-4f, 1e-5f);
}

START_TEST(conv_backward)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        backward(&shapes[i], false, 7);
        backward(&shapes[i], true, 6);
        backward(&shapes[i], false, 1);
        backward(&shapes[i], true, 4);
    }
}
END_TEST

/* ---- by hand ---- */

static struct buf *floats(struct backend *be, const float *data, size_t n)
{
    struct as_err err;
    struct buf *b = NULL;
    ck_ok(buf_create(be, BUF_F32, n, &b, &err), err);
    ck_ok(buf_upload(b, 0, data, n, &err), err);
    return b;
}

static void is(const struct buf *b, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct as_err err;
        float got = 0;
        ck_ok(buf_download(b, i, &got, 1, &err), err);
        ck_assert_msg(got == want[i], "element %zu is %g, expected %g", i, (double)got,
                      (double)want[i]);
    }
}

/* A 3 x 3 image of 1 to 9, the kernel 1 2 / 3 4, bias -40, relu; then dy of ones. */
START_TEST(by_hand)
{
    const float image[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, kernel[] = {1, 2, 3, 4}, bias[] = {-40};
    const float ones[] = {1, 1, 1, 1};
    /* 1 + 4 + 12 + 20 = 37, 47, 67, 77, less 40 */
    const float y_want[] = {0, 7, 27, 37}, z_want[] = {-3, 7, 27, 37};
    const float dx_want[] = {1, 3, 2, 4, 10, 6, 3, 7, 4}, dw_want[] = {12, 16, 24, 28};
    FOR_SIDES(s)
    {
        struct as_err err;
        struct backend *be = twin_backend(s);
        struct shape shape = {1, 1, 3, 3, 1, 1, 2, 2, 1, 0, 1};
        struct conv_args a = args_of(&shape);
        struct buf *work = NULL, *x = floats(be, image, 9), *w = floats(be, kernel, 4);
        struct buf *b = floats(be, bias, 1), *y = floats(be, image, 4), *z = floats(be, image, 4);
        struct buf *dy = floats(be, ones, 4), *dx = floats(be, image, 9);
        struct buf *dw = floats(be, image, 4), *db = floats(be, image, 1);
        a.x = tensor_at(x, 0, 0);
        a.w = tensor_at(w, 0, 0);
        a.b = tensor_at(b, 0, 0);
        a.work = work_for(be, &a, &work);
        ck_ok(backend_conv_forward(be, &a, ACT_RELU, tensor_at(y, 0, 0), tensor_at(z, 0, 0), &err),
              err);
        struct conv_grads g = {tensor_at(dy, 0, 0), tensor_at(dx, 0, 0), tensor_at(dw, 0, 0),
                               tensor_at(db, 0, 0)};
        ck_ok(backend_conv_backward(be, &a, &g, &err), err);
        is(y, y_want, 4);
        is(z, z_want, 4);
        is(dx, dx_want, 9);
        is(dw, dw_want, 4);
        is(db, (const float[]){4}, 1);
        struct buf *all[] = {work, x, w, b, y, z, dy, dx, dw, db};
        for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
            buf_free(all[i]);
    }
}
END_TEST

/* ---- by differences ---- */

struct pass {
    struct backend *be;
    struct conv_args a;
    struct tensor y;
};

static void run_forward(void *arg)
{
    struct as_err err;
    struct pass *p = arg;
    ck_ok(backend_conv_forward(p->be, &p->a, ACT_NONE, p->y, tensor_none(), &err), err);
}

static struct place place_of(const struct twin *t, int side, size_t n)
{
    return (struct place){t->side[side], t->offset, n};
}

static void differences(const struct shape *s, int side)
{
    struct as_err err;
    struct twin x = twin_f32(1, x_len(s), false, -1, 1), w = twin_f32(1, w_len(s), false, -1, 1);
    struct twin b = twin_f32(1, s->out, false, -1, 1), y = twin_f32(1, y_len(s), false, 0, 1);
    struct twin dy = twin_f32(1, y_len(s), false, -1, 1), dx = twin_f32(1, x_len(s), false, 0, 1);
    struct twin dw = twin_f32(1, w_len(s), false, 0, 1), db = twin_f32(1, s->out, false, 0, 1);
    struct buf *work = NULL;
    struct pass p = {twin_backend(side), args_of(s), twin_at(&y, side)};
    p.a.x = twin_at(&x, side);
    p.a.w = twin_at(&w, side);
    p.a.b = twin_at(&b, side);
    p.a.work = work_for(p.be, &p.a, &work);
    struct conv_grads g = {twin_at(&dy, side), twin_at(&dx, side), twin_at(&dw, side),
                           twin_at(&db, side)};
    ck_ok(backend_conv_backward(p.be, &p.a, &g, &err), err);
    /* Convolution is linear in each: a large step loses nothing. y of up to 20 is rounded by 1e-6,
     * each of some 100 of them: 1e-5 over 2 steps. */
    struct slope d = {run_forward, &p,  place_of(&y, side, y_len(s)), place_of(&dy, side, y_len(s)),
                      0.5f,        1e-4};
    struct place px = place_of(&x, side, x_len(s)), pdx = place_of(&dx, side, x_len(s));
    struct place pw = place_of(&w, side, w_len(s)), pdw = place_of(&dw, side, w_len(s));
    struct place pb = place_of(&b, side, s->out), pdb = place_of(&db, side, s->out);
    slope_hold(&d, "x", &px, &pdx);
    slope_hold(&d, "w", &pw, &pdw);
    slope_hold(&d, "b", &pb, &pdb);
    buf_free(work);
}

START_TEST(by_differences)
{
    static const struct shape small[] = {
        {1, 2, 5, 4, 3, 4, 3, 3, 1, 1, 1}, {1, 2, 6, 5, 2, 3, 3, 2, 2, 1, 1},
        {1, 3, 7, 7, 1, 5, 2, 2, 3, 0, 1}, {1, 2, 5, 5, 4, 4, 3, 3, 1, 1, 4},
        {1, 2, 6, 4, 3, 6, 3, 3, 2, 2, 3},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(small); i++)
        FOR_SIDES(side)
    differences(&small[i], side);
}
END_TEST

/* ---- members ---- */

static void download(const struct twin *t, size_t k, float *to, size_t n)
{
    struct as_err err;
    ck_ok(buf_download(t->side[1], t->offset + k * t->stride, to, n, &err), err);
}

/* Member 2 of 3 has the bits of the same member alone. */
static void alone(const struct shape *s)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct twin x = twin_f32(3, x_len(s), false, -1, 1), w = twin_f32(3, w_len(s), false, -1, 1);
    struct twin dy = twin_f32(3, y_len(s), false, -1, 1), out[2][3];
    const size_t n[] = {y_len(s), x_len(s), w_len(s)};
    for (int one = 0; one < 2; one++) {
        struct buf *work = NULL;
        struct conv_args a = args_of(s);
        size_t first = one ? 2 : 0;
        a.members = one ? 1 : 3;
        for (size_t i = 0; i < 3; i++)
            out[one][i] = twin_f32(a.members, n[i], false, 5, 6);
        a.x = tensor_from(twin_at(&x, 1), first);
        a.w = tensor_from(twin_at(&w, 1), first);
        a.work = work_for(be, &a, &work);
        struct conv_grads g = {.dy = tensor_from(twin_at(&dy, 1), first),
                               .dx = twin_at(&out[one][1], 1),
                               .dw = twin_at(&out[one][2], 1)};
        ck_ok(backend_conv_forward(be, &a, ACT_RELU, twin_at(&out[one][0], 1), tensor_none(), &err),
              err);
        ck_ok(backend_conv_backward(be, &a, &g, &err), err);
        buf_free(work);
    }
    for (size_t i = 0; i < 3; i++) {
        float *group = calloc(n[i], sizeof(*group)), *solo = calloc(n[i], sizeof(*solo));
        ck_assert(group != NULL && solo != NULL);
        download(&out[0][i], 2, group, n[i]);
        download(&out[1][i], 0, solo, n[i]);
        ck_assert_msg(memcmp(group, solo, n[i] * sizeof(*group)) == 0, "output %zu differs", i);
        free(group);
        free(solo);
    }
}

START_TEST(member_alone)
{
    static const struct shape some[] = {
        {3, 9, 12, 12, 20, 50, 5, 5, 1, 0, 1},
        {3, 5, 9, 7, 3, 17, 3, 3, 2, 1, 1},
        {3, 4, 9, 7, 18, 18, 3, 3, 1, 1, 18},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(some); i++)
        alone(&some[i]);
}
END_TEST

/* y, dx and dw of a convolution on a cpu back end with `threads` threads, one after another. */
static void with_threads(const struct shape *s, int threads, float *ret)
{
    struct as_err err;
    struct backend *be = NULL;
    struct buf *b = NULL, *work = NULL;
    struct conv_args a = args_of(s);
    size_t k = s->members, ny = y_len(s), nx = x_len(s), nw = w_len(s);
    size_t n = k * (2 * ny + 2 * nx + 2 * nw);
    float *data = calloc(n, sizeof(*data));
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (float)(i * 37 % 101) / 50 - 1;
    ck_ok(backend_open("cpu", &(struct backend_opts){.threads = threads}, &be, &err), err);
    ck_ok(buf_create(be, BUF_F32, n, &b, &err), err);
    ck_ok(buf_upload(b, 0, data, n, &err), err);
    free(data);
    a.work = work_for(be, &a, &work);
    struct tensor y = tensor_at(b, 0, ny), dx = tensor_at(b, k * ny, nx);
    struct tensor dw = tensor_at(b, k * (ny + nx), nw);
    size_t inputs = k * (ny + nx + nw);
    a.x = tensor_at(b, inputs, nx);
    a.w = tensor_at(b, inputs + k * nx, nw);
    struct conv_grads g = {tensor_at(b, inputs + k * (nx + nw), ny), dx, dw, tensor_none()};
    ck_ok(backend_conv_forward(be, &a, ACT_TANH, y, tensor_none(), &err), err);
    ck_ok(backend_conv_backward(be, &a, &g, &err), err);
    ck_ok(buf_download(b, 0, ret, inputs, &err), err);
    buf_free(work);
    buf_free(b);
    backend_free(be);
}

START_TEST(any_threads)
{
    static const struct shape some[] = {
        {2, 20, 12, 12, 20, 50, 5, 5, 1, 0, 1},
        {1, 3, 3, 3, 140, 130, 3, 3, 1, 1, 1},
        {1, 9, 40, 40, 20, 20, 3, 3, 1, 1, 20},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(some); i++) {
        size_t n = some[i].members * (y_len(&some[i]) + x_len(&some[i]) + w_len(&some[i]));
        float *one = calloc(n, sizeof(*one)), *three = calloc(n, sizeof(*three));
        ck_assert(one != NULL && three != NULL);
        with_threads(&some[i], 1, one);
        with_threads(&some[i], 3, three);
        ck_assert_msg(memcmp(one, three, n * sizeof(*one)) == 0, "shape %zu differs", i);
        free(one);
        free(three);
    }
}
END_TEST

/* A NaN in one image stays in that image; in a weight it reaches all outputs of that weight. */
START_TEST(not_a_number)
{
    const struct shape s = {1, 3, 6, 6, 2, 3, 3, 3, 1, 1, 1};
    struct as_err err;
    struct twin x = twin_f32(1, x_len(&s), false, -1, 1), w = twin_f32(1, w_len(&s), false, -1, 1);
    struct twin y = twin_f32(1, y_len(&s), false, 0, 1);
    twin_set_f32(&x, 0, 72, NAN); /* the second image's first pixel */
    FOR_SIDES(i)
    {
        struct buf *work = NULL;
        struct conv_args a = args_of(&s);
        a.x = twin_at(&x, i);
        a.w = twin_at(&w, i);
        a.work = work_for(twin_backend(i), &a, &work);
        ck_ok(backend_conv_forward(twin_backend(i), &a, ACT_RELU, twin_at(&y, i), tensor_none(),
                                   &err),
              err);
        buf_free(work);
        ck_assert_float_nan(twin_get_f32(&y, i, 0, 108));
    }
    twin_same_or_nan(&y, "y", 1e-4f, 1e-5f);
}
END_TEST

/* ---- faults ---- */

START_TEST(bad_sizes)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct tensor t = tensor_none();
#define FAULT(part, ...)                                                                           \
    do {                                                                                           \
        struct conv_args a = {__VA_ARGS__};                                                        \
        ck_assert_uint_eq(backend_conv_work(be, &a), 0);                                           \
        ck_fails(backend_conv_forward(be, &a, ACT_NONE, t, t, &err), AS_E_INVAL, err, part);       \
        ck_fails(backend_conv_backward(be, &a, &(struct conv_grads){t, t, t, t}, &err),            \
                 AS_E_INVAL, err, part);                                                           \
    } while (0)
    /*                                K  B  H  W  C  O KH KW s  p  g */
    FAULT("0 x 4", 1, 1, 0, 4, 2, 3, 3, 3, 1, 1, 1);
    FAULT("kernel is 0 x 3", 1, 1, 4, 4, 2, 3, 0, 3, 1, 0, 1);
    FAULT("stride is 0", 1, 1, 4, 4, 2, 3, 3, 3, 0, 1, 1);
    FAULT("pad is 3", 1, 1, 4, 4, 2, 3, 3, 3, 1, 3, 1);
    FAULT("groups is 0", 1, 1, 4, 4, 2, 3, 3, 3, 1, 1, 0);
    FAULT("groups is 2", 1, 1, 4, 4, 4, 4, 3, 3, 1, 1, 2);
    FAULT("6 outputs are not a multiple of the 4", 1, 1, 4, 4, 4, 6, 3, 3, 1, 1, 4);
#undef FAULT
    struct conv_args huge = {1, 1, (size_t)1 << 40, 4, 2, 3, 3, 3, 1, 1, 1};
    ck_fails(backend_conv_forward(be, &huge, ACT_NONE, t, t, &err), AS_E_TOO_LARGE, err, "height");
}
END_TEST

START_TEST(bad_tensors)
{
    struct as_err err;
    const struct shape s = {2, 1, 4, 4, 2, 3, 3, 3, 1, 1, 1};
    struct twin x = twin_f32(2, x_len(&s), false, 0, 1), w = twin_f32(2, w_len(&s), false, 0, 1);
    struct twin y = twin_f32(2, y_len(&s), false, 0, 1), n = twin_i32(2, y_len(&s), false, 0, 1);
    FOR_SIDES(i)
    {
        struct backend *be = twin_backend(i);
        struct buf *work = NULL;
        struct conv_args a = args_of(&s);
        a.x = twin_at(&x, i);
        a.w = twin_at(&w, i);
        a.work = work_for(be, &a, &work);
        struct tensor out = twin_at(&y, i), none = tensor_none(), shared = out;
        shared.stride = 0;
        ck_fails(backend_conv_forward(be, &a, ACT_NONE, none, none, &err), AS_E_INVAL, err,
                 "y is missing");
        ck_fails(backend_conv_forward(be, &a, ACT_NONE, shared, none, &err), AS_E_INVAL, err,
                 "y is written");
        ck_fails(backend_conv_forward(be, &a, ACT_NONE, twin_at(&n, i), none, &err), AS_E_INVAL,
                 err, "y is I32");
        ck_fails(backend_conv_forward(be, &a, (act_kind)9, out, none, &err), AS_E_INVAL, err,
                 "activation 9");
        a.w = twin_at(&y, 1 - i);
        ck_fails(backend_conv_forward(be, &a, ACT_NONE, out, none, &err), AS_E_INVAL, err,
                 "w belongs to another back end");
        a.w = none;
        ck_fails(backend_conv_backward(be, &a, &(struct conv_grads){.dy = out}, &err), AS_E_INVAL,
                 err, "w is missing");
        a.w = twin_at(&w, i);
        ck_fails(backend_conv_backward(be, &a, &(struct conv_grads){.dy = none}, &err), AS_E_INVAL,
                 err, "dy is missing");
        ck_fails(backend_conv_backward(be, &a, &(struct conv_grads){out, none, out, none}, &err),
                 AS_E_INVAL, err, "dw has 54 elements per member");
        if (backend_conv_work(be, &a) > 0) {
            a.work = none;
            ck_fails(backend_conv_forward(be, &a, ACT_NONE, out, none, &err), AS_E_INVAL, err,
                     "work is missing");
        }
        buf_free(work);
    }
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_conv");
    TCase *c = tcase_create("conv");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_loop_test(c, conv_forward, ACT_NONE, ACT_GELU + 1);
    tcase_add_test(c, conv_backward);
    tcase_add_test(c, by_hand);
    tcase_add_test(c, by_differences);
    tcase_add_test(c, member_alone);
    tcase_add_test(c, any_threads);
    tcase_add_test(c, not_a_number);
    tcase_add_test(c, bad_sizes);
    tcase_add_test(c, bad_tensors);
    suite_add_tcase(s, c);
    return s;
}
