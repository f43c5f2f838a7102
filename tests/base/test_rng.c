#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"

/* Known answers of Random123's kat_vectors for philox4x32-10. */
START_TEST(known_answers)
{
    uint32_t r[4];
    philox4x32(0, 0, 0, r);
    const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    ck_assert_mem_eq(r, zero, sizeof zero);
    philox4x32(UINT64_MAX, UINT64_MAX, UINT64_MAX, r);
    const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    ck_assert_mem_eq(r, ones, sizeof ones);
    philox4x32(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, r);
    const uint32_t pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    ck_assert_mem_eq(r, pi, sizeof pi);
}
END_TEST

START_TEST(streams_replay_and_differ)
{
    struct rng a, b, c;
    rng_init(&a, 7, 1);
    rng_init(&b, 7, 1);
    rng_init(&c, 7, 2);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t v = rng_u64(&a);
        ck_assert_uint_eq(v, rng_u64(&b));
        same += v == rng_u64(&c);
    }
    ck_assert_int_eq(same, 0);
}
END_TEST

/* 10^5 draws: the mean of a uniform has deviation 9.1e-4, of a normal 3.2e-3; bounds are 6 sigma,
 * so a false alarm has probability under 1e-8, and the seed is fixed anyway. */
/* From any place in a block, in pieces of any length. */
START_TEST(many_are_the_same_as_each)
{
    for (size_t before = 0; before < 9; before++) {
        for (size_t n = 0; n < 70; n += n < 20 ? 1 : 7) {
            struct rng a, b;
            uint64_t many[70];
            double normal[70];
            rng_init(&a, 7, 1);
            rng_init(&b, 7, 1);
            for (size_t i = 0; i < before; i++)
                ck_assert_uint_eq(rng_u32(&a), rng_u32(&b));
            rng_fill(&a, many, n);
            for (size_t i = 0; i < n; i++)
                ck_assert_uint_eq(many[i], rng_u64(&b));
            rng_normals(&a, normal, n);
            for (size_t i = 0; i < n; i++)
                ck_assert(normal[i] == rng_normal(&b));
            ck_assert_uint_eq(rng_u32(&a), rng_u32(&b));
        }
    }
}
END_TEST

START_TEST(moments)
{
    struct rng r;
    rng_init(&r, 42, 0);
    double u = 0, z = 0, z2 = 0;
    int below[3] = {0};
    for (int i = 0; i < 100000; i++) {
        u += rng_uniform(&r);
        double v = rng_normal(&r);
        z += v;
        z2 += v * v;
        below[rng_below(&r, 3)]++;
    }
    ck_assert_double_lt(fabs(u / 1e5 - 0.5), 5.5e-3);
    ck_assert_double_lt(fabs(z / 1e5), 1.9e-2);
    ck_assert_double_lt(fabs(z2 / 1e5 - 1), 2.7e-2);
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(abs(below[i] - 33333), 900);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("rng");
    TCase *t = tcase_create("rng");
    tcase_add_test(t, known_answers);
    tcase_add_test(t, streams_replay_and_differ);
    tcase_add_test(t, many_are_the_same_as_each);
    tcase_add_test(t, moments);
    suite_add_tcase(s, t);
    return s;
}
