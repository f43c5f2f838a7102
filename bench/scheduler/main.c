/* What the scheduler serves over HTTP: cycles (claim, one measurement, completion) of no-op trials
 * in 64 slots against assayd as it is, durable and with authentication, beside the floors below it
 * in the same run. The load generator is this process. */
#include <string.h>

#include "base/opt.h"
#include "bench/bench.h"
#include "bench/scheduler/cases.h"

static const struct {
    const char *name;
    void (*run)(const struct settings *o);
} cases[] = {
    {"cycles", case_cycles}, {"claims", case_claims}, {"budget", case_budget},
    {"points", case_points}, {"rungs", case_rungs},   {"asks", case_asks},
    {"filled", case_filled}, {"idle", case_idle},     {"cancel", case_cancel},
};

int main(int argc, char **argv)
{
    struct settings o = {.seconds = 4,
                         .rounds = 3,
                         .filled = 100000,
                         .points = 20,
                         .idle_s = 10,
                         .cancelled = 10000};
    struct opt_list args = {0};
    const char *only = NULL;
    const struct opt more[] = {
        {"case", 0, OPT_STRING, &only, "NAME", NULL, "run this case alone",
         "cycles|claims|budget|points|rungs|asks|filled|idle|cancel"},
        {"seconds", 0, OPT_DOUBLE, &o.seconds, "N", NULL, "of each measurement (4)"},
        {"rounds", 0, OPT_I64, &o.rounds, "N", NULL, "that take turns, at most 15 (3)"},
        {"server-arg", 0, OPT_LIST, &args, "ARG", NULL, "of assayd, such as --workers=8"},
        {"filled", 0, OPT_I64, &o.filled, "N", NULL, "trials that were before (100000)"},
        {"points", 0, OPT_I64, &o.points, "N", NULL, "measurements of each of these (20)"},
        {"idle-transaction", 0, OPT_DOUBLE, &o.idle_s, "SECONDS", NULL,
         "how long the other transaction is idle (10)"},
        {"cancel", 0, OPT_I64, &o.cancelled, "N", NULL,
         "live trials of a sweep that is cancelled (10000)"},
        {0},
    };
    if (!bench_start_with("scheduler", "what the scheduler serves over HTTP, beside its floors",
                          more, argc, argv))
        return bench_exit();
    const struct opt_range ranges[] = {{"rounds", o.rounds, 1, ROUNDS_MAX},
                                       {"filled", o.filled, 8, 4000000},
                                       {"points", o.points, 1, 1000},
                                       {"cancel", o.cancelled, 2, 1000000}};
    struct as_err err = {0};
    if (opt_check_ranges(ranges, AS_ARRAY_LEN(ranges), &err) != AS_OK)
        wire_give_up("options", err.msg);
    server_arguments(&args);
    if (o.seconds < BRIEF_S)
        pg_fixture_start(); /* in memory: a database on a disk costs more than its load */
    else
        pg_fixture_start_with_fsync();
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        if (only ? strcmp(only, cases[i].name) == 0 : cases[i].run != case_claims)
            cases[i].run(&o);
    return bench_exit();
}
