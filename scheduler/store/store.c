/* The pool, and the one place where transactions begin, end and run again.
 *
 * A transaction runs again if it failed without effect: PostgreSQL reported a serialisation failure
 * or a deadlock, or the connection was lost before COMMIT was sent. After COMMIT was sent without
 * an answer, nobody knows whether it took effect, so it does not run again: the caller gets
 * AS_E_UNAVAILABLE and repeats the whole operation, which is safe by design.
 *
 * A broken connection closes all idle ones too, because a restart of the database breaks them all.
 * Attempts to connect are separated by a jittered back-off, so that many servers do not all connect
 * at the same moment when the database is back.
 *
 * Lock: store.mu guards the pool's lists and the back-off. It is never held over a round trip. */
#include "scheduler/store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/sweep/doc_cache.h"
#include "scheduler/sweep/rung_cache.h"

#define POOL_WAIT_MS 5000 /* for a connection, before the error is "busy" */
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 1000 /* every request waits for as long when the database is back */
#define TX_ATTEMPTS 8       /* runs of one transaction */
#define CONN_MAX 256
#define BATCH_CONNECTIONS 7 /* of the committer: its batch thread, its helpers, and heartbeats */

/* The connections of a kind of transactions. */
struct lane {
    struct conn *idle[CONN_MAX];
    int n_idle, n_open; /* n_open includes connections in use and those being opened */
    int max;
};

struct store {
    char *url, *app;
    struct sched_config config;
    struct store_counters counters;
    struct piece_store *pieces; /* borrowed; set before any operation */
    struct doc_cache *docs;
    struct rung_cache *boards;

    pthread_mutex_t mu;
    pthread_cond_t freed;
    struct lane lanes[LANES];         /* guarded by mu, like all fields below */
    struct conn *disk;                /* of store_sync(); NULL: not open */
    bool disk_in_use;                 /* some thread uses or opens it */
    int64_t disk_since_ns;            /* when it was opened */
    int64_t backoff_ms;               /* 0: the last attempt to connect succeeded */
    int64_t retry_at_ns;              /* no attempt before this time */
    int64_t up_since_ns;              /* 0: down */
    store_finished_fn *on_finished;   /* with its ctx; called without mu */
    store_finishing_fn *on_finishing; /* likewise */
    void *finishing_ctx;
    void *finished_ctx;
    char down_msg[AS_ERR_MSG_MAX];
    as_status down_code;
};

static void config_defaults(struct sched_config *c)
{
    static const struct sched_config def = {.lease_ms = 15000,
                                            .heartbeat_ms = 3000,
                                            .reaper_ms = 1000,
                                            .event_keep_ms = INT64_C(7) * 86400 * 1000,
                                            .runner_keep_ms = INT64_C(86400) * 1000,
                                            .blob_keep_ms = INT64_C(86400) * 1000,
                                            .release_ms = 30000,
                                            .loose_ms = 3600000,
                                            .prune_ms = 60000};
    c->lease_ms = c->lease_ms ? c->lease_ms : def.lease_ms;
    c->heartbeat_ms = c->heartbeat_ms ? c->heartbeat_ms : def.heartbeat_ms;
    /* often enough that no break lies between two looks (lifecycle/lease_clock.h) */
    int64_t quarter = c->lease_ms / 4;
    if (c->reaper_ms == 0)
        c->reaper_ms = quarter < def.reaper_ms ? quarter : def.reaper_ms;
    c->runner_keep_ms = c->runner_keep_ms ? c->runner_keep_ms : def.runner_keep_ms;
    c->event_keep_ms = c->event_keep_ms ? c->event_keep_ms : def.event_keep_ms;
    c->blob_keep_ms = c->blob_keep_ms ? c->blob_keep_ms : def.blob_keep_ms;
    c->release_ms = c->release_ms ? c->release_ms : def.release_ms;
    c->loose_ms = c->loose_ms ? c->loose_ms : def.loose_ms;
    c->prune_ms = c->prune_ms ? c->prune_ms : def.prune_ms;
}

