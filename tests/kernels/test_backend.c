/* Opening back ends, buffers, and the checks before every operation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "kernels/ops.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct backend *be;

static void open_cpu(void)
{
    struct as_err err;
    ck_ok(backend_open("cpu", NULL, &be, &err), err);
}

static void close_cpu(void)
{
    backend_freep(&be);
}

/* A folder without a plugin, so that "cuda" is absent wherever the tests run. */
static void hide_cuda(void)
{
    ck_assert_int_eq(setenv("ASSAY_PLUGIN_DIR", "/proc/self/fd", 1), 0);
    unsetenv("ASSAY_BACKEND");
}

static void show_cuda(void)
{
    unsetenv("ASSAY_PLUGIN_DIR");
    unsetenv("ASSAY_BACKEND");
}

/* The built plugin is found from a program of the build tree, and is not loaded without a
 * device. */
START_TEST(no_visible_device)
{
    struct as_err err;
    struct backend *b = NULL;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/libassay-cuda.so", getenv("ASSAY_BUILT_PLUGIN_DIR"));
    bool is_built = access(path, F_OK) == 0;
    unsetenv("ASSAY_PLUGIN_DIR");
    static const char *const hiding[] = {"", "-1"};
    for (size_t i = 0; i < AS_ARRAY_LEN(hiding); i++) {
        setenv("CUDA_VISIBLE_DEVICES", hiding[i], 1);
        ck_fails(backend_open("cuda", NULL, &b, &err),
                 is_built ? AS_E_UNAVAILABLE : AS_E_UNSUPPORTED, err,
                 is_built ? "CUDA_VISIBLE_DEVICES" : "beside the program");
    }
    ck_ok(backend_open(NULL, NULL, &b, &err), err);
    ck_assert_str_eq(backend_name(b), "cpu");
    backend_freep(&b);
    unsetenv("CUDA_VISIBLE_DEVICES");
}
END_TEST

START_TEST(open_by_name)
{
    static const char *const names[] = {"reference", "cpu"};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        AS_AUTO(backend_freep) struct backend *b = NULL;
        struct as_err err;
        ck_ok(backend_open(names[i], NULL, &b, &err), err);
        ck_assert_str_eq(backend_name(b), names[i]);
        ck_assert_uint_gt(strlen(backend_device(b)), 0);
        ck_ok(backend_sync(b, &err), err);
    }
}
END_TEST

START_TEST(open_unknown)
{
    struct as_err err;
    struct backend *b = NULL;
    ck_fails(backend_open("gpu", NULL, &b, &err), AS_E_INVAL, err, "'gpu' is not known");
    ck_assert_ptr_nonnull(strstr(err.msg, "reference, cpu, cuda"));
    ck_fails(backend_open("", NULL, &b, &err), AS_E_INVAL, err, "'' is not known");
    setenv("ASSAY_BACKEND", "tpu", 1);
    ck_fails(backend_open(NULL, NULL, &b, &err), AS_E_INVAL, err, "ASSAY_BACKEND 'tpu'");
    ck_assert_ptr_null(b);
    ck_assert_int_eq(backend_open("gpu", NULL, &b, NULL), AS_E_INVAL);
}
END_TEST

START_TEST(open_options)
{
    struct as_err err;
    struct backend *b = NULL;
    struct backend_opts opts = {.threads = -1};
    ck_fails(backend_open("cpu", &opts, &b, &err), AS_E_INVAL, err, "threads is -1");
    opts = (struct backend_opts){.device = -1};
    ck_fails(backend_open("cpu", &opts, &b, &err), AS_E_INVAL, err, "device is -1");
    opts = (struct backend_opts){.bf16 = true};
    ck_fails(backend_open("cpu", &opts, &b, &err), AS_E_UNSUPPORTED, err, "bf16 is for cuda");
    ck_fails(backend_open(NULL, &opts, &b, &err), AS_E_UNSUPPORTED, err, "bf16 is for cuda");
    opts = (struct backend_opts){.threads = 2};
    ck_ok(backend_open("cpu", &opts, &b, &err), err);
    ck_assert_ptr_nonnull(strstr(backend_device(b), "2 threads"));
    backend_free(b);
}
END_TEST

