/* The server that is measured: assayd as it is, on a database of its own in the fixture's cluster
 * (tests/support/pg_fixture.h), with authentication. What does not work here ends the program. */
#ifndef ASSAY_BENCH_SCHEDULER_SERVER_H
#define ASSAY_BENCH_SCHEDULER_SERVER_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/scheduler/wire.h"
#include "tests/support/pg_fixture.h"
#include "tests/support/temp_folder.h"

#define FIELDS_SIZE 400

struct server {
    pid_t pid;
    int port;
    char dir[TEMP_FOLDER_SIZE];
    char url[PG_URL_SIZE];     /* of its database */
    char admin[FIELDS_SIZE];   /* lines of a request's head that show the right to administrate */
    char runners[FIELDS_SIZE]; /* the same of every runner */
};

struct opt_list; /* base/opt.h */

/* Further arguments of every server that is started from now on; borrowed for ever. */
void server_arguments(const struct opt_list *args);

/* A server on a new database. */
void server_start(struct server *s);
/* Another server on the database of `first`. */
void server_join(struct server *s, const struct server *first);
void server_stop(struct server *s);
void server_kill(struct server *s); /* SIGKILL, and it is not waited for; then it is stopped */

/* A request of the administrator on a connection of its own, whose answer must be a 2xx. Returns
 * its JSON, owned by the caller; NULL if it has none. `body` NULL: none. */
json_t *server_call(const struct server *s, const char *method, const char *path, const char *body);

/* Create the sweep `name` over x in [0, 1] that minimises "loss" at random, with a million trials.
 * Its trials are runners'. early: its section early_stopping; NULL: none. */
void server_add_sweep(const struct server *s, const char *name, const char *early);
/* Register a runner; its epoch. */
int64_t server_add_runner(const struct server *s, const char *name, int slots);

#endif
