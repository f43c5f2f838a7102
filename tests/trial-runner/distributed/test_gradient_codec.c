/* What all codecs promise: sizes, slices, residuals, damaged messages, equal bits everywhere. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/codec_support.h"
#include "trial-runner/distributed/gradient_codec_priv.h"

static const char *const names[] = {"fp16", "one_bit", "top_k"};

/* Networks: a wide one with biases, odd shapes, long rows, a small one, one of a single value. */
static const struct codec_tensor mlp[] = {{784, 128}, {1, 128}, {128, 10}, {1, 10}};
static const struct codec_tensor odd[] = {{3, 5}, {0, 7}, {1, 1}, {701, 3}, {2, 4097}, {511, 1}};
static const struct codec_tensor wide[] = {{40, 5000}, {1, 70001}, {37, 1023}};
static const struct codec_tensor small[] = {{64, 16}, {1, 16}, {16, 10}, {1, 10}};
static const struct codec_tensor one[] = {{1, 1}};
static const struct net {
    const struct codec_tensor *tensors;
    size_t n;
} nets[] = {{mlp, AS_ARRAY_LEN(mlp)},
            {odd, AS_ARRAY_LEN(odd)},
            {wide, AS_ARRAY_LEN(wide)},
            {small, AS_ARRAY_LEN(small)},
            {one, 1},
            {NULL, 0}};

#define N_CASES ((int)(AS_ARRAY_LEN(names) * AS_ARRAY_LEN(nets)))

static struct codec *codec_of_case(int i)
{
    const struct net *net = &nets[(size_t)i % AS_ARRAY_LEN(nets)];
    return codec_of(names[(size_t)i / AS_ARRAY_LEN(nets)], net->tensors, net->n);
}

/* fp16 and top_k lose nothing: decoded + after is v exactly. one_bit rounds the difference once. */
START_TEST(residual_is_what_the_message_lost)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of_case(_i);
    size_t n = codec_values(c);
    bool exact = strcmp(codec_name(c), "one_bit") != 0;
    AS_AUTO(as_freep) float *x = normals(n, 1, 1e-3);
    AS_AUTO(as_freep) float *residual = normals(n, 2, 1e-4);
    for (int message = 0; message < 3; message++) {
        AS_AUTO(as_freep) float *v = numbers(n);
        for (size_t i = 0; i < n; i++)
            v[i] = x[i] + residual[i];
        AS_AUTO(as_freep) float *got = through(c, x, residual, residual); /* in place */
        for (size_t i = 0; i < n; i++) {
            double off = (double)got[i] + (double)residual[i] - (double)v[i];
            ck_assert_msg(fabs(off) <= (exact ? 0 : 0x1p-24 * fabs((double)residual[i])),
                          "%s: value %zu: %g decoded, %g left of %g", codec_name(c), i,
                          (double)got[i], (double)residual[i], (double)v[i]);
        }
    }
}
END_TEST

START_TEST(residual_before_is_left_alone_and_may_be_absent)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of_case(_i);
    size_t n = codec_values(c);
    AS_AUTO(as_freep) float *x = normals(n, 1, 1);
    AS_AUTO(as_freep) float *before = normals(n, 2, 1);
    AS_AUTO(as_freep) float *same = normals(n, 2, 1);
    AS_AUTO(as_freep) float *zero = numbers(n);
    AS_AUTO(as_freep) float *after = numbers(n);
    AS_AUTO(as_freep) float *a = through(c, x, before, after);
    AS_AUTO(as_freep) float *b = through(c, x, before, NULL);
    AS_AUTO(as_freep) float *none = through(c, x, NULL, NULL);
    AS_AUTO(as_freep) float *nothing = through(c, x, zero, NULL);
    if (n == 0)
        return;
    ck_assert_int_eq(memcmp(before, same, n * sizeof *same), 0);
    ck_assert_int_eq(memcmp(a, b, n * sizeof *a), 0);
    ck_assert_int_eq(memcmp(none, nothing, n * sizeof *none), 0);
}
END_TEST

