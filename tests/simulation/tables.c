/* Transactions on rows in memory. See tables.h.
 *
 * A commit keeps the rows as they were before it until it is on the disk, so a power cut takes back
 * what it must, the latest first. Whoever committed in between saw it, and is taken back before. */
#include "tests/simulation/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/sweep/doc_cache.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/fibers.h"
#include "tests/support/check_main.h"

#define RUNS_MAX 8 /* of a transaction */

const char *const sim_plant_words[] = {"none",  "early", "no-wait", "no-fence",
                                       "twice", "carry", "no-lock", "unseen"};

/* A commit that may be taken back. */
struct sim_commit {
    struct sim_edit *before; /* images; NULL: it is on the disk */
    size_t n_before;
    size_t n_events, n_deeds; /* of the database before it */
};

/* The transactions that are open, of all servers. */
#define OPEN_MAX 256
static struct sim_tx *open_list[OPEN_MAX];
static size_t n_open;

static void *grow(void *p, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return p;
    *cap = *cap ? 2 * *cap : 16;
    p = realloc(p, *cap * size);
    ck_assert_ptr_nonnull(p);
    return p;
}

/* ---- the database ---- */

void sim_db_init(struct sim_db *db)
{
    *db = (struct sim_db){.t = as_calloc(1, sizeof *db->t)};
    ck_assert_ptr_nonnull(db->t);
}

static void free_images(struct sim_commit *c)
{
    for (size_t i = 0; i < c->n_before; i++)
        free(c->before[i].copy);
    free(c->before);
    c->before = NULL;
    c->n_before = 0;
}

void sim_db_done(struct sim_db *db)
{
    ck_assert_uint_eq(n_open, 0);
    for (size_t i = 0; i < db->n_commits; i++)
        free_images(&db->commits[i]);
    free(db->commits);
    free(db->events);
    free(db->deeds);
    free(db->t);
}

static void make_durable(struct sim_db *db, size_t n)
{
    for (; db->n_durable < n; db->n_durable++)
        free_images(&db->commits[db->n_durable]);
}

static void write_row(struct sim_row *row, const void *image, size_t size)
{
    struct sim_tx *holder = row->holder;
    memcpy(row, image, size);
    row->holder = holder;
}

/* Give back its locks. */
static void release(struct sim_tx *x)
{
    for (size_t i = 0; i < x->n_locks; i++) {
        if (x->locks[i]->holder == x)
            x->locks[i]->holder = NULL;
        sim_wake(x->locks[i]);
    }
    x->n_locks = 0;
}

/* Its connection is gone: the database rolls it back at once. */
static void lose_connection(struct sim_tx *x)
{
    release(x);
    x->is_broken = true;
    if (x->waits_for)
        sim_wake(x->waits_for);
}

void sim_db_cut_power(struct sim_db *db, int64_t away_ms)
{
    size_t left = db->n_durable + rng_below(&sim_rng, db->n_commits - db->n_durable + 1);
    for (size_t i = 0; i < n_open; i++)
        if (open_list[i]->store->db == db)
            lose_connection(open_list[i]);
    while (db->n_commits > left) {
        struct sim_commit *c = &db->commits[--db->n_commits];
        for (size_t i = c->n_before; i > 0; i--)
            write_row(c->before[i - 1].row, c->before[i - 1].copy, c->before[i - 1].size);
        db->n_events = c->n_events;
        db->n_deeds = c->n_deeds;
        free_images(c);
    }
    make_durable(db, left);
    db->is_away = away_ms > 0;
    db->started_ns = sim_now_ns() + away_ms * NS_PER_MS;
}

/* ---- servers ---- */

struct store *sim_store_create(struct sim_db *db)
{
    struct as_err err = {0};
    struct store *s = as_calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->db = db;
    s->config = (struct sched_config){.lease_ms = 3000, .heartbeat_ms = 500, .reaper_ms = 300};
    ck_ok(doc_cache_create(&s->docs, &err), err);
    return s;
}

void sim_store_free(struct store *s)
{
    doc_cache_free(s->docs);
    free(s);
}

void sim_store_kill(struct store *s)
{
    s->is_dead = true;
    for (size_t i = 0; i < n_open; i++)
        if (open_list[i]->store == s)
            lose_connection(open_list[i]);
}

const struct sched_config *store_config(const struct store *db)
{
    return &db->config;
}

struct store_counters *store_counters(struct store *db)
{
    return &db->counters;
}

struct doc_cache *store_docs(struct store *db)
{
    return db->docs;
}

struct store *tx_store(struct tx *t)
{
    return sim_tx_of(t)->store;
}

void tx_finished(struct tx *t, int64_t sweep_key)
{
    (void)t;
    (void)sweep_key;
}

void tx_finishing(struct tx *t)
{
    (void)t;
}

