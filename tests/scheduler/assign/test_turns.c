/* Whose turn it is: shares, priorities, and what a trial needs of its runner and its machine. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

#define GIB (INT64_C(1) << 30)

/* A live runner and what it runs. */
struct host {
    const char *name;
    int64_t epoch;
    struct claimed_row held[64];
    size_t n;
};

static struct host add_host(const char *name, int64_t slots, int64_t cpus, int64_t memory,
                            const char *machine)
{
    struct registration r;
    struct runner_register req = {
        .name = name, .slots = slots, .cpus = cpus, .memory_bytes = memory, .machine = machine};
    ck_ok(runner_register(s.db, &s.a, &req, &r, &err), err);
    return (struct host){.name = name, .epoch = r.epoch};
}

/* Claim for all free slots. Returns how many trials it got. */
static size_t fill(struct host *h, int64_t slots)
{
    size_t before = h->n;
    if ((int64_t)h->n < slots) {
        struct claim_list list = claim(&s, h->name, h->epoch, slots - (int64_t)h->n);
        for (size_t i = 0; i < list.n; i++)
            h->held[h->n++] = list.rows[i];
    }
    return h->n - before;
}

static void finish_at(struct host *h, size_t i)
{
    finish(&s, ref_of(&h->held[i]), 1);
    h->held[i] = h->held[--h->n];
}

static int64_t completed(const char *sweep)
{
    return sweep_of_id(&s, sweep).counts.by_state[TRIAL_COMPLETED];
}

static int64_t running(const char *sweep)
{
    return sweep_of_id(&s, sweep).counts.by_state[TRIAL_RUNNING];
}

/* All that waited for room has waited long enough. */
static void let_waits_end(void)
{
    pg_fixture_exec(s.url, "update runner_wait set since = since - interval '1 hour'");
}

/* The difference between the sweep that got most and the one that got least. */
static int64_t unfairness(const char *const *names, size_t n)
{
    int64_t least = INT64_MAX, most = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t got = completed(names[i]) + running(names[i]);
        least = got < least ? got : least;
        most = got > most ? got : most;
    }
    return most - least;
}

/* Two slots, three sweeps without an end: shares are equal, also over a restart of the server.
 * Trials that end in a random order let a sweep fall behind while its trial is the long one; it
 * catches up. */
START_TEST(three_sweeps_share_two_slots)
{
    const bool is_random = _i > 0;
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        make_sweep(&s, names[i], "'max_trials': 1000", "");
    struct host h = add_host("r", 2, 0, 0, NULL);
    struct rng rng;
    rng_init(&rng, (uint64_t)_i, 1);
    ck_assert_uint_eq(fill(&h, 2), 2);
    for (int ends = 1; ends <= 61; ends++) {
        finish_at(&h, is_random ? rng_below(&rng, 2) : 0);
        ck_assert_uint_eq(fill(&h, 2), 1); /* the one that runs for longer is first */
        if (ends == 30) {                  /* another server, over the same database */
            struct store_opts opts = {.url = s.url, .max_connections = 4};
            store_close(s.db);
            ck_ok(store_open(&opts, &s.db, &err), err);
        }
        ck_assert_int_le(unfairness(names, 3), is_random ? 4 : 1);
    }
}
END_TEST

/* Sweeps arrive at random, and trials end in a random order. While a sweep has work and nothing
 * runs of it, each other one gets few turns: one, and those that it is owed. */
#define MANY 8
START_TEST(nobody_is_passed_often)
{
    char names[MANY][4];
    int passed[MANY][MANY] = {0}; /* turns of the second while the first waits */
    int n = 0;
    struct rng rng;
    rng_init(&rng, (uint64_t)_i, 2);
    struct host h = add_host("r", 3, 0, 0, NULL);
    for (int round = 0; round < 60; round++) {
        if (n < MANY && (n == 0 || rng_below(&rng, 4) == 0)) {
            (void)snprintf(names[n], sizeof names[n], "s%d", n);
            make_sweep(&s, names[n++], "'max_trials': 1000", "");
        }
        size_t from = h.n, got = fill(&h, 3);
        for (size_t k = from; k < from + got; k++) {
            int taker = h.held[k].sweep[1] - '0';
            for (int i = 0; i < n; i++) {
                bool waits = i != taker;
                for (size_t j = 0; j < k; j++)
                    waits = waits && h.held[j].sweep[1] - '0' != i;
                passed[i][taker] = waits ? passed[i][taker] + 1 : 0;
                ck_assert_msg(passed[i][taker] <= 3, "%s passed %s too often", names[taker],
                              names[i]);
                for (int other = 0; !waits && other < n; other++)
                    passed[i][other] = 0;
            }
        }
        if (h.n > 0)
            finish_at(&h, rng_below(&rng, h.n));
    }
    ck_assert_int_eq(n, MANY);
}
END_TEST