/* Slices cover all values once, and each decodes to the same bits as the whole. */
START_TEST(slices_are_parts_of_the_whole)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of_case(_i);
    size_t n = codec_values(c), whole = codec_extent(c, WHOLE).bytes;
    AS_AUTO(as_freep) float *x = normals(n, 3, 1);
    AS_AUTO(as_freep) float *before = normals(n, 4, 1);
    AS_AUTO(as_freep) float *after = numbers(n);
    AS_AUTO(as_freep) float *got = through(c, x, before, after);
    AS_AUTO(as_freep) uint8_t *message = malloc(whole);
    for (uint32_t count = 1; count <= 7; count += 2) {
        AS_AUTO(as_freep) float *sum = numbers(n);
        AS_AUTO(as_freep) float *left = numbers(n);
        size_t next = 0, bytes = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct codec_slice slice = {i, count};
            struct codec_extent at = codec_extent(c, slice);
            struct as_err err;
            size_t f = at.first_value;
            ck_assert_uint_eq(f, next);
            codec_encode(c, slice, x + f, before + f, left + f, message);
            ck_ok(codec_decode_add(c, slice, message, at.bytes, sum + f, &err), err);
            next += at.n_values;
            bytes += at.bytes - CODEC_HEAD_BYTES;
        }
        ck_assert_uint_eq(next, n);
        ck_assert_uint_eq(bytes + CODEC_HEAD_BYTES, whole);
        ck_assert(n == 0 || memcmp(sum, got, n * sizeof *sum) == 0);
        ck_assert(n == 0 || memcmp(left, after, n * sizeof *left) == 0);
    }
}
END_TEST

START_TEST(slices_of_a_network_have_equal_shares)
{
    for (size_t k = 0; k < AS_ARRAY_LEN(names); k++) {
        AS_AUTO(codec_freep) struct codec *c = codec_of(names[k], mlp, AS_ARRAY_LEN(mlp));
        size_t whole = codec_extent(c, WHOLE).bytes, largest = 0;
        for (uint32_t i = 0; i < 4; i++) {
            size_t bytes = codec_extent(c, (struct codec_slice){i, 4}).bytes;
            largest = bytes > largest ? bytes : largest;
        }
        /* the blocks of top_k are coarse: three in this network */
        ck_assert_uint_le(largest, whole / 4 + whole / (k == 2 ? 3 : 50));
    }
}
END_TEST

START_TEST(messages_are_as_small_as_said)
{
    static const size_t ends[][2] = {{784, 128}, {64, 16}, {1, 30000}, {33, 2000}, {300, 300}};
    for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++) {
        struct codec_tensor t[] = {{ends[i][0], ends[i][1]}, {1, ends[i][1]}};
        AS_AUTO(codec_freep) struct codec *bits = codec_of("one_bit", t, 2);
        AS_AUTO(codec_freep) struct codec *halves = codec_of("fp16", t, 2);
        AS_AUTO(codec_freep) struct codec *few = codec_of("top_k", t, 2);
        double n = 4 * (double)codec_values(bits);
        ck_assert_double_le((double)codec_extent(bits, WHOLE).bytes, n / 28);
        ck_assert_double_le((double)codec_extent(halves, WHOLE).bytes, n / 2 * 1.003 + 8);
        ck_assert_double_le((double)codec_extent(few, WHOLE).bytes, n * 0.05 * 1.5 + 16);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(nets); i++) {
        AS_AUTO(codec_freep) struct codec *c = codec_of("one_bit", nets[i].tensors, nets[i].n);
        if (codec_values(c) > 1000)
            ck_assert_uint_le(codec_extent(c, WHOLE).bytes * 28, codec_values(c) * 4);
    }
}
END_TEST

/* ---- damaged messages ---- */

