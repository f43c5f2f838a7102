/* The thread of the reaper: a sweep ends at once after its last trial, not a period later. */
#include <stdio.h>

#include "api/server/reaper_loop.h"
#include "api/server/server.h"
#include "base/clock.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define SWEEPS 6 /* more than one round finishes */

static struct service s;
static struct as_err err;

/* A store whose reaper runs a round at the start, and the next one after 15 minutes. */
static void open_slow(void)
{
    const struct store_opts opts = {
        .url = s.url, .config = {.lease_ms = 3600000, .heartbeat_ms = 1000, .reaper_ms = 900000}};
    service_open(&s, 0);
    store_close(s.db);
    ck_ok(store_open(&opts, &s.db, &err), err);
}

static void close_service(void)
{
    check_invariants(&s);
    service_close(&s);
}

static void await_end(const char *sweep)
{
    int64_t end = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (sweep_of_id(&s, sweep).state != SWEEP_COMPLETED) {
        ck_assert_msg(clock_mono_ns() < end, "the sweep %s waits for a round of the reaper", sweep);
        clock_sleep_ms(5);
    }
}

static const char *one_trial(const char *name)
{
    return make_sweep(&s, name, "'max_trials': 1", ", 'ensemble': false");
}

START_TEST(a_sweep_ends_with_its_last_trial)
{
    struct reaper_loop *loop = NULL;
    const char *names[SWEEPS];
    int64_t e = make_runner(&s, "r", SWEEPS);
    ck_ok(reaper_loop_start(s.db, NULL, &loop, &err), err);
    one_trial("first");
    struct claimed_row first = claim_one(&s, "r", e);
    finish(&s, ref_of(&first), 1);
    await_end(
        "first"); /* perhaps by the round at the start; the sweeps below can only end at once */
    for (int i = 0; i < SWEEPS; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "later-%d", i);
        names[i] = one_trial(name);
    }
    struct claim_list list = claim(&s, "r", e, SWEEPS);
    ck_assert_uint_eq(list.n, SWEEPS);
    for (size_t i = 0; i < list.n; i++)
        finish(&s, ref_of(&list.rows[i]), 1);
    for (int i = 0; i < SWEEPS; i++)
        await_end(names[i]);
    reaper_loop_request_stop(loop);
    ck_assert(reaper_loop_end(loop, PATIENCE_MS));
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("api_reaper_loop");
    TCase *c = tcase_create("ends");
    pg_fixture_start();
    tcase_add_checked_fixture(c, open_slow, close_service);
    tcase_add_test(c, a_sweep_ends_with_its_last_trial);
    suite_add_tcase(suite, c);
    return suite;
}