/* Can this process reach the database? */
static bool is_reached(const struct store *s)
{
    struct sim_db *db = s->db;
    if (db->is_away && sim_now_ns() >= db->started_ns)
        db->is_away = false;
    return !s->is_dead && !db->is_away;
}

as_status store_sync(struct store *s, int64_t sent_ns, struct as_err *err)
{
    struct sim_db *db = s->db;
    size_t n = db->n_commits;
    int64_t asked_ns = sim_now_ns();
    if (db->plant == PLANT_NO_WAIT || db->plant == PLANT_EARLY)
        return AS_OK;
    sim_pause(4 * db->faults.round_trip_ms);
    bool is_old = s->disk_since_ns >= db->started_ns && s->disk_since_ns < sent_ns;
    if (!is_reached(s) || db->started_ns >= asked_ns || !is_old || sim_chance(db->faults.lost)) {
        s->disk_since_ns = 0;
        return as_fail(err, AS_E_UNAVAILABLE, "the connection of the disk was lost");
    }
    make_durable(db, n);
    return AS_OK;
}

/* ---- begin, end, run again ---- */

struct tx_run tx_run_start(struct store *db, tx_kind kind, struct as_err *err)
{
    return (struct tx_run){.db = db, .kind = kind, .err = err, .pause_ms = 2};
}

static void free_tx(struct sim_tx *x)
{
    size_t i = 0;
    while (open_list[i] != x)
        i++;
    open_list[i] = open_list[--n_open];
    release(x);
    arena_done(&x->a);
    free(x->edits);
    free(x->locks);
    free(x->events);
    free(x->deeds);
    free(x);
}

static struct sim_tx *begin(struct store *s, tx_kind kind)
{
    if (!is_reached(s))
        return NULL;
    if (kind == TX_BATCH && s->disk_since_ns < s->db->started_ns + 1)
        s->disk_since_ns = sim_now_ns();
    struct sim_tx *x = as_calloc(1, sizeof *x);
    ck_assert_ptr_nonnull(x);
    ck_assert_uint_lt(n_open, OPEN_MAX);
    open_list[n_open++] = x;
    x->base = (struct tx){.db = s, .kind = kind};
    x->store = s;
    x->began_ns = sim_now_ns();
    x->alone = *sim_own();
    return x;
}

/* Bring what it did into the tables. */
static void apply(struct sim_tx *x)
{
    struct sim_db *db = x->store->db;
    if (x->n_edits == 0 && x->n_events == 0)
        return;
    db->commits = grow(db->commits, db->n_commits, &db->cap_commits, sizeof *db->commits);
    struct sim_commit *c = &db->commits[db->n_commits++];
    *c = (struct sim_commit){.before = as_calloc(x->n_edits + 1, sizeof *c->before),
                             .n_before = x->n_edits,
                             .n_events = db->n_events,
                             .n_deeds = db->n_deeds};
    ck_assert_ptr_nonnull(c->before);
    for (size_t i = 0; i < x->n_edits; i++) {
        const struct sim_edit *e = &x->edits[i];
        c->before[i] = (struct sim_edit){.row = e->row, .copy = malloc(e->size), .size = e->size};
        ck_assert_ptr_nonnull(c->before[i].copy);
        memcpy(c->before[i].copy, e->row, e->size);
    }
    for (size_t i = 0; i < x->n_edits; i++)
        write_row(x->edits[i].row, x->edits[i].copy, x->edits[i].size);
    for (size_t i = 0; i < x->n_events; i++) {
        db->events = grow(db->events, db->n_events, &db->cap_events, sizeof *db->events);
        db->events[db->n_events++] = x->events[i];
    }
    if (x->alone && x->n_edits > 0 && x->alone->kind != COMMIT_CLAIM)
        sim_add_deed(&x->base, DEED_MEMBER)->member = x->alone;
    for (size_t i = 0; i < x->n_deeds; i++) {
        db->deeds = grow(db->deeds, db->n_deeds, &db->cap_deeds, sizeof *db->deeds);
        db->deeds[db->n_deeds++] = x->deeds[i];
    }
    check_tables(db->t);
}

static bool is_lost(struct sim_tx *x)
{
    x->is_broken |= !is_reached(x->store) || x->began_ns < x->store->db->started_ns;
    return x->is_broken;
}

/* Does this kind of fault happen now? */
static bool strikes(const struct sim_tx *x, double rate)
{
    bool may = x->base.kind == TX_BATCH || !x->store->db->faults.only_batches;
    return may && sim_chance(rate);
}