START_TEST(choose)
{
    struct as_err err;
    struct backend *b = NULL;
    ck_ok(backend_open(NULL, NULL, &b, &err), err);
    ck_assert_str_eq(backend_name(b), "cpu"); /* cuda is hidden */
    backend_freep(&b);
    setenv("ASSAY_BACKEND", "reference", 1);
    ck_ok(backend_open(NULL, NULL, &b, &err), err);
    ck_assert_str_eq(backend_name(b), "reference");
    backend_freep(&b);
    ck_ok(backend_open("cpu", NULL, &b, &err), err); /* a name wins over the environment */
    ck_assert_str_eq(backend_name(b), "cpu");
    backend_freep(&b);
    setenv("ASSAY_BACKEND", "", 1);
    ck_ok(backend_open(NULL, NULL, &b, &err), err);
    backend_freep(&b);
    setenv("ASSAY_BACKEND", "cuda", 1); /* a named back end is never replaced */
    ck_fails(backend_open(NULL, NULL, &b, &err), AS_E_UNSUPPORTED, err, "libassay-cuda.so");
}
END_TEST

START_TEST(cuda_absent)
{
    struct as_err err;
    struct backend *b = NULL;
    ck_fails(backend_open("cuda", NULL, &b, &err), AS_E_UNSUPPORTED, err, "ASSAY_PLUGIN_DIR");
    ck_assert_ptr_null(b);
}
END_TEST

