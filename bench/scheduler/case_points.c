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

void case_asks(const struct settings *o)
{
    static const char *const methods[] = {"random", "gp"};
    for (size_t i = 0; i < AS_ARRAY_LEN(methods); i++) {
        struct times asks = {0}, tells = {0};
        char name[40], note[80];
        int trials = o->seconds < 1 ? ASKED / 10 : ASKED;
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