/* COMMIT. *ret_unknown: its answer was lost. */
static as_status commit(struct sim_tx *x, bool *ret_unknown, struct as_err *err)
{
    struct sim_db *db = x->store->db;
    const struct sim_faults *f = &db->faults;
    sim_pause(f->round_trip_ms);
    if (is_lost(x) || strikes(x, f->lost)) {
        x->is_broken = true;
        *ret_unknown = sim_chance(0.5); /* was it sent? */
        return as_fail(err, AS_E_UNAVAILABLE, "the connection was lost");
    }
    if (strikes(x, f->deadlock)) {
        x->retry = true;
        return as_fail(err, AS_E_UNAVAILABLE, "could not serialize access");
    }
    bool is_applied = !strikes(x, f->lost_reply), is_lost_reply = false;
    if (is_applied) {
        apply(x);
        release(x);
        is_lost_reply = strikes(x, f->lost_reply);
    }
    size_t n = db->n_commits;
    if (x->base.kind != TX_BATCH) {
        sim_pause(4 * f->round_trip_ms); /* the disk */
        is_lost_reply |= is_lost(x);
        if (!x->is_broken)
            make_durable(db, n);
    }
    if (is_applied && !is_lost_reply)
        return AS_OK;
    x->is_broken = *ret_unknown = true;
    return as_fail(err, AS_E_UNAVAILABLE, "the answer to COMMIT was lost");
}

/* The end of a TX_SEEN: it waits on its own connection for the disk. */
static as_status end_seen(struct sim_tx *x, struct as_err *err)
{
    struct sim_db *db = x->store->db;
    size_t n = db->n_commits;
    if (db->plant == PLANT_UNSEEN)
        return AS_OK;
    sim_pause(4 * db->faults.round_trip_ms);
    if (is_lost(x) || strikes(x, db->faults.lost)) {
        x->is_broken = true;
        return as_fail(err, AS_E_UNAVAILABLE, "the connection was lost");
    }
    make_durable(db, n);
    return AS_OK;
}

/* End the open run. True: it may run again. */
static bool end_run(struct tx_run *run)
{
    struct sim_tx *x = sim_tx_of(run->tx);
    bool is_unknown = false;
    if (run->status == AS_OK && run->kind == TX_SEEN)
        run->status = end_seen(x, run->err);
    else if (run->status == AS_OK && run->kind != TX_READ)
        run->status = commit(x, &is_unknown, run->err);
    bool failed = run->status != AS_OK;
    run->is_away = failed && x->is_broken;
    bool again = failed && (x->retry || (x->is_broken && !is_unknown)) && run->n_runs < RUNS_MAX;
    x->store->db->n_reruns += again;
    free_tx(x);
    run->tx = NULL;
    return again;
}

bool tx_run_again(struct tx_run *run)
{
    if (run->tx) {
        if (!end_run(run))
            return false;
        sim_sleep_ms((double)run->pause_ms);
        run->pause_ms *= 2;
    }
    struct sim_tx *x = begin(run->db, run->kind);
    if (!x) {
        run->status = as_fail(run->err, AS_E_UNAVAILABLE, "the database is away");
        run->is_away = true;
        return false;
    }
    x->runs = ++run->n_runs;
    run->tx = &x->base;
    run->status = AS_E_INTERNAL;
    return true;
}

/* A batch whose answer does not wait for its COMMIT. */
static void commit_later(void *arg)
{
    struct sim_tx *x = arg;
    struct tx_run run = {.db = x->store, .tx = &x->base, .kind = TX_BATCH, .status = AS_OK};
    sim_pause(50);
    (void)end_run(&run);
}

as_status sim_run_batch(void *ctx, batch_body *body, void *arg, struct batch_end_of_run *ret,
                        struct as_err *err)
{
    struct store *s = ctx;
    struct tx_run run = tx_run_start(s, TX_BATCH, err);
    s->db->n_batches++;
    while (tx_run_again(&run)) {
        run.status = body(arg, run.tx, err);
        ret->sent_ns = sim_now_ns();
        if (s->db->plant == PLANT_EARLY && run.status == AS_OK) {
            sim_spawn(sim_node(), commit_later, sim_tx_of(run.tx));
            return AS_OK;
        }
    }
    ret->is_away = run.is_away;
    s->db->n_failed += run.status != AS_OK && !run.is_away;
    return run.status;
}

/* ---- statements and locks ---- */

as_status sim_statement(struct tx *t, struct as_err *err)
{
    struct sim_tx *x = sim_tx_of(t);
    const struct sim_faults *f = &x->store->db->faults;
    sim_pause(f->round_trip_ms);
    if (is_lost(x) || strikes(x, f->lost)) {
        lose_connection(x);
        return as_fail(err, AS_E_UNAVAILABLE, "the connection was lost");
    }
    if (strikes(x, f->deadlock)) {
        x->retry = true;
        return as_fail(err, AS_E_UNAVAILABLE, "deadlock detected");
    }
    if (t->kind == TX_BATCH && sim_chance(f->fails))
        return as_fail(err, AS_E_INTERNAL, "the statement failed");
    return AS_OK;
}

