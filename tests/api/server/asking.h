/* Ask and tell over HTTP: the requests of a client, as a user. */
#ifndef ASSAY_TESTS_API_SERVER_ASKING_H
#define ASSAY_TESTS_API_SERVER_ASKING_H

#include <stddef.h>

#include "tests/api/server/fixture.h"

/* POST a body to a path. */
struct reply post_to_sweep(const char *body, const char *fmt, ...) AS_PRINTF(2, 3);

/* A sweep for ask and tell: x in [0, 1], y one of three. `more` follows max_trials. */
void make_asked_sweep(const char *name, const char *method, int max_trials, const char *more);

struct reply ask_trials_of(const char *sweep, const char *client, int count, int wait_ms);
/* Ask for one: its number. */
long long ask_one(const char *sweep, const char *client);
size_t n_items(const struct reply *r);

/* `rest`: the fields after `client`. */
struct reply tell_result(const char *sweep, long long number, const char *client, const char *rest);

#endif
