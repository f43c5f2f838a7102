/* Batches against the functions that decide one operation at a time: the same schedule, once in
 * batches on the sweeps l…, once alone on the sweeps r…, gives equal answers and equal tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/scheduler/commit/members.h"
#include "tests/support/check_main.h"

#define SWEEPS 3
#define TRIALS 24 /* of a sweep */

static struct service s;
static struct as_err err;
static int64_t epoch;
static struct committer *committer;

static void begin(void)
{
    epoch = make_runner(&s, "r", 512);
    ck_ok(committer_create(s.db, NULL, &(struct committer_opts){0}, &committer, &err), err);
}

static void end_committer(void)
{
    committer_free(committer);
}

/* Before another seed: as after a test, on the same database, whose backends know the statements
 * by now. A database and backends of their own cost a seed more than its schedule. */
static void start_over(void)
{
    end_committer();
    check_invariants(&s);
    pg_fixture_exec(s.url, "delete from sweep_base");
    begin();
}

/* ---- the schedule ---- */

/* What is done with a trial in a round; the two sides make their member of it. */
struct action {
    int sweep, number;
    int64_t attempt;
    int kind;
    int64_t step;
    double loss;
    const char *client, *token;
};

enum {
    DO_RECORD,
    DO_RECORD_MANY,
    DO_NOTE,
    DO_COMPLETE,
    DO_COMPLETE_WITH,
    DO_COMPLETE_NAN,
    DO_COMPLETE_AT,
    DO_FAIL,
    DO_RETRY,
    DO_RELEASE,
    DO_TIMEOUT,
    DO_BAD_METRIC,
    DO_BAD_SWEEP,
    KINDS, /* of most schedules; those below are for early stopping */
    DO_PAUSE = KINDS,
    DO_PRUNE,
    ALL_KINDS
};

static struct member *member_of(const struct action *x, char side)
{
    char id[8];
    (void)snprintf(id, sizeof id, "%c%d", side, x->sweep);
    const struct attempt_ref ref = {x->kind == DO_BAD_SWEEP ? "none" : id, x->number, x->attempt};
    static const attempt_outcome outcomes[ALL_KINDS] = {
        [DO_PAUSE] = OUTCOME_PAUSED,     [DO_PRUNE] = OUTCOME_PRUNED,
        [DO_FAIL] = OUTCOME_FAILED,      [DO_RETRY] = OUTCOME_RETRY,
        [DO_RELEASE] = OUTCOME_RELEASED, [DO_TIMEOUT] = OUTCOME_TIMEOUT};
    struct member *m = NULL;
    switch (x->kind) {
    case DO_RECORD:
    case DO_RECORD_MANY:
    case DO_NOTE:
    case DO_BAD_METRIC:
    case DO_BAD_SWEEP:
        m = member_record(ref, x->step, x->loss);
        if (x->kind == DO_RECORD_MANY) {
            m->points[1] = (struct measurement){x->step, "acc", 1 - x->loss};
            m->points[2] = (struct measurement){x->step + 1, "acc", x->loss};
            m->m.in.report.n_points = 3;
        } else if (x->kind == DO_NOTE) {
            m->notes[0] = (struct trial_note){"said", x->loss < 0.5 ? "low" : "high"};
            m->m.in.report.notes = m->notes;
            m->m.in.report.n_notes = 1;
        } else if (x->kind == DO_BAD_METRIC) {
            m->points[0].metric = "no metric";
        }
        break;
    default:
        m = member_end(ref, outcomes[x->kind]);
        m->m.in.end.has_ran = x->kind == DO_TIMEOUT;
        m->m.in.end.ran_ms = x->loss < 0.5 ? 10 : 5000000;
        m->m.in.end.waited_ms = x->number % 2; /* a millisecond: so old is each trial */
        if (x->kind == DO_FAIL)
            m->m.in.end.reason = "it broke";
        if (x->kind == DO_COMPLETE_WITH || x->kind == DO_COMPLETE_AT)
            member_final(m, x->loss);
        if (x->kind == DO_COMPLETE_AT)
            m->points[0].step = x->step;
        if (x->kind == DO_COMPLETE_NAN)
            member_final(m, NAN);
    }
    m->m.by.client = x->client;
    m->m.token = x->token;
    return m;
}

