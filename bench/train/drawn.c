#include "bench/train/drawn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EPOCH_FLOPS 2e9 /* about; a step has six for each weight and row */
#define STEPS_MAX 4000
#define ROWS_MIN 150 /* a hundredth of a text is held out, and must be longer than the context */
#define CONTEXT 64

/* Uniform in its logarithm, from `from` to `to`. */
static size_t draw_size(struct rng *r, double from, double to)
{
    return (size_t)lround(from * pow(to / from, rng_uniform(r)));
}

static size_t draw_batch(struct rng *r, size_t least)
{
    return least << rng_below(r, 3);
}

static size_t steps_of(double weights, size_t batch)
{
    double steps = EPOCH_FLOPS / (6 * weights * (double)batch);
    return (size_t)fmin(fmax(steps, ROWS_MIN / (double)batch + 1), STEPS_MAX);
}

static const char *draw_optimizer(struct rng *r)
{
    return rng_below(r, 2) == 0 ? "sgd" : "adamw";
}

static void draw_mlp(struct rng *r, struct drawn_case *d)
{
    size_t columns = draw_size(r, 4, 1024), batch = draw_batch(r, 32), last = columns;
    size_t classes = rng_below(r, 4) == 0 ? 1 : draw_size(r, 2, 50);
    const char *optimizer = draw_optimizer(r);
    char hidden[64] = "", widths[96];
    double weights = 0;
    for (size_t i = 0, n = 1 + rng_below(r, 3); i < n; i++) {
        size_t width = draw_size(r, 16, 1024), at = strlen(hidden);
        (void)snprintf(hidden + at, sizeof hidden - at, "%s%zu", i > 0 ? "," : "", width);
        weights += (double)(last * width);
        last = width;
    }
    weights += (double)(last * classes);
    (void)snprintf(widths, sizeof widths, "%zu,%s,%zu", columns, hidden, classes);
    (void)snprintf(d->name, sizeof d->name, "drawn: mlp %s, batch %zu, %s", widths, batch,
                   optimizer);
    (void)snprintf(d->train, sizeof d->train,
                   "{\"model\":{\"layers\":[%s]},\"optimizer\":{\"kind\":\"%s\",\"lr\":0.001}}",
                   hidden, optimizer);
    (void)snprintf(d->torch, sizeof d->torch,
                   "{\"model\":\"mlp\",\"optimizer\":\"%s\",\"widths\":[%s]}", optimizer, widths);
    d->c = (struct bench_case){.batch = batch,
                               .steps = steps_of(weights, batch),
                               .height = 1,
                               .width = 1,
                               .channels = columns,
                               .classes = classes};
}

/* Two convolutions, each with a pool, and a dense layer. */
static void draw_cnn(struct rng *r, struct drawn_case *d)
{
    size_t side = 4 * draw_size(r, 3, 8), colours = rng_below(r, 2) == 0 ? 1 : 3;
    size_t a = draw_size(r, 8, 64), b = draw_size(r, 8, 64), dense = draw_size(r, 16, 256);
    size_t kernel = rng_below(r, 2) == 0 ? 3 : 5, batch = draw_batch(r, 16);
    const char *optimizer = draw_optimizer(r);
    double places = (double)(side * side);
    double weights = places * (double)(kernel * kernel * (colours * a + a * b / 4)) +
                     places / 16 * (double)(b * dense);
    (void)snprintf(d->name, sizeof d->name, "drawn: cnn %zux%zux%zu %zux%zu %zu-%zu-%zu, batch %zu",
                   side, side, colours, kernel, kernel, a, b, dense, batch);
    (void)snprintf(
        d->train, sizeof d->train,
        "{\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":%zu,\"kernel\":%zu},"
        "{\"pool\":\"max\"},{\"conv\":%zu,\"kernel\":%zu},{\"pool\":\"max\"},{\"dense\":%zu}]},"
        "\"optimizer\":{\"kind\":\"%s\",\"lr\":0.001}}",
        a, kernel, b, kernel, dense, optimizer);
    (void)snprintf(d->torch, sizeof d->torch,
                   "{\"model\":\"cnn\",\"optimizer\":\"%s\",\"input\":[%zu,%zu,%zu],\"layers\":"
                   "[[\"conv\",%zu,%zu,%zu],[\"pool\",2],[\"conv\",%zu,%zu,%zu],[\"pool\",2],"
                   "[\"dense\",%zu],[\"dense\",10]]}",
                   optimizer, colours, side, side, a, kernel, kernel / 2, b, kernel, kernel / 2,
                   dense);
    d->c = (struct bench_case){.batch = batch,
                               .steps = steps_of(weights, batch),
                               .height = side,
                               .width = side,
                               .channels = colours};
}

static void draw_transformer(struct rng *r, struct drawn_case *d)
{
    size_t depth = 1 + rng_below(r, 4), width = 16 * draw_size(r, 2, 16), batch = draw_batch(r, 4);
    double weights = (double)(CONTEXT * (12 * depth * width * width + 256 * width));
    (void)snprintf(d->name, sizeof d->name, "drawn: transformer %zu x %zu, batch %zu", depth, width,
                   batch);
    (void)snprintf(d->train, sizeof d->train,
                   "{\"model\":{\"kind\":\"transformer\",\"depth\":%zu,\"width\":%zu,\"heads\":4,"
                   "\"context\":%d},\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}}",
                   depth, width, CONTEXT);
    (void)snprintf(d->torch, sizeof d->torch,
                   "{\"model\":\"transformer\",\"optimizer\":\"adamw\",\"depth\":%zu,\"width\":%zu,"
                   "\"heads\":4,\"context\":%d,\"vocab\":256}",
                   depth, width, CONTEXT);
    d->c = (struct bench_case){.batch = batch, .steps = steps_of(weights, batch)};
}

void drawn_case(struct rng *r, size_t i, struct drawn_case *ret)
{
    static void (*const draws[])(struct rng *, struct drawn_case *) = {draw_mlp, draw_mlp, draw_mlp,
                                                                       draw_cnn, draw_transformer};
    draws[i % AS_ARRAY_LEN(draws)](r, ret);
    ret->c.name = ret->name;
    ret->c.train = ret->train;
    ret->c.torch = ret->torch;
    ret->c.backend = "cpu";
    ret->c.members = 1;
}
