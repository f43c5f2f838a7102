/* The functions of batch_ops.h on the tables of tables.h, each step a round trip as in
 * scheduler/store/batch_read.c, batch_write.c, batch_look.c, batch_take.c and batch_begin.c, and
 * with their order of locks. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "tests/simulation/fibers.h"
#include "tests/simulation/tables.h"
#include "tests/support/check_main.h"

/* ---- read ---- */

/* A batch while it is read. */
struct reading {
    struct tx *t;
    struct arena *a;
    const struct batch_ask *asks;
    struct batch_fact *facts;
    size_t n;
    bool is_patient;
    size_t order[512];
};

static bool is_open(const struct reading *b, size_t i)
{
    return b->facts[i].has_sweep && b->facts[i].has_trial && !b->facts[i].is_busy;
}

static struct sim_trial *trial_at(const struct reading *b, size_t i)
{
    return &sim_tables_of(b->t)->trials[b->facts[i].holder.sweep_key - 1][b->asks[i].ref.number];
}

static as_status find_members(struct reading *b, struct as_err *err)
{
    as_status st = sim_statement(b->t, err);
    for (size_t i = 0; i < b->n && st == AS_OK; i++) {
        const struct batch_ask *m = &b->asks[i];
        struct batch_fact *f = &b->facts[i];
        f->leader = f->latest_step = f->other.place = -1;
        f->attempt = m->ref.attempt;
        for (int64_t key = 1; key <= SIM_SWEEPS && !f->has_sweep; key++) {
            f->has_sweep = as_streq(sim_tables_of(b->t)->sweeps[key - 1].id, m->ref.sweep);
            f->holder.sweep_key = key;
        }
        const struct sim_trial *x =
            f->has_sweep ? sim_trial_of(b->t, f->holder.sweep_key, m->ref.number) : NULL;
        f->has_trial = x != NULL;
        f->holder.is_there = x && m->ref.attempt > 0 && m->ref.attempt <= x->attempt;
    }
    return st;
}

static int compare_members(const void *pa, const void *pb, void *arg)
{
    const struct reading *b = arg;
    size_t i = *(const size_t *)pa, k = *(const size_t *)pb;
    int64_t x = b->facts[i].holder.sweep_key, y = b->facts[k].holder.sweep_key;
    if (x == y) {
        x = b->asks[i].ref.number;
        y = b->asks[k].ref.number;
    }
    return (x > y) - (x < y);
}

/* In the order of sweeps. A row that is held is skipped, or waited for. */
static as_status lock_rows(struct reading *b, bool is_of_sweeps, struct as_err *err)
{
    as_status st = sim_statement(b->t, err);
    for (size_t j = 0; j < b->n && st == AS_OK; j++) {
        size_t i = b->order[j];
        struct batch_fact *f = &b->facts[i];
        if (!is_open(b, i) || (is_of_sweeps && !b->asks[i].ends))
            continue;
        struct sim_row *row = is_of_sweeps
                                  ? &sim_tables_of(b->t)->sweeps[f->holder.sweep_key - 1].row
                                  : &trial_at(b, i)->row;
        st = sim_lock(b->t, row, b->is_patient, err);
        f->is_busy = st == AS_E_CONFLICT;
        st = f->is_busy ? AS_OK : st;
    }
    return st;
}

/* Members of one sweep share its row. */
static as_status read_sweeps(struct reading *b, struct as_err *err)
{
    struct sweep_locked *rows[SIM_SWEEPS] = {NULL};
    for (size_t i = 0; i < b->n; i++) {
        struct batch_fact *f = &b->facts[i];
        if (!is_open(b, i) || !b->asks[i].ends)
            continue;
        struct sweep_locked **row = &rows[f->holder.sweep_key - 1];
        if (!*row) {
            *row = arena_alloc(b->a, 1, sizeof **row);
            if (!*row)
                return as_fail_nomem(err);
            sim_fill_sweep(b->t, b->a, sim_sweep_of(b->t, f->holder.sweep_key), *row);
        }
        f->sweep = *row;
    }
    return AS_OK;
}

