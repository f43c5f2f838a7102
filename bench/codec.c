/* The codecs of large trials: how fast gradients are encoded and decoded, in float32 bytes per
 * second, beside a copy of as many bytes; and how small a message is. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/bench.h"
#include "trial-runner/distributed/gradient_codec.h"

/* A wide layer with its bias: 16.8 MB, beyond the caches. */
static const struct codec_tensor layers[] = {{2048, 2048}, {1, 2048}};

struct lab {
    struct codec *c;
    size_t n, bytes; /* values; bytes of a message */
    float *x, *residual, *sum, *left, *right;
    uint8_t *message;
};

static void copy(void *arg)
{
    struct lab *lab = arg;
    memcpy(lab->sum, lab->x, lab->n * sizeof *lab->x);
}

static void encode(void *arg)
{
    struct lab *lab = arg;
    codec_encode(lab->c, (struct codec_slice){0, 1}, lab->x, lab->residual, lab->residual,
                 lab->message);
}

static void decode(void *arg)
{
    struct lab *lab = arg;
    if (codec_decode_add(lab->c, (struct codec_slice){0, 1}, lab->message, lab->bytes, lab->sum,
                         NULL) < 0)
        abort();
}

/* What each rank computes in a step, without the sums. */
static void factors(void *arg)
{
    struct lab *lab = arg;
    codec_left(lab->c, lab->x, lab->residual, lab->residual, lab->left);
    codec_left_summed(lab->c, lab->left);
    codec_right(lab->c, lab->residual, lab->right);
    codec_factors_lost(lab->c, lab->left, lab->right, lab->residual);
    codec_right_summed(lab->c, lab->right, lab->sum);
}

static void *array(size_t n, size_t size)
{
    void *p = as_calloc(n, size);
    if (!p) {
        (void)fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return p;
}

static void report(const struct lab *lab, const char *what, double seconds, double floor_seconds,
                   size_t sent)
{
    char name[64], note[64];
    double gb = (double)lab->n * sizeof(float) / 1e9;
    (void)snprintf(name, sizeof name, "%s %s", codec_name(lab->c), what);
    (void)snprintf(note, sizeof note, "1/%.1f of float32",
                   (double)lab->n * sizeof(float) / (double)sent);
    bench_report(name, gb / seconds, "GB/s", gb / floor_seconds, NAN, NULL, note);
}

static void measure(struct lab *lab, const struct codec_opts *opts)
{
    struct as_err err;
    lab->c = NULL;
    if (codec_create(opts, layers, AS_ARRAY_LEN(layers), &lab->c, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.msg);
        exit(EXIT_FAILURE);
    }
    memset(lab->residual, 0, lab->n * sizeof *lab->residual);
    double floor_seconds = bench_seconds(copy, NULL, lab);
    if (codec_sums(lab->c)) {
        size_t left = codec_left_n(lab->c), right = codec_right_n(lab->c);
        lab->left = array(left, sizeof *lab->left);
        lab->right = array(right, sizeof *lab->right);
        report(lab, "step", bench_seconds(factors, NULL, lab), floor_seconds,
               (left + right) * sizeof(float));
        free(lab->left);
        free(lab->right);
    } else {
        lab->bytes = codec_extent(lab->c, (struct codec_slice){0, 1}).bytes;
        lab->message = array(lab->bytes, 1);
        report(lab, "encode", bench_seconds(encode, NULL, lab), floor_seconds, lab->bytes);
        report(lab, "decode", bench_seconds(decode, NULL, lab), floor_seconds, lab->bytes);
        free(lab->message);
    }
    codec_free(lab->c);
}

int main(int argc, char **argv)
{
    static const struct codec_opts all[] = {{.name = "fp16"},
                                            {.name = "one_bit"},
                                            {.name = "top_k", .fraction = 0.01},
                                            {.name = "powersgd", .rank = 4}};
    if (!bench_start("codec", "encoding and decoding of gradients", argc, argv))
        return bench_exit();
    struct lab lab = {.n = layers[0].rows * layers[0].cols + layers[1].cols};
    lab.x = array(lab.n, sizeof *lab.x);
    lab.residual = array(lab.n, sizeof *lab.residual);
    lab.sum = array(lab.n, sizeof *lab.sum);
    struct rng r;
    rng_init(&r, 1, 1);
    for (size_t i = 0; i < lab.n; i++)
        lab.x[i] = (float)(1e-3 * rng_normal(&r));
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        measure(&lab, &all[i]);
    free(lab.x);
    free(lab.residual);
    free(lab.sum);
    return bench_exit();
}
