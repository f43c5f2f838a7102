#include "bench/scheduler/times.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void times_done(struct times *t)
{
    free(t->ms);
    *t = (struct times){0};
}

void times_clear(struct times *t)
{
    t->n = 0;
}

void times_add(struct times *t, double ms)
{
    if (as_reserve_one(&t->ms, t->n, &t->cap, sizeof *t->ms, NULL) < 0) {
        (void)fprintf(stderr, "scheduler: out of memory\n");
        exit(EXIT_FAILURE);
    }
    t->ms[t->n++] = ms;
}

void times_join(struct times *t, const struct times *more)
{
    for (size_t i = 0; i < more->n; i++)
        times_add(t, more->ms[i]);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double times_quantile(struct times *t, double q)
{
    if (t->n == 0)
        return NAN;
    qsort(t->ms, t->n, sizeof *t->ms, by_size);
    size_t place = (size_t)ceil(q * (double)t->n);
    return t->ms[place > 0 ? place - 1 : 0];
}
