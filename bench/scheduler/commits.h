/* The floor of everything that is durable: bare commits, each an update of one row by a prepared
 * statement. */
#ifndef ASSAY_BENCH_SCHEDULER_COMMITS_H
#define ASSAY_BENCH_SCHEDULER_COMMITS_H

/* Commits in a second on `connections` connections (at most 16), on a new database of the
 * fixture. */
double commits_rate(int connections, double seconds);

#endif
