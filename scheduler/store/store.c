/* A store: its settings, and what all operations share. */
#include "scheduler/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "scheduler/store/store_priv.h"

#define BATCH_CONNECTIONS 7 /* of the committer: its batch thread, its helpers, and heartbeats */

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

void store_on_finishing(struct store *db, store_finishing_fn *fn, void *ctx)
{
    pthread_mutex_lock(&db->mu);
    db->on_finishing = fn;
    db->finishing_ctx = ctx;
    pthread_mutex_unlock(&db->mu);
}