START_TEST(higher_priority_goes_first)
{
    struct sweep_patch patch = {.has_priority = true, .priority = 6};
    struct sweep_changed changed;
    make_sweep(&s, "low", "'max_trials': 100", ", 'priority': -3");
    make_sweep(&s, "high", "'max_trials': 100, 'max_concurrent_trials': 3", ", 'priority': 5");
    make_sweep(&s, "plain", "'max_trials': 100", "");
    struct host h = add_host("r", 4, 0, 0, NULL);
    ck_assert_uint_eq(fill(&h, 4), 4);
    ck_assert_int_eq(running("high"), 3); /* its limit leaves a slot */
    ck_assert_int_eq(running("plain"), 1);
    ck_ok(sweep_change(s.db, &s.a, "low", &patch, NULL, &changed, &err), err);
    ck_assert_int_eq(changed.sweep.priority, 6);
    ck_assert(strstr(sweep_of_id(&s, "low").document, "\"priority\": 6") != NULL);
    while (h.n > 1)
        finish_at(&h, 0);
    ck_assert_uint_eq(fill(&h, 4), 3);
    ck_assert_int_eq(running("low"), 3);
    patch.priority = 6;
    ck_ok(sweep_change(s.db, &s.a, "low", &patch, NULL, &changed, &err), err); /* the same again */
}
END_TEST

START_TEST(needs_bound_a_runner)
{
    make_sweep(&s, "two", "'max_trials': 100", ", 'resources': {'cpus': 2, 'memory': '3GiB'}");
    struct host h = add_host("r", 8, 5, 64 * GIB, NULL), m = add_host("m", 8, 64, 7 * GIB, NULL),
                none = add_host("none", 8, 0, 0, NULL);
    ck_assert_uint_eq(fill(&h, 8), 2); /* 5 cores */
    ck_assert_uint_eq(fill(&h, 8), 0);
    ck_assert_uint_eq(fill(&m, 8), 2); /* 7 GiB */
    ck_assert_uint_eq(fill(&none, 8), 0);
    finish_at(&h, 0);
    ck_assert_uint_eq(fill(&h, 8), 1);
    ck_assert_int_eq(h.held[1].cpus, 2);
    make_sweep(&s, "plain", "'max_trials': 100", ""); /* takes a slot, and no cores */
    ck_assert_uint_eq(fill(&h, 8), 6);
}
END_TEST

/* Two runners that use the same cores. */
START_TEST(runners_of_a_machine_share_its_cores)
{
    struct host h[2];
    make_sweep(&s, "a", "'max_trials': 100", ", 'resources': {'cpus': 3}");
    for (size_t i = 0; i < 2; i++) {
        struct registration r;
        struct runner_register req = {.name = i ? "y" : "x",
                                      .slots = 4,
                                      .cpus = 8,
                                      .memory_bytes = GIB,
                                      .machine = "one",
                                      .shares = true};
        ck_ok(runner_register(s.db, &s.a, &req, &r, &err), err);
        h[i] = (struct host){.name = req.name, .epoch = r.epoch};
    }
    ck_assert_uint_eq(fill(&h[0], 1), 1);
    ck_assert_uint_eq(fill(&h[1], 4), 1); /* 6 of 8 are taken */
    ck_assert_uint_eq(fill(&h[0], 4), 0);
    finish_at(&h[1], 0);
    ck_assert_uint_eq(fill(&h[0], 4), 1);
}
END_TEST

START_TEST(a_note_says_why_nothing_fits)
{
    make_sweep(&s, "wide", "'max_trials': 9", ", 'resources': {'cpus': 64}");
    make_sweep(&s, "deep", "'max_trials': 9", ", 'resources': {'memory': 2000}");
    make_sweep(&s, "both", "'max_trials': 9", ", 'resources': {'cpus': 8, 'memory': 900}");
    make_sweep(&s, "plain", "'max_trials': 9", "");
    ck_assert_ptr_null(sweep_of_id(&s, "wide").note); /* nobody is there yet */
    add_host("a", 1, 8, 500, NULL);
    add_host("b", 1, 4, 1000, NULL);
    ck_assert_str_eq(sweep_of_id(&s, "wide").note, "no runner has 64 cpus (largest: 8)");
    ck_assert_str_eq(sweep_of_id(&s, "deep").note,
                     "no runner has 2000 bytes of memory (largest: 1000)");
    ck_assert_str_eq(sweep_of_id(&s, "both").note,
                     "no runner has 8 cpus, 900 bytes of memory and 0 GPUs together");
    ck_assert_ptr_null(sweep_of_id(&s, "plain").note);
    add_host("c", 1, 64, 2000, NULL);
    ck_assert_ptr_null(sweep_of_id(&s, "wide").note);
    ck_assert_ptr_null(sweep_of_id(&s, "both").note);
}
END_TEST

