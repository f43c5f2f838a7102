/* The server's side of one gang, for tests of the runner: it keeps the world of trial 0 of the
 * fixture (runner_fixture.h), as the wire protocol of gangs says. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_AGENT_GANG_FIXTURE_H
#define ASSAY_TESTS_TRIAL_RUNNER_AGENT_GANG_FIXTURE_H

#include "tests/trial-runner/agent/runner_fixture.h"

#define GANG_SEATS 8

struct gang_seat {
    bool told, member;
    char endpoint[201], address[64];
    int64_t port;
    int64_t joined_epoch;
    json_t *end; /* what its runner said of its end; NULL: nothing yet */
};

/* Under fx's lock. */
extern struct gang_server {
    int ranks, min_ranks;
    bool elastic;
    int64_t epoch;
    bool over;
    struct gang_seat seats[GANG_SEATS];
    json_t *change;             /* the last request for a world that was granted */
    int64_t writes[GANG_SEATS]; /* writes of the attempt by the leader, by seat */
    int refused;                /* writes of who does not lead, or of another epoch */
    bool first;                 /* launch: first */
    int alone;                  /* this seat begins and ends before the others; 0: none */
} gang;

/* Offer `ranks` seats of trial 0; `trial` is the section of the
 * document; for an elastic gang what is in its `train`. Seats 0 and 1 have a GPU each. */
void offer_gang(int ranks, int min_ranks, bool elastic, const char *launch, const char *trial);
/* Offer one more seat. */
void offer_seat(int seat, const char *trial);
void gang_teardown(void);

/* Add another member, of another runner, and make the next epoch. */
void add_stranger(int seat);
/* A world without this seat, by another's wish. */
void drop_member(int seat);

#endif
