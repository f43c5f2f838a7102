/* The functions of scheduler/store/ that one operation at a time uses, on the tables of tables.h:
 * they take the place of the real ones when the program is linked. A function that is not here is
 * the real one, and ends the program with the name of its statement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/gathering_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/note_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/seat_store.h"
#include "scheduler/store/sweep_change_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_held_store.h"
#include "scheduler/store/trial_move_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/turn_store.h"
#include "tests/simulation/fibers.h"
#include "tests/simulation/tables.h"
#include "tests/support/check_main.h"

as_status tx_query(struct tx *t, const struct stmt *s, const struct args *a, struct result *ret,
                   struct as_err *err)
{
    (void)t;
    (void)a;
    (void)ret;
    (void)err;
    ck_abort_msg("the simulation has no statement '%s'", s->name);
}

as_status tx_exec(struct tx *t, const struct stmt *s, const struct args *a, int *ret_affected,
                  struct as_err *err)
{
    (void)ret_affected;
    return tx_query(t, s, a, NULL, err);
}

/* ---- sweeps ---- */

as_status store_sweep_lock(struct tx *t, struct arena *a, int64_t key, struct sweep_head *ret,
                           struct as_err *err)
{
    struct sweep_locked row;
    as_status st = sim_statement(t, err);
    struct sim_sweep *s = sim_sweep_of(t, key);
    if (st == AS_OK && !s)
        return as_fail(err, AS_E_NOT_FOUND, "no sweep");
    if (st == AS_OK)
        st = sim_lock(t, &s->row, true, err);
    if (st != AS_OK)
        return st;
    sim_fill_sweep(t, a, s, &row);
    *ret = row.head;
    return AS_OK;
}

as_status store_sweep_move(struct tx *t, int64_t key, sweep_state from, sweep_state to,
                           const char *reason, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    if (st != AS_OK)
        return st;
    struct sim_sweep *s = SIM_EDIT(t, sim_sweep_of(t, key));
    if (s->state != from)
        return as_fail(err, AS_E_CONFLICT, "the sweep is no longer %s", sweep_state_format(from));
    s->state = to;
    (void)snprintf(s->reason, sizeof s->reason, "%s", reason ? reason : "");
    return AS_OK;
}

as_status store_sweep_target(struct tx *t, int64_t key, struct sweep_target *ret,
                             struct as_err *err)
{
    as_status st = sim_statement(t, err);
    const struct sim_sweep *s = SIM_SEE(t, sim_sweep_of(t, key));
    int64_t first = INT64_MAX;
    if (st != AS_OK)
        return st;
    for (int i = 0; i < SIM_TRIALS; i++) {
        const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[key - 1][i]);
        if (!x->is_there || x->state != TRIAL_COMPLETED || !x->feasible ||
            x->latest[0] > s->target || x->finish_seq > first)
            continue;
        first = x->finish_seq;
        *ret = (struct sweep_target){i, x->latest[0], s->target};
    }
    return first < INT64_MAX ? AS_OK : as_fail(err, AS_E_NOT_FOUND, "none has reached the target");
}

as_status store_sweep_search(struct tx *t, struct arena *a, int64_t key, struct sweep_making *ret,
                             struct as_err *err)
{
    (void)a;
    as_status st = sim_statement(t, err);
    if (st == AS_OK)
        *ret = (struct sweep_making){.document = sim_sweep_of(t, key)->document};
    return st;
}

as_status store_sweep_started(struct tx *t, int64_t key, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    if (st == AS_OK)
        SIM_EDIT(t, sim_sweep_of(t, key))->has_started = true;
    return st;
}

/* ---- trials ---- */

as_status store_trial_lock(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           struct trial_head *ret, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    struct sim_trial *x = sim_trial_of(t, sweep_key, number);
    if (st == AS_OK && !x)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    if (st == AS_OK)
        st = sim_lock(t, &x->row, true, err);
    if (st == AS_OK)
        *ret = sim_head_of(t, a, sweep_key, number);
    return st;
}

static as_status lock_heads(struct tx *t, struct arena *a, int64_t key, const bool *wanted,
                            struct trial_list_heads *ret, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    *ret = (struct trial_list_heads){.rows = arena_alloc(a, SIM_TRIALS, sizeof *ret->rows)};
    for (int i = 0; i < SIM_TRIALS && st == AS_OK; i++) {
        struct sim_trial *x = sim_trial_of(t, key, i);
        if (!x || !wanted[i])
            continue;
        st = sim_lock(t, &x->row, true, err);
        if (st == AS_OK)
            ret->rows[ret->n++] = sim_head_of(t, a, key, i);
    }
    return st;
}

