#include <math.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/scheduler/asks.h"
#include "bench/scheduler/cases.h"
#include "bench/scheduler/pgbench.h"
#include "bench/scheduler/slots.h"

#define POINTS 1000 /* as many as a request may have */
#define ASKED 200

void case_points(const struct settings *o)
{
    double v[ROUNDS_MAX], floors[ROUNDS_MAX];
    char note[200] = "";
    for (int64_t r = 0; r < o->rounds; r++) {
        struct server s;
        struct load_result result = {0};
        floors[r] = pgbench_points(POINTS, 8, o->seconds).per_s;
        case_server(&s, 8);
        struct load_plan plan = case_plan(&s, o, 8);
        plan.points = POINTS;
        plan.requests = 1000000; /* no trial ends before the load */
        slots_run(&plan, &result);
        server_stop(&s);
        v[r] = result.points_per_s;
        usage_format(&result.used, note, sizeof note);
        load_result_done(&result);
    }
    bench_report("measured points, 1000 in a request", bench_median(v, (size_t)o->rounds),
                 "points/s", bench_median(floors, (size_t)o->rounds), NAN, NULL, note);
}

/* As many requests as a trial of 81 steps sends, one at a time. All values are equal, so that every
 * trial goes on past all rungs: both loads send the same. */
static double measure_steps(const struct settings *o, const char *early, char *note, size_t size)
{
    struct server s;
    struct load_result result = {0};
    server_start(&s);
    server_add_sweep(&s, "sweep", early);
    struct load_plan plan = case_plan(&s, o, 8);
    plan.requests = 82;
    slots_run(&plan, &result);
    server_stop(&s);
    usage_format(&result.used, note, size);
    double rate = result.points_per_s;
    load_result_done(&result);
    return rate;
}

void case_rungs(const struct settings *o)
{
    static const char early[] =
        "{\"method\":\"asha\",\"min_steps\":1,\"max_steps\":81,\"eta\":3,\"mode\":\"stop\"}";
    double with[ROUNDS_MAX], without[ROUNDS_MAX], ratios[ROUNDS_MAX];
    char note[2][200];
    size_t n = (size_t)o->rounds;
    for (size_t r = 0; r < n; r++) {
        without[r] = measure_steps(o, NULL, note[0], sizeof note[0]);
        with[r] = measure_steps(o, early, note[1], sizeof note[1]);
        ratios[r] = with[r] / without[r];
    }
    bench_report("points, without early stopping", bench_median(without, n), "points/s", NAN, NAN,
                 NULL, note[0]);
    bench_report("points, five rungs of 82 steps", bench_median(with, n), "points/s", NAN, NAN,
                 NULL, note[1]);
    bench_report("points, with early stopping to without", bench_median(ratios, n), "ratio", NAN,
                 NAN, NULL, "asked: at least 0.9");
}

void case_asks(const struct settings *o)
{
    static const char *const methods[] = {"random", "gp"};
    for (size_t i = 0; i < AS_ARRAY_LEN(methods); i++) {
        struct times asks = {0}, tells = {0};
        char name[40], note[80];
        int trials = o->seconds < BRIEF_S ? ASKED / 10 : ASKED;
        for (int64_t r = 0; r < o->rounds; r++)
            asks_run(methods[i], trials, &asks, &tells);
        (void)snprintf(name, sizeof name, "ask, %s", methods[i]);
        (void)snprintf(note, sizeof note, "median; p99 %.1f ms", times_quantile(&asks, 0.99));
        bench_report(name, times_quantile(&asks, 0.5), "ms", NAN, NAN, NULL, note);
        (void)snprintf(name, sizeof name, "tell, %s", methods[i]);
        (void)snprintf(note, sizeof note, "median; p99 %.1f ms", times_quantile(&tells, 0.99));
        bench_report(name, times_quantile(&tells, 0.5), "ms", NAN, NAN, NULL, note);
        times_done(&asks);
        times_done(&tells);
    }
}
