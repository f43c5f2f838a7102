#include "bench/bench.h"
#include "bench/scheduler/slots.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    if (!bench_start("scheduler", "x", argc, argv)) return bench_exit();
    pg_fixture_start_with_fsync();
    static const int modes[][2] = {{1,1},{1,8},{8,8}};
    for (int i = 0; i < 3; i++) {
        struct server s; struct load_result r = {0}; char note[300];
        server_start(&s, 0);
        for (int k = 0; k < modes[i][0]; k++) { char n[20]; sprintf(n, "s%d", k); server_add_sweep(&s, n); }
        struct load_plan p = {.server=&s,.runners=modes[i][1],.slots=64,.warm_s=1,.seconds=5,.points=1,.requests=1};
        slots_run(&p, &r);
        usage_format(&r.used, note, sizeof note);
        char n2[100]; sprintf(n2, "%d sweeps %d runners", modes[i][0], modes[i][1]);
        bench_report(n2, r.cycles_per_s, "cycles/s", 0, 0, NULL, note);
        server_stop(&s); load_result_done(&r);
    }
    return bench_exit();
}
