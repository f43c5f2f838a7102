/* Functions that every benchmark uses: timing, and one format of results.
 *
 *   int main(int argc, char **argv)
 *   {
 *       if (!bench_start("kernels", "what it times", argc, argv))
 *           return bench_exit();
 *       bench_report("adamw 1M", gb_per_s, "GB/s", memcpy_gb_per_s, NAN, NULL, NULL);
 *       return bench_exit();
 *   }
 *
 * prints a table, or with --json a line per case:
 * {"bench","case","value","unit","floor","peer","peer_name","note"}. A figure that does not exist
 * is null there and "-" in the table. Single-threaded; for benchmarks only, so it may end the
 * program. */
#ifndef ASSAY_BENCH_BENCH_H
#define ASSAY_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

/* Name the benchmark and read its arguments. `name` and `about` are borrowed for ever. Returns
 * false if there is nothing to run (--help, or an unknown argument): then return bench_exit(). */
bool bench_start(const char *name, const char *about, int argc, char **argv);

struct opt; /* base/opt.h */

/* As bench_start, for a benchmark with options of its own: `more` is a table that ends with an
 * empty row, at most 16 rows; borrowed for the call. */
bool bench_start_with(const char *name, const char *about, const struct opt *more, int argc,
                      char **argv);

/* One result.
 *   name       the case
 *   value      what was measured; NaN or infinite is reported as null and fails the program
 *   unit       of value, floor and peer
 *   floor      the figure of the bare operation below it, the best possible value; NaN: none
 *   peer       another program's figure for the same work; NaN: none
 *   peer_name  which program and version; NULL: none
 *   note       NULL: none */
void bench_report(const char *name, double value, const char *unit, double floor, double peer,
                  const char *peer_name, const char *note);

/* Report a case that cannot be measured here: a line without figures, and no failure. `why` is its
 * note. */
void bench_skip(const char *name, const char *unit, const char *why);

/* The middle one of n values, of an even number the upper of the two; NaN if n is 0. Sorts v. */
double bench_median(double *v, size_t n);

/* The program's exit status. */
int bench_exit(void);

/* Seconds of one call of run(arg): the median of 9 rounds, each of as many calls as fill 10 ms.
 * The search for that number warms up. finish(arg) ends each round and is measured, for work that
 * run() only starts; NULL: none. */
double bench_seconds(void (*run)(void *arg), void (*finish)(void *arg), void *arg);

#endif
