/* Tables attempt and trial_log, and the trials of a claim. */
#ifndef ASSAY_SCHEDULER_STORE_ATTEMPT_STORE_H
#define ASSAY_SCHEDULER_STORE_ATTEMPT_STORE_H

#include "base/arena.h"
#include "scheduler/rows/claimed_row.h"
#include "scheduler/rows/rung_row.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

struct attempt_end {
    const char *outcome;
    const char *reported; /* the outcome that the runner reported; NULL: the runner did not end
                             it */
    const char *reason;
    bool has_exit_code;
    int64_t exit_code;
    bool has_ran;
    int64_t ran_ms;    /* how long its process ran */
    int64_t waited_ms; /* claimed ahead, it waited so long for a slot: it started after that */
};

struct attempt_ended {
    int64_t sweep_key, number, attempt;
    struct attempt_end end;
};
/* End running attempts, or correct the outcome of those that ended without their runner's report.
 * One statement for any n. No attempt stands twice. */
AS_MUST_CHECK as_status store_attempt_end_many(struct tx *t, const struct attempt_ended *ends,
                                               size_t n, struct as_err *err);

/* Record what a runner says about its running attempts. Only a later phase than the recorded one
 * changes a row, so a repeat changes nothing. Attempts of other runners are left out. */
AS_MUST_CHECK as_status store_attempt_say(struct tx *t, const char *runner,
                                          const struct attempt_said *said, size_t n,
                                          struct as_err *err);

/* Has the attempt before this one ended with a failure of its process, although it was tried again?
 * That is: by an exit code other than 75, or a signal other than SIGKILL (a gang of a command). */
AS_MUST_CHECK as_status store_attempt_failed_before(struct tx *t, int64_t sweep_key, int64_t number,
                                                    int64_t attempt, bool *ret, struct as_err *err);

/* The outcome that the runner reported for that attempt; NULL: none yet, or no such attempt. */
AS_MUST_CHECK as_status store_attempt_reported(struct tx *t, struct arena *a, int64_t sweep_key,
                                               int64_t number, int64_t attempt, const char **ret,
                                               struct as_err *err);

/* The client's latest attempt of that trial; 0: none. Attempts that were asked for with another
 * token than `token` (an id; NULL: any) do not count. *ret_anothers: there are only such
 * attempts. */
AS_MUST_CHECK as_status store_attempt_of_client(struct tx *t, int64_t sweep_key, int64_t number,
                                                const char *client, const char *token, int64_t *ret,
                                                bool *ret_anothers, struct as_err *err);

/* Who holds, or held, an attempt. */
struct attempt_holder {
    int64_t sweep_key;
    bool is_there;      /* false: there is no such attempt, and the rest is not set */
    const char *client; /* NULL: a runner, or a gang */
    const char *secret; /* SHA-256 of the runner's; NULL: none is asked for */
    bool gang;
    struct rung_near near; /* of its trial, if nothing is decided about that */
};

/* `ret` lives in `a`. AS_E_NOT_FOUND: no such sweep. */
AS_MUST_CHECK as_status store_attempt_holder(struct tx *t, struct arena *a,
                                             const struct attempt_ref *ref,
                                             struct attempt_holder *ret, struct as_err *err);

AS_MUST_CHECK as_status store_attempt_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                           int64_t number, struct attempt_row **ret, size_t *ret_n,
                                           struct as_err *err);

/* attempt 0: the latest one with output. *ret is zeroed, with text "", if nothing is stored. */
AS_MUST_CHECK as_status store_attempt_log_get(struct tx *t, struct arena *a, int64_t sweep_key,
                                              int64_t number, int64_t attempt, struct log_row *ret,
                                              struct as_err *err);
AS_MUST_CHECK as_status store_attempt_log_put(struct tx *t, int64_t sweep_key, int64_t number,
                                              int64_t attempt, const char *text, bool truncated,
                                              struct as_err *err);

/* A claimed trial as the tables hold it: with the whole document, from which the service takes the
 * section `trial`, the data set and the inactive names. */
struct attempt_claimed {
    int64_t sweep_key;
    const char *document; /* NULL: the document of the row before, which is of the same sweep */
    int64_t max_group;    /* of the sweep; see sweep_store.h */
    bool group_given;
    bool is_fork;           /* its first attempt has a checkpoint too */
    struct claimed_row row; /* trial, dataset, files, inactive, keeps, max_members are not set */
};

/* The trials that a claim got and still holds, in the order of sweep and number. */
AS_MUST_CHECK as_status store_attempt_claimed(struct tx *t, struct arena *a, const char *runner,
                                              int64_t epoch, const char *claim_id,
                                              struct attempt_claimed **ret, size_t *ret_n,
                                              struct as_err *err);

/* How many trials those are, and how many slots they take. */
AS_MUST_CHECK as_status store_attempt_claim_count(struct tx *t, const char *runner, int64_t epoch,
                                                  const char *claim_id, int64_t *ret_trials,
                                                  int64_t *ret_slots, struct as_err *err);

#endif
