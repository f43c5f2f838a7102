#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/opt.h"

#define ROUNDS 9
#define ROUND_NS (10 * NS_PER_MS)
#define EX_USAGE_STATUS 64
#define MAX_MORE 16

static const char *bench_name = "";
static bool as_json, any_case;
static int status;

bool bench_start(const char *name, const char *about, int argc, char **argv)
{
    return bench_start_with(name, about, NULL, argc, argv);
}

bool bench_start_with(const char *name, const char *about, const struct opt *more, int argc,
                      char **argv)
{
    bench_name = name;
    bool help = false;
    int n_args = 0;
    struct as_err err;
    struct opt table[MAX_MORE + 3] = {
        {"json", 0, OPT_FLAG, &as_json, NULL, NULL, "a line of JSON per case"},
        {"help", 'h', OPT_FLAG, &help, NULL, NULL, "this text"},
    };
    for (size_t i = 0; more != NULL && more[i].name != NULL && i < MAX_MORE; i++)
        table[2 + i] = more[i];
    if (opt_parse(table, argc, argv, &n_args, &err) < 0) {
        fprintf(stderr, "%s: %s\n", name, err.msg);
        status = EX_USAGE_STATUS;
        return false;
    }
    if (n_args > 0) {
        fprintf(stderr, "%s: '%s' is not expected\n", name, argv[1]);
        status = EX_USAGE_STATUS;
        return false;
    }
    if (help) {
        printf("%s: %s\n", name, about);
        opt_help(table, stdout);
    }
    return !help;
}

static json_t *number_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static void report_json(const char *name, double value, const char *unit, double floor, double peer,
                        const char *peer_name, const char *note)
{
    JSON_AUTO line =
        json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:s?, s:s?}", "bench", bench_name, "case", name,
                  "value", number_or_null(value), "unit", unit, "floor", number_or_null(floor),
                  "peer", number_or_null(peer), "peer_name", peer_name, "note", note);
    AS_AUTO(as_freep) char *text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text == NULL) {
        fprintf(stderr, "%s: out of memory\n", bench_name);
        exit(EXIT_FAILURE);
    }
    puts(text);
}

/* "12.3", or "-" for a figure that does not exist; buf >= 32. */
static const char *cell(double v, char *buf)
{
    if (isfinite(v))
        snprintf(buf, 32, fabs(v) >= 100 ? "%.0f" : "%.3g", v);
    else
        snprintf(buf, 32, "-");
    return buf;
}

static void report(const char *name, double value, const char *unit, double floor, double peer,
                   const char *peer_name, const char *note)
{
    if (as_json) {
        report_json(name, value, unit, floor, peer, peer_name, note);
    } else {
        char a[32], b[32], c[32];
        if (!any_case)
            printf("%-40s %10s %-10s %10s %10s  %s\n", bench_name, "value", "unit", "floor", "peer",
                   "");
        printf("%-40s %10s %-10s %10s %10s  %s%s%s\n", name, cell(value, a), unit, cell(floor, b),
               cell(peer, c), peer_name != NULL ? peer_name : "",
               peer_name != NULL && note != NULL ? "; " : "", note != NULL ? note : "");
    }
    any_case = true;
    fflush(stdout);
}

void bench_report(const char *name, double value, const char *unit, double floor, double peer,
                  const char *peer_name, const char *note)
{
    if (!isfinite(value))
        status = EXIT_FAILURE;
    report(name, value, unit, floor, peer, peer_name, note);
}

void bench_skip(const char *name, const char *unit, const char *why)
{
    report(name, NAN, unit, NAN, NAN, NULL, why);
}

int bench_exit(void)
{
    return status;
}

static double seconds_of(void (*run)(void *arg), void (*finish)(void *arg), void *arg, long calls)
{
    int64_t from = clock_mono_ns();
    for (long i = 0; i < calls; i++)
        run(arg);
    if (finish != NULL)
        finish(arg);
    return (double)(clock_mono_ns() - from) / (double)NS_PER_S;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n ? v[n / 2] : NAN;
}

double bench_seconds(void (*run)(void *arg), void (*finish)(void *arg), void *arg)
{
    double want = (double)ROUND_NS / (double)NS_PER_S;
    long calls = 1;
    while (seconds_of(run, finish, arg, calls) < want)
        calls *= 2;
    double each[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        each[i] = seconds_of(run, finish, arg, calls) / (double)calls;
    return bench_median(each, ROUNDS);
}