bool sim_holds(struct tx *t, const struct sim_row *row)
{
    return row->holder == sim_tx_of(t);
}

/* Would it wait for itself? */
static bool is_deadlock(const struct sim_tx *x, const struct sim_row *row)
{
    while (row && row->holder && row->holder != x)
        row = row->holder->waits_for;
    return row && row->holder == x;
}

as_status sim_lock(struct tx *t, struct sim_row *row, bool waits, struct as_err *err)
{
    struct sim_tx *x = sim_tx_of(t);
    struct sim_db *db = x->store->db;
    if (row->holder == x)
        return AS_OK;
    bool is_taken = db->plant == PLANT_NO_LOCK && t->kind == TX_BATCH;
    while (row->holder && !is_taken) {
        if (!waits)
            return as_fail(err, AS_E_CONFLICT, "another transaction holds the row");
        if (is_deadlock(x, row)) {
            x->retry = true;
            return as_fail(err, AS_E_UNAVAILABLE, "deadlock detected");
        }
        db->n_waits++;
        x->waits_for = row;
        (void)sim_wait(row, INT64_MAX, "a row");
        x->waits_for = NULL;
        if (is_lost(x))
            return as_fail(err, AS_E_UNAVAILABLE, "the connection was lost");
    }
    row->holder = x;
    x->locks = grow(x->locks, x->n_locks, &x->cap_locks, sizeof(struct sim_row *));
    x->locks[x->n_locks++] = row;
    return AS_OK;
}

static struct sim_edit *find_edit(const struct sim_tx *x, const struct sim_row *row)
{
    for (size_t i = 0; i < x->n_edits; i++)
        if (x->edits[i].row == row)
            return &x->edits[i];
    return NULL;
}

const void *sim_see(struct tx *t, const struct sim_row *row)
{
    const struct sim_edit *e = find_edit(sim_tx_of(t), row);
    return e ? e->copy : row;
}

void *sim_edit(struct tx *t, struct sim_row *row, size_t size)
{
    struct sim_tx *x = sim_tx_of(t);
    struct sim_edit *e = find_edit(x, row);
    if (row->holder != x && x->store->db->plant == PLANT_NONE)
        violation("a row is changed whose lock is not held");
    if (e)
        return e->copy;
    x->edits = grow(x->edits, x->n_edits, &x->cap_edits, sizeof *x->edits);
    e = &x->edits[x->n_edits++];
    *e = (struct sim_edit){.row = row, .copy = arena_alloc(&x->a, 1, size), .size = size};
    ck_assert_ptr_nonnull(e->copy);
    memcpy(e->copy, row, size);
    return e->copy;
}

void sim_add_event(struct tx *t, const struct event_new *e)
{
    struct sim_tx *x = sim_tx_of(t);
    x->events = grow(x->events, x->n_events, &x->cap_events, sizeof *x->events);
    struct sim_event *n = &x->events[x->n_events++];
    *n = (struct sim_event){.what = e->type[0] == 't' ? e->type[6] : e->type[0],
                            .sweep_key = e->sweep_key,
                            .number = e->has_number ? e->number : -1,
                            .attempt = e->attempt};
    (void)snprintf(n->state, sizeof n->state, "%s", e->state ? e->state : "");
}

struct sim_deed *sim_add_deed(struct tx *t, sim_deed_kind kind)
{
    struct sim_tx *x = sim_tx_of(t);
    x->deeds = grow(x->deeds, x->n_deeds, &x->cap_deeds, sizeof *x->deeds);
    struct sim_deed *d = &x->deeds[x->n_deeds++];
    *d = (struct sim_deed){.kind = kind};
    return d;
}

struct sim_tables *sim_tables_of(struct tx *t)
{
    return sim_tx_of(t)->store->db->t;
}

struct sim_sweep *sim_sweep_of(struct tx *t, int64_t key)
{
    struct sim_sweep *s = &sim_tables_of(t)->sweeps[key - 1];
    return key >= 1 && key <= SIM_SWEEPS && s->is_there ? s : NULL;
}

struct sim_trial *sim_trial_of(struct tx *t, int64_t key, int64_t number)
{
    if (!sim_sweep_of(t, key) || number < 0 || number >= SIM_TRIALS)
        return NULL;
    struct sim_trial *x = &sim_tables_of(t)->trials[key - 1][number];
    return SIM_SEE(t, x)->is_there ? x : NULL;
}

struct sim_runner *sim_runner_of(struct tx *t, const char *name)
{
    for (int i = 0; i < SIM_RUNNERS; i++)
        if (strcmp(sim_tables_of(t)->runners[i].name, name) == 0)
            return &sim_tables_of(t)->runners[i];
    return NULL;
}
