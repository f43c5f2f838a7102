/* Every allocation fails in turn in the operations of the scheduler, on a database: the error is
 * out of memory, and the database is as it was before, or as after the operation.
 *
 * Each operation is one row of `rows`. It runs until no allocation is left to fail. A run that
 * failed leaves the digest of the tables as it was, unless the operation takes several
 * transactions. A run may succeed all the same: a connection prepares a statement again that it
 * could not remember. The invariants are checked after each row. */
#include <string.h>

#include "base/arena.h"
#include "scheduler/assign/asks.h"
#include "scheduler/services/service_metrics.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct attempt_ref held; /* of the runner r */
static int64_t epoch, asked;    /* the trial that the client c holds */

/* One for the process: its allocations do not count. */
static const json_t *doc_of_a_sweep(void)
{
    static json_t *doc;
    if (!doc)
        doc = json_of("{'name': 'new', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                      "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'limits': "
                      "{'max_trials': 3}, 'trial': {'command': ['run', '${args}']}}");
    return doc;
}

static as_status create_a_sweep(struct arena *a, struct as_err *err)
{
    struct sweep_row row;
    return sweep_create(s.db, a, doc_of_a_sweep(), NULL, &row, err);
}

static as_status register_again(struct arena *a, struct as_err *err)
{
    const char *const gpus[] = {"NVIDIA H100"};
    const struct runner_register req = {
        .name = "other", .slots = 2, .gpus = (const char **)gpus, .n_gpus = 1};
    struct registration made;
    return runner_register(s.db, a, &req, &made, err);
}

static as_status claim_some(struct arena *a, struct as_err *err)
{
    const struct claim_request req = {
        .runner = "r", .epoch = epoch, .claim_id = "nth", .max_trials = 2};
    struct claim_list list;
    return claim_trials(s.db, NULL, a, &req, &list, err);
}

static as_status ask_some(struct arena *a, struct as_err *err)
{
    const struct ask_request req = {
        .sweep = "learner", .client = "d", .count = 2, .lease_ms = 600000};
    struct suggestion_list list;
    return ask_trials(s.db, NULL, a, &req, &list, err);
}

static as_status beat(struct arena *a, struct as_err *err)
{
    const struct runner_id id = {"r", epoch, NULL};
    const struct heartbeat b = {.attempts = &held, .n = 1};
    struct directive_list directives;
    return runner_heartbeat(s.db, a, &id, &b, &directives, err);
}

static as_status report(struct arena *a, struct as_err *err)
{
    const struct measurement m[] = {{1, "loss", 0.5}, {2, "loss", 0.25}, {2, "other", 1}};
    const struct trial_note note = {"device", "cpu"};
    struct attempt_recorded got;
    return attempt_record(
        s.db, a, &held, NULL,
        &(struct attempt_report){.points = m, .n_points = 3, .notes = &note, .n_notes = 1}, &got,
        err);
}

static as_status record(struct arena *a, const struct measurement *m, size_t n, struct as_err *err)
{
    struct attempt_recorded got;
    return attempt_record(s.db, a, &held, NULL,
                          &(struct attempt_report){.points = m, .n_points = n}, &got, err);
}

/* After {3, 5}: steps that are stored and steps between them, so that their chunk is cut again. */
static as_status report_late(struct arena *a, struct as_err *err)
{
    static const struct measurement m[] = {{1, "loss", 0.5}, {3, "loss", 0}, {4, "loss", 1}};
    return record(a, m, 3, err);
}

static as_status put_log(struct arena *a, struct as_err *err)
{
    (void)a;
    return attempt_log(s.db, &held, NULL, "a line\n", false, err);
}

static as_status tell_it(struct arena *a, struct as_err *err)
{
    const struct measurement m = {-1, "loss", 0.5};
    const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
    const struct ask_ref ref = {.sweep = "learner", .number = asked, .client = "c"};
    struct trial_row row;
    return ask_complete(s.db, a, &ref, &c, &row, err);
}

static as_status list_trials(struct arena *a, struct as_err *err)
{
    const struct trial_query q = {.sort = TRIAL_BY_VALUE, .page = {.size = 5}};
    struct trial_page page;
    return trial_list(s.db, s.orders, a, "a", &q, &page, err);
}

static as_status list_sweeps(struct arena *a, struct as_err *err)
{
    const struct sweep_query q = {.page = {.size = 5}};
    struct sweep_page page;
    return sweep_list(s.db, a, &q, &page, err);
}

static as_status list_runners(struct arena *a, struct as_err *err)
{
    const struct page_req page = {.size = 5};
    struct runner_page rows;
    return runner_list(s.db, a, &page, &rows, err);
}

static as_status write_figures(struct arena *a, struct as_err *err)
{
    AS_AUTO(str_done) struct str out = {0};
    (void)a;
    return metrics_write(s.db, &out, err);
}

static as_status reap_once(struct arena *a, struct as_err *err)
{
    struct reaper_report ret;
    (void)a;
    return reaper_tick(&s.reaper, &ret, err);
}