START_TEST(cuda_not_a_library)
{
    char dir[TEMP_FOLDER_SIZE], path[64];
    temp_folder_make(dir);
    snprintf(path, sizeof(path), "%s/libassay-cuda.so", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("no library", f);
    fclose(f);
    setenv("ASSAY_PLUGIN_DIR", dir, 1);
    struct as_err err;
    struct backend *b = NULL;
    as_status st = backend_open("cuda", NULL, &b, &err);
    temp_folder_remove(dir);
    ck_fails(st, AS_E_UNAVAILABLE, err, "does not load");
}
END_TEST

START_TEST(cuda_of_another_version)
{
    const char *dir = getenv("ASSAY_OTHER_VERSION_DIR");
    ck_assert_ptr_nonnull(dir);
    setenv("ASSAY_PLUGIN_DIR", dir, 1);
    struct as_err err;
    struct backend *b = NULL;
    ck_fails(backend_open("cuda", NULL, &b, &err), AS_E_UNSUPPORTED, err, "another version");
}
END_TEST

/* On any machine: either it opens, or the message says what is missing. */
START_TEST(cuda_as_built)
{
    struct as_err err;
    struct backend *b = NULL;
    const char *dir = getenv("ASSAY_BUILT_PLUGIN_DIR");
    ck_assert_ptr_nonnull(dir);
    setenv("ASSAY_PLUGIN_DIR", dir, 1);
    as_status st = backend_open("cuda", NULL, &b, &err);
    if (st == AS_OK) {
        ck_assert_str_eq(backend_name(b), "cuda");
        backend_free(b);
        return;
    }
    ck_assert_msg(st == AS_E_UNAVAILABLE || st == AS_E_UNSUPPORTED, "%s", err.msg);
    ck_assert_msg(strncmp(err.msg, "back end cuda: ", 15) == 0, "%s", err.msg);
}
END_TEST

START_TEST(out_of_memory)
{
    struct as_err err;
    struct backend *b = NULL;
    as_mem_fail_nth(1);
    ck_fails(backend_open("cpu", NULL, &b, &err), AS_E_NOMEM, err, "out of memory");
    as_mem_fail_nth(1);
    ck_fails(backend_open("reference", NULL, &b, &err), AS_E_NOMEM, err, "out of memory");
    open_cpu();
    struct buf *buf = NULL;
    as_mem_fail_nth(1);
    ck_fails(buf_create(be, BUF_F32, 1, &buf, &err), AS_E_NOMEM, err, "out of memory");
    ck_fails(buf_create(be, BUF_F32, SIZE_MAX / 16, &buf, &err), AS_E_NOMEM, err, "bytes");
    ck_fails(buf_create(be, BUF_F32, SIZE_MAX / 4, &buf, &err), AS_E_TOO_LARGE, err, "overflow");
    ck_fails(buf_create(be, (buf_kind)7, 1, &buf, &err), AS_E_INVAL, err, "kind 7");
    ck_assert_ptr_null(buf);
    buf_free(NULL);
    backend_free(NULL);
    close_cpu();
}
END_TEST

/* ---- buffers ---- */

START_TEST(buffer_round_trip)
{
    struct as_err err;
    AS_AUTO(buf_freep) struct buf *a = NULL, *b = NULL;
    ck_ok(buf_create(be, BUF_F32, 5, &a, &err), err);
    ck_ok(buf_create(be, BUF_F32, 4, &b, &err), err);
    ck_assert_uint_eq(buf_len(a), 5);
    ck_assert_int_eq(buf_kind_get(a), BUF_F32);
    float got[5], in[2] = {1.5f, -2};
    ck_ok(buf_download(a, 0, got, 5, &err), err);
    for (size_t i = 0; i < 5; i++)
        ck_assert_float_eq(got[i], 0);
    ck_ok(buf_upload(a, 3, in, 2, &err), err);
    ck_ok(buf_fill_f32(a, 0, 2, NAN, &err), err);
    ck_ok(buf_copy(b, 1, a, 2, 3, &err), err);
    ck_ok(buf_copy(a, 0, a, 3, 2, &err), err);
    ck_ok(buf_download(b, 0, got, 4, &err), err);
    ck_assert(got[0] == 0 && got[1] == 0 && got[2] == 1.5f && got[3] == -2);
    ck_ok(buf_download(a, 0, got, 5, &err), err);
    ck_assert(got[0] == 1.5f && got[1] == -2 && got[2] == 0 && got[4] == -2);
}
END_TEST

START_TEST(buffer_limits)
{
    struct as_err err;
    AS_AUTO(buf_freep) struct buf *a = NULL, *w = NULL, *none = NULL;
    ck_ok(buf_create(be, BUF_F32, 4, &a, &err), err);
    ck_ok(buf_create(be, BUF_I32, 4, &w, &err), err);
    ck_ok(buf_create(be, BUF_F32, 0, &none, &err), err);
    float x[8] = {0};
    ck_fails(buf_upload(a, 2, x, 3, &err), AS_E_INVAL, err, "3 elements at 2, but there are 4");
    ck_fails(buf_upload(a, SIZE_MAX, x, 2, &err), AS_E_INVAL, err, "buffer upload");
    ck_fails(buf_download(a, 5, x, 0, &err), AS_E_INVAL, err, "buffer download");
    ck_fails(buf_fill_f32(a, 0, 5, 1, &err), AS_E_INVAL, err, "buffer fill");
    ck_fails(buf_fill_i32(a, 0, 1, 1, &err), AS_E_INVAL, err, "other kind");
    ck_fails(buf_fill_f32(w, 0, 1, 1, &err), AS_E_INVAL, err, "other kind");
    ck_fails(buf_copy(a, 0, w, 0, 1, &err), AS_E_INVAL, err, "differ");
    ck_fails(buf_copy(a, 0, a, 1, 2, &err), AS_E_INVAL, err, "overlap");
    ck_fails(buf_copy(a, 3, a, 0, 2, &err), AS_E_INVAL, err, "copy, to");
    ck_fails(buf_copy(a, 0, a, 3, 2, &err), AS_E_INVAL, err, "copy, from");
    ck_ok(buf_upload(none, 0, x, 0, &err), err);
    ck_ok(buf_download(none, 0, x, 0, &err), err);
    ck_ok(buf_fill_i32(w, 4, 0, 1, &err), err);
}
END_TEST

/* ---- checks: the mildest violation of each rule, through a few operations ---- */

struct scene {
    struct buf *f, *w, *foreign;
    struct backend *other;
};

static struct scene scene_create(void)
{
    struct as_err err;
    struct scene s = {0};
    ck_ok(backend_open("reference", NULL, &s.other, &err), err);
    ck_ok(buf_create(be, BUF_F32, 100, &s.f, &err), err);
    ck_ok(buf_create(be, BUF_I32, 100, &s.w, &err), err);
    ck_ok(buf_create(s.other, BUF_F32, 100, &s.foreign, &err), err);
    return s;
}

static void scene_done(struct scene *s)
{
    buf_free(s->f);
    buf_free(s->w);
    buf_free(s->foreign);
    backend_free(s->other);
}

START_TEST(checks_of_tensors)
{
    struct scene s = scene_create();
    struct as_err err;
    struct tensor f = tensor_at(s.f, 0, 20), none = tensor_none();
    struct linear_args a = {2, 2, 3, 4, f, f, none};
#define FORWARD(y, z) backend_linear_forward(be, &a, ACT_NONE, y, z, &err)
    ck_ok(FORWARD(tensor_at(s.f, 50, 8), none), err);
    ck_fails(FORWARD(none, none), AS_E_INVAL, err, "linear forward: y is missing");
    ck_fails(FORWARD(tensor_at(s.w, 0, 8), none), AS_E_INVAL, err, "y is I32, expected F32");
    ck_fails(FORWARD(tensor_at(s.foreign, 0, 8), none), AS_E_INVAL, err, "another back end");
    ck_fails(FORWARD(tensor_at(s.f, 0, 0), none), AS_E_INVAL, err, "2 members cannot share");
    ck_fails(FORWARD(tensor_at(s.f, 0, 7), none), AS_E_INVAL, err, "stride of 7");
    ck_fails(FORWARD(tensor_at(s.f, 85, 8), none), AS_E_INVAL, err, "y ends at element 101");
    ck_fails(FORWARD(tensor_at(s.f, SIZE_MAX, 8), none), AS_E_TOO_LARGE, err, "overflows");
    ck_fails(FORWARD(tensor_at(s.f, 50, 8), tensor_at(s.f, 99, 8)), AS_E_INVAL, err, "z ends");
    a.in = SIZE_MAX;
    ck_fails(FORWARD(f, none), AS_E_TOO_LARGE, err, "in is");
    a = (struct linear_args){2, 1u << 30, 1u << 30, 1u << 30, f, f, none};
    ck_fails(FORWARD(f, none), AS_E_TOO_LARGE, err, "product");
    a = (struct linear_args){1, 1, 1, 1, f, f, none};
    ck_fails(backend_linear_forward(be, &a, (act_kind)9, f, none, &err), AS_E_INVAL, err,
             "activation 9");
    a.w = none;
    ck_fails(FORWARD(f, none), AS_E_INVAL, err, "w is missing");
#undef FORWARD
    scene_done(&s);
}
END_TEST

START_TEST(checks_of_values)
{
    struct scene s = scene_create();
    struct as_err err;
    struct tensor f = tensor_at(s.f, 0, 20), w = tensor_at(s.w, 0, 20);
    struct dropout_args d = {1, 2, 2, f, f, f, w, w, 1u << 24};
    ck_fails(backend_dropout(be, &d, &err), AS_E_INVAL, err, "layer is 16777216");
    struct softmax_ce_args c = {.members = 1,
                                .batch = 1,
                                .logits = f,
                                .labels = w,
                                .smoothing = f,
                                .dlogits = f,
                                .grad_scale = 1,
                                .row_class = w,
                                .correct = w,
                                .out = {f, f, 1, false}};
    ck_fails(backend_softmax_ce(be, &c, &err), AS_E_INVAL, err, "classes is 0");
    c.classes = 2;
    c.out.weight = NAN;
    ck_fails(backend_softmax_ce(be, &c, &err), AS_E_INVAL, err, "weight is not finite");
    c.out.weight = 1;
    c.grad_scale = INFINITY;
    ck_fails(backend_softmax_ce(be, &c, &err), AS_E_INVAL, err, "grad_scale is not finite");
    struct mse_args m = {1, 1, 1, f, f, f, 1, {f, tensor_none(), 1, false}};
    ck_fails(backend_mse(be, &m, &err), AS_E_INVAL, err, "mean squared error: loss is missing");
    struct gather_args g = {
        .members = 1, .rows = 5, .batch = 1, .width = 1, .src = f, .index = w, .dst = w};
    ck_fails(backend_gather(be, &g, &err), AS_E_INVAL, err, "gather: dst is I32, expected F32");
    struct add_args s2 = {1, 4, f, f, f, ACT_TANH};
    ck_fails(backend_add(be, &s2, &err), AS_E_INVAL, err, "add: activation 2 is neither");
    s2 = (struct add_args){1, 4, f, tensor_none(), f, ACT_NONE};
    ck_fails(backend_add(be, &s2, &err), AS_E_INVAL, err, "add: b is missing");
    scene_done(&s);
}
END_TEST

START_TEST(checks_of_the_optimizer)
{
    struct scene s = scene_create();
    struct as_err err;
    struct tensor f = tensor_at(s.f, 0, 20), w = tensor_at(s.w, 0, 20);
    struct opt_args o = {.members = 2, .n = 8, .kind = w, .params = f, .grads = f, .m1 = f};
#define FAILS(message) ck_fails(backend_optimize(be, &o, &err), AS_E_INVAL, err, message)
    FAILS("optimizer: lr is missing");
    o.lr = f;
    FAILS("optimizer: step is missing");
    o.step = f;
    FAILS("optimizer: step is F32, expected I32");
    o.step = tensor_at(s.w, 0, 0);
    FAILS("optimizer: step is written, so 2 members cannot share it");
    o.step = w;
    o.kind = f;
    FAILS("optimizer: kind is F32, expected I32");
    o.kind = w;
    o.segments = (const size_t[]){0, 9};
    o.n_segments = 2;
    FAILS("optimizer: segment 1 begins at 9, expected 0 to 8");
    o.segments = (const size_t[]){0, 3, 2};
    o.n_segments = 3;
    FAILS("optimizer: segment 2 begins at 2, expected 3 to 8");
    o.segments = (const size_t[]){1};
    o.n_segments = 1;
    FAILS("optimizer: the first segment is not at 0");
    o.segments = (const size_t[]){0};
    o.n_segments = 0;
    FAILS("optimizer: the first segment is not at 0");
    o.segments = (const size_t[]){0, 2, 4};
    o.n_segments = 3;
    o.work = tensor_at(s.f, 0, 5);
    FAILS("optimizer: work has 6 elements per member, but a stride of 5");
    o.work = tensor_at(s.f, 60, 6);
    ck_ok(backend_optimize(be, &o, &err), err);
#undef FAILS
    scene_done(&s);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kernels_backend");
    TCase *c = tcase_create("open");
    tcase_add_checked_fixture(c, hide_cuda, show_cuda);
    tcase_add_test(c, no_visible_device);
    tcase_add_test(c, open_by_name);
    tcase_add_test(c, open_unknown);
    tcase_add_test(c, open_options);
    tcase_add_test(c, choose);
    tcase_add_test(c, cuda_absent);
    tcase_add_test(c, cuda_not_a_library);
    tcase_add_test(c, cuda_of_another_version);
    tcase_add_test(c, cuda_as_built);
    tcase_add_test(c, out_of_memory);
    suite_add_tcase(s, c);
    c = tcase_create("buffers");
    tcase_add_checked_fixture(c, open_cpu, close_cpu);
    tcase_add_test(c, buffer_round_trip);
    tcase_add_test(c, buffer_limits);
    tcase_add_test(c, checks_of_tensors);
    tcase_add_test(c, checks_of_values);
    tcase_add_test(c, checks_of_the_optimizer);
    suite_add_tcase(s, c);
    return s;
}
