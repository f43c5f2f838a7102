#include "bench/train/floor.h"

#include <cblas.h>
#include <time.h>

#include "base/clock.h"
#include "bench/bench.h"

/* c [m, n] = a [m, k] b [k, n], and the two products of its backward pass. */
struct product {
    size_t m, n, k, count;
    bool by_input;
};

struct floor {
    size_t batch, n_products;
    struct product *products; /* [2 per node] */
    float *a, *b, *c;         /* room for the largest */
};

static size_t places(struct net_shape s)
{
    return s.height * s.width;
}

static void add_product(struct floor *f, size_t m, size_t n, size_t k, size_t count, bool by_input)
{
    f->products[f->n_products++] = (struct product){m, n, k, count, by_input};
}

static void add_node(struct floor *f, const struct net_node *n)
{
    size_t rows = f->batch * places(n->out), tokens = places(n->in);
    bool flat = places(n->in) != places(n->out);
    switch (n->op) {
    case NET_LINEAR:
        add_product(f, rows, n->out.channels, flat ? net_shape_elements(n->in) : n->in.channels, 1,
                    n->from != 0);
        break;
    case NET_CONV:
        add_product(f, rows, n->out.channels / n->groups,
                    n->kernel_h * n->kernel_w * n->in.channels / n->groups, n->groups,
                    n->from != 0);
        break;
    case NET_ATTENTION: /* scores, then the weighted values */
        add_product(f, tokens, tokens, n->out.channels / n->heads, f->batch * n->heads, true);
        add_product(f, tokens, n->out.channels / n->heads, tokens, f->batch * n->heads, true);
        break;
    default:
        break;
    }
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

as_status floor_create(const struct net_plan *plan, size_t batch, struct floor **ret,
                       struct as_err *err)
{
    AS_AUTO(floor_freep) struct floor *f = as_calloc(1, sizeof(*f));
    if (f == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    f->batch = batch;
    f->products = as_calloc(2 * plan->n_nodes, sizeof(*f->products));
    if (f->products == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < plan->n_nodes; i++)
        add_node(f, &plan->nodes[i]);
    size_t most = 1;
    for (size_t i = 0; i < f->n_products; i++) {
        const struct product *p = &f->products[i];
        most = larger(most, larger(p->m * p->n, larger(p->m * p->k, p->k * p->n)));
    }
    f->a = as_calloc(most, sizeof(*f->a));
    f->b = as_calloc(most, sizeof(*f->b));
    f->c = as_calloc(most, sizeof(*f->c));
    if (f->a == NULL || f->b == NULL || f->c == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *ret = as_steal(f);
    return AS_OK;
}

void floor_free(struct floor *f)
{
    if (f == NULL)
        return;
    free(f->products);
    free(f->a);
    free(f->b);
    free(f->c);
    free(f);
}

static void multiply(const struct floor *f, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, size_t m,
                     size_t n, size_t k)
{
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1, f->a,
                (blasint)(ta == CblasTrans ? m : k), f->b, (blasint)(tb == CblasTrans ? k : n), 0,
                f->c, (blasint)n);
}

static void step(void *arg)
{
    const struct floor *f = arg;
    for (size_t i = 0; i < f->n_products; i++) {
        const struct product *p = &f->products[i];
        for (size_t r = 0; r < p->count; r++) {
            multiply(f, CblasNoTrans, CblasNoTrans, p->m, p->n, p->k);
            multiply(f, CblasTrans, CblasNoTrans, p->k, p->n, p->m);
            if (p->by_input)
                multiply(f, CblasNoTrans, CblasTrans, p->m, p->k, p->n);
        }
    }
}

double floor_rate(struct floor *f, int threads)
{
    openblas_set_num_threads(threads);
    return (double)f->batch / bench_seconds(step, NULL, f);
}

static double own_cpu_seconds(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / (double)NS_PER_S;
}

double floor_cpu_us(struct floor *f)
{
    double us[5];
    openblas_set_num_threads(1);
    for (size_t i = 0; i < AS_ARRAY_LEN(us); i++) {
        double from = own_cpu_seconds(), took = 0;
        size_t steps = 0;
        for (; took < 0.02; took = own_cpu_seconds() - from, steps++)
            step(f);
        us[i] = 1e6 * took / (double)(steps * f->batch);
    }
    return bench_median(us, AS_ARRAY_LEN(us));
}
