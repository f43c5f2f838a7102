/* The floor of HTTP: requests that the server authenticates, reads and answers without its
 * database. They are claims whose body is refused. */
#ifndef ASSAY_BENCH_SCHEDULER_REQUESTS_H
#define ASSAY_BENCH_SCHEDULER_REQUESTS_H

/* Requests in a second on as many kept connections as there are slots, on a server of its own. */
double requests_rate(double seconds);

#endif