static void refuses(struct codec *c, struct codec_slice slice, const uint8_t *message, size_t bytes,
                    const char *part)
{
    struct as_err err;
    size_t n = codec_values(c);
    AS_AUTO(as_freep) float *sum = numbers(n);
    ck_fails(codec_decode_add(c, slice, message, bytes, sum, &err), AS_E_INVAL, err, part);
    for (size_t i = 0; i < n; i++)
        ck_assert(sum[i] == 0);
}

START_TEST(any_changed_bit_and_any_other_length_is_refused)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of(names[_i], small, AS_ARRAY_LEN(small));
    AS_AUTO(as_freep) float *x = normals(codec_values(c), 5, 1);
    size_t bytes = codec_extent(c, WHOLE).bytes;
    AS_AUTO(as_freep) uint8_t *message = malloc(bytes + 1);
    codec_encode(c, WHOLE, x, NULL, NULL, message);
    message[bytes] = 0;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        message[bit / 8] ^= (uint8_t)(1U << bit % 8);
        refuses(c, WHOLE, message, bytes, "is damaged");
        message[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    refuses(c, WHOLE, message, bytes + 1, "expected");
    refuses(c, WHOLE, message, bytes - 1, "expected");
    refuses(c, WHOLE, message, 0, "has 0 bytes");
}
END_TEST

START_TEST(message_about_something_else_is_refused)
{
    static const struct codec_tensor ab[] = {{2, 600}, {600, 2}}, ba[] = {{600, 2}, {2, 600}};
    AS_AUTO(codec_freep) struct codec *c = codec_of(names[_i], ab, 2);
    AS_AUTO(codec_freep) struct codec *other = codec_of(names[_i], ba, 2);
    AS_AUTO(as_freep) float *x = normals(codec_values(c), 5, 1);
    struct codec_slice first = {0, 2}, second = {1, 2};
    size_t bytes = codec_extent(c, WHOLE).bytes;
    AS_AUTO(as_freep) uint8_t *message = malloc(bytes);
    codec_encode(c, WHOLE, x, NULL, NULL, message);
    refuses(other, WHOLE, message, bytes, "other tensors");
    codec_encode(c, first, x, NULL, NULL, message);
    ck_assert_uint_eq(codec_extent(c, first).bytes, codec_extent(c, second).bytes);
    refuses(c, second, message, codec_extent(c, second).bytes, "another slice than 1 of 2");
}
END_TEST

/* A peer that computes checksums right and sends nonsense. */
static void seal(const struct codec *c, uint8_t *message, size_t bytes)
{
    uint32_t crc =
        crc32c(codec_seed(c, WHOLE), message + CODEC_HEAD_BYTES, bytes - CODEC_HEAD_BYTES);
    memcpy(message, &crc, sizeof crc);
}

START_TEST(forged_messages_are_refused)
{
    static const struct forgery {
        const char *name;
        size_t n, at;
        float first; /* value */
        uint16_t put;
        const char *part;
    } forgeries[] = {
        {"fp16", 100, 0, 1, 114, "exponent is out of range"},
        {"fp16", 100, 0, 1, (uint16_t)-113, "exponent is out of range"},
        {"fp16", 100, 200, 1, 0x7c00, "is not finite"},
        {"fp16", 100, 4, FLT_MAX, 0x7800, "is not finite"},
        {"fp16", 100, 2, 1, 0xfe01, "is not finite"},
        {"one_bit", 100, 0, 1, 0xbf80, "positive values is negative"},
        {"one_bit", 100, 2, 1, 0x3f80, "negative values is positive"},
        {"one_bit", 100, 4 + 12 - 1, 1, 0x1000, "behind the last value"},
        {"top_k", 100, 0, 1, 99, "not in order"},
        {"top_k", 100, 8, 1, 100, "behind the last value"},
        {"top_k", 100, 8, 1, 0, "not in order"},
    };
    const struct forgery *f = &forgeries[_i];
    AS_AUTO(codec_freep) struct codec *c = codec_of_vector(f->name, f->n);
    AS_AUTO(as_freep) float *x = normals(f->n, 5, 1);
    size_t bytes = codec_extent(c, WHOLE).bytes;
    AS_AUTO(as_freep) uint8_t *message = malloc(bytes);
    struct as_err err;
    x[0] = f->first;
    codec_encode(c, WHOLE, x, NULL, NULL, message);
    seal(c, message, bytes); /* the seal itself is right */
    ck_ok(codec_decode_add(c, WHOLE, message, bytes, x, &err), err);
    ck_assert_uint_le(CODEC_HEAD_BYTES + f->at + sizeof f->put, bytes);
    memcpy(message + CODEC_HEAD_BYTES + f->at, &f->put, sizeof f->put);
    seal(c, message, bytes);
    refuses(c, WHOLE, message, bytes, f->part);
}
END_TEST