static as_status complete_it(struct arena *a, struct as_err *err)
{
    const struct measurement m = {-1, "loss", 0.25};
    const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
    struct trial_row row;
    return attempt_complete(s.db, a, &held, NULL, &c, &row, err);
}

static as_status cancel_one(struct arena *a, struct as_err *err)
{
    struct trial_row row;
    return trial_cancel(s.db, a, "learner", asked, &row, err);
}

static as_status cancel_sweep(struct arena *a, const char *id, struct as_err *err)
{
    const sweep_state to = SWEEP_CANCELLED;
    const struct sweep_patch p = {.state = &to};
    struct sweep_changed row;
    return sweep_change(s.db, a, id, &p, "", &row, err);
}

static as_status cancel_a_sweep(struct arena *a, struct as_err *err)
{
    return cancel_sweep(a, "a", err);
}

static as_status leave(struct arena *a, struct as_err *err)
{
    const struct runner_id id = {"r", epoch, NULL};
    (void)a;
    return runner_leave(s.db, &id, err);
}

static as_status remove_a_sweep(struct arena *a, struct as_err *err)
{
    (void)a;
    as_status st = sweep_delete(s.db, "done", err);
    return st == AS_E_NOT_FOUND ? AS_OK : st; /* a run that met a failure deleted it all the same */
}

static const struct row {
    const char *name;
    as_status (*run)(struct arena *a, struct as_err *err);
    bool has_steps; /* it takes several transactions */
} rows[] = {
    {"sweep_create", create_a_sweep, false},  {"runner_register", register_again, false},
    {"claim_trials", claim_some, true},       {"ask_trials", ask_some, true},
    {"runner_heartbeat", beat, true},         {"attempt_record", report, false},
    {"report_late", report_late, false},      {"attempt_log", put_log, false},
    {"ask_complete", tell_it, false},         {"trial_list", list_trials, false},
    {"sweep_list", list_sweeps, false},       {"runner_list", list_runners, false},
    {"metrics_write", write_figures, false},  {"reaper_tick", reap_once, true},
    {"attempt_complete", complete_it, false}, {"trial_cancel", cancel_one, false},
    {"sweep_change", cancel_a_sweep, false},  {"runner_leave", leave, true},
    {"sweep_delete", remove_a_sweep, false},
};

/* What operations write, without the times of leases. */
static void digest(char ret[64])
{
    pg_fixture_text(
        s.url,
        "select md5(concat((select string_agg(t::text, ';' order by t.sweep_key, t.number) from "
        "trial t), (select string_agg(x::text, ';' order by x.sweep_key, x.number, x.attempt) from "
        "attempt x), (select string_agg(concat(key, state, planned), ';' order by key) from "
        "sweep), "
        "(select count(*) from event), (select count(*) from measurement), (select count(*) from "
        "trial_log), (select string_agg(concat(name, state, epoch), ';' order by name) from "
        "runner)))",
        ret, 64);
}

START_TEST(each_allocation_fails)
{
    const struct row *r = &rows[_i];
    make_sweep(&s, "a", "'max_trials': 20", "");
    make_learner(&s, "learner", "'max_trials': 20", "");
    make_sweep(&s, "done", "'max_trials': 1", "");
    epoch = make_runner(&s, "r", 8);
    struct claim_list mine = claim(&s, "r", epoch, 3);
    ck_assert_uint_gt(mine.n, 0);
    held = ref_of(&mine.rows[0]);
    for (size_t i = 0; i < mine.n; i++)
        if (strcmp(mine.rows[i].sweep, "a") == 0)
            held = ref_of(&mine.rows[i]);
    asked = ask_one(&s, "learner", "c").number;
    if (r->run == remove_a_sweep) {
        struct as_err e = {0};
        ck_ok(cancel_sweep(&s.a, "done", &e), e);
    }
    if (r->run == report_late) {
        static const struct measurement m[] = {{3, "loss", 0.25}, {5, "loss", 0.125}};
        struct as_err e = {0};
        ck_ok(record(&s.a, m, 2, &e), e);
    }
    size_t left = 0, n = 0;
    char before[64], after[64];
    (void)doc_of_a_sweep();
    digest(before);
    while (left == 0) {
        AS_AUTO(arena_done) struct arena a = {0};
        struct as_err err = {0};
        (void)as_mem_fail_nth(++n);
        as_status st = r->run(&a, &err);
        left = as_mem_fail_nth(0);
        digest(after);
        ck_assert_msg(st == AS_OK || (st == AS_E_NOMEM && left == 0), "%s: allocation %zu: %s: %s",
                      r->name, n, as_status_name(st), err.msg);
        ck_assert_msg(st == AS_OK || r->has_steps || strcmp(before, after) == 0,
                      "%s: allocation %zu: it failed, and the database has changed", r->name, n);
        memcpy(before, after, sizeof before);
    }
    ck_assert_msg(n > 1, "%s allocates nothing", r->name);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("nth/db");
    /* a new connection prepares its statements, which allocates, too */
    TCase *c = service_case_alone(su, "nth", &s, 0);
    json_fail_with_mem();
    tcase_add_loop_test(c, each_allocation_fails, 0, (int)AS_ARRAY_LEN(rows));
    return su;
}
