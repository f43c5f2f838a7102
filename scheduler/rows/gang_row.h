/* Gangs: the ranks of an attempt, and the world that they form. Conventions: "Rows" in
 * scheduler/README.md.
 *
 * A seat is one rank process of a gang. Its number is never used again in its attempt. A world is
 * the members of one epoch, in the order of their seats; the first of them leads. */
#ifndef ASSAY_SCHEDULER_ROWS_GANG_ROW_H
#define ASSAY_SCHEDULER_ROWS_GANG_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/rows/runner_row.h"
#include "scheduler/sweep/seat_state.h"

/* The pointer of AS_E_STALE when the epoch, or the rank that leads, is not current, and the attempt
 * is: the API's code stale_world. */
#define STALE_WORLD "/epoch"

#define GANG_RANKS_MAX 4096
#define GANG_ENDPOINT_MAX 200 /* bytes */
#define GANG_ADDRESS_MAX 45   /* characters of a numeric address */

/* Names one rank of a gang. */
struct seat_ref {
    struct attempt_ref attempt;
    int64_t seat;
};

/* A rank that a runner lists, and what it says about it. */
struct seat_said {
    struct seat_ref ref;
    bool has_phase, has_step, has_sent;
    run_phase phase;
    int64_t ran_ms;     /* as in attempt_said */
    int64_t step;       /* the last one that it has completed */
    int64_t sent_bytes; /* to other ranks */
};

/* Where a rank listens for the others. */
struct seat_address {
    const char *endpoint; /* 1..GANG_ENDPOINT_MAX bytes, as the trainer writes it */
    const char *address;  /* numeric */
    int64_t port;         /* 1..65535 */
};

struct gang_seat_row {
    int64_t seat;
    seat_state state;
    bool is_member; /* of the current epoch */
    const char *runner, *host;
    const char *secret; /* SHA-256 of what its runner must show; NULL: nothing */
    struct seat_address at;
    int64_t joined_epoch; /* the latest in which it was connected to all; 0: none */
    bool has_step;
    int64_t step, sent_bytes;
    const char *outcome; /* what its runner said at its end; NULL: nothing */
    bool has_exit_code;
    int64_t exit_code;
    bool has_ran;
    int64_t ran_ms;
    int64_t since_ms, ended_ms;
    const char *reason;
};

struct gang_row {
    int64_t id;
    int64_t sweep_key, number, attempt;
    int64_t ranks, min_ranks;
    bool elastic;
    const char *launch;
    const char *secret; /* what ranks show to each other */
    gang_state state;
    int64_t epoch;   /* 0: not all ranks listen yet */
    bool has_joined; /* some rank was connected to the others */
    bool is_ending;  /* a rank has completed: no seat is offered any more */
    bool has_step;
    int64_t step; /* the highest that a rank has reached */
    int64_t deaths, idle_deaths;
    int64_t restarts, max_restarts; /* those that the trial has used, and may use */
    int64_t begun_ms;
    int64_t age_ms; /* since it began, by the database's clock */
};

/* A gang with its seats, by number. */
struct gang_detail {
    struct gang_row gang;
    struct gang_seat_row *seats;
    size_t n_seats;
    bool shows_secret; /* whoever asks may see the gang's secret */
};

/* In the list of attempts of a trial. */
struct gang_summary {
    int64_t ranks; /* 0: the attempt has no gang */
    const char *state;
    int64_t epoch, deaths, live;
};

#endif