as_status store_trial_lock_many(struct tx *t, struct arena *a, const struct trial_head *heads,
                                size_t n, struct trial_list_heads *ret, struct as_err *err)
{
    bool wanted[SIM_TRIALS] = {false};
    for (size_t i = 0; i < n; i++)
        wanted[heads[i].number] = true;
    return lock_heads(t, a, heads[0].sweep_key, wanted, ret, err);
}

as_status store_trial_lock_live(struct tx *t, struct arena *a, int64_t sweep_key, int64_t after,
                                int64_t limit, struct trial_list_heads *ret, struct as_err *err)
{
    bool wanted[SIM_TRIALS] = {false};
    (void)limit;
    for (int i = 0; i < SIM_TRIALS; i++)
        wanted[i] =
            i > after &&
            !trial_state_is_final(SIM_SEE(t, &sim_tables_of(t)->trials[sweep_key - 1][i])->state);
    return lock_heads(t, a, sweep_key, wanted, ret, err);
}

as_status store_trial_held(struct tx *t, struct arena *a, const char *runner,
                           const struct attempt_ref *but, size_t n, struct trial_list_heads *ret,
                           struct as_err *err)
{
    as_status st = sim_statement(t, err);
    *ret = (struct trial_list_heads){
        .rows = arena_alloc(a, (size_t)SIM_SWEEPS * SIM_TRIALS, sizeof *ret->rows)};
    for (int64_t key = 1; key <= SIM_SWEEPS && st == AS_OK; key++)
        for (int i = 0; i < SIM_TRIALS; i++) {
            const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[key - 1][i]);
            bool is_left_out =
                !x->is_there || x->state != TRIAL_RUNNING || !as_streq(x->runner, runner);
            for (size_t k = 0; k < n; k++)
                is_left_out |= but[k].number == i && but[k].attempt == x->attempt &&
                               as_streq(but[k].sweep, sim_tables_of(t)->sweeps[key - 1].id);
            if (!is_left_out)
                ret->rows[ret->n++] = sim_head_of(t, a, key, i);
        }
    return st;
}

as_status store_trial_get(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          struct trial_row *ret, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    if (st == AS_OK)
        sim_fill_trial(t, a, sweep_key, number, ret);
    return st;
}

as_status store_trial_measured(struct tx *t, int64_t sweep_key, int64_t number,
                               const char *const *metrics, size_t n, double *ret, bool *ret_has,
                               struct as_err *err)
{
    as_status st = sim_statement(t, err);
    const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[sweep_key - 1][number]);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        for (int m = 0; m < SIM_METRICS; m++)
            if (as_streq(metrics[i], sim_metrics[m])) {
                ret_has[i] = x->has[m];
                ret[i] = x->latest[m];
            }
    return st;
}

as_status store_trial_move_many(struct tx *t, const struct trial_moved *moves, size_t n,
                                struct as_err *err)
{
    as_status st = n > 0 ? sim_statement(t, err) : AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = sim_move_trial(t, &moves[i], true, err);
    return st;
}

/* ---- attempts ---- */

as_status store_attempt_end_many(struct tx *t, const struct attempt_ended *ends, size_t n,
                                 struct as_err *err)
{
    as_status st = n > 0 ? sim_statement(t, err) : AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        sim_end_attempt(t, &ends[i]);
    return st;
}

as_status store_gang_over_many(struct tx *t, const struct gang_over *gangs, size_t n,
                               struct as_err *err)
{
    (void)t;
    (void)gangs;
    (void)err;
    ck_assert_uint_eq(n, 0);
    return AS_OK;
}

as_status store_attempt_holder(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                               struct attempt_holder *ret, struct as_err *err)
{
    (void)a;
    as_status st = sim_statement(t, err);
    *ret = (struct attempt_holder){0};
    for (int64_t key = 1; key <= SIM_SWEEPS && st == AS_OK; key++) {
        if (!as_streq(sim_tables_of(t)->sweeps[key - 1].id, ref->sweep))
            continue;
        const struct sim_trial *x = sim_trial_of(t, key, ref->number);
        ret->sweep_key = key;
        ret->is_there = x && SIM_SEE(t, x)->attempt >= ref->attempt && ref->attempt > 0;
        return AS_OK;
    }
    return st == AS_OK ? as_fail(err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", ref->sweep) : st;
}

as_status store_attempt_reported(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                                 int64_t attempt, const char **ret, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[sweep_key - 1][number]);
    *ret = NULL;
    if (st == AS_OK && attempt >= 1 && attempt <= x->attempt && x->attempts[attempt].reported[0])
        *ret = arena_strdup(a, x->attempts[attempt].reported);
    return st;
}

