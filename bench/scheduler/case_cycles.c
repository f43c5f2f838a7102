/* Rounds take turns: in each one every floor and every load is measured once, so that a machine
 * that slows down slows all of them, and a ratio is the median of the ratios of the rounds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/scheduler/batches.h"
#include "bench/scheduler/cases.h"
#include "bench/scheduler/commits.h"
#include "bench/scheduler/pgbench.h"
#include "bench/scheduler/requests.h"
#include "bench/scheduler/sets.h"
#include "bench/scheduler/slots.h"

/* On two cores these are the fastest: more clients of pgbench share a sync, more connections of
 * sets wait for each other's sweeps. */
#define BARE_CLIENTS 8
#define SET_CONNECTIONS 2
#define REQUESTS_PER_CYCLE 3
#define CLAIMS_MIN 100     /* of an open load, on average */
#define CLAIMS_MIN_BRIEF 8 /* of a brief one */

const struct routes all_routes[N_ROUTES] = {
    {"single routes", slots_run},
    {"batch route", batches_run},
};

struct shape {
    int sweeps, runners;
};
static const struct shape shapes[] = {{1, 1}, {1, 8}, {8, 8}};
#define N_SHAPES AS_ARRAY_LEN(shapes)

struct series {
    double per_s[ROUNDS_MAX], us[ROUNDS_MAX]; /* by round */
};

struct figures {
    int64_t rounds;
    double commit[ROUNDS_MAX], commits[ROUNDS_MAX], requests[ROUNDS_MAX];
    struct series bare_one, bare_set, ours[2]; /* ours: 1 sweep, 8 sweeps */
    struct series loads[N_SHAPES][N_ROUTES];
    char used[N_SHAPES][N_ROUTES][160]; /* in the last round */
};

void case_server(struct server *s, int sweeps)
{
    server_start(s);
    for (int i = 0; i < sweeps; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "sweep-%d", i);
        server_add_sweep(s, name, NULL);
    }
}

struct load_plan case_plan(struct server *s, const struct settings *o, int runners)
{
    return (struct load_plan){.server = s,
                              .runners = runners,
                              .slots = SLOTS_MAX,
                              .warm_s = o->seconds / 4,
                              .seconds = o->seconds,
                              .points = 1,
                              .requests = 1};
}

void case_open(struct load_plan *plan, double rate)
{
    double claims = plan->seconds < BRIEF_S ? CLAIMS_MIN_BRIEF : CLAIMS_MIN;
    plan->rate = rate;
    plan->seconds = fmax(plan->seconds, claims / rate);
}

static void keep(struct series *s, int64_t round, struct floor f)
{
    s->per_s[round] = f.per_s;
    s->us[round] = f.us;
}

static void measure_floors(const struct settings *o, struct figures *f, int64_t r)
{
    double s = o->seconds;
    f->commit[r] = commits_rate(1, s / 2);
    f->commits[r] = commits_rate(BARE_CLIENTS, s / 2);
    f->requests[r] = requests_rate(s / 2);
    keep(&f->bare_one, r, pgbench_cycles(1, BARE_CLIENTS, s));
    keep(&f->bare_set, r, pgbench_cycles(PGBENCH_SET, BARE_CLIENTS, s));
    keep(&f->ours[0], r, sets_cycles(1, 50, SET_CONNECTIONS, s));
    keep(&f->ours[1], r, sets_cycles(8, 48, SET_CONNECTIONS, s));
}

static void measure_loads(const struct settings *o, struct figures *f, int64_t r)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        for (size_t k = 0; k < N_ROUTES; k++) {
            struct server s;
            struct load_result result = {0};
            case_server(&s, shapes[i].sweeps);
            const struct load_plan plan = case_plan(&s, o, shapes[i].runners);
            all_routes[k].run(&plan, &result);
            server_stop(&s);
            keep(&f->loads[i][k], r, (struct floor){result.cycles_per_s, result.us});
            usage_format(&result.used, f->used[i][k], sizeof f->used[i][k]);
            load_result_done(&result);
        }
    }
}

static double median(const double *v, int64_t n)
{
    double copy[ROUNDS_MAX];
    memcpy(copy, v, (size_t)n * sizeof *v);
    return bench_median(copy, (size_t)n);
}

static double median_ratio(const double *v, const double *of, int64_t n)
{
    double ratios[ROUNDS_MAX];
    for (int64_t i = 0; i < n; i++)
        ratios[i] = v[i] / of[i];
    return bench_median(ratios, (size_t)n);
}

/* pgbench may be absent. */
static void report_bare(const char *name, const struct series *s, int64_t n, const char *how)
{
    char note[100];
    (void)snprintf(note, sizeof note, "pgbench, %s; %.0f us of processor a cycle", how,
                   median(s->us, n));
    if (isnan(s->per_s[0]))
        bench_skip(name, "cycles/s", "there is no pgbench");
    else
        bench_report(name, median(s->per_s, n), "cycles/s", NAN, NAN, NULL, note);
}

static void report_sets(const char *name, const struct figures *f, const struct series *s)
{
    char note[100];
    (void)snprintf(note, sizeof note, "without HTTP; %.0f us of processor a cycle",
                   median(s->us, f->rounds));
    bench_report(name, median(s->per_s, f->rounds), "cycles/s",
                 median(f->bare_set.per_s, f->rounds), NAN, NULL, note);
}

