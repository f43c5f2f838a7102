/* assayd: the server. It opens the listening socket and the database (and waits for it), brings the
 * schema up to date, writes the token files, serves, and runs the reaper, until SIGTERM, SIGINT or
 * SIGHUP. With TLS, SIGHUP reads the certificate again.
 *
 * The socket is bound before the database is opened, so that a wrong address fails at once. Signals
 * are blocked in every thread and read by sigwait() in the main thread: there is no signal handler.
 * A stop has a time limit for each part. What still hangs then is left behind with _exit, because
 * all state is in database transactions.
 *
 * Exit codes: 0 ended on request; 1 failed; 64 usage; 69 the database cannot be reached; 70 a bug
 * in assayd; 73 a file cannot be written; 77 not allowed; 78 configuration (schema, address). */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "api/server/gc_loop.h"
#include "api/http/listen.h"
#include "api/http/http_tls.h"
#include "api/server/reaper_loop.h"
#include "api/server/regret_loop.h"
#include "api/server/server.h"
#include "api/server/token_file.h"
#include "base/blas.h"
#include "base/clock.h"
#include "base/private_env.h"
#include "base/disk_room.h"
#include "base/file.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/opt.h"
#include "base/str.h"
#include "scheduler/content/piece_store.h"
#include "scheduler/services/migrate.h"

/* A stop ends within 10 s, because service managers kill what takes longer: twice STOP_WAIT_MS for
 * the server (running calls are answered, then cut), then REAPER_WAIT_MS. While it drains, new
 * connections are accepted and closed: the listening socket belongs to libmicrohttpd's threads. */
#define STOP_WAIT_MS 3000
#define REAPER_WAIT_MS 2000
#define GC_WAIT_MS 500
#define EXIT_USAGE 64

struct config {
    const char *listen, *database, *web, *log_level, *public_host, *address_file;
    const char *admin_token_file, *runner_token_file;
    const char *blob_store, *s3_endpoint, *disk, *commit, *certificate, *key;
    int64_t max_connections, max_per_address, bad_tokens, requests;
    int64_t workers, search_threads, lease_ms, heartbeat_ms, database_wait_ms, max_blob_bytes;
    bool insecure_http, migrate, no_migrate, die_with_parent, version, help;
};

struct daemon {
    struct config config;
    struct piece_store *pieces; /* NULL: content is in the database */
    struct store *store;
    struct server *server;
    struct http_tls *tls; /* NULL: plain HTTP */
    int listen_fd;
    struct listener_address address;
    struct host_names hosts;
    sigset_t signals; /* the signals that end the program, blocked in every thread */
};

static void print_help(const struct opt *table)
{
    (void)puts("usage: assayd --database URL [options]\n");
    opt_help(table, stdout);
    (void)puts("\nexit codes: 0 ended as asked; 1 failed; 64 usage; 69 the database cannot be "
               "reached;\n70 internal; 73 a file cannot be written; 77 not allowed; 78 "
               "configuration");
}