static as_status opts_check(const struct store_opts *opts, const struct sched_config *c,
                            struct as_err *err)
{
    if (c->lease_ms < 100 || c->heartbeat_ms < 10 || c->reaper_ms < 10 || c->event_keep_ms < 0 ||
        c->runner_keep_ms < 0 || c->blob_keep_ms < 0)
        return as_fail(err, AS_E_INVAL, "a time of the scheduler is too short");
    if (c->heartbeat_ms * 2 > c->lease_ms)
        return as_fail(err, AS_E_INVAL,
                       "a lease of %lld ms is too short for heartbeats every %lld ms: it must be "
                       "at least twice as long",
                       (long long)c->lease_ms, (long long)c->heartbeat_ms);
    if (opts->max_connections < 0 || opts->max_connections > CONN_MAX)
        return as_fail(err, AS_E_INVAL, "%d connections, expected 1 to %d", opts->max_connections,
                       CONN_MAX);
    char *why = NULL;
    PQconninfoOption *parsed = PQconninfoParse(opts->url, &why);
    as_status st = AS_OK;
    if (!parsed) {
        char words[200];
        snprintf(words, sizeof words, "%s", why ? why : "out of memory");
        words[strcspn(words, "\n")] = '\0';
        st = as_fail(err, AS_E_INVAL, "the database URL: %s", words);
    }
    PQconninfoFree(parsed);
    PQfreemem(why);
    return st;
}