/* ---- equal bits ----
 *
 * The sums are of what gcc for plain x86-64 (SSE2) computes. With AVX2 and AVX-512, where a
 * multiplication and an addition could be fused, and under clang and the sanitizers they must be
 * the same. The numbers are made without libm, which has versions. */

static void fill_plainly(float *v, size_t n, uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed, 2);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)((double)(int32_t)rng_u32(&r) * (double)(rng_u32(&r) & 0xffff) * 0x1p-52);
}

static uint32_t checksum_of_messages(const char *name)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of(name, odd, AS_ARRAY_LEN(odd));
    size_t n = codec_values(c), bytes = codec_extent(c, WHOLE).bytes;
    AS_AUTO(as_freep) float *x = numbers(n);
    AS_AUTO(as_freep) float *residual = numbers(n);
    AS_AUTO(as_freep) uint8_t *message = malloc(bytes);
    uint32_t crc = 0;
    for (uint64_t step = 0; step < 5; step++) {
        fill_plainly(x, n, step);
        codec_encode(c, WHOLE, x, residual, residual, message);
        ck_assert(codec_decode_add(c, WHOLE, message, bytes, x, NULL) == AS_OK);
        crc = crc32c(crc32c(crc, message, bytes), x, n * sizeof *x);
    }
    return crc32c(crc, residual, n * sizeof *residual);
}

static uint32_t checksum_of_sums(void)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of("powersgd", odd, AS_ARRAY_LEN(odd));
    size_t n = codec_values(c);
    AS_AUTO(as_freep) float *x = numbers(n);
    AS_AUTO(as_freep) float *residual = numbers(n);
    AS_AUTO(as_freep) float *got = numbers(n);
    AS_AUTO(as_freep) float *left = numbers(codec_left_n(c));
    AS_AUTO(as_freep) float *right = numbers(codec_right_n(c));
    uint32_t crc = 0;
    for (uint64_t step = 0; step < 5; step++) {
        fill_plainly(x, n, step);
        codec_left(c, x, residual, residual, left);
        codec_left_summed(c, left);
        codec_right(c, residual, right);
        codec_factors_lost(c, left, right, residual);
        codec_right_summed(c, right, got);
        for (size_t i = 0; i < n; i++)
            x[i] += got[i];
        crc = crc32c(crc32c(crc, left, codec_left_n(c) * sizeof *left), right,
                     codec_right_n(c) * sizeof *right);
        crc = crc32c(crc, x, n * sizeof *x);
    }
    return crc32c(crc, residual, n * sizeof *residual);
}

START_TEST(bits_are_equal_on_every_processor)
{
    ck_assert_uint_eq(checksum_of_messages("fp16"), 0x439de905);
    ck_assert_uint_eq(checksum_of_messages("one_bit"), 0x267732b1);
    ck_assert_uint_eq(checksum_of_messages("top_k"), 0x8057a1d6);
    ck_assert_uint_eq(checksum_of_sums(), 0xfcdca49d);
}
END_TEST

/* ---- creation ---- */

static void create_fails(struct codec_opts opts, const struct codec_tensor *t, as_status want,
                         const char *part)
{
    struct as_err err;
    struct codec *c = NULL;
    ck_fails(codec_create(&opts, t, t ? 1 : 0, &c, &err), want, err, part);
    ck_assert_ptr_null(c);
}

