/* Gangs in tests: gather them, and let their ranks speak. A call that fails ends the test, unless
 * it returns a status. */
#ifndef ASSAY_TESTS_SCHEDULER_ASSIGN_RANKS_H
#define ASSAY_TESTS_SCHEDULER_ASSIGN_RANKS_H

#include "scheduler/lifecycle/gangs.h"
#include "tests/scheduler/assign/grouped.h"

/* A claim of `slots` slots that may all hold ranks. */
struct claim_list claim_ranks(const char *runner, int64_t epoch, int64_t slots);

struct seat_ref seat_of(const char *sweep, int64_t number, int64_t attempt, int64_t seat);

/* It listens at an address of its own. */
as_status listens(struct seat_ref ref, struct gang_detail *ret);
as_status joins(struct seat_ref ref, int64_t epoch, int64_t step);
as_status ends(struct seat_ref ref, attempt_outcome outcome, int64_t exit_code);
/* It says which epoch it joined last. */
as_status ends_after(struct seat_ref ref, attempt_outcome outcome, int64_t epoch);
/* `asker` calls one seat lost. */
as_status calls_lost(struct seat_ref asker, int64_t epoch, int64_t lost);
struct gang_detail world_of(const char *sweep, int64_t number, int64_t attempt);

/* Gather the gang of one trial on one runner with that many slots, and let all ranks listen and
 * join epoch 1. The trial has number 0 and attempt 1. Returns the runner's epoch. */
int64_t start_gang(const char *sweep, const char *runner, int64_t ranks);

/* A write of the rank, with its headers. */
as_status writes(struct seat_ref ref, int64_t epoch, int64_t step);
/* It leads and completes. */
as_status completes(struct seat_ref ref, int64_t epoch, attempt_outcome outcome, trial_state *ret);

void pause_sweep(const char *id);
void cancel_sweep(const char *id);

/* The helpers below are for a sweep "g", its trial 0 and attempt 1. */

/* An elastic gang of 3 that needs `min_ranks`. */
void make_elastic(const char *name, const char *limits, int min_ranks);
/* A command on 3 ranks. */
void make_fixed(const char *name, const char *limits);
struct seat_ref seat(int64_t n);
seat_state state_of(int64_t n);
void check_world(gang_state state, int64_t epoch, int64_t deaths);
/* What a runner lists, as a heartbeat. */
void beat(const char *runner, int64_t epoch, const int64_t *seats, size_t n, int64_t step,
          struct directive_list *ret);

#endif
