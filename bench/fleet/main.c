/* What one PostgreSQL and one or two servers carry of a large fleet: simulated runners (runners.h)
 * beside assayd as it is, with its own lease and heartbeat. Cases: a fleet that waits for work; one
 * that works; on two servers; and after one of them was killed, where every trial that was
 * acknowledged must be counted once. */
#include <dirent.h>
#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/opt.h"
#include "bench/bench.h"
#include "bench/fleet/runners.h"
#include "bench/scheduler/usage.h"

struct settings {
    int64_t runners, share, seed;
    double seconds, trial_s;
};

/* Megabytes that are resident; NaN if the process is gone. */
static double resident_mb(pid_t pid)
{
    char path[64], line[200];
    double kb = NAN;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtod(line + 6, NULL);
    if (f)
        (void)fclose(f);
    return kb / 1000;
}

static int open_files(pid_t pid)
{
    char path[64];
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d)
        (void)closedir(d);
    return n;
}

/* The first column of the first row of a query. */
static double ask_database(const struct server *s, const char *query)
{
    PGconn *c = PQconnectdb(s->url);
    PGresult *r = PQexec(c, query);
    if (PQntuples(r) != 1)
        wire_give_up("database", PQerrorMessage(c));
    double v = strtod(PQgetvalue(r, 0, 0), NULL);
    PQclear(r);
    PQfinish(c);
    return v;
}

static void report_times(const char *what, const char *of, struct times *t, const char *note)
{
    char name[80], more[600];
    (void)snprintf(name, sizeof name, "%s: %s, p99", what, of);
    (void)snprintf(more, sizeof more, "p50 %.1f ms, longest %.0f ms, %zu of them%s%s",
                   times_quantile(t, 0.5), times_quantile(t, 1), t->n, *note ? "; " : "", note);
    if (t->n > 0)
        bench_report(name, times_quantile(t, 0.99), "ms", NAN, NAN, NULL, more);
    else
        bench_skip(name, "ms", "there was none");
}

static void report_server(const char *what, const struct server *s)
{
    char name[80], note[200];
    (void)snprintf(name, sizeof name, "%s: memory of a server", what);
    (void)snprintf(note, sizeof note, "%d files open, %.0f connections to PostgreSQL of all",
                   open_files(s->pid),
                   ask_database(s, "select count(*) from pg_stat_activity where datname = "
                                   "current_database() and pid <> pg_backend_pid()"));
    bench_report(name, resident_mb(s->pid), "MB", NAN, NAN, NULL, note);
}

static void run_and_report(const char *what, struct runners *x, const struct server *s,
                           const struct settings *o)
{
    struct runners_seen seen = {0};
    char used[200], each[160], note[500];
    struct usage begin = usage_now(s->pid);
    runners_run(x, o->seconds, &seen);
    struct usage end = usage_now(s->pid), u = usage_since(&begin, &end);
    usage_format(&u, used, sizeof used);
    /* of one server of two, and of all the database: what a heartbeat costs is the idle case's */
    usage_format_each(&u, (double)seen.beats.n, each, sizeof each);
    (void)snprintf(note, sizeof note,
                   "%lld refused, %lld moved, %lld stale; %s; microseconds for a heartbeat: %s",
                   (long long)seen.n_refused, (long long)seen.n_moved, (long long)seen.n_stale,
                   used, each);
    report_times(what, "heartbeats", &seen.beats, note);
    report_times(what, "claims", &seen.claims, "");
    report_times(what, "completions", &seen.ends, "");
    runners_seen_done(&seen);
}

/* Until every runner has its first trial. */
static void fill(struct runners *x, const struct settings *o)
{
    struct runners_seen seen = {0};
    struct times all = {0};
    for (int i = 0; i < 120 && runners_busy(x) < o->runners * 9 / 10; i++) {
        runners_run(x, 1, &seen);
        times_join(&all, &seen.claims);
    }
    report_times("work arrives", "from the claim to its trial", &all, "the claims had waited");
    times_done(&all);
    runners_seen_done(&seen);
}

/* Nothing that was acknowledged is lost, and nothing is counted twice: completions of which no
 * answer came may have been counted, and no others. */
