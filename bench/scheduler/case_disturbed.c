/* What may disturb the cycles, each beside the same load without it, in the same round. All are of
 * eight runners on eight sweeps, over the batch route. */
#include <math.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/scheduler/batches.h"
#include "bench/scheduler/cancels.h"
#include "bench/scheduler/cases.h"
#include "bench/scheduler/fill.h"

#define SWEEPS 8
#define RUNNERS 8
#define VICTIMS 8

static double cycles_on(struct server *s, const struct settings *o, double seconds)
{
    struct load_result r = {0};
    struct load_plan plan = case_plan(s, o, RUNNERS);
    plan.seconds = seconds;
    batches_run(&plan, &r);
    double rate = r.cycles_per_s;
    load_result_done(&r);
    return rate;
}

static void report_ratio(const char *name, double *v, double *without, int64_t n, const char *note)
{
    double ratios[ROUNDS_MAX];
    char text[200];
    for (int64_t i = 0; i < n; i++)
        ratios[i] = v[i] / without[i];
    (void)snprintf(text, sizeof text, "%.2f of the same load without; %s",
                   bench_median(ratios, (size_t)n), note);
    bench_report(name, bench_median(v, (size_t)n), "cycles/s", bench_median(without, (size_t)n),
                 NAN, NULL, text);
}

/* The filled database and an empty one take turns. */
static void compare_filled(struct server *filled, const struct settings *o, const char *what)
{
    double empty[ROUNDS_MAX], full[ROUNDS_MAX];
    char name[80], note[80];
    for (int64_t r = 0; r < o->rounds; r++) {
        struct server s;
        case_server(&s, SWEEPS);
        empty[r] = cycles_on(&s, o, o->seconds);
        server_stop(&s);
        full[r] = cycles_on(filled, o, o->seconds);
    }
    (void)snprintf(name, sizeof name, "after %lld trials, %s", (long long)o->filled, what);
    (void)snprintf(note, sizeof note, "%lld points", (long long)o->filled * (long long)o->points);
    report_ratio(name, full, empty, o->rounds, note);
}

void case_filled(const struct settings *o)
{
    struct server filled;
    case_server(&filled, SWEEPS);
    fill_completed(&filled, o->filled / SWEEPS, o->points);
    compare_filled(&filled, o, "not analysed");
    pg_fixture_exec(filled.url, "vacuum analyze");
    compare_filled(&filled, o, "analysed");
    server_stop(&filled);
}

void case_idle(const struct settings *o)
{
    double without, with;
    char name[80];
    struct server s;
    case_server(&s, SWEEPS);
    without = cycles_on(&s, o, o->idle_s);
    server_stop(&s);
    case_server(&s, SWEEPS);
    /* It has a snapshot and a number, so nothing that was written since can be removed. */
    struct pg_session *idle = pg_fixture_session(
        s.url, "begin isolation level repeatable read; create table idle_transaction ()");
    with = cycles_on(&s, o, o->idle_s);
    pg_fixture_session_end(idle);
    server_stop(&s);
    (void)snprintf(name, sizeof name, "beside a transaction idle for %.0f s", o->idle_s);
    report_ratio(name, &with, &without, 1, "mean over that time");
}

void case_cancel(const struct settings *o)
{
    struct server s;
    struct load_result quiet = {0}, busy = {0};
    char name[24], note[200];
    case_server(&s, SWEEPS);
    struct cancels c = {.server = &s, .sweeps = VICTIMS};
    int64_t epoch = server_add_runner(&s, "holder", 1024);
    for (int i = 0; i < VICTIMS; i++) {
        (void)snprintf(name, sizeof name, "victim-%d", i);
        fill_live(&s, name, epoch, o->cancelled);
    }
    struct load_plan plan = case_plan(&s, o, RUNNERS);
    case_open(&plan, cycles_on(&s, o, o->seconds) / 2);
    batches_run(&plan, &quiet);
    plan.on_warm = cancels_begin;
    plan.arg = &c;
    batches_run(&plan, &busy);
    cancels_end(&c);
    server_stop(&s);
    (void)snprintf(note, sizeof note,
                   "p99 of %zu claims of 8 other sweeps; floor: without cancels; %zu cancels of "
                   "%lld live trials, median %.0f ms",
                   busy.claims.n, c.times.n, (long long)o->cancelled,
                   times_quantile(&c.times, 0.5));
    bench_report("claim while a sweep is cancelled", times_quantile(&busy.claims, 0.99), "ms",
                 times_quantile(&quiet.claims, 0.99), NAN, NULL, note);
    times_done(&c.times);
    load_result_done(&quiet);
    load_result_done(&busy);
}
