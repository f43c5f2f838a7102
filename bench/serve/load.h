/* Clients of an HTTP server that send one request over and over: each waits for its answer before
 * it sends the next. One thread drives all of them with epoll, so that the clients take little of
 * the machine that they share with the server. */
#ifndef ASSAY_BENCH_SERVE_LOAD_H
#define ASSAY_BENCH_SERVE_LOAD_H

#include <stddef.h>

struct load_result {
    double per_second;
    double p50_ms, p99_ms, max_ms;
    size_t n;     /* answers that were timed */
    size_t n_all; /* and those of the time to warm up */
};

/* Send `request` on `clients` connections to 127.0.0.1:port for `seconds`, after a tenth of that to
 * warm up. Ends the program if a connection breaks or an answer is no 200. */
struct load_result load_run(int port, const char *request, size_t len, int clients, double seconds);

#endif
