/* Seeds of simulated installations, the same schedules in batches and one at a time, and planted
 * errors that must be found. See README.md.
 *
 * ASSAY_SIMULATION_SEEDS: how many; ASSAY_SIMULATION_SEED: the first. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/rounds.h"
#include "tests/simulation/world.h"
#include "tests/support/check_main.h"

#define SEEDS (IS_SANITIZED ? 40 : 300)
#define PLANTED_SEEDS 400 /* in which each planted error is found */

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t first_seed(void)
{
    return number_of("ASSAY_SIMULATION_SEED", 1);
}

static uint64_t n_seeds(void)
{
    return number_of("ASSAY_SIMULATION_SEEDS", SEEDS);
}

static void check_seed(const char *what, uint64_t seed)
{
    ck_assert_msg(!violation_text()[0],
                  "%s: %s\nASSAY_SIMULATION_SEED=%llu ASSAY_SIMULATION_SEEDS=1 repeats it", what,
                  violation_text(), (unsigned long long)seed);
}

static void add(struct sim_report *sum, const struct sim_report *r)
{
    int64_t *to = (int64_t *)(void *)sum;
    const int64_t *from = (const int64_t *)(const void *)r;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

/* A seed that is not the whole suite need not have everything in it. */
static void check_all_happened(const struct sim_report *r)
{
    const int64_t *figures = (const int64_t *)(const void *)r;
    for (size_t i = 0; i < sizeof *r / sizeof *figures && n_seeds() >= SEEDS; i++)
        ck_assert_msg(figures[i] > 0, "figure %zu of struct sim_report never happened", i);
}

START_TEST(nothing_is_lost_or_counted_twice)
{
    struct sim_report r, sum = {0};
    for (uint64_t seed = first_seed(); seed < first_seed() + n_seeds(); seed++) {
        violation_clear();
        sim_world_run(seed, PLANT_NONE, &r);
        check_seed("a storm", seed);
        add(&sum, &r);
    }
    (void)printf("%llu storms: %lld ends acknowledged, %lld batches (%lld fell back), %lld members "
                 "alone, %lld postponed, %lld runs again, %lld waits for rows, %lld attempts lost, "
                 "%lld late ends, %lld stale, %lld unavailable\n",
                 (unsigned long long)n_seeds(), (long long)sum.acknowledged, (long long)sum.batches,
                 (long long)sum.fallbacks, (long long)sum.alone, (long long)sum.postponed,
                 (long long)sum.reruns, (long long)sum.waits, (long long)sum.lost_attempts,
                 (long long)sum.late_ends, (long long)sum.stale, (long long)sum.unavailable);
    check_all_happened(&sum);
}
END_TEST

START_TEST(batches_are_equal_to_one_at_a_time)
{
    struct rounds_report r, sum = {0};
    for (uint64_t seed = first_seed(); seed < first_seed() + n_seeds(); seed++) {
        violation_clear();
        sim_rounds_run(seed, &r);
        check_seed("rounds", seed);
        sum.batches += r.batches;
        sum.members += r.members;
        sum.alone += r.alone;
        sum.fallbacks += r.fallbacks;
        sum.repeats += r.repeats;
        sum.reruns += r.reruns;
    }
    (void)printf("%llu schedules: %lld batches of %lld members (%lld fell back), %lld alone, %lld "
                 "repeats, %lld runs again\n",
                 (unsigned long long)n_seeds(), (long long)sum.batches, (long long)sum.members,
                 (long long)sum.fallbacks, (long long)sum.alone, (long long)sum.repeats,
                 (long long)sum.reruns);
    ck_assert(n_seeds() < SEEDS || (sum.fallbacks > 0 && sum.repeats > 0 && sum.reruns > 0));
    ck_assert_int_gt(sum.members, sum.alone);
}
END_TEST

START_TEST(planted_errors_are_found)
{
    struct sim_report r;
    uint64_t seed = 0;
    violation_clear();
    while (!violation_text()[0] && seed < PLANTED_SEEDS)
        sim_world_run(++seed, (sim_plant)_i, &r);
    (void)printf("%s: seed %llu: %s\n", sim_plant_words[_i], (unsigned long long)seed,
                 violation_text());
    ck_assert_msg(violation_text()[0] != '\0', "%s was not found in %d seeds", sim_plant_words[_i],
                  PLANTED_SEEDS);
}
END_TEST

START_TEST(a_seed_repeats_bit_for_bit)
{
    struct sim_report a, b;
    violation_clear();
    sim_world_run(first_seed(), PLANT_NONE, &a);
    sim_world_run(first_seed(), PLANT_NONE, &b);
    ck_assert_mem_eq(&a, &b, sizeof a);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("simulation");
    TCase *t = tcase_create("simulation");
    log_setup("simulation", LOG_ERROR); /* a batch that fails is a warning */
    suite_add_tcase(suite, t);
    tcase_set_timeout(t, 0); /* a nightly run takes longer than Check's limit */
    tcase_add_test(t, nothing_is_lost_or_counted_twice);
    tcase_add_test(t, batches_are_equal_to_one_at_a_time);
    tcase_add_loop_test(t, planted_errors_are_found, PLANT_NONE + 1, PLANTS);
    tcase_add_test(t, a_seed_repeats_bit_for_bit);
    return suite;
}