static void read_fact(struct reading *b, size_t i)
{
    struct batch_fact *f = &b->facts[i];
    const struct batch_ask *m = &b->asks[i];
    const struct sim_trial *x = SIM_SEE(b->t, trial_at(b, i));
    f->trial = sim_head_of(b->t, b->a, f->holder.sweep_key, m->ref.number);
    bool is_fenced = sim_tx_of(b->t)->store->db->plant != PLANT_NO_FENCE;
    bool wants_reported = m->ends || f->trial.state == TRIAL_QUEUED;
    if (!is_fenced && f->holder.is_there && f->trial.state == TRIAL_RUNNING)
        f->trial.attempt = m->ref.attempt;
    if (wants_reported && f->holder.is_there && x->attempts[f->attempt].reported[0])
        f->reported = arena_strdup(b->a, x->attempts[f->attempt].reported);
    if (m->ends)
        f->metrics = sim_metrics_of(b->a, x);
    if (m->wants_step && f->holder.is_there)
        f->latest_step = sim_latest_step(&x->attempts[f->attempt]);
    const struct trial_points p = {.sweep_key = f->holder.sweep_key,
                                   .number = m->ref.number,
                                   .attempt = f->attempt,
                                   .points = m->points,
                                   .n = m->n_points};
    if (f->reported && m->n_points > 0)
        f->other = sim_compare_points(b->t, &p);
}

static as_status read_batch(struct tx *t, struct arena *a, const struct batch_ask *asks, size_t n,
                            bool is_patient, struct batch_fact *ret, struct as_err *err)
{
    struct reading b = {
        .t = t, .a = a, .asks = asks, .facts = ret, .n = n, .is_patient = is_patient};
    ck_assert_uint_le(n, AS_ARRAY_LEN(b.order));
    for (size_t i = 0; i < n; i++)
        b.order[i] = i;
    sim_tx_of(t)->asks = asks;
    sim_tx_of(t)->n_asks = n;
    as_status st = find_members(&b, err);
    qsort_r(b.order, n, sizeof b.order[0], compare_members, &b);
    if (st == AS_OK)
        st = lock_rows(&b, true, err);
    if (st == AS_OK)
        st = lock_rows(&b, false, err);
    if (st == AS_OK)
        st = sim_statement(t, err);
    if (st == AS_OK)
        st = read_sweeps(&b, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        if (is_open(&b, i))
            read_fact(&b, i);
    return st;
}

/* ---- write ---- */

/* Did this member have an effect? */
static bool has_effect(struct tx *t, const struct batch_changes *c, const struct batch_ask *ask,
                       const struct commit_member *m)
{
    for (size_t i = 0; i < c->n_records && !ask->ends; i++)
        if (c->records[i].is_report && c->records[i].points.points == m->in.report.points &&
            c->records[i].notes.notes == m->in.report.notes)
            return true;
    for (size_t i = 0; i < c->n_ends && ask->ends; i++) {
        const struct trial_moved *e = &c->ends[i].trial;
        if (e->number == ask->ref.number &&
            as_streq(sim_tables_of(t)->sweeps[e->sweep_key - 1].id, ask->ref.sweep))
            return true;
    }
    return false;
}

static void note_deeds(struct tx *t, const struct batch_changes *c)
{
    const struct sim_tx *x = sim_tx_of(t);
    for (size_t i = 0; i < x->n_asks; i++) {
        const struct commit_member *m = sim_member_at(x->asks[i].ref.sweep);
        if (m && has_effect(t, c, &x->asks[i], m))
            sim_add_deed(t, DEED_MEMBER)->member = m;
    }
}

static as_status write_records(struct tx *t, struct batch_changes *c, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < c->n_records && st == AS_OK; i++) {
        struct batch_record *r = &c->records[i];
        if (r->notes.n > 0)
            sim_put_notes(t, &r->notes);
        r->points.ret = (struct measured){0};
        if (r->points.n == 0)
            continue;
        r->points.ret = sim_add_points(t, &r->points);
        if (r->is_report && r->points.ret.recorded > 0)
            sim_add_event(t, &(struct event_new){.type = "trial.measured",
                                                 .sweep_key = r->points.sweep_key,
                                                 .has_number = true,
                                                 .number = r->points.number,
                                                 .state = trial_state_format(r->state),
                                                 .attempt = r->points.attempt});
    }
    return st;
}

static as_status write_ends(struct tx *t, struct batch_changes *c, struct as_err *err)
{
    const struct sim_tx *x = sim_tx_of(t);
    sim_plant plant = x->store->db->plant;
    int times = plant == PLANT_TWICE && x->runs > 1 ? 2 : 1;
    bool is_guarded = plant != PLANT_NO_FENCE && plant != PLANT_TWICE;
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < c->n_ends * (size_t)times && st == AS_OK; i++) {
        const struct batch_end *e = &c->ends[i % c->n_ends];
        st = sim_move_trial(t, &e->trial, is_guarded, err);
        if (st == AS_OK)
            sim_add_event(t, &e->event);
    }
    if (st == AS_OK)
        st = sim_statement(t, err);
    for (size_t i = 0; i < c->n_ends && st == AS_OK; i++)
        sim_end_attempt(t,
                        &(struct attempt_ended){c->ends[i].trial.sweep_key, c->ends[i].trial.number,
                                                c->ends[i].trial.move.attempt, c->ends[i].attempt});
    return st;
}