static struct action draw(struct rng *rng)
{
    struct action x = {.sweep = (int)rng_below(rng, SWEEPS),
                       .number = (int)rng_below(rng, TRIALS + 1),
                       .kind = (int)rng_below(rng, KINDS),
                       .step = (int64_t)rng_below(rng, 6),
                       .loss = (double)rng_below(rng, 100) / 100};
    x.attempt = 1 + (rng_below(rng, 4) == 0) + (rng_below(rng, 8) == 0);
    return x;
}

/* The same for early stopping, without what runs alone: then the order of decisions is that of the
 * schedule. Steps are those of rungs, or beside them. */
static struct action draw_stopping(struct rng *rng)
{
    static const int kinds[] = {DO_RECORD, DO_RECORD,  DO_RECORD_MANY, DO_PAUSE, DO_PAUSE,
                                DO_PRUNE,  DO_RELEASE, DO_COMPLETE,    DO_RETRY, DO_COMPLETE_WITH};
    struct action x = draw(rng);
    x.kind = kinds[rng_below(rng, AS_ARRAY_LEN(kinds))];
    return x;
}

/* ---- comparisons ---- */

/* The message of one side says its sweep. */
static void same_text(const char *l, const char *r)
{
    ck_assert_uint_eq(strlen(l), strlen(r));
    for (size_t i = 0; l[i]; i++)
        ck_assert_msg(l[i] == r[i] || (l[i] == 'l' && r[i] == 'r'), "'%s' and '%s'", l, r);
}

static void same_answer(const struct action *x, const struct member *l, const struct member *r)
{
    ck_assert_msg(l->m.status == r->m.status, "kind %d of %d/%d: %d (%s) and %d (%s)", x->kind,
                  x->sweep, x->number, l->m.status, l->m.err.msg, r->m.status, r->m.err.msg);
    same_text(l->m.err.msg, r->m.err.msg);
    ck_assert_str_eq(l->m.err.pointer, r->m.err.pointer);
    if (l->m.status != AS_OK)
        return;
    if (l->m.kind == COMMIT_RECORD) {
        const struct directive_row *a = l->m.directive, *b = r->m.directive;
        ck_assert_int_eq(l->m.out.recorded, r->m.out.recorded);
        ck_assert_int_eq(a != NULL, b != NULL);
        if (a && b) {
            ck_assert_int_eq(a->action, b->action);
            ck_assert_str_eq(a->reason, b->reason);
            ck_assert_int_eq(a->ref.attempt, b->ref.attempt);
        }
        return;
    }
    const struct trial_row *a = &l->m.out.trial, *b = &r->m.out.trial;
    if (a->state == TRIAL_QUEUED && b->state == TRIAL_PAUSED)
        return; /* a later member of its batch promoted it */
    ck_assert_int_eq(a->state, b->state);
    ck_assert_int_eq(a->attempt, b->attempt);
    ck_assert_int_eq(a->restarts, b->restarts);
    ck_assert_str_eq(a->metrics, b->metrics);
    ck_assert_int_eq(a->feasible, b->feasible);
    ck_assert_int_eq(a->step, b->step);
    ck_assert_int_eq(a->finish_seq > 0, b->finish_seq > 0);
    ck_assert_str_eq(a->reason ? a->reason : "-", b->reason ? b->reason : "-");
}

#define BOTH(columns, table, order)                                                                \
    "select count(*) from ((select " columns " from " table " x join sweep s on s.key = "          \
    "x.sweep_key where left(s.id, 1) = 'l') except all (select " columns " from " table            \
    " x join sweep s on s.key = x.sweep_key where left(s.id, 1) = 'r')) d"

/* Both sides have the same rows, without keys, times and the order of ends. The event of a report
 * has the value after all reports of its batch. */
