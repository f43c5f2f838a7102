/* Trials and their attempts as statements return them, and the query for a list of trials.
 * Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_TRIAL_ROW_H
#define ASSAY_SCHEDULER_ROWS_TRIAL_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/rows/fork_row.h"
#include "scheduler/rows/gang_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/rows/regret_row.h"
#include "scheduler/sweep/trial_state.h"

/* Where a trial's configuration comes from. */
typedef enum trial_origin {
    ORIGIN_SUGGESTED, /* the sweep's method suggested it */
    ORIGIN_ENQUEUED,  /* a person added it: it runs before the next suggestion */
    ORIGIN_KNOWN,     /* a person added it with its result: it never ran and is not counted in
                         max_trials */
    ORIGIN_FORKED     /* it goes on from a checkpoint of another trial */
} trial_origin;
extern const char *const trial_origin_words[]; /* NULL-terminated, in the enum's order */

struct trial_row {
    const char *sweep; /* id */
    int64_t number;
    trial_state state;
    trial_origin origin;
    int64_t attempt; /* 0 before the first claim */
    int64_t restarts;
    const char *params; /* JSON */
    int64_t seed;
    bool has_value;
    double value; /* may be NaN or infinite unless the trial completed */
    bool has_step;
    int64_t step;
    const char *metrics;    /* JSON {name: number or "NaN" …}, "{}" when nothing was measured */
    const char *suggestion; /* JSON: {"method": …, reasons…, "index": i, "seen": S}; for trials
                               that people added {"method": "enqueued" or "known", "key": of the
                               row, if it has one}; of a fork {"method": "pbt", "parent",
                               "replaces", "step"} */
    bool is_fork;           /* the two below are set */
    int64_t parent, fork_step; /* it goes on from this trial at this step */
    bool has_index;
    int64_t index; /* its index among this method's suggestions, from 0 */
    bool has_seen;
    int64_t seen;        /* methods that learn: results with a finish_seq up to this were known */
    int64_t finish_seq;  /* its place in the order of ends and retries of its sweep; 0: not ended */
    const char *retries; /* JSON: its earlier ends, [{"state", "finish_seq", "retry_seq", …}, …];
                            NULL: it was not retried */
    const char *rungs;   /* JSON: its results at rungs, from the lowest: the API's RungResult; NULL:
                            it has none */
    bool has_feasible;   /* completed trials only */
    bool feasible;
    bool timed_out;     /* it completed with what it had reported at trial_timeout */
    const char *shape;  /* the signature of its tensors; NULL: it does not use the built-in
                           trainer */
    const char *group;  /* of the latest attempt; NULL: no group */
    const char *runner; /* of the latest attempt; NULL: a client's or a gang's */
    const char *client; /* of the latest attempt; NULL: a runner's or a gang's */
    const char *reason;
    const char *tags; /* JSON: a list of strings */
    int64_t created_ms, started_ms, finished_ms;
    int64_t ended_ran_ms;     /* for so long its ended attempts ran; -1: see trial_ran_ms() */
    int64_t running_since_ms; /* when its attempt was handed out; 0: it does not run */
};

/* Milliseconds for which the attempts of a trial ran that have ended, since it started or was
 * retried: without the time in which it waited. -1: it has not started. Pure. */
int64_t trial_ran_ms(const struct trial_row *r);

struct trial_page {
    struct trial_row *rows;
    size_t n;
    const char **user_attrs; /* JSON, of each row; NULL: not asked for */
    const char *next_cursor;
    const struct regret_check *expected; /* of trial_best(): the first row is the best by this
                                            bound's model; NULL: by its value */
};

struct attempt_row {
    int64_t attempt;
    const char *runner; /* one of runner, client and gang is set */
    const char *client;
    const char *group; /* the group that it was a member of; NULL: none */
    int64_t started_ms, ended_ms;
    const char
        *outcome; /* completed, failed, retry, released, lost, cancelled, timeout; NULL: it runs */
    const char *reason;
    bool has_exit_code;
    int64_t exit_code; /* negative: the signal */
    bool has_ran;
    int64_t ran_ms;    /* how long its process ran, as its runner said */
    const char *walls; /* JSON list of words: what stood around its processes; NULL: not said */
    struct gang_summary gang;
};

#define TRIAL_NOTES_MAX 64       /* names of one trial */
#define TRIAL_NOTE_TEXT_MAX 1024 /* characters */

/* A text that a trial wrote beside its numbers. */
struct trial_note {
    const char *name; /* as a metric's */
    const char *text;
};

#define FORKS_SHOWN 1000

struct trial_detail {
    struct trial_row trial;
    struct trial_note *notes; /* by name */
    size_t n_notes;
    struct attempt_row *attempts; /* ascending */
    size_t n_attempts;
    struct fork_row *forks; /* of it, by number; at most FORKS_SHOWN */
    size_t n_forks;
    const char *test; /* JSON: what its test.json says (trial_test.h); NULL */
    const char *why;  /* the reason for its parameters in words; NULL, "": it has none */
};

typedef enum trial_sort {
    TRIAL_BY_NUMBER,
    TRIAL_BY_VALUE,
    TRIAL_BY_STARTED,
    TRIAL_BY_FINISHED,
    TRIAL_BY_DURATION, /* how long they ran; only trials that have finished */
    TRIAL_BY_CREATED,
    TRIAL_BY_STATE,  /* in the order of trial_state */
    TRIAL_BY_METRIC, /* the latest value */
    TRIAL_BY_PARAM   /* values that are not all numbers in the document's order */
} trial_sort;

/* NULL-terminated, in the enum's order: "number", "value", "started_at", "finished_at",
 * "duration", "created_at", "state", "metric", "param". */
extern const char *const trial_sort_words[];

struct trial_query {
    const trial_state *state; /* NULL: any */
    const char *group;        /* of the latest attempt; NULL: any */
    trial_sort sort;
    const char *name; /* of the metric or parameter to sort by; else NULL */
    bool descending;
    struct page_req page;
};

#endif