static as_status parse_options(struct config *c, int argc, char **argv, struct as_err *err)
{
    const struct opt table[] = {
        {"listen", 'l', OPT_STRING, &c->listen, "HOST:PORT", "ASSAY_LISTEN",
         "where to listen; port 0: any free one (127.0.0.1:7117)"},
        {"database", 'd', OPT_STRING, &c->database, "URL", "ASSAY_DATABASE",
         "PostgreSQL, such as postgresql://user@host/assay"},
        {"database-wait", 0, OPT_DURATION, &c->database_wait_ms, "TIME", NULL,
         "how long to wait for it at the start (30s)"},
        {"database-disk", 0, OPT_STRING, &c->disk, "DIR", NULL,
         "a folder on the database's disk, if that is on this machine: answers say when it is "
         "full"},
        {"migrate", 0, OPT_FLAG, &c->migrate, NULL, NULL,
         "bring the schema up to date at the start (the default)"},
        {"no-migrate", 0, OPT_FLAG, &c->no_migrate, NULL, NULL, "only check the schema"},
        {"workers", 'w', OPT_I64, &c->workers, "N", NULL, "threads that talk to the database (4)"},
        {"search-threads", 0, OPT_I64, &c->search_threads, "N", NULL,
         "threads that compute suggestions (2)"},
        {"commit", 0, OPT_STRING, &c->commit, "HOW", NULL,
         "batch: results that arrive together are committed together; single: each alone (batch)"},
        {"lease", 0, OPT_DURATION, &c->lease_ms, "TIME", NULL,
         "a runner that is silent for this long is lost (15s)"},
        {"heartbeat", 0, OPT_DURATION, &c->heartbeat_ms, "TIME", NULL,
         "how often runners report (3s)"},
        {"max-connections", 0, OPT_I64, &c->max_connections, "N", NULL,
         "connections that may be open at one time (4096)"},
        {"max-connections-per-address", 0, OPT_I64, &c->max_per_address, "N",
         "ASSAY_MAX_CONNECTIONS_PER_ADDRESS",
         "the same for one client address; 0: no limit, for a server behind a proxy (1024)"},
        {"bad-tokens-per-minute", 0, OPT_I64, &c->bad_tokens, "N", "ASSAY_BAD_TOKENS_PER_MINUTE",
         "tokens that are not valid from one client address, before it is refused; 0: no limit "
         "(60)"},
        {"requests-per-second", 0, OPT_I64, &c->requests, "N", "ASSAY_REQUESTS_PER_SECOND",
         "of one token, ten times as many of a runner's, a fiftieth of a trial's; 0: no limit "
         "(5000)"},
        {"max-blob", 0, OPT_I64, &c->max_blob_bytes, "BYTES", NULL,
         "the largest upload (2147483648)"},
        {"blob-store", 0, OPT_STRING, &c->blob_store, "DIR|s3://BUCKET/PREFIX", "ASSAY_BLOB_STORE",
         "keep content outside of the database: in a folder, or in S3 with AWS_ACCESS_KEY_ID, "
         "AWS_SECRET_ACCESS_KEY, AWS_REGION (default: in the database)"},
        {"s3-endpoint", 0, OPT_STRING, &c->s3_endpoint, "URL", "ASSAY_S3_ENDPOINT",
         "the service that has the bucket, if it is not AWS: https://HOST:PORT"},
        {"web", 0, OPT_STRING, &c->web, "DIR", "ASSAY_WEB",
         "the built dashboard (default: beside the program, or where it was installed)"},
        {"public-host", 0, OPT_STRING, &c->public_host, "NAMES", NULL,
         "further names in Host headers to answer to, with commas between them"},
        {"tls-certificate", 0, OPT_STRING, &c->certificate, "PATH", "ASSAY_TLS_CERTIFICATE",
         "speak TLS with this certificate and those that lead to its authority (PEM); SIGHUP reads "
         "it again"},
        {"tls-key", 0, OPT_STRING, &c->key, "PATH", "ASSAY_TLS_KEY", "its key (PEM)"},
        {"insecure-http", 0, OPT_FLAG, &c->insecure_http, NULL, NULL,
         "listen on an address that is not loopback, without TLS"},
        {"admin-token-file", 0, OPT_STRING, &c->admin_token_file, "PATH", NULL,
         "keep a valid admin token in this file (mode 0600)"},
        {"runner-token-file", 0, OPT_STRING, &c->runner_token_file, "PATH", NULL,
         "keep a valid runner token in this file (mode 0600)"},
        {"address-file", 0, OPT_STRING, &c->address_file, "PATH", NULL,
         "write the URL to this file when ready"},
        {"die-with-parent", 0, OPT_FLAG, &c->die_with_parent, NULL, NULL,
         "end when the program that started this one ends"},
        {"log-level", 0, OPT_STRING, &c->log_level, "LEVEL", "ASSAY_LOG_LEVEL",
         "debug, info, warn or error (info)"},
        {"version", 'V', OPT_FLAG, &c->version, NULL, NULL, "print the version"},
        {"help", 'h', OPT_FLAG, &c->help, NULL, NULL, "print this"},
        {0},
    };
    int n_args = 0;
    as_status st = opt_parse(table, argc, argv, &n_args, err);
    if (st < 0)
        return st;
    if (c->help)
        print_help(table);
    else if (n_args > 0)
        return as_fail(err, AS_E_INVAL, "unexpected argument '%.60s'", argv[1]);
    return AS_OK;
}