static void same_tables(void)
{
    static const char *const queries[] = {
        BOTH(
            "right(s.id, 1), number, x.state, attempt, restarts, value, step, metrics::text, "
            "runner, client, x.reason, feasible, timed_out, missing, params::text, rung, decision, "
            "spent, x.finished_at is null, x.started_at > claimed_at, origin, x.parent, fork_step, "
            "suggestion::text",
            "trial", ""),
        BOTH("right(s.id, 1), number, attempt, runner, client, outcome, reported, x.reason, "
             "exit_code, phase, ran_ms, ended_at is null",
             "attempt", ""),
        BOTH("right(s.id, 1), number, attempt, x.metric, step, value", "measurement", ""),
        BOTH("right(s.id, 1), number, x.name, text", "trial_note", ""),
        BOTH("right(s.id, 1), number, kind, path, size, sha256", "trial_file", ""),
        BOTH("right(s.id, 1), number, rung, attempt, step, x.objectives, feasible, decision, rank, "
             "among, x.reason, seq, promoted_seq, promoted_why",
             "rung_result", ""),
        BOTH("right(s.id, 1), type, number, x.state, attempt, case when type <> 'trial.measured' "
             "then value end, x.reason, runner",
             "event", ""),
        "select count(*) from ((select right(id, 1), state, n_total, n_queued, n_running, "
        "n_paused, n_completed, n_pruned, n_failed, n_cancelled, finish_seq, n_promoted, planned, "
        "steps_spent from sweep where left(id, 1) = 'l') except (select right(id, 1), state, "
        "n_total, n_queued, n_running, n_paused, n_completed, n_pruned, n_failed, n_cancelled, "
        "finish_seq, n_promoted, planned, steps_spent from sweep where left(id, 1) = 'r')) d"};
    for (size_t i = 0; i < AS_ARRAY_LEN(queries); i++)
        ck_assert_msg(pg_fixture_i64(s.url, queries[i]) == 0, "query %zu", i);
}

static int64_t n_running(void)
{
    return pg_fixture_i64(s.url, "select coalesce(sum(n_running), 0) from sweep");
}

/* Fill the slots of both sides alike. */
static void claim_all(void)
{
    for (;;) {
        struct claim_list got = claim(&s, "r", epoch, 64);
        if (got.n == 0)
            return;
    }
}

static void make_sides(const char *limits, const char *more)
{
    for (int i = 0; i < SWEEPS; i++) {
        char l[8], r[8];
        (void)snprintf(l, sizeof l, "l%d", i);
        (void)snprintf(r, sizeof r, "r%d", i);
        make_sweep(&s, l, limits, more);
        make_sweep(&s, r, limits, more);
    }
    claim_all();
}

/* How often a round may name the same thing. */
enum spread { MANY_OF_A_TRIAL, ONE_OF_A_TRIAL, ONE_OF_A_SWEEP };

static bool is_there(const struct action *actions, size_t n, const struct action *x)
{
    for (size_t i = 0; i < n; i++)
        if (actions[i].sweep == x->sweep && actions[i].number == x->number)
            return true;
    return false;
}

/* Run the actions on both sides. */
static void run_round(const struct action *actions, size_t n)
{
    struct member *l[48], *r[48];
    for (size_t i = 0; i < n; i++) {
        l[i] = member_of(&actions[i], 'l');
        r[i] = member_of(&actions[i], 'r');
        commit_alone(s.db, NULL, &r[i]->m);
    }
    members_commit(committer, l, n);
    for (size_t i = 0; i < n; i++) {
        same_answer(&actions[i], l[i], r[i]);
        member_free(l[i]);
        member_free(r[i]);
    }
    claim_all();
}

/* As run_schedule(), with early stopping. */
static void run_stopping(uint64_t seed, int rounds)
{
    struct rng rng;
    rng_init(&rng, seed, 0);
    for (int round = 0; round < rounds && n_running() > 0; round++) {
        struct action actions[48];
        size_t n = 0;
        for (int tries = 0; tries < 200 && n < AS_ARRAY_LEN(actions); tries++) {
            struct action x = draw_stopping(&rng);
            if (!is_there(actions, n, &x))
                actions[n++] = x;
        }
        run_round(actions, n);
    }
    same_tables();
}