/* Does this claim hold the trial now? */
static bool is_claimed(const struct sim_trial *x, const char *runner, int64_t epoch,
                       const char *claim_id)
{
    return x->is_there && x->state == TRIAL_RUNNING && x->epoch == epoch &&
           as_streq(x->runner, runner) && as_streq(x->attempts[x->attempt].claim_id, claim_id);
}

as_status store_attempt_claimed(struct tx *t, struct arena *a, const char *runner, int64_t epoch,
                                const char *claim_id, struct attempt_claimed **ret, size_t *ret_n,
                                struct as_err *err)
{
    as_status st = sim_statement(t, err);
    struct attempt_claimed *rows = arena_alloc(a, (size_t)SIM_SWEEPS * SIM_TRIALS, sizeof *rows);
    size_t n = 0;
    for (int64_t key = 1; key <= SIM_SWEEPS && st == AS_OK; key++)
        for (int i = 0; i < SIM_TRIALS; i++) {
            const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[key - 1][i]);
            const struct sim_sweep *s = &sim_tables_of(t)->sweeps[key - 1];
            if (!is_claimed(x, runner, epoch, claim_id))
                continue;
            bool is_first = n == 0 || rows[n - 1].sweep_key != key;
            rows[n++] = (struct attempt_claimed){.sweep_key = key,
                                                 .document = is_first ? s->document : NULL,
                                                 .row = {.sweep = arena_strdup(a, s->id),
                                                         .number = i,
                                                         .attempt = x->attempt,
                                                         .seed = x->seed,
                                                         .params = arena_strdup(a, x->params),
                                                         .metric = sim_metrics[0],
                                                         .timeout_ms = s->trial_timeout_ms}};
        }
    *ret = rows;
    *ret_n = n;
    return st;
}

as_status store_attempt_claim_count(struct tx *t, const char *runner, int64_t epoch,
                                    const char *claim_id, int64_t *ret_trials, int64_t *ret_slots,
                                    struct as_err *err)
{
    as_status st = sim_statement(t, err);
    *ret_trials = 0;
    for (int i = 0; i < SIM_SWEEPS * SIM_TRIALS && st == AS_OK; i++)
        *ret_trials +=
            is_claimed(SIM_SEE(t, &sim_tables_of(t)->trials[i / SIM_TRIALS][i % SIM_TRIALS]),
                       runner, epoch, claim_id);
    *ret_slots = *ret_trials;
    return st;
}

/* ---- measurements, notes, events ---- */

as_status store_measurement_add(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                const struct measurement *points, size_t n, struct measured *ret,
                                struct as_err *err)
{
    const struct trial_points p = {
        .sweep_key = sweep_key, .number = number, .attempt = attempt, .points = points, .n = n};
    *ret = (struct measured){0};
    as_status st = n > 0 ? sim_statement(t, err) : AS_OK;
    if (st == AS_OK && n > 0)
        *ret = sim_add_points(t, &p);
    return st;
}

as_status store_measurement_latest_step(struct tx *t, int64_t sweep_key, int64_t number,
                                        int64_t attempt, int64_t *ret, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[sweep_key - 1][number]);
    *ret = sim_latest_step(&x->attempts[attempt]);
    return st;
}

as_status store_measurement_other(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                  const struct measurement *points, size_t n,
                                  struct measured_other *ret, struct as_err *err)
{
    const struct trial_points p = {
        .sweep_key = sweep_key, .number = number, .attempt = attempt, .points = points, .n = n};
    as_status st = sim_statement(t, err);
    *ret = sim_compare_points(t, &p);
    return st;
}

as_status store_note_put(struct tx *t, int64_t sweep_key, int64_t number,
                         const struct trial_note *notes, size_t n, struct as_err *err)
{
    const struct trial_notes set = {
        .sweep_key = sweep_key, .number = number, .notes = notes, .n = n};
    as_status st = sim_statement(t, err);
    if (st == AS_OK)
        sim_put_notes(t, &set);
    return st;
}