static int exit_code(as_status st)
{
    switch (st) {
    case AS_OK:
        return 0;
    case AS_E_UNAVAILABLE:
    case AS_E_TIMEOUT:
        return 69;
    case AS_E_INTERNAL:
        return 70;
    case AS_E_IO:
        return 73;
    case AS_E_DENIED:
        return 77;
    case AS_E_INVAL:
    case AS_E_CONFLICT:
        return 78;
    default:
        return 1;
    }
}

/* glibc raises the first threshold by itself, and then the blocks of big answers stay in the heap.
 * It gives what is free at the end of a heap back above the second one, 128 KiB: each part of a
 * table that is read would get its pages anew from the kernel, which took a third of the time. */
static void set_thresholds(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

static as_status check_config(const struct config *c, struct as_err *err)
{
    const struct opt_range ranges[] = {
        {"workers", c->workers, 1, 256},
        {"search-threads", c->search_threads, 1, 8},
        {"max-connections", c->max_connections, 1, 65536},
        {"max-connections-per-address", c->max_per_address, 0, 65536},
        {"bad-tokens-per-minute", c->bad_tokens, 0, 1000000},
        {"requests-per-second", c->requests, 0, 1000000000},
        {"max-blob", c->max_blob_bytes, 1, INT64_MAX},
    };
    log_level level = LOG_INFO;
    as_status st = log_level_parse(c->log_level, &level, err);
    if (st < 0)
        return st;
    log_setup("assayd", level);
    if (!c->database)
        return as_fail(err, AS_E_INVAL,
                       "no database is given: use --database URL or ASSAY_DATABASE");
    if (!as_streq(c->commit, "batch") && !as_streq(c->commit, "single"))
        return as_fail(err, AS_E_INVAL, "--commit: found '%.40s', expected batch or single",
                       c->commit);
    if (!c->certificate != !c->key)
        return as_fail(err, AS_E_INVAL, "--tls-certificate and --tls-key are given together");
    if (c->s3_endpoint && !c->blob_store)
        return as_fail(err, AS_E_INVAL,
                       "--s3-endpoint is given without --blob-store s3://BUCKET/PREFIX");
    return opt_check_ranges(ranges, AS_ARRAY_LEN(ranges), err);
}

static as_status open_pieces(struct daemon *d, struct as_err *err)
{
    const struct piece_place place = {.where = d->config.blob_store,
                                      .endpoint = d->config.s3_endpoint};
    as_status st = piece_store_open(&place, &d->pieces, err);
    if (st == AS_OK)
        log_write(LOG_INFO, "blob store", "where=\"%s\"", place.where);
    return st;
}

static as_status open_store(struct daemon *d, struct as_err *err)
{
    const struct config *c = &d->config;
    const struct store_opts opts = {
        .url = c->database,
        .application_name = "assayd",
        /* one for each thread that uses the database, so that none waits for another; the 18: two
         * workers each that are slow, urgent or for heartbeats, three for tables, tokens, event
         * streams, waiting requests, reaper, gc, and four that commit what no batch can; batches
         * have their own */
        .max_connections = (int)(c->workers + c->search_threads) + 18,
        .config = {.lease_ms = c->lease_ms, .heartbeat_ms = c->heartbeat_ms},
    };
    return store_open(&opts, &d->store, err);
}

static bool is_stop_pending(const struct daemon *d, int64_t wait_ms)
{
    const struct timespec ts = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * NS_PER_MS};
    int sig = sigtimedwait(&d->signals, NULL, &ts);
    return sig > 0;
}

/* Say that its disk is full, if it is. */
static void explain_outage(const struct daemon *d, struct as_err *err)
{
    char room[300];
    if (d->config.disk && disk_room_is_short(d->config.disk, DISK_ROOM_POSTGRES, room, sizeof room))
        (void)as_err_prefix(err, err->code, "the disk of the database is full: %s", room);
}

/* Repeat `step` while the database cannot be reached, with growing pauses, for at most
 * --database-wait. */
static as_status with_database(struct daemon *d,
                               as_status (*step)(struct daemon *, struct as_err *),
                               struct as_err *err)
{
    int64_t until = clock_mono_ns() + d->config.database_wait_ms * NS_PER_MS, pause_ms = 100;
    as_status st = step(d, err);
    for (; st == AS_E_UNAVAILABLE && clock_mono_ns() < until; st = step(d, err)) {
        explain_outage(d, err);
        log_write(LOG_WARN, "waiting for the database", "detail=\"%s\"", err->msg);
        if (is_stop_pending(d, pause_ms))
            return as_fail(err, AS_E_UNAVAILABLE, "stopped while waiting for the database");
        pause_ms = pause_ms * 2 > 3000 ? 3000 : pause_ms * 2;
    }
    return st;
}