static void check_sums(const struct runners *x, const struct server *s)
{
    JSON_AUTO sweep = server_call(s, "GET", "/v1/sweeps/fleet", NULL);
    int64_t counted =
        json_integer_value(json_object_get(json_object_get(sweep, "counts"), "completed"));
    int64_t told = runners_completed(x);
    char note[100];
    (void)snprintf(note, sizeof note, "%lld acknowledged, %lld counted", (long long)told,
                   (long long)counted);
    if (counted < told || counted > told + runners_busy(x))
        wire_give_up("completions", note);
    bench_report("completions lost", (double)(counted < told ? told - counted : 0), "trials", NAN,
                 NAN, NULL, note);
}

static void run_fleet(const struct settings *o, int n_servers)
{
    struct server servers[2];
    double seconds = 0;
    char what[40], note[100];
    server_start(&servers[0]);
    if (n_servers > 1)
        server_join(&servers[1], &servers[0]);
    const struct runners_plan plan = {.servers = servers,
                                      .n_servers = n_servers,
                                      .n = (int)o->runners,
                                      .share = (int)o->share,
                                      .trial_s = o->trial_s,
                                      .heartbeat_ms = 3000,
                                      .seed = (uint64_t)o->seed};
    struct runners *x = runners_start(&plan, &seconds);
    (void)snprintf(note, sizeof note, "%lld runners, 32 at once", (long long)o->runners);
    bench_report("registration", seconds, "s", NAN, NAN, NULL, note);
    (void)snprintf(what, sizeof what, "%d server%s, idle", n_servers, n_servers > 1 ? "s" : "");
    run_and_report(what, x, &servers[0], o);
    report_server(what, &servers[0]);
    server_add_sweep(&servers[0], "fleet", NULL);
    fill(x, o);
    (void)snprintf(what, sizeof what, "%d server%s, at work", n_servers, n_servers > 1 ? "s" : "");
    run_and_report(what, x, &servers[0], o);
    report_server(what, &servers[0]);
    if (n_servers > 1) {
        server_kill(&servers[1]);
        run_and_report("one of two killed", x, &servers[0], o);
        report_server("one of two killed", &servers[0]);
    }
    check_sums(x, &servers[0]);
    runners_free(x);
    for (int i = 0; i < n_servers; i++)
        server_stop(&servers[i]);
}

int main(int argc, char **argv)
{
    struct settings o = {.runners = 10000, .share = 1, .seed = 1, .seconds = 30, .trial_s = 60};
    int64_t servers = 0;
    const struct opt more[] = {
        {"runners", 0, OPT_I64, &o.runners, "N", NULL, "simulated runners (10000)"},
        {"servers", 0, OPT_I64, &servers, "N", NULL, "1 or 2 alone (first 1, then 2)"},
        {"share", 0, OPT_I64, &o.share, "N", NULL,
         "runners whose heartbeats go over one connection, where the limit of open files is "
         "low (1)"},
        {"seconds", 0, OPT_DOUBLE, &o.seconds, "N", NULL, "of each case (30)"},
        {"trial", 0, OPT_DOUBLE, &o.trial_s, "SECONDS", NULL, "mean time of a trial (60)"},
        {"seed", 0, OPT_I64, &o.seed, "N", NULL, "of the times of trials (1)"},
        {0},
    };
    if (!bench_start_with("fleet", "many runners on one PostgreSQL", more, argc, argv))
        return bench_exit();
    const struct opt_range ranges[] = {
        {"runners", o.runners, 1, 30000}, {"servers", servers, 0, 2}, {"share", o.share, 1, 16}};
    struct as_err err = {0};
    if (opt_check_ranges(ranges, AS_ARRAY_LEN(ranges), &err) != AS_OK)
        wire_give_up("options", err.msg);
    struct opt_list args = {.n = 6,
                            .values = {"--lease", "15s", "--max-connections", "65536",
                                       "--max-connections-per-address", "0"}};
    server_arguments(&args);
    pg_fixture_start_with_fsync();
    for (int n = 1; n <= 2; n++)
        if (servers == 0 || servers == n)
            run_fleet(&o, n);
    return bench_exit();
}
