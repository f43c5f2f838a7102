/* The chain against theory: on a discrete space, it is at each configuration as often as the
 * distribution of Boltzmann says, by a chi-square test. */
#include "search/mcmc/chain.h"

#include <math.h>
#include <string.h>

#include "search/regression/special.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

/* 2 x 5 + 1 x 5 x 3 configurations: levels on a log scale are not spaced equally, and a choice
 * makes another parameter active. */
#define SPACE                                                                                      \
    "kind: {type: categorical, values: [a, b, c]}\n"                                               \
    "size: {type: int, min: 1, max: 5, scale: log}\n"                                              \
    "mode: {type: categorical, values: [p, q, r], when: {kind: b}}\n"
#define CELLS 25
#define STEPS 400000
#define THIN 40 /* steps between two that count, so that they are almost independent */

/* The number of the point's configuration. */
static size_t cell_of(const struct encoding *e, const double *point)
{
    size_t kind = (size_t)point[0], size = (size_t)encoding_level(e, 1, point[1]);
    if (kind == 1)
        return 10 + size * 3 + (size_t)point[2];
    return (kind == 2) * 5 + size;
}

/* Some costs, none equal to another. */
static double cost_of(size_t cell)
{
    return fmod((double)cell * 0.618033988749895, 1) * 2;
}

/* The chi-square statistic of what a chain visits at temperature 1. Each configuration of kind b
 * stands for a third of a point of the whole cube, in which `mode` is uniform. */
static double chi_square(const struct encoding *e, double temperature, uint64_t seed)
{
    double weight[CELLS], sum = 0, chi = 0, point[3] = {0}, next[3];
    size_t visits[CELLS] = {0};
    bool scratch[6];
    struct rng r;
    rng_init(&r, seed, 0);
    encoding_snap(e, point);
    for (size_t k = 0; k < STEPS; k++) {
        memcpy(next, point, sizeof next);
        (void)chain_move(e, &r, scratch, next);
        if (chain_accepts(cost_of(cell_of(e, point)), cost_of(cell_of(e, next)), temperature,
                          rng_uniform(&r)))
            memcpy(point, next, sizeof next);
        if (k % THIN == 0)
            visits[cell_of(e, point)]++;
    }
    for (size_t c = 0; c < CELLS; c++)
        sum += weight[c] = exp(-cost_of(c)) / (c < 10 ? 1 : 3);
    for (size_t c = 0; c < CELLS; c++) {
        double want = weight[c] / sum * STEPS / THIN, off = (double)visits[c] - want;
        chi += off * off / want;
    }
    return chi;
}

/* The value that a chi-square variable of n degrees of freedom exceeds with probability 1e-4
 * (E. Wilson and M. Hilferty, "The distribution of chi-square", 1931). */
static double chi_limit(double n)
{
    double z = gp_norm_quantile(1 - 1e-4), v = 2 / (9 * n);
    return n * pow(1 - v + z * sqrt(v), 3);
}

START_TEST(the_stationary_distribution)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml(SPACE, &s, &err), err);
    ck_ok(encoding_create(s, &e, &err), err);
    for (uint64_t seed = 0; seed < 3; seed++) {
        double chi = chi_square(e, 1, seed);
        ck_assert_msg(chi < chi_limit(CELLS - 1), "chi-square %g, at most %g expected", chi,
                      chi_limit(CELLS - 1));
    }
    /* The test finds what is wrong: a chain that is a little too warm. */
    ck_assert_double_gt(chi_square(e, 1.2, 0), chi_limit(CELLS - 1));
}
END_TEST

START_TEST(the_rule)
{
    ck_assert(chain_accepts(3, 2, 0, 0.999));
    ck_assert(chain_accepts(2, 2, 0, 0.999));
    ck_assert(!chain_accepts(2, 3, 0, 0));
    ck_assert(chain_accepts(2, 3, 1, exp(-1) - 1e-9));
    ck_assert(!chain_accepts(2, 3, 1, exp(-1) + 1e-9));
    ck_assert(chain_accepts(INFINITY, INFINITY, 1, 0.999)); /* nothing to lose */
    ck_assert(chain_accepts(INFINITY, 1, 1, 0.999));
    ck_assert(!chain_accepts(1, INFINITY, 1, 0));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/mcmc/chain");
    TCase *t = tcase_create("chain");
    tcase_add_test(t, the_stationary_distribution);
    tcase_add_test(t, the_rule);
    suite_add_tcase(s, t);
    return s;
}