static as_status step_schema(struct daemon *d, struct as_err *err)
{
    size_t applied = 0;
    as_status st = d->config.no_migrate ? AS_OK : migrate_run(d->store, &applied, err);
    if (st < 0)
        return st;
    if (applied)
        log_write(LOG_INFO, "schema brought up to date", "migrations=%zu", applied);
    return migrate_check(d->store, err);
}

static as_status step_tokens(struct daemon *d, struct as_err *err)
{
    const struct config *c = &d->config;
    as_status st = AS_OK;
    if (c->admin_token_file)
        st = token_file_ensure(d->store, c->admin_token_file, ROLE_ADMIN, err);
    if (st < 0 || !c->runner_token_file)
        return st;
    return token_file_ensure(d->store, c->runner_token_file, ROLE_RUNNER, err);
}

/* The folder dir/rest, without links and "..", if it has an index.html, else NULL. Owned by the
 * caller. */
static char *web_at(const char *dir, const char *rest)
{
    AS_AUTO(as_freep) char *path = file_join(dir, rest);
    AS_AUTO(as_freep) char *index = path ? file_join(path, "index.html") : NULL;
    return index && access(index, R_OK) == 0 ? realpath(path, NULL) : NULL;
}

/* Find the dashboard of a build folder (BUILD/api/server/assayd), of an installation that may have
 * been moved, or of the one that was configured. */
static char *find_web(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        *slash = '\0';
        static const char *const beside[] = {ASSAY_WEB_FROM_PROGRAM, "web", "../../web/dist",
                                             "../../../web/dist"};
        for (size_t i = 0; i < AS_ARRAY_LEN(beside); i++) {
            char *found = web_at(self, beside[i]);
            if (found)
                return found;
        }
    }
    return web_at(ASSAY_DATADIR, "web");
}

static as_status start_serving(struct daemon *d, struct as_err *err)
{
    AS_AUTO(as_freep) char *found = d->config.web ? NULL : find_web();
    struct server_options opts = {
        .listen_fd = d->listen_fd,
        .store = d->store,
        .workers = (size_t)d->config.workers,
        .search_threads = (size_t)d->config.search_threads,
        .max_connections = (size_t)d->config.max_connections,
        .max_per_address = (size_t)d->config.max_per_address,
        .bad_tokens = (size_t)d->config.bad_tokens,
        .requests_per_second = d->config.requests,
        .max_blob_bytes = d->config.max_blob_bytes,
        .commits_single = as_streq(d->config.commit, "single"),
        .disk = d->config.disk,
        .web_dir = d->config.web ? d->config.web : found,
        .host_names = d->hosts.names,
        .tls = d->tls,
    };
    d->listen_fd = -1; /* the server takes it */
    as_status st = server_start(&opts, &d->server, err);
    if (st < 0)
        return st;
    st = listener_address_write(&d->address, d->config.address_file, err);
    if (st < 0)
        return st;
    log_write(LOG_INFO, "serving", "url=%s version=%s web=%s", d->address.url, ASSAY_VERSION,
              opts.web_dir ? opts.web_dir : "none");
    return AS_OK;
}

/* End the process although `what` still runs. No work is lost: all state is in the database, and
 * each transaction is complete or has no effect. */
static void leave_behind(const char *what)
{
    log_write(LOG_WARN, "stopped without waiting longer", "for=\"%s\"", what);
    _exit(0);
}

static as_status open_listener(struct daemon *d, struct as_err *err)
{
    const struct config *c = &d->config;
    if (c->certificate) {
        as_status st = http_tls_create(c->certificate, c->key, &d->tls, err);
        if (st < 0)
            return st == AS_E_NOT_FOUND ? as_err_prefix(err, AS_E_INVAL, "TLS") : st;
    }
    as_status st =
        listen_open(c->listen, d->tls || c->insecure_http, &d->listen_fd, &d->address, err);
    if (st == AS_OK && d->tls)
        listener_address_secure(&d->address);
    return st;
}

