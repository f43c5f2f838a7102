/* assay-runner with real processes, against a server in the test that hands out what the test puts
 * on offer and records what the runner sends. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_AGENT_RUNNER_FIXTURE_H
#define ASSAY_TESTS_TRIAL_RUNNER_AGENT_RUNNER_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#define MAX_TRIALS 24
#define DECISION_REASON "at step 3 it is 3rd of 3"
#define MAX_BLOBS 32

struct server_request;
struct server_answer;

struct trial {
    json_t *claim; /* NULL: no such trial */
    bool handed_out, stop;
    /* What early stopping decides when a measurement of this step or a later one comes; NULL:
     * nothing. */
    const char *decision;
    int64_t decides_at;
    bool is_decided;     /* answers to measurements and heartbeats repeat the decision */
    bool is_quiet;       /* … only heartbeats do */
    bool lacks_metric;   /* refuse outcome completed: the sweep requires the metric m.x */
    int refusals;        /* how often that happened */
    json_t *said;        /* what the runner said last about its process */
    const char *refills; /* the group whose next claim gets it; NULL: any claim gets it */
    json_t *completion, *artifacts, *checkpoints;
    json_t *lost; /* why its checkpoint cannot be used, as the runner said */
    char *log;
    json_t *items; /* measurements */
    json_t *notes; /* {name: text} */
};

struct blob {
    char sha[SHA256_HEX_SIZE], *bytes;
    size_t len;
};

extern struct fixture {
    pthread_mutex_t lock;
    struct trial trials[MAX_TRIALS];
    struct blob blobs[MAX_BLOBS];
    size_t n_blobs;
    int64_t epoch;
    json_t *registration; /* the last */
    int registrations, heartbeats, leaves;
    int refill_claims, empty_refills;
    int ending_claims;                   /* claims that named attempts in `ending` */
    int ahead_claims;                    /* claims ahead that were answered with 200 */
    bool no_ahead;                       /* they get no trials */
    int refuses_ahead;                   /* answer 400 to so many of them: an older server */
    int refuses_waited;                  /* likewise to ends with `waited_ms` */
    json_t *ahead_ending;                /* `ending` of the last of them */
    json_t *measured;                    /* from the last claim that had it */
    json_t *faults;                      /* `gpu_faults` of the last heartbeat that had it */
    int64_t claim_gpus, claim_gpu_bytes; /* of the last claim for free slots */
    bool pending;                        /* the answer to claims that get nothing has `pending` */
    bool down;                           /* answer 503 */
    int answers_down;                    /* how often that happened */
    bool denied;                         /* answer 401 */
    int answers_denied;                  /* how often that happened */
    int lease_ms;                        /* 0: a minute */
    bool not_holder;                     /* answer 403 not_holder to all writes of attempts */
    int taken;                /* answer 409 to so many registrations: the name is taken */
    char secret[130];         /* what the runner shows: every request has shown the same */
    bool hold_results;        /* answer 503 to complete alone */
    bool hold_items;          /* answer 503 to measurements alone */
    int held_items;           /* how often that happened */
    int batches, batch_parts; /* requests of many parts, and the parts in them */
    int no_batches;           /* answer so to them: the server knows no such route; 0: it does */
    int batches_refused;      /* how often that happened */
    int singles;              /* ends and measurements that came by themselves */
    int cut_batches;          /* so many are done, and their answers are lost */
    /* Asked first about requests of attempts; returns whether it has answered. NULL: none. */
    bool (*more)(const struct server_request *q, struct server_answer *a);
    void (*on_blob)(const struct server_request *q); /* before content is taken; NULL: none */
    int64_t claim_seats;                             /* of the last claim for free slots */
    struct http_server *server;
    char dir[TEMP_FOLDER_SIZE], work[80];
    pid_t runner;
} fx;

/* The lock guards what changes in fx. It is recursive. */
void fx_lock(void);
void fx_unlock(void);

/* A checked fixture: a server without trials, and no runner yet. */
void fx_setup(void);
void fx_teardown(void);

/* Start assay-runner (4 slots, GPUs 5 and 7) with one more option, or NULL, NULL. */
void start_runner(const char *more_name, const char *more_value);
int end_runner(int sig); /* returns its wait status */

/* Put a trial on offer. `trial` is the section of the document as JSON text. */
struct trial *offer(int number, const char *trial, int grace_ms, int timeout_ms, int gpus);
/* Put a member of a group on offer: at most 4 members, with a data set of one file, for --trainer.
 * Its grace period, like that of offer_sh(), is longer than any test. */
struct trial *offer_member(int number, const char *train, const char *group);
struct trial *offer_sh(int number, const char *script);

/* A check of what the server's threads write. */
#define LOCKED(check)                                                                              \
    do {                                                                                           \
        fx_lock();                                                                                 \
        check;                                                                                     \
        fx_unlock();                                                                               \
    } while (0)

/* Wait for a condition that the server or the file system will meet. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t await_end_ = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;                            \
        bool await_ok_ = false;                                                                    \
        while (!await_ok_ && clock_mono_ns() < await_end_) {                                       \
            fx_lock();                                                                             \
            await_ok_ = (condition);                                                               \
            fx_unlock();                                                                           \
            if (!await_ok_)                                                                        \
                clock_sleep_ms(5);                                                                 \
        }                                                                                          \
        ck_assert_msg(await_ok_, "waited too long for %s", #condition);                            \
    } while (0)

/* These take the lock themselves. The first two return copies, which the next call of the same
 * function overwrites; "" for none. */
const char *outcome_of(const struct trial *t);
const char *reason_of(const struct trial *t);
bool log_has(const struct trial *t, const char *part);

#endif
