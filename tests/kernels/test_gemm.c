/* Products by every kernel that this machine runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/blas.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/cpu/gemm.h"
#include "kernels/ops.h"
#include "tests/support/check_main.h"

static struct backend *be;

#define GAP 3 /* elements between rows, which must stay as they are */

static float *floats(size_t n, uint64_t seed)
{
    float *p = as_calloc(n + 1, sizeof(*p));
    struct rng r;
    ck_assert_ptr_nonnull(p);
    rng_init(&r, seed, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)rng_uniform(&r) - 0.5f;
    return p;
}

struct product {
    struct gemm g;
    float *a, *b, *c, *before;
    size_t c_len;
};

static struct product product_of(bool ta, bool tb, bool add, size_t m, size_t n, size_t k)
{
    struct product p = {.g = {.ta = ta, .tb = tb, .add = add, .m = m, .n = n, .k = k}};
    p.g.lda = (ta ? m : k) + GAP;
    p.g.ldb = (tb ? k : n) + GAP;
    p.g.ldc = n + GAP;
    p.c_len = m * p.g.ldc;
    p.a = floats((ta ? k : m) * p.g.lda, 1);
    p.b = floats((tb ? n : k) * p.g.ldb, 2);
    p.c = floats(p.c_len, 3);
    p.before = floats(p.c_len, 3);
    p.g.a = p.a;
    p.g.b = p.b;
    p.g.c = p.c;
    return p;
}

static void product_done(struct product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->before);
}

static double expected(const struct product *p, size_t i, size_t j)
{
    const struct gemm *g = &p->g;
    double sum = g->add ? (double)p->before[i * g->ldc + j] : 0;
    for (size_t s = 0; s < g->k; s++)
        sum += (double)g->a[g->ta ? s * g->lda + i : i * g->lda + s] *
               (double)g->b[g->tb ? j * g->ldb + s : s * g->ldb + j];
    return sum;
}

static void check_product(const struct product *p)
{
    const struct gemm *g = &p->g;
    double tolerance = 1e-6 * (double)(g->k + 4);
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->ldc; j++) {
            double got = (double)p->c[i * g->ldc + j];
            if (j < g->n)
                ck_assert_double_eq_tol(got, expected(p, i, j), tolerance);
            else
                ck_assert(p->c[i * g->ldc + j] == p->before[i * g->ldc + j]);
        }
    }
}

/* OpenBLAS is set to one thread by the back end. */
static void open_cpu(void)
{
    struct as_err err;
    ck_ok(backend_open("cpu", NULL, &be, &err), err);
}

static void close_cpu(void)
{
    backend_freep(&be);
}

/* Around the sizes of tiles and panels and the depth of a panel; and 0. */
START_TEST(every_kernel)
{
    static const size_t shapes[][3] = {{0, 3, 2},    {3, 0, 2},    {2, 3, 0},     {1, 1, 1},
                                       {5, 7, 3},    {8, 16, 16},  {9, 17, 33},   {32, 10, 64},
                                       {16, 32, 31}, {33, 65, 97}, {3, 100, 300}, {70, 31, 513},
                                       {128, 40, 20}};
    const size_t *s = shapes[_i / 6];
    bool ta = _i % 6 / 2 == 1, tb = _i % 6 / 2 == 2, add = _i % 2 == 1;
    struct as_err err;
    ck_ok(blas_open(&err), err);
    for (int isa = GEMM_BLAS; isa <= (int)gemm_best(); isa++) {
        struct product p = product_of(ta, tb, add, s[0], s[1], s[2]);
        cpu_gemm_with((gemm_isa)isa, &p.g);
        check_product(&p);
        product_done(&p);
    }
}
END_TEST
#define EVERY_KERNEL 78 /* shapes x (plain, ta, tb) x (set, add) */

/* Our own kernels: the same bits from AVX2 and AVX-512, whole and in pieces. */
START_TEST(one_chain_of_sums)
{
    for (int form = 0; form < 3; form++) {
        struct product whole = product_of(form == 1, form == 2, form == 1, 150, 300, 400);
        cpu_gemm(&whole.g);
        struct gemm_grid grid = {.n = 3 * 5, .across = 5, .rows = 64, .cols = 70};
        for (int isa = GEMM_AVX2; isa <= (int)gemm_best(); isa++) {
            struct product p = product_of(form == 1, form == 2, form == 1, 150, 300, 400);
            for (size_t i = 0; i < grid.n; i++) {
                struct gemm piece = gemm_piece(&p.g, &grid, i);
                cpu_gemm_with((gemm_isa)isa, &piece);
            }
            ck_assert_mem_eq(p.c, whole.c, p.c_len * sizeof(float));
            product_done(&p);
        }
        product_done(&whole);
    }
}
END_TEST

/* Each element in exactly one piece, and more than one piece when there is work for it. */
START_TEST(grids_cover)
{
    static const size_t shapes[][3] = {{128, 512, 784}, {784, 512, 128}, {128, 10, 256},
                                       {0, 5, 5},       {5, 0, 5},       {1, 100000, 500},
                                       {50000, 20, 25}, {500, 1000, 999}};
    for (size_t s = 0; s < AS_ARRAY_LEN(shapes); s++) {
        size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], covered = 0;
        struct gemm_grid grid = gemm_grid(m, n, k);
        float c = 0;
        struct gemm g = {.m = m, .n = n, .k = k, .a = &c, .b = &c, .c = &c, .ldc = n};
        for (size_t i = 0; i < grid.n; i++) {
            struct gemm p = gemm_piece(&g, &grid, i);
            covered += p.m * p.n;
        }
        ck_assert_uint_eq(covered, m * n);
        ck_assert_int_eq(grid.n > 1, m * n * k >= (size_t)2 << 22);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kernels_gemm");
    TCase *c = tcase_create("gemm");
    tcase_add_checked_fixture(c, open_cpu, close_cpu);
    tcase_add_loop_test(c, every_kernel, 0, EVERY_KERNEL);
    tcase_add_test(c, one_chain_of_sums);
    tcase_add_test(c, grids_cover);
    suite_add_tcase(s, c);
    return s;
}