/* Rounds in which trials report at a rung and end, both in one batch. */
static void run_pairs(uint64_t seed)
{
    static const int ends[] = {DO_PAUSE, DO_PAUSE, DO_PAUSE, DO_PRUNE, DO_COMPLETE, DO_RELEASE};
    struct rng rng;
    rng_init(&rng, seed, 0);
    for (int round = 0; round < 8; round++) {
        struct action actions[48];
        for (size_t i = 0; i < AS_ARRAY_LEN(actions); i += 2) {
            struct action x = {.sweep = (int)(i / 2) % SWEEPS, .number = (int)i / 2 % 12 + round};
            char sql[200];
            (void)snprintf(sql, sizeof sql,
                           "select greatest(t.attempt, 1) * 100 + (1 << rung) from trial t join "
                           "sweep s on s.key = t.sweep_key where s.id = 'l%d' and number = %d",
                           x.sweep, x.number);
            int64_t at = pg_fixture_i64(s.url, sql);
            x.attempt = at / 100;
            x.step = at % 100;
            if (x.step > 4) /* it was at the last rung: an end after a repeated step runs alone */
                x.number = TRIALS;
            x.loss = (double)rng_below(&rng, 100) / 100;
            actions[i] = actions[i + 1] = x;
            actions[i].kind = DO_RECORD;
            actions[i + 1].kind = ends[rng_below(&rng, AS_ARRAY_LEN(ends))];
        }
        run_round(actions, AS_ARRAY_LEN(actions));
    }
    same_tables();
}

/* `rounds` rounds of actions, once in batches and once alone. */
static void run_schedule(uint64_t seed, enum spread spread, int rounds)
{
    struct rng rng;
    rng_init(&rng, seed, 0);
    for (int round = 0; round < rounds && n_running() > 0; round++) {
        struct action actions[48];
        size_t n = 0;
        while (n < AS_ARRAY_LEN(actions)) {
            struct action x = draw(&rng);
            bool is_there = false;
            for (size_t i = 0; i < n; i++)
                is_there |= actions[i].sweep == x.sweep &&
                            (actions[i].number == x.number || spread == ONE_OF_A_SWEEP);
            if (is_there && spread != MANY_OF_A_TRIAL)
                break;
            actions[n++] = x;
        }
        run_round(actions, n);
    }
    same_tables();
}

/* No batch was given up, and most members were in one. */
static void check_batched(void)
{
    struct committer_figures f;
    committer_figures_get(committer, &f);
    ck_assert_int_eq(f.fallbacks, 0);
    ck_assert_int_gt(f.members, f.alone);
}

static void equal_to_one_at_a_time(uint64_t seed)
{
    make_sides("'max_trials': 24, 'max_restarts': 1, 'trial_timeout': '1h'", ", 'ensemble': false");
    run_schedule(seed + 1, ONE_OF_A_TRIAL, 20);
    check_batched();
}

static void equal_with_several_of_a_trial(uint64_t seed)
{
    make_sides("'max_trials': 24, 'max_restarts': 2, 'trial_timeout': '1h'", ", 'ensemble': false");
    run_schedule(seed + 100, MANY_OF_A_TRIAL, 6);
}

static void equal_with_objectives_and_bounds(uint64_t seed)
{
    make_sides("'max_trials': 24, 'max_failed_trials': 30, 'trial_timeout': '1h', 'on_timeout': "
               "'keep'",
               ", 'ensemble': false, "
               "'constraints': [{'metric': 'acc', 'min': 0.3}]");
    run_schedule(seed + 200, ONE_OF_A_TRIAL, 20);
}

static void equal_with_a_target_and_few_failures(uint64_t seed)
{
    make_sides("'max_trials': 24, 'max_failed_trials': 4, 'target': 0.02", ", 'ensemble': false");
    run_schedule(seed + 300, ONE_OF_A_SWEEP, 40);
}

/* Sweeps of 24 trials with rungs at 1, 2 and 4. */
static void make_stopping_sides(const char *mode)
{
    for (int i = 0; i < 2 * SWEEPS; i++) {
        char text[1000];
        struct sweep_row row;
        (void)snprintf(text, sizeof text,
                       "{'name': '%c%d', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                       "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'search': "
                       "{'method': 'random', 'seed': 7}, 'limits': {'max_trials': 24, "
                       "'max_restarts': 2}, 'ensemble': false, 'trial': {'command': ['true', "
                       "'${x}'], 'checkpoints': true}, 'early_stopping': {'method': 'asha', "
                       "'min_steps': 1, 'max_steps': 4, 'eta': 2, 'mode': '%s'}}",
                       i % 2 ? 'r' : 'l', i / 2, mode);
        json_t *doc = json_of(text);
        ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
        json_decref(doc);
    }
    claim_all();
}

