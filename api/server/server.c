/* Creates, connects and ends the parts of the service.
 *
 * The order of the start is the order of dependence: the transport comes last, because its first
 * request may use every part. The end has two steps. server_drain() stops the transport, so that no
 * request is left; only then may server_free() free the parts that requests used. If a call hangs
 * in the database, the drain reports it and nothing is freed: the program ends by _exit.
 *
 * Two parts depend on each other: the suggester wakes the waiting list, and the probe of the
 * waiting list queries the suggester. free_parts() explains why that is safe. */
#include "api/server/server.h"

#include <malloc.h>

#include "api/server/dispatch.h"
#include "api/server/routes.h"
#include "api/server/server_priv.h"
#include "api/server/waiting_probe.h"
#include "base/clock.h"
#include "base/file.h"

#define DEFAULT_WORKERS 4
#define DEFAULT_SLOW_WORKERS 2
#define VIEW_WORKERS 3 /* one reads a large sweep for the first time, and others go on */
#define DEFAULT_URGENT_WORKERS 2
#define DEFAULT_BEAT_WORKERS 2
#define DEFAULT_SEARCH_THREADS 2
#define DEFAULT_CONNECTIONS 4096
#define DEFAULT_BLOB_MAX ((int64_t)2 << 30)

static void set_defaults(struct server_options *o)
{
    o->workers = o->workers ? o->workers : DEFAULT_WORKERS;
    o->slow_workers = o->slow_workers ? o->slow_workers : DEFAULT_SLOW_WORKERS;
    o->urgent_workers = o->urgent_workers ? o->urgent_workers : DEFAULT_URGENT_WORKERS;
    o->beat_workers = o->beat_workers ? o->beat_workers : DEFAULT_BEAT_WORKERS;
    o->search_threads = o->search_threads ? o->search_threads : DEFAULT_SEARCH_THREADS;
    o->max_connections = o->max_connections ? o->max_connections : DEFAULT_CONNECTIONS;
    o->max_blob_bytes = o->max_blob_bytes ? o->max_blob_bytes : DEFAULT_BLOB_MAX;
}

/* Called in a search thread: a suggestion is ready. */
static void on_suggestion(void *ctx)
{
    struct server *s = ctx;
    waiting_wake(s->waiting);
}

static as_status start_suggester(struct server *s, struct as_err *err)
{
    const struct suggester_opts opts = {
        .threads = s->opts.search_threads, .on_ready = on_suggestion, .ctx = s};
    return suggester_create(s->store, &opts, &s->suggester, err);
}

static as_status start_committer(struct server *s, struct as_err *err)
{
    const struct committer_opts opts = {.is_single = s->opts.commits_single};
    return committer_create(s->store, s->suggester, &opts, &s->committer, err);
}

/* Give the requests access to the parts. Call it when all of them exist. */
static void lend_parts(struct server *s)
{
    struct dispatch *d = &s->dispatch;
    d->routes = routes;
    d->n_routes = n_routes;
    d->server = s;
    d->store = s->store;
    d->suggester = s->suggester;
    d->results = &s->results;
    d->tables = s->tables;
    d->orders = s->orders;
    d->fronts = s->fronts;
    d->committer = s->committer;
    d->beats = s->beats;
    d->attempts = s->attempts;
    d->auth = s->auth;
    d->rates = s->rates;
    d->pool = s->pool;
    d->slow_pool = s->slow_pool;
    d->view_pool = s->view_pool;
    d->urgent_pool = s->urgent_pool;
    d->beat_pool = s->beat_pool;
    d->waiting = s->waiting;
    d->web = s->web;
    d->metrics = s->metrics;
    d->host_names = s->opts.host_names;
    d->disk = s->opts.disk;
    d->max_blob_bytes = s->opts.max_blob_bytes;
}

static as_status start_http(struct server *s, struct as_err *err)
{
    const struct http_app app = {.ctx = &s->dispatch,
                                 .on_head = dispatch_head,
                                 .on_request = dispatch_request,
                                 .on_refusal = dispatch_refusal,
                                 .on_end = dispatch_end,
                                 .on_gone = dispatch_gone};
    struct http_options http = http_options_default();
    http.listen_fd = s->opts.listen_fd;
    http.tls = s->opts.tls;
    http.max_connections = (unsigned)s->opts.max_connections;
    http.max_per_address = (unsigned)s->opts.max_per_address;
    s->opts.listen_fd = -1; /* http_start takes it */
    return http_start(&http, &app, &s->http, err);
}