static as_status write_batch(struct tx *t, struct arena *a, struct batch_changes *c,
                             struct as_err *err)
{
    (void)a;
    note_deeds(t, c);
    as_status st = c->n_records > 0 ? write_records(t, c, err) : AS_OK;
    if (st == AS_OK && c->n_ends > 0)
        st = write_ends(t, c, err);
    if (st == AS_OK && c->n_rows > 0)
        st = sim_statement(t, err);
    for (size_t i = 0; i < c->n_rows && st == AS_OK; i++)
        sim_fill_trial(t, c->rows[i].arena, c->rows[i].key.sweep_key, c->rows[i].key.number,
                       &c->rows[i].row);
    return st;
}

/* ---- claims ---- */

static bool is_repeated(struct tx *t, const struct batch_claimer *c)
{
    for (int i = 0; i < SIM_SWEEPS * SIM_TRIALS; i++) {
        const struct sim_trial *x =
            SIM_SEE(t, &sim_tables_of(t)->trials[i / SIM_TRIALS][i % SIM_TRIALS]);
        for (int64_t k = 1; k <= x->attempt; k++)
            if (as_streq(x->attempts[k].runner, c->runner) &&
                as_streq(x->attempts[k].claim_id, c->claim_id))
                return true;
    }
    return false;
}

static as_status read_claimer(struct tx *t, struct arena *a, const struct batch_claimer *c,
                              struct batch_runner *ret, struct as_err *err)
{
    struct sim_runner *row = sim_runner_of(t, c->runner);
    int64_t *keys = arena_alloc(a, SIM_SWEEPS * SIM_TRIALS, sizeof *keys), n = 0;
    if (!keys)
        return as_fail_nomem(err);
    if (!row || !SIM_SEE(t, row)->is_there)
        return AS_OK;
    const struct sim_runner *r = SIM_SEE(t, row);
    ret->epoch = r->epoch;
    ret->state = r->is_live ? "live" : "lost";
    ret->slots = r->slots;
    ret->running = sim_held(t, c->runner, c->ending, c->n_ending, &n, keys);
    ret->used = ret->running - n;
    ret->ending = keys;
    ret->n_ending = (size_t)n;
    ret->is_repeated = is_repeated(t, c);
    ret->is_due = true;
    return AS_OK;
}

static bool has_work(const struct sim_sweep *s)
{
    return s->is_there && s->state == SWEEP_RUNNING &&
           (s->counts.by_state[TRIAL_QUEUED] > 0 || s->counts.total < s->planned) &&
           (s->max_concurrent == 0 || s->counts.by_state[TRIAL_RUNNING] < s->max_concurrent);
}

static as_status read_turns(struct tx *t, struct arena *a, struct batch_turns *ret,
                            struct as_err *err)
{
    as_status st = sim_statement(t, err);
    ret->rows = arena_alloc(a, SIM_SWEEPS, sizeof *ret->rows);
    for (int64_t key = 1; key <= SIM_SWEEPS && st == AS_OK; key++) {
        const struct sim_sweep *s = &sim_tables_of(t)->sweeps[key - 1];
        if (s->is_there && s->state == SWEEP_RUNNING && s->turns > ret->max_turns)
            ret->max_turns = s->turns;
        if (has_work(s))
            ret->rows[ret->n++] = (struct batch_turn){.key = key,
                                                      .steps_room = INT64_MAX,
                                                      .priority = s->priority,
                                                      .running = s->counts.by_state[TRIAL_RUNNING],
                                                      .turns = s->turns,
                                                      .served = s->served,
                                                      .queued = s->counts.by_state[TRIAL_QUEUED],
                                                      .left = s->planned - s->counts.total,
                                                      .max_concurrent = s->max_concurrent,
                                                      .ahead_room = sim_ahead_room(s)};
    }
    return st;
}