as_status store_event_add(struct tx *t, const struct event_new *e, struct as_err *err)
{
    return store_event_add_many(t, e, 1, err);
}

as_status store_event_add_many(struct tx *t, const struct event_new *events, size_t n,
                               struct as_err *err)
{
    as_status st = n > 0 ? sim_statement(t, err) : AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        sim_add_event(t, &events[i]);
    return st;
}

/* ---- runners ---- */

as_status store_runner_claims(struct tx *t, struct arena *a, const char *name,
                              const struct attempt_ref *ending, size_t n, int64_t sweep_key,
                              struct runner_head *ret, struct runner_ending *ret_ending,
                              struct as_err *err)
{
    int64_t keys[SIM_SWEEPS * SIM_TRIALS], n_ending = 0;
    const char *text = "";
    as_status st = sim_statement(t, err);
    struct sim_runner *row = sim_runner_of(t, name);
    if (st == AS_OK && (!row || !SIM_SEE(t, row)->is_there))
        return as_fail(err, AS_E_NOT_FOUND, "no runner '%.63s' is registered", name);
    if (st != AS_OK)
        return st;
    const struct sim_runner *r = SIM_SEE(t, row);
    int64_t running = sim_held(t, name, ending, n, &n_ending, keys);
    *ret_ending = (struct runner_ending){0};
    for (int64_t i = 0; i < n_ending; i++) {
        text = arena_printf(a, "%s%s%lld", text, *text ? "," : "", (long long)keys[i]);
        ret_ending->here += keys[i] == sweep_key;
    }
    ret_ending->sweeps = arena_printf(a, "{%s}", text);
    *ret = (struct runner_head){.epoch = r->epoch,
                                .state = r->is_live ? "live" : "lost",
                                .slots = r->slots,
                                .running = running,
                                .used = running - n_ending};
    return AS_OK;
}

as_status store_runner_extend(struct tx *t, const struct runner_id *id, int64_t lease_ms,
                              bool *ret_done, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    struct sim_runner *row = sim_runner_of(t, id->name);
    if (st == AS_OK)
        st = sim_lock(t, &row->row, true, err);
    if (st != AS_OK)
        return st;
    const struct sim_runner *r = SIM_SEE(t, row);
    *ret_done = r->is_live && r->epoch == id->epoch;
    if (*ret_done)
        SIM_EDIT(t, row)->expires_ns = sim_now_ns() + lease_ms * NS_PER_MS;
    return AS_OK;
}

as_status store_runner_lose(struct tx *t, const char *name, bool *ret_done, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    struct sim_runner *row = sim_runner_of(t, name);
    if (st == AS_OK)
        st = sim_lock(t, &row->row, true, err);
    if (st != AS_OK)
        return st;
    const struct sim_runner *r = SIM_SEE(t, row);
    *ret_done = r->is_live && r->expires_ns < sim_now_ns();
    if (*ret_done)
        SIM_EDIT(t, row)->is_live = false;
    return AS_OK;
}

as_status store_seat_holds(struct tx *t, const char *runner, const struct seat_ref *seats, size_t n,
                           int64_t *ret, struct as_err *err)
{
    (void)runner;
    (void)seats;
    ck_assert_uint_eq(n, 0);
    *ret = 0;
    return sim_statement(t, err);
}

as_status store_gathering_news(struct tx *t, const struct runner_id *id, struct gathering_news *ret,
                               struct as_err *err)
{
    (void)id;
    *ret = (struct gathering_news){0};
    return sim_statement(t, err);
}

as_status store_file_list(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          const char *kind, struct file_list *ret, struct as_err *err)
{
    (void)a;
    (void)sweep_key;
    (void)number;
    (void)kind;
    *ret = (struct file_list){0};
    return sim_statement(t, err);
}

/* ---- turns ---- */

/* How often a key stands in "{1,2}". */
static int64_t count_key(const char *keys, int64_t key)
{
    int64_t n = 0;
    char *end = NULL;
    for (const char *s = keys + 1; *s && *s != '}'; s = *end == ',' ? end + 1 : end)
        n += strtoll(s, &end, 10) == key;
    return n;
}

/* Does one sweep come before the other? `running`: of each */
static bool goes_first(const struct sim_sweep *a, int64_t a_running, const struct sim_sweep *b,
                       int64_t b_running, int64_t floor)
{
    int64_t a_turns = a->turns > floor ? a->turns : floor;
    int64_t b_turns = b->turns > floor ? b->turns : floor;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a_running != b_running)
        return a_running < b_running;
    if (a_turns != b_turns)
        return a_turns < b_turns;
    return a->served != b->served ? a->served < b->served : a < b;
}