START_TEST(wrong_parameters_are_refused)
{
    static const struct codec_tensor huge = {SIZE_MAX / 2, 3}, large = {SIZE_MAX / 64, 1};
    create_fails((struct codec_opts){.name = "gzip"}, NULL, AS_E_INVAL, "codec is \"gzip\"");
    create_fails((struct codec_opts){.name = "none"}, NULL, AS_E_INVAL, "expected fp16");
    create_fails((struct codec_opts){.name = "top_k"}, NULL, AS_E_INVAL, "fraction is 0");
    create_fails((struct codec_opts){.name = "top_k", .fraction = 1.5}, NULL, AS_E_INVAL, "1.5");
    create_fails((struct codec_opts){.name = "top_k", .fraction = NAN}, NULL, AS_E_INVAL, "nan");
    create_fails((struct codec_opts){.name = "powersgd"}, NULL, AS_E_INVAL, "rank is 0");
    create_fails((struct codec_opts){.name = "powersgd", .rank = 65}, NULL, AS_E_INVAL, "1 to 64");
    create_fails((struct codec_opts){.name = "fp16", .half = true}, NULL, AS_E_INVAL, "powersgd");
    create_fails((struct codec_opts){.name = "fp16"}, &huge, AS_E_TOO_LARGE, "is too large");
    create_fails((struct codec_opts){.name = "powersgd", .rank = 1}, &huge, AS_E_TOO_LARGE,
                 "is too large");
    create_fails((struct codec_opts){.name = "powersgd", .rank = 1}, &large, AS_E_TOO_LARGE,
                 "is too large");
}
END_TEST

START_TEST(out_of_memory_is_an_error)
{
    static const char *const all[] = {"fp16", "one_bit", "top_k", "powersgd"};
    struct codec_opts opts = {.name = all[_i], .fraction = 0.1, .rank = 2};
    struct codec *c = NULL;
    as_status st = AS_E_NOMEM;
    size_t nth = 0;
    while (st == AS_E_NOMEM) {
        as_mem_fail_nth(++nth);
        st = codec_create(&opts, mlp, AS_ARRAY_LEN(mlp), &c, NULL);
    }
    as_mem_fail_nth(0);
    ck_assert_int_eq(st, AS_OK);
    ck_assert_uint_gt(nth, 3);
    codec_free(c);
}
END_TEST

START_TEST(messages_have_no_state)
{
    struct as_err err;
    AS_AUTO(codec_freep) struct codec *c = codec_of(names[_i], mlp, AS_ARRAY_LEN(mlp));
    float one_number = 1;
    ck_assert(!codec_sums(c));
    ck_assert_uint_eq(codec_state_n(c), 0);
    ck_ok(codec_state_put(c, NULL, 0, &err), err);
    ck_fails(codec_state_put(c, &one_number, 1, &err), AS_E_INVAL, err, "expected 0");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("codec");
    TCase *t = tcase_create("codec");
    tcase_add_loop_test(t, residual_is_what_the_message_lost, 0, N_CASES);
    tcase_add_loop_test(t, residual_before_is_left_alone_and_may_be_absent, 0, N_CASES);
    tcase_add_loop_test(t, slices_are_parts_of_the_whole, 0, N_CASES);
    tcase_add_test(t, slices_of_a_network_have_equal_shares);
    tcase_add_test(t, messages_are_as_small_as_said);
    tcase_add_loop_test(t, any_changed_bit_and_any_other_length_is_refused, 0, 3);
    tcase_add_loop_test(t, message_about_something_else_is_refused, 0, 3);
    tcase_add_loop_test(t, forged_messages_are_refused, 0, 11);
    tcase_add_test(t, bits_are_equal_on_every_processor);
    tcase_add_test(t, wrong_parameters_are_refused);
    tcase_add_loop_test(t, out_of_memory_is_an_error, 0, 4);
    tcase_add_loop_test(t, messages_have_no_state, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