static void report_floors(const struct figures *f)
{
    int64_t n = f->rounds;
    bench_report("bare commit, one at a time", 1e3 / median(f->commit, n), "ms", NAN, NAN, NULL,
                 NULL);
    bench_report("bare commits, 8 connections", median(f->commits, n), "commits/s", NAN, NAN, NULL,
                 NULL);
    report_bare("bare tables, one at a time", &f->bare_one, n, "three commits a cycle");
    report_bare("bare tables, sets of 50", &f->bare_set, n, "SKIP LOCKED");
    report_sets("our tables, sets of 50, 1 sweep", f, &f->ours[0]);
    report_sets("our tables, sets of 48, 8 sweeps", f, &f->ours[1]);
    bench_report("HTTP alone", median(f->requests, n) / REQUESTS_PER_CYCLE, "cycles/s", NAN, NAN,
                 NULL, "three requests a cycle that are refused before the database");
}

/* One load: its rate, and its processor time, which depends less on what else the machine does. */
static void report_load(const struct figures *f, size_t i, size_t k)
{
    const struct series *s = &f->loads[i][k], *ours = &f->ours[shapes[i].sweeps > 1];
    const struct series *bare = &f->bare_set;
    int64_t n = f->rounds;
    char name[100], note[300];
    int len = snprintf(name, sizeof name, "%d sweep%s, %d runner%s, %s", shapes[i].sweeps,
                       shapes[i].sweeps > 1 ? "s" : "", shapes[i].runners,
                       shapes[i].runners > 1 ? "s" : "", all_routes[k].name);
    (void)snprintf(note, sizeof note, "%.1f%% of the floor, %.1f%% of the sets; %s",
                   100 * median_ratio(s->per_s, bare->per_s, n),
                   100 * median_ratio(s->per_s, ours->per_s, n), f->used[i][k]);
    bench_report(name, median(s->per_s, n), "cycles/s", median(bare->per_s, n),
                 median(ours->per_s, n), "sets on our tables", note);
    (void)snprintf(name + len, sizeof name - (size_t)len, ", processor time");
    (void)snprintf(note, sizeof note, "%.1f times the floor, %.1f times the sets",
                   median_ratio(s->us, bare->us, n), median_ratio(s->us, ours->us, n));
    bench_report(name, median(s->us, n), "us", median(bare->us, n), median(ours->us, n),
                 "sets on our tables", note);
}

/* The loads of eight runners, where batches are smallest, and of one. */
void case_budget(const struct settings *o)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct server s;
        struct load_result r = {0};
        char name[80], note[160];
        case_server(&s, shapes[i].sweeps);
        const struct load_plan plan = case_plan(&s, o, shapes[i].runners);
        batches_run(&plan, &r);
        server_stop(&s);
        usage_format_each(&r.used, r.cycles_per_s * r.used.at_s, note, sizeof note);
        (void)snprintf(name, sizeof name, "%d sweep%s, %d runner%s, processor time of a cycle",
                       shapes[i].sweeps, shapes[i].sweeps > 1 ? "s" : "", shapes[i].runners,
                       shapes[i].runners > 1 ? "s" : "");
        bench_report(name, r.us, "us", NAN, NAN, NULL, note);
        (void)snprintf(note, sizeof note, "claim p50 %.1f ms, p99 %.1f",
                       times_quantile(&r.claims, 0.5), times_quantile(&r.claims, 0.99));
        bench_report("its rate", r.cycles_per_s, "cycles/s", NAN, NAN, NULL, note);
        load_result_done(&r);
    }
}

static void report_claims(struct load_result *r, const char *routes, double rate, double floor_ms)
{
    char name[80], note[200];
    (void)snprintf(note, sizeof note, "%zu claims, %.0f/s begun; cycle p50 %.1f ms, p99 %.1f",
                   r->claims.n, rate, times_quantile(&r->cycles, 0.5),
                   times_quantile(&r->cycles, 0.99));
    (void)snprintf(name, sizeof name, "claim at half load, %s, p50", routes);
    bench_report(name, times_quantile(&r->claims, 0.5), "ms", floor_ms, NAN, NULL, note);
    (void)snprintf(name, sizeof name, "claim at half load, %s, p99", routes);
    bench_report(name, times_quantile(&r->claims, 0.99), "ms", floor_ms, NAN, NULL,
                 "floor: a bare commit");
}

/* Claims of eight runners on one sweep, at half of the cycles that the closed load reached. */
static void measure_claims(const struct settings *o, size_t k, double closed, double floor_ms)
{
    struct server s;
    struct load_result r = {0};
    case_server(&s, 1);
    struct load_plan plan = case_plan(&s, o, 8);
    plan.seconds = o->seconds * (double)o->rounds;
    case_open(&plan, closed / 2);
    all_routes[k].run(&plan, &r);
    server_stop(&s);
    report_claims(&r, all_routes[k].name, plan.rate, floor_ms);
    load_result_done(&r);
}

static double closed_rate(const struct settings *o, size_t k)
{
    struct server s;
    struct load_result r = {0};
    case_server(&s, 1);
    const struct load_plan plan = case_plan(&s, o, 8);
    all_routes[k].run(&plan, &r);
    server_stop(&s);
    double ret = r.cycles_per_s;
    load_result_done(&r);
    return ret;
}

void case_claims(const struct settings *o)
{
    double floor_ms = 1e3 / commits_rate(1, o->seconds / 2);
    for (size_t k = 0; k < N_ROUTES; k++)
        measure_claims(o, k, closed_rate(o, k), floor_ms);
}

void case_cycles(const struct settings *o)
{
    struct figures f = {.rounds = o->rounds};
    for (int64_t r = 0; r < o->rounds; r++) {
        measure_floors(o, &f, r);
        measure_loads(o, &f, r);
    }
    report_floors(&f);
    for (size_t i = 0; i < N_SHAPES; i++)
        for (size_t k = 0; k < N_ROUTES; k++)
            report_load(&f, i, k);
    for (size_t k = 0; k < N_ROUTES; k++)
        measure_claims(o, k, median(f.loads[1][k].per_s, f.rounds),
                       1e3 / median(f.commit, f.rounds));
}