static void equal_with_early_stopping(uint64_t seed)
{
    make_stopping_sides(seed % 2 ? "stop" : "pause");
    if (seed < 4)
        run_stopping(seed + 400, 12);
    else
        run_pairs(seed + 400);
    check_batched();
    if (seed < 4)
        return; /* too random to say how much was decided */
    ck_assert_int_gt(pg_fixture_i64(s.url, "select count(*) from rung_result where decision <> "
                                           "'go_on'"),
                     10);
    if (seed % 2 == 0)
        ck_assert_int_gt(pg_fixture_i64(s.url, "select min(n_promoted) from sweep"), 2);
}

/* ---- forks ---- */

/* Sweeps of a population of 12 and at most 40 trials, compared at each of 5 steps. */
static void make_populations(void)
{
    for (int i = 0; i < 2 * SWEEPS; i++) {
        char text[1000];
        struct sweep_row row;
        (void)snprintf(text, sizeof text,
                       "{'name': '%c%d', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                       "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'search': "
                       "{'method': 'random', 'seed': 7}, 'limits': {'max_trials': 40, "
                       "'max_restarts': 2}, 'ensemble': false, 'trial': {'command': ['true', "
                       "'${x}'], 'checkpoints': true}, 'early_stopping': {'method': 'pbt', "
                       "'population': 12, 'period': 1, 'max_steps': 5, 'quantile': 0.4}}",
                       i % 2 ? 'r' : 'l', i / 2);
        json_t *doc = json_of(text);
        ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
        json_decref(doc);
    }
    claim_all();
}

/* What both sides of a trial keep for forks. */
static void keep_both(const struct action *x)
{
    char sha[SHA256_HEX_SIZE], bytes[40];
    (void)snprintf(bytes, sizeof bytes, "%d/%d at %d", x->sweep, x->number, (int)x->step);
    put_blob(&s, bytes, sha);
    for (int side = 0; side < 2; side++) {
        char id[8];
        const struct file_row file = {.path = "s", .size = (int64_t)strlen(bytes), .sha256 = sha};
        (void)snprintf(id, sizeof id, "%c%d", side ? 'r' : 'l', x->sweep);
        const struct attempt_ref ref = {id, x->number, x->attempt};
        (void)!attempt_keep(s.db, &ref, NULL, x->step, &file, 1, &err); /* it may run no more */
    }
}

/* Each round all running trials report at their next rungs; most of those that are told to end do.
 */
static size_t draw_reports(struct rng *rng, struct action *actions, size_t most)
{
    size_t n = 0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        char id[8];
        (void)snprintf(id, sizeof id, "l%d", sweep);
        int total = (int)sweep_of_id(&s, id).counts.total;
        for (int number = 0; number < total && n + 2 <= most; number++) {
            struct trial_row row = trial_of(&s, id, number);
            int64_t at = row.has_step ? row.step : row.is_fork ? row.fork_step : 0;
            struct action x = {.kind = DO_RECORD,
                               .sweep = sweep,
                               .number = number,
                               .attempt = row.attempt,
                               .step = at + 1,
                               .loss = (double)rng_below(rng, 100) / 100};
            if (row.state != TRIAL_RUNNING || at == 5 || rng_below(rng, 4) == 0)
                continue;
            keep_both(&x);
            actions[n++] = x;
            x.kind = x.step == 5 ? DO_COMPLETE : DO_PRUNE;
            if (rng_below(rng, 4) > 0)
                actions[n++] = x;
        }
    }
    return n;
}