static as_status look(struct tx *t, struct arena *a, const struct batch_claimer *claimers, size_t n,
                      struct batch_runner *ret, struct batch_turns *ret_turns, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    for (int r = 0; r < SIM_RUNNERS && st == AS_OK; r++) /* by name */
        for (size_t i = 0; i < n && st == AS_OK; i++) {
            struct sim_runner *row = &sim_tables_of(t)->runners[r];
            if (!as_streq(row->name, claimers[i].runner) || !SIM_SEE(t, row)->is_there)
                continue;
            st = sim_lock(t, &row->row, false, err);
            ret[i].is_there = st == AS_OK;
            st = st == AS_E_CONFLICT ? AS_OK : st;
        }
    if (st == AS_OK)
        st = sim_statement(t, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = read_claimer(t, a, &claimers[i], &ret[i], err);
    return st == AS_OK ? read_turns(t, a, ret_turns, err) : st;
}

static as_status read_queue(struct tx *t, struct arena *a, struct batch_source *s,
                            struct as_err *err)
{
    s->queue = arena_alloc(a, SIM_TRIALS, sizeof *s->queue);
    if (!s->queue)
        return as_fail_nomem(err);
    for (int i = 0; s->row && i < SIM_TRIALS && (int64_t)s->n_queue < s->n_wanted; i++) {
        const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[s->key - 1][i]);
        if (x->is_there && x->state == TRIAL_QUEUED)
            s->queue[s->n_queue++] = (struct batch_queued){
                .number = i, .attempt = x->attempt, .seed = x->seed, .params = x->params};
    }
    return AS_OK;
}

static as_status take(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                      bool is_patient, struct as_err *err)
{
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        struct sim_sweep *s = sim_sweep_of(t, sources[i].key);
        st = sim_lock(t, &s->row, is_patient, err);
        if (st == AS_OK) {
            sources[i].row = arena_alloc(a, 1, sizeof *sources[i].row);
            sim_fill_sweep(t, a, s, sources[i].row);
            sources[i].steps_room = INT64_MAX;
        }
        st = st == AS_E_CONFLICT ? AS_OK : st;
    }
    if (st == AS_OK)
        st = sim_statement(t, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = read_queue(t, a, &sources[i], err);
    return st;
}

static as_status documents(struct tx *t, struct arena *a, const int64_t *keys, size_t n,
                           const char **ret, struct as_err *err)
{
    (void)a;
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        ret[i] = sim_sweep_of(t, keys[i])->document;
    return st;
}

/* One statement changes all trials of a kind, and a sweep's turns with them. */
static as_status begin_trials(struct tx *t, const struct batch_claims *c, bool is_made,
                              struct as_err *err)
{
    int64_t n[SIM_SWEEPS] = {0};
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < c->n_begun && st == AS_OK; i++) {
        const struct batch_begun *b = &c->begun[i];
        if (b->is_made != is_made)
            continue;
        st = sim_begin_trial(t, b->sweep_key, &b->made, is_made, b->owner, err);
        if (st != AS_OK)
            return st;
        sim_add_event(t, &(struct event_new){.type = "trial.changed",
                                             .sweep_key = b->sweep_key,
                                             .has_number = true,
                                             .number = b->made.number,
                                             .state = "running",
                                             .attempt = b->attempt});
        n[b->sweep_key - 1]++;
    }
    for (int64_t key = 1; key <= SIM_SWEEPS && st == AS_OK; key++)
        if (n[key - 1] > 0)
            sim_count_turns(t, key, n[key - 1]);
    return st;
}

static as_status begin(struct tx *t, struct arena *a, const struct batch_claims *c,
                       struct as_err *err)
{
    (void)a;
    if (c->n_begun == 0)
        return AS_OK;
    as_status st = sim_statement(t, err);
    for (size_t i = 0; i < c->n_runners && st == AS_OK; i++)
        SIM_EDIT(t, sim_runner_of(t, c->runners[i]))->expires_ns =
            sim_now_ns() + store_config(tx_store(t))->lease_ms * NS_PER_MS;
    if (st == AS_OK)
        st = begin_trials(t, c, true, err);
    if (st == AS_OK)
        st = begin_trials(t, c, false, err);
    if (st == AS_OK)
        st = sim_statement(t, err);
    for (size_t i = 0; i < c->n_started && st == AS_OK; i++)
        SIM_EDIT(t, sim_sweep_of(t, c->started[i]))->has_started = true;
    for (size_t i = 0; i < c->n_turned && st == AS_OK; i++) {
        struct sim_sweep *s = SIM_EDIT(t, sim_sweep_of(t, c->turned[i].key));
        s->turns = c->turned[i].turns;
        s->served = ++sim_tx_of(t)->store->db->last_served;
    }
    return st;
}

static as_status sync(void *ctx, int64_t sent_ns, struct as_err *err)
{
    return store_sync(ctx, sent_ns, err);
}

const struct batch_ops sim_batch_ops = {.run = sim_run_batch,
                                        .read = read_batch,
                                        .write = write_batch,
                                        .look = look,
                                        .take = take,
                                        .documents = documents,
                                        .begin = begin,
                                        .sync = sync};