int64_t sim_ahead_room(const struct sim_sweep *s)
{
    int64_t left = s->counts.by_state[TRIAL_QUEUED] + s->planned - s->counts.total;
    int64_t spare = left - s->counts.by_state[TRIAL_RUNNING];
    return s->max_concurrent > 0 || spare < 0 ? 0 : spare / 2;
}

as_status store_turn_list(struct tx *t, struct arena *a, const struct claimable_query *q,
                          struct claimable_sweep **ret, size_t *ret_n, struct as_err *err)
{
    struct claimable_sweep *rows = arena_alloc(a, SIM_SWEEPS, sizeof *rows);
    struct sim_sweep *sweeps = sim_tables_of(t)->sweeps;
    size_t n = 0;
    int64_t floor = -8;
    as_status st = sim_statement(t, err);
    for (int i = 0; i < SIM_SWEEPS; i++)
        if (sweeps[i].is_there && sweeps[i].state == SWEEP_RUNNING && sweeps[i].turns - 8 > floor)
            floor = sweeps[i].turns - 8;
    for (int64_t key = 1; key <= SIM_SWEEPS && st == AS_OK; key++) {
        const struct sim_sweep *s = &sweeps[key - 1];
        int64_t all = s->counts.by_state[TRIAL_RUNNING];
        if (!s->is_there || s->state != SWEEP_RUNNING ||
            (s->counts.by_state[TRIAL_QUEUED] == 0 && s->counts.total >= s->planned) ||
            (s->max_concurrent > 0 && all >= s->max_concurrent))
            continue;
        struct claimable_sweep row = {.key = key,
                                      .priority = s->priority,
                                      .running = all - count_key(q->ending, key),
                                      .fits = true,
                                      .ahead_room = sim_ahead_room(s)};
        size_t i = n++;
        for (; i > 0 &&
               goes_first(s, row.running, &sweeps[rows[i - 1].key - 1], rows[i - 1].running, floor);
             i--)
            rows[i] = rows[i - 1];
        rows[i] = row;
    }
    *ret = rows;
    *ret_n = n;
    return st;
}

/* ---- trials that begin ---- */

as_status store_assignment_queue(struct tx *t, struct arena *a, int64_t sweep_key, int64_t limit,
                                 struct queued_trial **ret, size_t *ret_n, struct as_err *err)
{
    struct queued_trial *rows = arena_alloc(a, SIM_TRIALS, sizeof *rows);
    size_t n = 0;
    as_status st = sim_statement(t, err);
    for (int i = 0; i < SIM_TRIALS && st == AS_OK && (int64_t)n < limit; i++) {
        const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[sweep_key - 1][i]);
        if (x->is_there && x->state == TRIAL_QUEUED)
            rows[n++] = (struct queued_trial){.number = i, .attempt = x->attempt};
    }
    *ret = rows;
    *ret_n = n;
    return st;
}

static as_status begin_one(struct tx *t, const struct sweep_head *s, const struct owner *owner,
                           const struct made_trial *made, bool is_made, struct as_err *err)
{
    as_status st = sim_begin_trial(t, s->key, made, is_made, owner, err);
    if (st != AS_OK)
        return st;
    sim_add_event(t, &(struct event_new){
                         .type = "trial.changed",
                         .sweep_key = s->key,
                         .has_number = true,
                         .number = made->number,
                         .state = "running",
                         .attempt = SIM_SEE(t, sim_trial_of(t, s->key, made->number))->attempt});
    return AS_OK;
}

as_status store_assignment_begin(struct tx *t, const struct sweep_head *s,
                                 const struct owner *owner, const struct begun_trial *rows,
                                 size_t n, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = begin_one(t, s, owner, &(struct made_trial){.number = rows[i].number}, false, err);
    if (st == AS_OK)
        sim_count_turns(t, s->key, (int64_t)n);
    return st;
}

as_status store_assignment_add(struct tx *t, const struct sweep_head *s, const struct owner *owner,
                               const struct made_trial *rows, size_t n, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = begin_one(t, s, owner, &rows[i], true, err);
    if (st == AS_OK)
        sim_count_turns(t, s->key, (int64_t)n);
    return st;
}