static void equal_with_forks(uint64_t seed)
{
    struct rng rng;
    make_populations();
    rng_init(&rng, seed + 900, 0);
    for (int round = 0; round < 8 && n_running() > 0; round++) {
        struct action actions[48];
        size_t n = draw_reports(&rng, actions, AS_ARRAY_LEN(actions));
        run_round(actions, n);
    }
    same_tables();
    struct committer_figures f;
    committer_figures_get(committer, &f);
    ck_assert_int_eq(f.fallbacks, 0);
    ck_assert_int_ge(pg_fixture_i64(s.url, "select count(*) from trial where parent is not null"),
                     10);
    /* that they have what their parents had kept; checkpoints go with the ends of trials */
    ck_assert_int_ge(pg_fixture_i64(s.url,
                                    "select count(*) from event_each where reason like 'it goes on "
                                    "from trial %' and reason not like '%left no "
                                    "checkpoint%'"),
                     10);
}

/* ---- clients ---- */

#define CLIENTS 3
#define CLIENT_ROUNDS 24

static const char *const clients[CLIENTS] = {"ada", "bob", "cy"};
static const char *const tokens[CLIENTS] = {"t-ada", "t-bob", "t-cy"};

/* An ask; `req` lives as long as the member. */
static struct member *member_ask(char side, int sweep, int client, int64_t count)
{
    struct member *x = member_record((struct attempt_ref){"-", 0, 0}, 0, 0);
    struct ask_request *req = arena_alloc(&x->a, 1, sizeof *req);
    ck_assert_ptr_nonnull(req);
    *req = (struct ask_request){.sweep = arena_printf(&x->a, "%c%d", side, sweep),
                                .client = clients[client],
                                .token = tokens[client],
                                .count = count,
                                .lease_ms = 600000,
                                .is_last = true};
    x->m.kind = COMMIT_ASK;
    x->m.in.ask = req;
    return x;
}

static void same_asked(const struct member *l, const struct member *r)
{
    const struct suggestion_list *a = &l->m.out.asked, *b = &r->m.out.asked;
    ck_assert_int_eq(l->m.status, r->m.status);
    same_text(l->m.err.msg, r->m.err.msg);
    if (l->m.status != AS_OK)
        return;
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_int_eq(a->done, b->done);
    for (size_t i = 0; i < a->n; i++) {
        ck_assert_int_eq(a->rows[i].number, b->rows[i].number);
        ck_assert_int_eq(a->rows[i].attempt, b->rows[i].attempt);
        ck_assert_str_eq(a->rows[i].params, b->rows[i].params);
    }
}

/* What a client may say, and what it may not. */
static struct action draw_told(struct rng *rng)
{
    static const int kinds[] = {DO_RECORD,      DO_RECORD_MANY, DO_COMPLETE, DO_COMPLETE_WITH,
                                DO_COMPLETE_AT, DO_FAIL,        DO_RELEASE,  DO_RETRY,
                                DO_BAD_METRIC,  DO_BAD_SWEEP};
    struct action x = draw(rng);
    size_t client = rng_below(rng, CLIENTS);
    x.kind = kinds[rng_below(rng, AS_ARRAY_LEN(kinds))];
    x.number = (int)rng_below(rng, 6);
    x.attempt = rng_below(rng, 2) ? 0 : x.attempt;
    x.client = clients[client];
    x.token = rng_below(rng, 4) ? tokens[client] : rng_below(rng, 2) ? NULL : tokens[0];
    return x;
}

/* A report extends the lease of its client. All leases had run out before. */
static void check_extended(const struct action *x)
{
    char query[200];
    (void)snprintf(query, sizeof query,
                   "select count(*) from client c join sweep s on s.key = c.sweep_key where "
                   "right(s.id, 1) = '%d' and c.name = '%s' and c.expires_at > now()",
                   x->sweep, x->client);
    ck_assert_int_eq(pg_fixture_i64(s.url, query), 2);
}

