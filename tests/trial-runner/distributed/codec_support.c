#include "tests/trial-runner/distributed/codec_support.h"

#include "base/rng.h"
#include "tests/support/check_main.h"

float *numbers(size_t n)
{
    float *v = as_calloc(n, sizeof *v);
    ck_assert_ptr_nonnull(v);
    return v;
}

float *normals(size_t n, uint64_t seed, double deviation)
{
    float *v = numbers(n);
    struct rng r;
    rng_init(&r, seed, 1);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)(deviation * rng_normal(&r));
    return v;
}

struct codec *codec_of(const char *name, const struct codec_tensor *tensors, size_t n_tensors)
{
    struct as_err err;
    struct codec *c = NULL;
    struct codec_opts opts = {.name = name, .fraction = 0.05, .rank = 2};
    ck_ok(codec_create(&opts, tensors, n_tensors, &c, &err), err);
    return c;
}

struct codec *codec_of_vector(const char *name, size_t n)
{
    struct codec_tensor t = {1, n};
    return codec_of(name, &t, 1);
}

float *through(struct codec *c, const float *x, const float *before, float *after)
{
    struct as_err err;
    size_t bytes = codec_extent(c, WHOLE).bytes;
    float *got = numbers(codec_values(c));
    uint8_t *message = malloc(bytes);
    ck_assert_ptr_nonnull(message);
    codec_encode(c, WHOLE, x, before, after, message);
    ck_ok(codec_decode_add(c, WHOLE, message, bytes, got, &err), err);
    free(message);
    return got;
}
