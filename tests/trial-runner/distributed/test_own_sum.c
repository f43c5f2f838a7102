/* What a rank adds up by itself has the bits of adding later, keeps few vectors, and forgets no
 * more than it must when the ranks change. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "trial-runner/distributed/own_sum.h"
#include "trial-runner/distributed/shard_tree.h"

#define N 2500 /* several blocks, and a part of one */
#define MOST 40

static float values[MOST][N]; /* of the shards */
static float scales[MOST];

static void draw(uint64_t seed)
{
    struct rng g;
    rng_init(&g, seed, 0);
    for (uint32_t s = 0; s < MOST; s++) {
        scales[s] = (float)rng_uniform(&g);
        for (size_t i = 0; i < N; i++)
            values[s][i] = (float)rng_normal(&g);
    }
}

static struct own_sum *o;
static size_t most; /* vectors at any time of the last fill() */

/* Draws other shards for each test, and makes `o`. */
static void begin(uint64_t seed, own_order order)
{
    draw(seed);
    ck_assert_int_eq(own_sum_create(order, N, MOST, &o, NULL), AS_OK);
}

static void teardown(void)
{
    own_sum_free(o);
    o = NULL;
}

/* Gives a shard's numbers in pieces, the last ones first. */
static void give(uint32_t shard, size_t piece)
{
    ck_assert_int_eq(own_sum_open(o, shard, NULL), AS_OK);
    for (size_t end = N; end > 0;) {
        size_t first = end > piece ? end - piece : 0;
        own_sum_add(o, first, values[shard] + first, end - first, scales[shard]);
        end = first;
    }
    own_sum_close(o);
}

/* Computes what is missing of the run. Returns how many shards that were. */
static uint32_t fill(struct shard_run run, size_t piece)
{
    uint32_t shard, end = run.first + run.count, n = 0;
    for (most = 0; (shard = own_sum_missing(o)) < end; n++) {
        give(shard, piece);
        most = own_sum_count(o) > most ? own_sum_count(o) : most;
    }
    return n;
}

/* A step from its start, or from what lies there of another run. */
static uint32_t compute(int64_t step, uint32_t total, struct shard_run run)
{
    own_sum_begin(o, step, total, run);
    return fill(run, N);
}

/* The value of a node by the plain recursion, number i. */
static float node_value(uint32_t total, uint32_t first, uint32_t level, size_t i)
{
    if (level == 0) {
        volatile float scaled = scales[first] * values[first][i]; /* rounded by itself */
        return scaled;
    }
    uint32_t middle = first + (1U << (level - 1));
    float left = node_value(total, first, level - 1, i);
    return middle >= total ? left : left + node_value(total, middle, level - 1, i);
}

static void check_tree(uint32_t total, struct shard_run run)
{
    struct shard_node nodes[SHARD_TREE_NODES];
    size_t n = shard_tree_cover(total, run, nodes);
    ck_assert_uint_eq(own_sum_count(o), n);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < N; i += 7) {
            float want = node_value(total, nodes[k].first, nodes[k].level, i);
            ck_assert(memcmp(&own_sum_values(o)[k][i], &want, sizeof want) == 0);
        }
}

static size_t levels_of(uint32_t count)
{
    size_t n = 0;
    while ((1U << n) < count)
        n++;
    return n;
}

START_TEST(nodes_have_the_bits_of_the_tree)
{
    begin(1, OWN_TREE);
    int64_t step = 0;
    for (uint32_t total = 1; total <= MOST; total += total < 12 ? 1 : 7)
        for (uint32_t first = 0; first < total; first += total < 9 ? 1 : 3)
            for (uint32_t count = 0; count <= total - first; count += total < 9 ? 1 : 5) {
                struct shard_run run = {first, count};
                size_t piece = count % 2 ? N : 999;
                own_sum_begin(o, step++, total, run);
                ck_assert_uint_eq(fill(run, piece), count);
                check_tree(total, run);
                ck_assert_uint_le(most, 2 * levels_of(count) + 1);
            }
}
END_TEST

START_TEST(eight_shards_need_three_vectors)
{
    begin(2, OWN_TREE);
    struct shard_run run = {0, 8};
    (void)compute(0, 8, run);
    ck_assert_uint_eq(most, 3); /* those of four, two and one shard; the eighth goes to them */
    ck_assert_uint_eq(own_sum_count(o), 1);
}
END_TEST

START_TEST(a_line_is_added_in_the_order_of_its_shards)
{
    begin(3, OWN_LINE);
    struct shard_run run = {3, 6};
    own_sum_begin(o, 0, 12, run);
    ck_assert_uint_eq(fill(run, 700), 6);
    ck_assert_uint_eq(most, 1);
    for (size_t i = 0; i < N; i++) {
        float want = 0;
        for (uint32_t s = 3; s < 9; s++) {
            volatile float scaled = scales[s] * values[s][i];
            want = s == 3 ? scaled : want + scaled;
        }
        ck_assert(memcmp(&own_sum_values(o)[0][i], &want, sizeof want) == 0);
    }
    own_sum_begin(o, 0, 12, (struct shard_run){3, 7}); /* one more: the others stay */
    ck_assert_uint_eq(own_sum_missing(o), 9);
    own_sum_begin(o, 0, 12, (struct shard_run){2, 8}); /* it begins with another one */
    ck_assert_uint_eq(own_sum_missing(o), 2);
    ck_assert_uint_eq(own_sum_count(o), 0);
}
END_TEST

