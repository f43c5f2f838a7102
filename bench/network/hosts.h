/* Hosts of this machine: network namespaces, each with one cable to a switch. A cable carries so
 * many bits a second in each direction and no more (tbf of tc-tbf(8) at both of its ends). */
#ifndef ASSAY_BENCH_NETWORK_HOSTS_H
#define ASSAY_BENCH_NETWORK_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define HOSTS_MAX 8

/* Makes `n` hosts; there is one set of them in a process. mbit 0: cables without a limit. False: it
 * is not possible here (needs root, ip and tc); nothing is left behind. They are removed at exit,
 * and when a signal ends the process. */
bool hosts_make(int n, int64_t mbit);
void hosts_remove(void);

/* The address of host i; a view until the next call. */
const char *hosts_address(int i);
/* Moves this process, which has one thread, to host i. */
bool hosts_enter(int i);
/* The counters of the host that this process runs on: owned by the caller, readable also after the
 * end of the process. NULL: there is no such process. */
FILE *hosts_counters(pid_t pid);
/* Bytes that the host has sent over its cable, headers of all layers included. NULL: 0. */
uint64_t hosts_bytes_sent(FILE *counters);

/* Bytes per second that plain sockets carry from each of n hosts to the next, all at once; `bytes`
 * from each. NaN: it failed. */
double hosts_rate(int n, uint64_t bytes);

#endif
