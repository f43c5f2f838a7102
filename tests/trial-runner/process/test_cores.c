/* Which cores trials get: whole ones, of one node, and never one that another trial has. */
#include <unistd.h>

#include "tests/support/check_main.h"
#include "trial-runner/process/cores.h"

/* Two nodes of four cores with two hyperthreads each: cpu i and i + 8 are one core. */
static void two_nodes(struct core_list *l)
{
    l->n = 0;
    for (int cpu = 0; cpu < 16; cpu++)
        l->v[l->n++] = (struct core){.cpu = cpu, .node = cpu % 8 / 4, .body = cpu % 8};
}

static cpu_set_t set_of(const int *cpus, size_t n)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < n; i++)
        CPU_SET(cpus[i], &set);
    return set;
}

#define SET(...)                                                                                   \
    set_of((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void expect(const cpu_set_t *busy, int64_t want, cpu_set_t wanted)
{
    static struct core_list l;
    cpu_set_t got;
    two_nodes(&l);
    ck_assert(cores_choose(&l, busy, want, &got));
    ck_assert_int_eq(CPU_COUNT(&got), want);
    ck_assert(CPU_EQUAL(&got, &wanted));
}

START_TEST(hyperthreads_stay_together)
{
    cpu_set_t none, busy;
    CPU_ZERO(&none);
    expect(&none, 2, SET(0, 8));
    expect(&none, 4, SET(0, 8, 1, 9));
    expect(&none, 1, SET(0));
    busy = SET(0);
    expect(&busy, 1, SET(8)); /* the rest of a core before a new one */
    expect(&busy, 3, SET(1, 9, 8));
}
END_TEST

START_TEST(a_trial_stays_on_a_node)
{
    cpu_set_t busy = SET(0, 8);
    expect(&busy, 8, SET(4, 12, 5, 13, 6, 14, 7, 15)); /* node 0 has six */
    expect(&busy, 6, SET(1, 9, 2, 10, 3, 11));         /* the fuller one of those that suffice */
    expect(&busy, 10, SET(4, 12, 5, 13, 6, 14, 7, 15, 1, 9));
}
END_TEST

START_TEST(too_few_are_none)
{
    static struct core_list l;
    cpu_set_t busy = SET(3), got = SET(5);
    two_nodes(&l);
    ck_assert(!cores_choose(&l, &busy, 16, &got));
    ck_assert(CPU_ISSET(5, &got) && CPU_COUNT(&got) == 1);
    ck_assert(cores_choose(&l, &busy, 15, &got));
    ck_assert(!CPU_ISSET(3, &got));
}
END_TEST

/* As by two runners: a hold knows of the others only by the system. */
START_TEST(a_core_is_held_once)
{
    struct core_list l = {0};
    struct core_hold a = {0}, b = {0}, c = {0};
    for (int i = 0; i < 4; i++) /* far from the cores of a runner that works on this machine */
        l.v[l.n++] = (struct core){.cpu = CORES_MAX - 1 - i, .body = i};
    ck_assert(core_hold_take(&a, &l, 1));
    ck_assert(core_hold_take(&b, &l, 2));
    ck_assert(!core_hold_take(&c, &l, 2));
    ck_assert_uint_eq(c.n, 0);
    cpu_set_t both;
    CPU_AND(&both, &a.set, &b.set);
    ck_assert_int_eq(CPU_COUNT(&both), 0);
    core_hold_done(&a);
    ck_assert(core_hold_take(&c, &l, 2));
    core_hold_done(&b);
    core_hold_done(&c);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("cores");
    TCase *t = tcase_create("cores");
    tcase_add_test(t, hyperthreads_stay_together);
    tcase_add_test(t, a_trial_stays_on_a_node);
    tcase_add_test(t, too_few_are_none);
    tcase_add_test(t, a_core_is_held_once);
    suite_add_tcase(s, t);
    return s;
}