START_TEST(each_shard_stays_by_itself)
{
    begin(4, OWN_EACH);
    struct shard_run run = {1, 5};
    ck_assert_uint_eq(compute(0, 9, run), 5);
    run = (struct shard_run){3, 5}; /* three of them, and two new ones */
    ck_assert_uint_eq(compute(0, 9, run), 2);
    ck_assert_uint_eq(own_sum_count(o), 5);
    for (uint32_t k = 0; k < 5; k++)
        for (size_t i = 0; i < N; i++)
            ck_assert_float_eq(own_sum_values(o)[k][i], scales[3 + k] * values[3 + k][i]);
}
END_TEST

/* The ranks change in the middle of a step, again and again: the bits are those of the run that is
 * computed at once, and what lies in both runs as a whole node is not computed again. */
START_TEST(vectors_in_the_new_run_stay)
{
    struct rng g;
    begin(5, OWN_TREE);
    rng_init(&g, 5, 0);
    size_t saved = 0;
    for (int64_t step = 0; step < 300; step++) {
        uint32_t total = 1 + (uint32_t)rng_below(&g, MOST);
        for (int change = 0; change < 4; change++) {
            struct shard_run run = {.first = (uint32_t)rng_below(&g, total)};
            run.count = 1 + (uint32_t)rng_below(&g, total - run.first);
            own_sum_begin(o, step, total, run);
            if (rng_below(&g, 2)) { /* lost before all of it is computed */
                uint32_t shard = own_sum_missing(o);
                if (shard < run.first + run.count)
                    give(shard, N);
            }
            own_sum_begin(o, step, total, run);
            saved += run.count - fill(run, N);
            check_tree(total, run);
        }
    }
    ck_assert_uint_gt(saved, 1000);
    struct shard_run four = {0, 4}, six = {0, 6};
    (void)compute(1000, 8, four);
    /* another rank is gone: two of its shards come here */
    ck_assert_uint_eq(compute(1000, 8, six), 2);
    check_tree(8, six);
}
END_TEST

/* A gradient that ends in the middle has spoilt the nodes that it was added to. */
START_TEST(a_shard_that_fails_takes_its_nodes_with_it)
{
    begin(6, OWN_TREE);
    struct shard_run run = {0, 4};
    own_sum_begin(o, 0, 4, run);
    for (uint32_t s = 0; s < 3; s++)
        give(s, N);
    ck_assert_int_eq(own_sum_open(o, 3, NULL), AS_OK);
    own_sum_add(o, N / 2, values[3] + N / 2, N / 4, scales[3]);
    own_sum_begin(o, 0, 4, run);
    ck_assert_uint_eq(own_sum_missing(o), 0);
    ck_assert_uint_eq(fill(run, N), 4);
    check_tree(4, run);
}
END_TEST

START_TEST(another_step_begins_anew)
{
    begin(7, OWN_TREE);
    struct shard_run run = {0, 3};
    (void)compute(5, 3, run);
    own_sum_begin(o, 6, 3, run);
    ck_assert_uint_eq(own_sum_missing(o), 0);
    (void)fill(run, N);
    own_sum_begin(o, 6, 4, run); /* the batch has another tree */
    ck_assert_uint_eq(own_sum_missing(o), 0);
}
END_TEST

START_TEST(what_is_the_ranks_stands_in_the_first_vector)
{
    begin(8, OWN_TREE);
    struct shard_run run = {1, 6}; /* nodes 1, 2-3, 4-5, 6 */
    const float wishes[2] = {1, 0};
    (void)compute(0, 8, run);
    for (int again = 0; again < 2; again++) {
        own_sum_put(o, N - 2, again ? (const float[2]){0, 1} : wishes, 2);
        ck_assert_uint_eq(own_sum_count(o), 4);
        for (size_t k = 0; k < 4; k++) {
            ck_assert_float_eq(own_sum_values(o)[k][N - 2], k == 0 && !again ? 1 : 0);
            ck_assert_float_eq(own_sum_values(o)[k][N - 1], k == 0 && again ? 1 : 0);
        }
    }
    own_sum_begin(o, 1, 8, (struct shard_run){8, 0}); /* a rank without shards has nothing to say */
    own_sum_put(o, N - 2, wishes, 2);
    ck_assert_uint_eq(own_sum_count(o), 0);
}
END_TEST

/* Whatever allocation fails, nothing is lost of what was there. */
START_TEST(memory_that_is_out_is_an_error)
{
    for (uint64_t nth = 1; nth <= 4; nth++) {
        as_mem_fail_nth(nth);
        ck_assert_int_eq(own_sum_create(OWN_TREE, N, MOST, &o, NULL), AS_E_NOMEM);
    }
    as_mem_fail_nth(0);
    begin(9, OWN_TREE);
    struct shard_run run = {0, 4};
    own_sum_begin(o, 0, 4, run);
    give(0, N);
    give(1, N);
    as_mem_fail_nth(1);
    as_status st = own_sum_open(o, 2, NULL);
    as_mem_fail_nth(0);
    ck_assert_int_eq(st, AS_E_NOMEM);
    ck_assert_uint_eq(compute(0, 4, run), 2);
    check_tree(4, run);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("own_sum");
    TCase *t = tcase_create("own_sum");
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_test(t, nodes_have_the_bits_of_the_tree);
    tcase_add_test(t, eight_shards_need_three_vectors);
    tcase_add_test(t, a_line_is_added_in_the_order_of_its_shards);
    tcase_add_test(t, each_shard_stays_by_itself);
    tcase_add_test(t, vectors_in_the_new_run_stay);
    tcase_add_test(t, a_shard_that_fails_takes_its_nodes_with_it);
    tcase_add_test(t, another_step_begins_anew);
    tcase_add_test(t, what_is_the_ranks_stands_in_the_first_vector);
    tcase_add_test(t, memory_that_is_out_is_an_error);
    suite_add_tcase(s, t);
    return s;
}
