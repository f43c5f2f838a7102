/* A server in this process over a private PostgreSQL, with a token of each role. It is started once
 * for a suite, in the process from which Check forks its tests. The tests send HTTP requests to
 * it. */
#ifndef ASSAY_TESTS_API_SERVER_FIXTURE_H
#define ASSAY_TESTS_API_SERVER_FIXTURE_H

#include "api/server/server.h"
#include "base/hash.h"
#include "scheduler/services/tokens.h"
#include "tests/api/server/rest.h"
#include "tests/support/pg_fixture.h"
#include "tests/support/temp_folder.h"

struct fixture {
    struct store *db;
    struct server *server;
    char url[128];
    char database[PG_URL_SIZE];
    int port;
    char tokens[TOKEN_ROLES][TOKEN_TEXT_SIZE]; /* by token_role */
    char web_dir[TEMP_FOLDER_SIZE];            /* a small dashboard */
};

extern struct fixture fix;

void fixture_start(void);
void fixture_stop(void);

/* Clients of each role. */
struct rest as_admin(void);
struct rest as_user(void);
struct rest as_runner(void);
struct rest as_viewer(void);
struct rest as_nobody(void);

/* The body of a sweep of `max_trials` command trials with that name; a view until the next call. */
const char *sweep_json(const char *name, int max_trials);

/* Create it and give its id back; a view until the next call. */
const char *make_sweep(const char *name, int max_trials);

/* PUT some bytes under their digest, and write the digest to hex. */
struct reply put_blob(const char *bytes, size_t len, char hex[SHA256_HEX_SIZE]);

/* Register a runner with these slots; returns its epoch. */
long long make_runner(const char *name, int slots);

/* Claim up to n trials, waiting up to wait_ms. The claim_id is new. */
struct reply claim(const char *runner, long long epoch, int n, int wait_ms);

/* The same in a separate thread. */
void claim_start(struct rest_request *r, const char *runner, long long epoch, int n, int wait_ms);

/* Open a connection and send a POST of this JSON. The answer is not read. */
int open_post(token_role role, const char *path, const char *body);

/* The value of /metrics with this name and labels. The test fails if there is none. */
long long figure(const char *name);
/* Wait until it is n. */
void await_figure(const char *name, long long n);

/* Requests that wait in the server: no event that they wait for has come. */
#define WAITING_ANY_TRIAL "assay_waiting_requests{for=\"any_trial\"}"
#define WAITING_ONE_SWEEP "assay_waiting_requests{for=\"one_sweep\"}"

/* Cancel and delete the sweep, so that the next test's runners do not get its trials. */
void drop_sweep(const char *id);

#endif
