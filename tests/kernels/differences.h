/* Gradients by central differences: of loss = sum of weight * output, by one element of an
 * input. */
#ifndef ASSAY_TESTS_KERNELS_DIFFERENCES_H
#define ASSAY_TESTS_KERNELS_DIFFERENCES_H

#include <math.h>
#include <stdlib.h>

#include "kernels/ops.h"
#include "tests/support/check_main.h"

/* One buffer's member: element i lies at `at` + i. */
struct place {
    struct buf *buf;
    size_t at, n;
};

static inline float place_get(const struct place *p, size_t i)
{
    struct as_err err;
    float v = 0;
    ck_ok(buf_download(p->buf, p->at + i, &v, 1, &err), err);
    return v;
}

static inline void place_set(const struct place *p, size_t i, float v)
{
    struct as_err err;
    ck_ok(buf_upload(p->buf, p->at + i, &v, 1, &err), err);
}

/* sum of y[i] by[i], in double */
static inline double place_dot(const struct place *y, const struct place *by)
{
    struct as_err err;
    float *a = calloc(y->n + 1, sizeof(*a)), *b = calloc(y->n + 1, sizeof(*b));
    ck_assert(a != NULL && b != NULL);
    ck_ok(buf_download(y->buf, y->at, a, y->n, &err), err);
    ck_ok(buf_download(by->buf, by->at, b, y->n, &err), err);
    double sum = 0;
    for (size_t i = 0; i < y->n; i++)
        sum += (double)a[i] * (double)b[i];
    free(a);
    free(b);
    return sum;
}

struct slope {
    void (*forward)(void *arg);
    void *arg;
    struct place y, dy; /* the output, and its weights in the loss */
    float step;
    double bound; /* absolute */
};

/* Compare dx with differences in x. */
static inline void slope_hold(const struct slope *s, const char *what, const struct place *x,
                              const struct place *dx)
{
    for (size_t i = 0; i < x->n; i++) {
        float at = place_get(x, i), want = place_get(dx, i);
        volatile float up = at + s->step, down = at - s->step; /* rounded to float */
        place_set(x, i, up);
        s->forward(s->arg);
        double high = place_dot(&s->y, &s->dy);
        place_set(x, i, down);
        s->forward(s->arg);
        double got = (high - place_dot(&s->y, &s->dy)) / ((double)up - (double)down);
        place_set(x, i, at);
        ck_assert_msg(fabs(got - (double)want) <= s->bound, "%s[%zu]: %g by differences, %g", what,
                      i, got, (double)want);
    }
    s->forward(s->arg);
}

#endif