/* In the order of dependence: the transport comes last. */
static as_status start_parts(struct server *s, struct as_err *err)
{
    const struct waiting_hooks hooks = {
        .retry = dispatch_retry, .probe = waiting_probe, .ctx = &s->dispatch};
    as_status st;
    s->metrics = http_metrics_create(routes, n_routes);
    s->readiness = readiness_create(s->store, s->opts.disk);
    s->tables = table_cache_create(TABLE_CACHE_BYTES);
    s->orders = trial_orders_create(TRIAL_ORDERS_BYTES);
    s->fronts = sweep_fronts_create(SWEEP_FRONTS_BYTES);
    s->rates = token_rates_create(s->opts.requests_per_second);
    if (!s->metrics || !s->readiness || !s->tables || !s->orders || !s->fronts || !s->rates)
        return as_fail(err, AS_E_NOMEM, "out of memory for the server");
    if ((st = attempt_key_create(s->store, &s->attempts, err)) < 0)
        return st;
    if ((st = auth_create(s->store, s->attempts, s->opts.bad_tokens, &s->auth, err)) < 0)
        return st;
    if ((st = web_files_load(s->opts.web_dir, &s->web, err)) < 0)
        return st;
    if ((st = pool_create(s->opts.workers, &s->pool, err)) < 0)
        return st;
    if ((st = pool_create(s->opts.slow_workers, &s->slow_pool, err)) < 0)
        return st;
    if ((st = pool_create(VIEW_WORKERS, &s->view_pool, err)) < 0)
        return st;
    if ((st = pool_create(s->opts.urgent_workers, &s->urgent_pool, err)) < 0)
        return st;
    if ((st = pool_create(s->opts.beat_workers, &s->beat_pool, err)) < 0)
        return st;
    if ((st = waiting_create(&hooks, &s->waiting, err)) < 0)
        return st;
    if ((st = start_suggester(s, err)) < 0)
        return st;
    if ((st = start_committer(s, err)) < 0)
        return st;
    if ((st = beats_create(s->store, &s->beats, err)) < 0)
        return st;
    if ((st = event_streams_create(s->store, &s->streams, err)) < 0)
        return st;
    lend_parts(s); /* not needed earlier: the list makes no probe while no request waits */
    return start_http(s, err);
}

/* The workers end before the parts that their jobs use. The suggester may still wake the waiting
 * list, so it is freed before the list. The list does not use the suggester any more, because it
 * makes no probe while no request waits. */
static void free_parts(struct server *s)
{
    committer_free(s->committer); /* it gives calls to the workers */
    beats_free(s->beats);         /* likewise */
    pool_free(s->beat_pool);
    pool_free(s->urgent_pool);
    pool_free(s->view_pool);
    pool_free(s->slow_pool);
    pool_free(s->pool);
    suggester_free(s->suggester);
    waiting_free(s->waiting);
    event_streams_free(s->streams);
    web_files_free(s->web);
    http_metrics_free(s->metrics);
    readiness_free(s->readiness);
    auth_free(s->auth);
    token_rates_free(s->rates);
    attempt_key_free(s->attempts);
    result_cache_done(&s->results);
    table_cache_free(s->tables);
    trial_orders_free(s->orders);
    sweep_fronts_free(s->fronts);
    file_closep(&s->opts.listen_fd);
    free(s);
}

as_status server_start(const struct server_options *opts, struct server **ret, struct as_err *err)
{
    int fd = opts->listen_fd;
    struct server *s = as_calloc(1, sizeof *s);
    if (!s) {
        file_closep(&fd);
        return as_fail(err, AS_E_NOMEM, "out of memory for the server");
    }
    s->opts = *opts;
    s->store = opts->store;
    set_defaults(&s->opts);
    result_cache_init(&s->results);
    json_object_seed(0); /* before other threads exist */
    as_status st = start_parts(s, err);
    if (st < 0) {
        free_parts(s);
        return st;
    }
    *ret = s;
    return AS_OK;
}

void server_reaped(struct server *s, int64_t runners, int64_t clients, int64_t gangs)
{
    if (runners + clients + gangs == 0)
        return;
    atomic_fetch_add(&s->lease_expirations, runners);
    atomic_fetch_add(&s->client_expirations, clients);
    waiting_wake(s->waiting);
}

void server_tidy(struct server *s)
{
    /* glibc keeps what was freed between what is in use; after big requests that is much */
    if (s && atomic_exchange(&s->dispatch.big_bytes, 0) > 0)
        (void)malloc_trim(0);
}

bool server_drain(struct server *s, int64_t wait_ms)
{
    if (!s)
        return true;
    atomic_store(&s->dispatch.is_draining, true); /* first: later answers close their connection */
    http_quiesce(s->http);
    event_streams_drain(s->streams);
    waiting_drain(s->waiting);
    if (!http_stop(s->http, wait_ms))
        return false;
    s->http = NULL;
    return true;
}

void server_free(struct server *s)
{
    if (s)
        free_parts(s);
}