as_status store_open(const struct store_opts *opts, struct store **ret, struct as_err *err)
{
    struct sched_config config = opts->config;
    config_defaults(&config);
    as_status st = opts_check(opts, &config, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(store_closep) struct store *db = as_calloc(1, sizeof *db);
    if (!db)
        return as_fail_nomem(err);
    db->config = config;
    db->lanes[LANE_SHARED].max = opts->max_connections ? opts->max_connections : 8;
    db->lanes[LANE_BATCH].max = BATCH_CONNECTIONS;
    pthread_mutex_init(&db->mu, NULL);
    clock_cond_init(&db->freed);
    db->url = as_strdup(opts->url);
    db->app = as_strdup(opts->application_name ? opts->application_name : "assayd");
    if (!db->url || !db->app)
        return as_fail_nomem(err);
    if ((st = doc_cache_create(&db->docs, err)) != AS_OK)
        return st;
    if ((st = rung_cache_create(&db->boards, err)) != AS_OK)
        return st;
    *ret = as_steal(db);
    return AS_OK;
}

void store_close(struct store *db)
{
    if (!db)
        return;
    for (int k = 0; k < LANES; k++)
        for (int i = 0; i < db->lanes[k].n_idle; i++)
            conn_close(db->lanes[k].idle[i]);
    conn_close(db->disk);
    pthread_cond_destroy(&db->freed);
    pthread_mutex_destroy(&db->mu);
    doc_cache_free(db->docs);
    rung_cache_free(db->boards);
    free(db->url);
    free(db->app);
    free(db);
}

void store_set_pieces(struct store *db, struct piece_store *pieces)
{
    db->pieces = pieces;
}

struct piece_store *store_pieces(const struct store *db)
{
    return db->pieces;
}

struct doc_cache *store_docs(struct store *db)
{
    return db->docs;
}

const struct sched_config *store_config(const struct store *db)
{
    return &db->config;
}

struct store_counters *store_counters(struct store *db)
{
    return &db->counters;
}

void store_on_finished(struct store *db, store_finished_fn *fn, void *ctx)
{
    pthread_mutex_lock(&db->mu);
    db->on_finished = fn;
    db->finished_ctx = ctx;
    pthread_mutex_unlock(&db->mu);
}

void tx_finished(struct tx *t, int64_t sweep_key)
{
    if (t->n_finished > 0 && t->finished[t->n_finished - 1] == sweep_key)
        return;
    struct as_err ignored;
    if (as_grow(&t->finished, t->n_finished + 1, sizeof *t->finished, &ignored) != AS_OK) {
        t->finished_failed = true;
        return;
    }
    t->finished[t->n_finished++] = sweep_key;
}

/* A board is right as long as nothing that it knows was lost: a crash of PostgreSQL may lose what
 * TX_BATCH committed, but not without ending all connections. So a board is good while no new one
 * was made since it was taken. */
struct rung_board *tx_board(struct tx *t, int64_t sweep_key)
{
    struct as_err ignored;
    for (size_t i = 0; i < t->n_boards; i++)
        if (t->boards[i].sweep_key == sweep_key)
            return t->boards[i].board;
    struct rung_board *b =
        rung_cache_take(t->db->boards, sweep_key, (int64_t)atomic_load(&t->db->counters.connects));
    if (b && tx_board_add(t, sweep_key, b, &ignored) != AS_OK)
        return NULL;
    return b;
}

as_status tx_board_add(struct tx *t, int64_t sweep_key, struct rung_board *b, struct as_err *err)
{
    as_status st = as_grow(&t->boards, t->n_boards + 1, sizeof *t->boards, err);
    if (st != AS_OK) {
        rung_board_free(b);
        return st;
    }
    int64_t stamp = (int64_t)atomic_load(&t->db->counters.connects);
    t->boards[t->n_boards++] = (struct tx_board){sweep_key, stamp, b};
    return AS_OK;
}

/* The boards of a transaction that has ended: what they know is stored, or was rolled back. */
static void give_boards(struct tx *t, bool is_committed)
{
    for (size_t i = 0; i < t->n_boards; i++) {
        struct tx_board *b = &t->boards[i];
        if (is_committed)
            rung_cache_put(t->db->boards, b->sweep_key, b->stamp, b->board);
        else
            rung_board_free(b->board);
    }
    free(t->boards);
}

void store_on_finishing(struct store *db, store_finishing_fn *fn, void *ctx)
{
    pthread_mutex_lock(&db->mu);
    db->on_finishing = fn;
    db->finishing_ctx = ctx;
    pthread_mutex_unlock(&db->mu);
}

void tx_finishing(struct tx *t)
{
    t->has_finishing = true;
}

void tx_saw(struct tx *t)
{
    t->has_seen = true;
}

struct store *tx_store(struct tx *t)
{
    return t->db;
}

void store_pool_get(struct store *db, struct store_pool *ret)
{
    pthread_mutex_lock(&db->mu);
    *ret = (struct store_pool){0};
    for (const struct lane *l = db->lanes; l < db->lanes + LANES; l++) {
        ret->open += l->n_open;
        ret->in_use += l->n_open - l->n_idle;
        ret->max += l->max;
    }
    pthread_mutex_unlock(&db->mu);
}

int64_t store_up_ns(struct store *db)
{
    pthread_mutex_lock(&db->mu);
    int64_t since = db->up_since_ns;
    pthread_mutex_unlock(&db->mu);
    return since ? clock_mono_ns() - since : 0;
}

/* The pool. */

/* The statements of a batch work on sets of a few hundred rows that they name by key. A plan by
 * statistics may choose otherwise on tables that nobody has analysed, so these connections only
 * have the plan that is right: each row by its index. None of their commits waits for the disk. */
static const char *const lane_options[LANES] = {
    [LANE_SHARED] = "",
    [LANE_BATCH] = " -c synchronous_commit=off -c plan_cache_mode=force_generic_plan -c "
                   "enable_hashjoin=off -c "
                   "enable_mergejoin=off -c enable_seqscan=off -c enable_bitmapscan=off -c "
                   "enable_material=off -c enable_memoize=off -c jit=off -c "
                   "max_parallel_workers_per_gather=0"};

/* A random time between half of ms and ms. */
static int64_t jittered_ms(int64_t ms)
{
    uint32_t r = 0;
    random_bytes(&r, sizeof r);
    return ms / 2 + (int64_t)(r % (uint32_t)(ms / 2 + 1));
}

/* Record the end of an attempt to connect. After a failure its place in the pool is free again.
 * lane NULL: the connection of store_sync(). */
static void connect_ended(struct store *db, struct lane *lane, as_status st,
                          const struct as_err *why)
{
    pthread_mutex_lock(&db->mu);
    bool was_up = db->up_since_ns != 0;
    if (st == AS_OK) {
        db->backoff_ms = 0;
        db->up_since_ns = was_up ? db->up_since_ns : clock_mono_ns();
        atomic_fetch_add(&db->counters.connects, 1);
    } else {
        if (lane)
            lane->n_open--;
        db->up_since_ns = 0;
        db->backoff_ms = db->backoff_ms ? db->backoff_ms * 2 : BACKOFF_MIN_MS;
        if (db->backoff_ms > BACKOFF_MAX_MS)
            db->backoff_ms = BACKOFF_MAX_MS;
        db->retry_at_ns = clock_mono_ns() + jittered_ms(db->backoff_ms) * NS_PER_MS;
        db->down_code = st;
        snprintf(db->down_msg, sizeof db->down_msg, "%s", why->msg);
        pthread_cond_broadcast(&db->freed);
    }
    pthread_mutex_unlock(&db->mu);
    if (st != AS_OK && was_up)
        log_write(LOG_WARN, "database lost", "error=\"%s\"", why->msg);
    else if (st == AS_OK && !was_up)
        log_write(LOG_INFO, "database connected", "application=%s", db->app);
}

/* Is it too early for another attempt to connect? */
static as_status check_backoff_locked(const struct store *db, struct as_err *err)
{
    if (db->backoff_ms > 0 && clock_mono_ns() < db->retry_at_ns)
        return as_fail(err, db->down_code, "%s", db->down_msg);
    return AS_OK;
}

/* Wait for an idle connection, or for room to open one. AS_OK with *ret NULL: the caller must open
 * one. */
static as_status pool_take_locked(struct store *db, struct lane *lane, struct conn **ret,
                                  struct as_err *err)
{
    int64_t until_ns = clock_mono_ns() + POOL_WAIT_MS * NS_PER_MS;
    while (lane->n_idle == 0 && lane->n_open >= lane->max) {
        if (!clock_cond_wait(&db->freed, &db->mu, until_ns) && lane->n_idle == 0 &&
            lane->n_open >= lane->max)
            return as_fail(err, AS_E_UNAVAILABLE, "all %d database connections are busy",
                           lane->max);
    }
    if (lane->n_idle > 0) {
        *ret = lane->idle[--lane->n_idle];
        return AS_OK;
    }
    as_status st = check_backoff_locked(db, err);
    if (st != AS_OK)
        return st;
    lane->n_open++;
    *ret = NULL;
    return AS_OK;
}

static as_status pool_take(struct store *db, int which, struct conn **ret, struct as_err *err)
{
    struct lane *lane = &db->lanes[which];
    struct conn *c = NULL;
    pthread_mutex_lock(&db->mu);
    as_status st = pool_take_locked(db, lane, &c, err);
    pthread_mutex_unlock(&db->mu);
    if (st == AS_OK && !c) {
        struct as_err why = {0};
        st = conn_open(db->url, db->app, lane_options[which], &c, &why);
        connect_ended(db, lane, st, &why);
        if (st != AS_OK)
            return as_fail(err, st, "%s", why.msg);
        c->lane = which;
    }
    if (st == AS_OK)
        *ret = c;
    return st;
}

/* Return a connection. If it is broken, the idle ones are closed too: the same event probably broke
 * them. */
static void pool_give(struct store *db, struct conn *c)
{
    struct conn *dead[LANES * CONN_MAX + 2];
    int n_dead = 0;
    pthread_mutex_lock(&db->mu);
    if (c->broken) {
        dead[n_dead++] = c;
        db->lanes[c->lane].n_open--;
        for (struct lane *l = db->lanes; l < db->lanes + LANES; l++) {
            while (l->n_idle > 0) {
                dead[n_dead++] = l->idle[--l->n_idle];
                l->n_open--;
            }
        }
        if (db->disk && !db->disk_in_use) {
            dead[n_dead++] = db->disk;
            db->disk = NULL;
        }
    } else {
        struct lane *l = &db->lanes[c->lane];
        l->idle[l->n_idle++] = c;
    }
    pthread_cond_broadcast(&db->freed);
    pthread_mutex_unlock(&db->mu);
    for (int i = 0; i < n_dead; i++)
        conn_close(dead[i]);
}

/* Waiting for the disk.
 *
 * What committed with TX_BATCH is on disk when a later commit, of any connection, was waited for.
 * That holds only while PostgreSQL runs on: if it crashed and is back, what was not on disk is
 * lost, and a commit on a new connection says nothing about it. A crash ends all connections, so
 * the connection that waits must be older than the COMMIT that it waits for. */

/* Its commit waits until it is on disk, and so is all that was committed before. */
#define WAIT_FOR_DISK "select pg_logical_emit_message(true, 'assay', '')"

/* Use the connection of the disk, alone. False: it is not open, or in use. */
static bool disk_take(struct store *db, bool is_open, int64_t before_ns)
{
    pthread_mutex_lock(&db->mu);
    bool can = !db->disk_in_use && (db->disk != NULL) == is_open &&
               (!is_open || db->disk_since_ns < before_ns);
    db->disk_in_use |= can;
    pthread_mutex_unlock(&db->mu);
    return can;
}

static void disk_give(struct store *db, struct conn *c)
{
    struct conn *dead = c && c->broken ? c : NULL;
    pthread_mutex_lock(&db->mu);
    if (!db->disk && c)
        db->disk_since_ns = clock_mono_ns();
    db->disk = dead ? NULL : c;
    db->disk_in_use = false;
    pthread_mutex_unlock(&db->mu);
    conn_close(dead);
}

/* A batch that commits while no connection could wait for the disk would have no answer. */
static as_status disk_open(struct store *db, struct as_err *err)
{
    struct conn *c = NULL;
    struct as_err why = {0};
    if (!disk_take(db, false, 0))
        return AS_OK;
    pthread_mutex_lock(&db->mu);
    as_status st = check_backoff_locked(db, err);
    pthread_mutex_unlock(&db->mu);
    if (st == AS_OK) {
        st = conn_open(db->url, db->app, "", &c, &why);
        connect_ended(db, NULL, st, &why);
        if (st != AS_OK)
            st = as_fail(err, st, "%s", why.msg);
    }
    disk_give(db, c);
    return st;
}

as_status store_sync(struct store *db, int64_t sent_ns, struct as_err *err)
{
    if (!disk_take(db, true, sent_ns))
        return as_fail(err, AS_E_UNAVAILABLE,
                       "the database connection was lost before the commit was on disk");
    struct conn *c = db->disk;
    as_status st = conn_exec(c, WAIT_FOR_DISK, err);
    if (st != AS_OK)
        c->broken = true;
    disk_give(db, c);
    return st;
}

/* Transactions. */

/* Take a connection and begin a transaction on it. *ret is also open if BEGIN failed. It is
 * untouched if there is no connection. */
static as_status tx_begin(struct store *db, tx_kind kind, struct tx **ret, struct as_err *err)
{
    struct conn *c = NULL;
    as_status st = kind == TX_BATCH ? disk_open(db, err) : AS_OK;
    if (st == AS_OK)
        st = pool_take(db, kind == TX_BATCH ? LANE_BATCH : LANE_SHARED, &c, err);
    if (st != AS_OK)
        return st;
    c->retry = c->committing = c->disk_full = false;
    c->tx = (struct tx){.db = db, .conn = c, .kind = kind};
    *ret = &c->tx;
    if (kind == TX_READ || kind == TX_SEEN)
        return AS_OK;
    st = kind == TX_BATCH ? conn_defer(c, "begin", err)
                          : conn_exec(c, "begin; set local synchronous_commit = off", err);
    if (st != AS_OK)
        c->broken = true;
    return st;
}

/* A transaction gives its locks back when it has committed, and then waits for the disk: with a
 * commit that waits, each claim of a sweep would wait for the disk of the one before, because both
 * hold the sweep's row. The message is a record in the log after the commit; its own commit waits
 * until both are on disk, together with those of other connections. Nobody is answered before. A
 * transaction that saw the change meanwhile is later in the log, so it never outlives what it
 * saw. What wrote nothing does not wait. */
static const char *const commits[] = {
    [TX_WRITE] = ("select set_config('assay.wrote', (pg_current_xact_id_if_assigned() is not "
                  "null)::text, false); commit; select case when "
                  "current_setting('assay.wrote')::boolean then pg_logical_emit_message(true, "
                  "'assay', '') end"),
    [TX_SOFT] = "commit"};

static as_status tx_end(struct tx *t, as_status st, struct as_err *err)
{
    struct conn *c = t->conn;
    if (t->kind == TX_SEEN && st == AS_OK) /* the connection is older than what it saw */
        return conn_exec(c, WAIT_FOR_DISK, err);
    if (t->kind == TX_READ || t->kind == TX_SEEN)
        return st;
    if (st == AS_OK) {
        c->committing = true;
        st = t->kind == TX_BATCH ? conn_end(c, "commit", err) : conn_exec(c, commits[t->kind], err);
        if (st == AS_OK && t->has_seen)
            st = conn_exec(c, WAIT_FOR_DISK, err);
        c->committing = c->broken; /* only a missing answer leaves the result unknown */
        if (st == AS_OK || t->kind != TX_BATCH)
            return st;
    }
    conn_rollback(c);
    return st;
}

static int key_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Once for each sweep. */
static void call_on_finished(struct store *db, struct tx *t)
{
    pthread_mutex_lock(&db->mu);
    store_finished_fn *fn = db->on_finished;
    void *ctx = db->finished_ctx;
    pthread_mutex_unlock(&db->mu);
    qsort(t->finished, t->n_finished, sizeof *t->finished, key_order);
    for (size_t i = 0; fn && i < t->n_finished; i++) {
        if (i == 0 || t->finished[i] != t->finished[i - 1])
            fn(ctx, t->finished[i]);
    }
}

static void call_on_finishing(struct store *db)
{
    pthread_mutex_lock(&db->mu);
    store_finishing_fn *fn = db->on_finishing;
    void *ctx = db->finishing_ctx;
    pthread_mutex_unlock(&db->mu);
    if (fn)
        fn(ctx);
}

/* End the transaction, return its connection, and report what it committed. *ret_again: it failed
 * without effect and may succeed if it runs again. */
static as_status tx_close(struct tx *t, as_status st, bool *ret_again, bool *ret_away,
                          struct as_err *err)
{
    struct conn *c = t->conn;
    if (st == AS_OK && t->finished_failed)
        st = as_fail_nomem(err);
    st = tx_end(t, st, err);
    *ret_away = st != AS_OK && c->broken;
    *ret_again = st != AS_OK && (c->retry || (c->broken && !c->committing));
    struct tx done = *t; /* another thread may take the connection once it is returned */
    pool_give(done.db, c);
    if (st == AS_OK && done.n_finished > 0)
        call_on_finished(done.db, &done);
    free(done.finished);
    give_boards(&done, st == AS_OK);
    if (st == AS_OK && done.has_finishing)
        call_on_finishing(done.db);
    return st;
}

struct tx_run tx_run_start(struct store *db, tx_kind kind, struct as_err *err)
{
    return (struct tx_run){.db = db, .kind = kind, .err = err, .pause_ms = 2};
}

/* Close the open transaction. True: another run is needed, and its pause is over. */
static bool run_is_due(struct tx_run *run)
{
    bool again = false;
    run->status = tx_close(run->tx, run->status, &again, &run->is_away, run->err);
    run->tx = NULL;
    if (!again || run->n_runs == TX_ATTEMPTS)
        return false;
    atomic_fetch_add(&run->db->counters.tx_retries, 1);
    if (run->err)
        run->err->pointer[0] = '\0';
    clock_sleep_ms(jittered_ms(run->pause_ms));
    run->pause_ms *= 2;
    return true;
}

bool tx_run_again(struct tx_run *run)
{
    while (!run->tx || run_is_due(run)) {
        run->n_runs++;
        run->status = tx_begin(run->db, run->kind, &run->tx, run->err);
        if (run->status == AS_OK) {
            run->status = AS_E_INTERNAL; /* until the body sets it */
            return true;
        }
        if (!run->tx) {
            run->is_away = true;
            return false;
        }
    }
    return false;
}
