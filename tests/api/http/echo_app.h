/* A small application on the transport, for tests over real sockets. */
#ifndef ASSAY_TESTS_API_HTTP_ECHO_APP_H
#define ASSAY_TESTS_API_HTTP_ECHO_APP_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/http/http.h"

/* It echoes path and body. /park is held until the test releases it, /stream is a stream, and /held
 * is held by a thread before its body is read. */
struct app {
    struct http_server *http;
    int port;
    pthread_mutex_t lock;
    struct http_exchange *parked;
    struct http_stream *stream;
    atomic_int n_handled, n_ended, n_gone;
};

extern struct app app; /* while the transport runs */

#define FEW 6        /* connections, of all addresses */
#define FEW_OF_ONE 4 /* of one address */

/* Fixtures: with the server's own limits; with short deadlines for heads and bodies; with few
 * connections; the end of them all. */
void start_transport(void);
void start_impatient(void);
void start_few(void);
void stop_transport(void);

#endif