/* Asks and results of clients together: an ask runs alone, in its place among the others. */
static void run_client_round(struct rng *rng)
{
    struct action actions[20];
    struct member *l[21], *r[21];
    int sweep = (int)rng_below(rng, SWEEPS), client = (int)rng_below(rng, CLIENTS);
    int64_t count = 2 + (int64_t)rng_below(rng, 3);
    size_t n = 0;
    l[0] = member_ask('l', sweep, client, count);
    r[0] = member_ask('r', sweep, client, count);
    members_commit(committer, l, 1);
    commit_alone(s.db, NULL, &r[0]->m);
    same_asked(l[0], r[0]);
    member_free(l[0]);
    member_free(r[0]);
    while (n < AS_ARRAY_LEN(actions)) {
        struct action x = draw_told(rng);
        for (size_t i = 0; i < n; i++)
            if (actions[i].sweep == x.sweep && actions[i].number == x.number)
                x.sweep = -1;
        if (x.sweep < 0)
            break;
        actions[n++] = x;
    }
    pg_fixture_exec(s.url, "update client set expires_at = now() - interval '1 s'");
    for (size_t i = 0; i < n; i++) {
        l[i] = member_of(&actions[i], 'l');
        r[i] = member_of(&actions[i], 'r');
        commit_alone(s.db, NULL, &r[i]->m);
    }
    members_commit(committer, l, n);
    for (size_t i = 0; i < n; i++) {
        same_answer(&actions[i], l[i], r[i]);
        if (l[i]->m.status == AS_OK && l[i]->m.kind == COMMIT_RECORD)
            check_extended(&actions[i]);
        member_free(l[i]);
        member_free(r[i]);
    }
}

static void equal_for_clients(uint64_t seed)
{
    struct rng rng;
    struct committer_figures f;
    rng_init(&rng, seed + 400, 0);
    for (int i = 0; i < SWEEPS; i++)
        for (int side = 0; side < 2; side++) {
            char id[8];
            (void)snprintf(id, sizeof id, "%c%d", "lr"[side], i);
            make_sweep(&s, id, "'max_trials': 16, 'max_restarts': 1", ", 'ensemble': false");
        }
    for (int round = 0; round < CLIENT_ROUNDS; round++)
        run_client_round(&rng);
    same_tables();
    committer_figures_get(committer, &f);
    ck_assert_int_eq(f.fallbacks, 0);
    ck_assert_int_gt(f.members, CLIENT_ROUNDS);
    ck_assert_int_gt(pg_fixture_i64(s.url, "select count(*) from attempt where outcome is not null "
                                           "and client is not null"),
                     8);
}

static const struct {
    void (*run)(uint64_t seed);
    uint64_t seeds;
} schedules[] = {
    {equal_to_one_at_a_time, 2},
    {equal_with_several_of_a_trial, 2},
    {equal_with_objectives_and_bounds, 2},
    {equal_with_a_target_and_few_failures, 2},
    {equal_with_early_stopping, 6},
    {equal_for_clients, 3},
    {equal_with_forks, 2},
};

START_TEST(equal)
{
    for (uint64_t seed = 0; seed < schedules[_i].seeds; seed++) {
        if (seed > 0)
            start_over();
        schedules[_i].run(seed);
    }
}
END_TEST

/* One statement for many: a round of ends is one batch, and the last one ends its sweep alone. */
START_TEST(a_batch_has_a_fixed_number_of_transactions)
{
    struct member *l[TRIALS];
    struct committer_figures f;
    make_sweep(&s, "a", "'max_trials': 24", ", 'ensemble': false");
    claim_all();
    for (int i = 0; i < TRIALS; i++) {
        l[i] = member_end((struct attempt_ref){"a", i, 1}, OUTCOME_COMPLETED);
        member_final(l[i], i);
    }
    members_commit(committer, l, TRIALS);
    for (int i = 0; i < TRIALS; i++) {
        ck_ok(l[i]->m.status, l[i]->m.err);
        ck_assert_int_eq(l[i]->m.out.trial.state, TRIAL_COMPLETED);
        ck_assert_int_eq(l[i]->m.out.trial.finish_seq, i + 1);
        member_free(l[i]);
    }
    committer_figures_get(committer, &f);
    ck_assert_int_eq(f.batches, 1);
    ck_assert_int_eq(f.members, TRIALS - 1);
    ck_assert_int_eq(f.alone, 1);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FINISHING);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("commit_batch");
    TCase *t = service_case(suite, "batch", &s, 0);
    tcase_add_checked_fixture(t, begin, end_committer);
    tcase_add_loop_test(t, equal, 0, (int)AS_ARRAY_LEN(schedules));
    tcase_add_test(t, a_batch_has_a_fixed_number_of_transactions);
    return suite;
}
