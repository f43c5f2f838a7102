/* Helpers for tests of the scheduler: a store on a database of its own, sweeps, runners. Every
 * function fails the test if its operation fails. */
#ifndef ASSAY_TESTS_SUPPORT_SERVICE_H
#define ASSAY_TESTS_SUPPORT_SERVICE_H

#include <check.h>
#include <jansson.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"
#include "scheduler/assign/asks.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/lifecycle/reaper.h"
#include "scheduler/assign/claims.h"
#include "scheduler/services/runners.h"
#include "scheduler/services/sweep_change.h"
#include "scheduler/services/sweep_fronts.h"
#include "scheduler/services/sweeps.h"
#include "scheduler/services/trial_orders.h"
#include "scheduler/services/trial_retry.h"
#include "scheduler/services/trials.h"
#include "tests/support/json_text.h"
#include "tests/support/pg_fixture.h"

struct service {
    char url[PG_URL_SIZE];
    struct store *db;
    struct reaper reaper;
    struct trial_orders *orders; /* of sorted lists */
    struct sweep_fronts *fronts;
    struct arena a;
    struct pg_session *shared; /* empties the database; NULL: that is of this test alone */
    int64_t lease_ms;          /* as given */
};

/* A case whose tests each begin with *s open, on an empty database, and end with its invariants
 * checked; another checked fixture runs in between. lease_ms 0: the default. A program has one such
 * service; it keeps s. Starts the cluster.
 *
 * The tests share the database and the store with its connections, which service_begin() makes as
 * new. A test that would see a difference (dead rows, statistics, plans, what a connection reads
 * when it is new) belongs to a case of the second kind: each test has its own. */
TCase *service_case(Suite *suite, const char *name, struct service *s, int64_t lease_ms);
TCase *service_case_alone(Suite *suite, const char *name, struct service *s, int64_t lease_ms);

/* For tests that need more than service_case(): on a database and a store of its own. */
void service_open(struct service *s, int64_t lease_ms);
void service_close(struct service *s);

/* The same on what the test before, of the same s, has left at service_end(). The first begins with
 * *s zero. */
void service_begin(struct service *s, int64_t lease_ms);
void service_end(struct service *s);

/* A sweep of a command over x in [0, 1] that minimises "loss", with `limits` such as "'max_trials':
 * 4", and further fields such as ", 'resources': {'gpus': 1}" or "". Returns its id. */
const char *make_sweep(struct service *s, const char *name, const char *limits, const char *more);
/* A grid of n cells. */
const char *make_grid(struct service *s, const char *name, int n, const char *limits);

/* A sweep with a method that learns, over x and y in [0, 1], that minimises "loss". It has no
 * `trial`: clients ask and tell. */
const char *make_learner(struct service *s, const char *name, const char *limits, const char *more);

int64_t make_runner(struct service *s, const char *name, int64_t slots); /* its epoch */
/* A heartbeat that lists attempts and says nothing about their processes. */
as_status heartbeat(struct service *s, const char *runner, int64_t epoch,
                    const struct attempt_ref *attempts, size_t n, struct directive_list *ret,
                    struct as_err *err);

/* Claim; a new claim_id each time. */
struct claim_list claim(struct service *s, const char *runner, int64_t epoch, int64_t max);
struct claimed_row claim_one(struct service *s, const char *runner, int64_t epoch);

/* Ask without waiting, and without a suggester in memory. */
struct suggestion_list ask(struct service *s, const char *sweep, const char *client, int64_t n);
struct suggestion_row ask_one(struct service *s, const char *sweep, const char *client);
/* Complete with the loss. */
struct trial_row tell(struct service *s, const char *sweep, int64_t number, const char *client,
                      double loss);

struct attempt_ref ref_of(const struct claimed_row *c);
void measure(struct service *s, struct attempt_ref ref, const char *metric, int64_t step, double v);
/* Measure the loss and complete. */
struct trial_row finish(struct service *s, struct attempt_ref ref, double loss);
struct trial_row end(struct service *s, struct attempt_ref ref, attempt_outcome outcome);

struct sweep_row sweep_of_id(struct service *s, const char *id);
struct trial_row trial_of(struct service *s, const char *sweep, int64_t number);

/* What the server does every second: leases, clients, ensembles, old events. */
struct reaper_report reap(struct service *s);

/* Store the bytes of a text; its digest. */
void put_blob(struct service *s, const char *text, char ret_sha256[SHA256_HEX_SIZE]);
void put_bytes(struct service *s, const char *bytes, size_t len, char ret_sha256[SHA256_HEX_SIZE]);

/* Commit something without waiting for the disk. Returns where its log ends. */
int64_t commit_unsynced(struct service *s);
/* Fails the test if the log is not on disk up to there. */
void check_synced(struct service *s, int64_t log_end);

/* Check the invariants. Fails the test with the name of the one that is violated. */
void check_invariants(struct service *s);

#endif