static as_status prepare_daemon(struct daemon *d, struct as_err *err)
{
    as_status st = blas_open(err); /* of suggestions; without it nothing starts */
    if (st < 0)
        return st;
    st = open_listener(d, err);
    if (st < 0)
        return st;
    st = host_names_init(&d->address, d->config.public_host, &d->hosts, err);
    if (st < 0)
        return st;
    st = open_store(d, err);
    if (st < 0)
        return st;
    if (d->config.blob_store && (st = open_pieces(d, err)) < 0)
        return st;
    store_set_pieces(d->store, d->pieces);
    st = with_database(d, step_schema, err);
    if (st < 0)
        return st;
    return with_database(d, step_tokens, err);
}

/* The threads that work without requests. */
struct loops {
    struct reaper_loop *reaper;
    struct regret_loop *regret;
    struct gc_loop *gc;
};

static as_status start_daemon(struct daemon *d, struct loops *ret, struct as_err *err)
{
    as_status st = prepare_daemon(d, err);
    if (st < 0)
        return st;
    st = start_serving(d, err);
    if (st < 0)
        return st;
    st = gc_loop_start(d->store, &ret->gc, err);
    if (st < 0)
        return st;
    st = regret_loop_start(d->store, &ret->regret, err);
    if (st < 0)
        return st;
    return reaper_loop_start(d->store, d->server, &ret->reaper, err);
}

static as_status run_daemon(struct daemon *d, struct as_err *err)
{
    struct loops loops = {0};
    as_status st = start_daemon(d, &loops, err);
    if (st < 0) {
        if (!gc_loop_end(loops.gc, REAPER_WAIT_MS))
            leave_behind("garbage collection");
        if (!regret_loop_end(loops.regret, REAPER_WAIT_MS))
            leave_behind("a bound of what is left to gain");
        if (!server_drain(d->server, 0))
            leave_behind("a call");
        server_free(d->server);
        return st;
    }
    notify_send("READY=1");
    int sig = http_tls_await_signal(d->tls, &d->signals);
    log_write(LOG_INFO, "stopping", "signal=%d", sig);
    notify_send("STOPPING=1");
    reaper_loop_request_stop(loops.reaper);
    regret_loop_request_stop(loops.regret);
    if (!server_drain(d->server, STOP_WAIT_MS))
        leave_behind("a call");
    if (!reaper_loop_end(loops.reaper, REAPER_WAIT_MS))
        leave_behind("the reaper");
    if (!gc_loop_end(loops.gc, GC_WAIT_MS))
        leave_behind("garbage collection");
    if (!regret_loop_end(loops.regret, GC_WAIT_MS))
        leave_behind("a bound of what is left to gain");
    server_free(d->server);
    return AS_OK;
}

static void block_signals(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

static int print_usage_error(const struct as_err *err)
{
    (void)fprintf(stderr, "assayd: %s\n", err->msg);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct as_err err = {0};
    struct daemon d = {.listen_fd = -1,
                       .config = {.listen = "127.0.0.1:7117",
                                  .log_level = "info",
                                  .workers = 4,
                                  .search_threads = 2,
                                  .commit = "batch",
                                  .max_connections = 4096,
                                  .max_per_address = 1024,
                                  .bad_tokens = 60,
                                  .requests = 5000,
                                  .database_wait_ms = 30000,
                                  .max_blob_bytes = (int64_t)2 << 30}};
    if (private_env_hide(&err) < 0 || parse_options(&d.config, argc, argv, &err) < 0)
        return print_usage_error(&err);
    if (d.config.help)
        return 0;
    if (d.config.version)
        return puts("assayd " ASSAY_VERSION) < 0;
    if (check_config(&d.config, &err) < 0)
        return print_usage_error(&err);
    if (d.config.die_with_parent)
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    file_raise_limit();
    set_thresholds();
    block_signals(&d.signals);
    as_status st = run_daemon(&d, &err);
    if (st < 0)
        log_write(LOG_ERROR, "cannot continue", "status=%s detail=\"%s\"", as_status_name(st),
                  err.msg);
    file_closep(&d.listen_fd);
    http_tls_free(d.tls);
    store_close(d.store);
    piece_store_close(d.pieces);
    host_names_done(&d.hosts);
    return exit_code(st);
}
