/* A real HTTP server on a free port of 127.0.0.1 with answers that a test chooses. It has one
 * thread for each connection, so that a handler may wait. It serves the tests of HTTP clients. */
#ifndef ASSAY_TESTS_API_CLIENT_HTTP_SERVER_H
#define ASSAY_TESTS_API_CLIENT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct http_server;

struct server_request {
    const char *method, *path;
    const char *query; /* "name=value&…", decoded; "" for none */
    const char *body;
    size_t body_len;
    const char *authorization, *content_type, *idempotency_key, *last_event_id; /* "" for none */
    const char *runner_secret, *seat, *world_epoch, *range;
};

struct server_answer {
    int status;               /* 200 */
    const char *content_type; /* application/json */
    char *body;               /* owned by the answer (malloc); NULL for none */
    size_t body_len;          /* 0: strlen(body) */
    const char *retry_after;  /* NULL: none */
    bool cut;                 /* close the connection in the middle of the body */
};

typedef void (*server_handler)(void *arg, const struct server_request *q, struct server_answer *a);

/* port 0: any free port. Aborts if it cannot start. */
struct http_server *http_server_start(int port, server_handler handler, void *arg);
void http_server_stop(struct http_server *s);             /* waits for handlers; NULL is fine */
const char *http_server_url(const struct http_server *s); /* http://127.0.0.1:PORT */

/* Reserve a port for servers that start and stop on it. No other program gets the port until the
 * returned descriptor is closed. Aborts if no port is free. */
int http_port_reserve(int *ret_port);

/* Wait for a connection on this reserved port, and close it without an answer. */
void http_port_turn_away(int port);

/* Fill an answer: JSON text, or a problem document. */
void answer_json(struct server_answer *a, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void answer_problem(struct server_answer *a, int status, const char *code, const char *detail);

#endif