/* Small trials would take each core that becomes free. */
START_TEST(a_large_trial_gets_its_room)
{
    make_sweep(&s, "small", "'max_trials': 100", ", 'resources': {'cpus': 1}");
    struct host h = add_host("r", 8, 4, GIB, NULL);
    ck_assert_uint_eq(fill(&h, 8), 4);
    make_sweep(&s, "large", "'max_trials': 100", ", 'resources': {'cpus': 3}");
    finish_at(&h, 0);
    ck_assert_uint_eq(fill(&h, 8), 1); /* it waits for a while first */
    ck_assert_str_eq(h.held[3].sweep, "small");
    let_waits_end();
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(fill(&h, 8), 0);
        finish_at(&h, 0);
    }
    ck_assert_uint_eq(fill(&h, 8), 1);
    ck_assert_str_eq(h.held[1].sweep, "large");
    finish_at(&h, 0);
    ck_assert_uint_eq(fill(&h, 8), 1); /* its turn is over: small ones get what is free */
    ck_assert_str_eq(h.held[1].sweep, "small");
}
END_TEST

START_TEST(an_exclusive_trial_is_alone_on_its_machine)
{
    make_sweep(&s, "timing", "'max_trials': 100", ", 'resources': {'exclusive': true}");
    struct host a = add_host("a", 4, 8, GIB, "one"), b = add_host("b", 4, 8, GIB, "one"),
                far = add_host("far", 2, 8, GIB, "two");
    ck_assert_uint_eq(fill(&a, 4), 1); /* of four slots */
    make_sweep(&s, "plain", "'max_trials': 100", "");
    ck_assert_uint_eq(fill(&a, 4), 0);
    ck_assert_uint_eq(fill(&b, 4), 0);
    ck_assert_uint_eq(fill(&far, 2), 2); /* "timing" waits for its turn */
    ck_assert_str_eq(far.held[0].sweep, "plain");
    finish_at(&a, 0);
    ck_assert_uint_eq(fill(&b, 1), 1); /* nothing of "timing" runs: its turn */
    ck_assert_str_eq(b.held[0].sweep, "timing");
    ck_assert_uint_eq(fill(&a, 4), 0);
}
END_TEST

START_TEST(a_waiting_exclusive_trial_closes_its_machine)
{
    make_sweep(&s, "plain", "'max_trials': 100", "");
    struct host a = add_host("a", 2, 8, GIB, "one"), b = add_host("b", 2, 8, GIB, "one");
    ck_assert_uint_eq(fill(&a, 2), 2);
    ck_assert_uint_eq(fill(&b, 1), 1);
    make_sweep(&s, "timing", "'max_trials': 2", ", 'resources': {'exclusive': true}");
    make_sweep(&s, "urgent", "'max_trials': 1", ", 'priority': 1");
    finish_at(&a, 0);
    ck_assert_uint_eq(fill(&a, 2), 1); /* one more, and it waits from now on */
    ck_assert_str_eq(a.held[1].sweep, "urgent");
    finish_at(&a, 1);
    ck_assert_uint_eq(fill(&a, 2), 1);
    let_waits_end();
    finish_at(&a, 0);
    ck_assert_uint_eq(fill(&a, 2), 0);
    ck_assert_uint_eq(fill(&b, 2), 0); /* the other runner of the machine */
    make_sweep(&s, "more", "'max_trials': 1", ", 'priority': 2");
    ck_assert_uint_eq(fill(&b, 2), 1); /* a higher priority goes first */
    while (b.n > 0)
        finish_at(&b, 0);
    ck_assert_uint_eq(fill(&b, 2), 0);
    finish_at(&a, 0);
    ck_assert_uint_eq(fill(&b, 2), 1);
    ck_assert_str_eq(b.held[0].sweep, "timing");
    finish_at(&b, 0);
    ck_assert_uint_eq(fill(&a, 2), 1); /* of "timing" again, as it has fewer running than "plain" */
    finish_at(&a, 0);
    ck_assert_uint_eq(fill(&a, 2), 2);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from runner_wait"), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("turns");
    TCase *c = service_case(su, "turns", &s, 0);
    tcase_add_loop_test(c, nobody_is_passed_often, 0, 3);
    tcase_add_test(c, higher_priority_goes_first);
    tcase_add_test(c, needs_bound_a_runner);
    tcase_add_test(c, runners_of_a_machine_share_its_cores);
    tcase_add_test(c, a_note_says_why_nothing_fits);
    tcase_add_test(c, a_large_trial_gets_its_room);
    tcase_add_test(c, an_exclusive_trial_is_alone_on_its_machine);
    tcase_add_test(c, a_waiting_exclusive_trial_closes_its_machine);
    tcase_add_loop_test(service_case_alone(su, "two servers", &s, 0), three_sweeps_share_two_slots,
                        0, 3);
    return su;
}
