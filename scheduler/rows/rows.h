/* What the scheduler's operations hand back: plain rows in an arena.
 *
 * Strings are views of the arena that was passed, NULL where the API says null (unless noted).
 * JSON travels as text (compact, valid; parse it with json_parse to embed it). Times are Unix
 * milliseconds of the database's clock, 0 for "not yet". 64-bit seeds are int64_t >= 0. */
#ifndef ASSAY_SCHEDULER_ROWS_H
#define ASSAY_SCHEDULER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/sweep/trial_state.h"

#define PAGE_SIZE_MAX 1000

/* What a list is asked for. */
struct page_req {
    const char *cursor; /* NULL: the first page; AS_E_INVAL when this list did not make it */
    int64_t size;       /* 1..PAGE_SIZE_MAX; 0 means 100 */
};

/* Trials of a sweep by state; total is their sum. */
struct trial_counts {
    int64_t by_state[TRIAL_STATES];
    int64_t total;
};

struct sweep_row {
    const char *id;
    const char *name;
    sweep_state state;
    const char *reason;
    const char *document; /* JSON, as sweep_doc's canonical form, order kept */
    const char *metric;
    bool maximize;
    const char *method;
    int64_t seed;
    int64_t planned;  /* planned_trials: max_trials and the known ones */
    int64_t known;    /* how many of its trials people added with their results */
    bool for_runners; /* false: its document has no `trial`; only clients get its trials */
    struct trial_counts counts;
    bool has_best; /* the three below; of completed, feasible trials, by the first metric */
    int64_t best_number;
    double best_value;
    const char *best_params; /* JSON */
    int64_t created_ms, started_ms, finished_ms;
};

struct sweep_page {
    struct sweep_row *rows;
    size_t n;
    const char *next_cursor; /* NULL on the last page */
};

/* Where a trial's configuration comes from. */
typedef enum trial_origin {
    ORIGIN_SUGGESTED, /* the sweep's method */
    ORIGIN_ENQUEUED,  /* people: it runs before the next suggestion */
    ORIGIN_KNOWN      /* people, with its result: it never ran here and uses none of max_trials */
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
    double value; /* may be NaN or infinite unless completed */
    bool has_step;
    int64_t step;
    const char *metrics;    /* JSON {name: number or "NaN" …}, "{}" when nothing was measured */
    const char *suggestion; /* JSON: {"method": …, reasons…, "index": i, "seen": S}; of trials that
                               people added {"method": "enqueued"} or {"method": "known"} */
    bool has_index;
    int64_t index; /* of the method's suggestions, from 0 */
    bool has_seen;
    int64_t seen;       /* methods that learn: results with a finish_seq up to here were known */
    int64_t finish_seq; /* 1, 2, … in the order in which the sweep's trials ended; 0: not yet */
    bool has_feasible;  /* completed ones */
    bool feasible;
    const char *shape;  /* the signature of its tensors; NULL: not the built-in trainer's */
    const char *group;  /* of the latest attempt; NULL: it ran alone */
    const char *runner; /* of the latest attempt, or */
    const char *client; /* who asked for it */
    const char *reason;
    int64_t created_ms, started_ms, finished_ms;
};

struct trial_page {
    struct trial_row *rows;
    size_t n;
    const char *next_cursor;
};

struct attempt_row {
    int64_t attempt;
    const char *runner; /* one of the two is set */
    const char *client;
    const char *group; /* that it was a member of, or NULL */
    int64_t started_ms, ended_ms;
    const char
        *outcome; /* completed, failed, retry, released, lost, cancelled, timeout; NULL: runs */
    const char *reason;
    bool has_exit_code;
    int64_t exit_code; /* negative: the signal */
};

struct trial_detail {
    struct trial_row trial;
    struct attempt_row *attempts; /* ascending */
    size_t n_attempts;
};

/* One metric of one trial: steps ascending; where attempts overlap the latest counts. */
struct series_row {
    const char *metric;
    int64_t *steps;
    double *values; /* may be NaN or infinite */
    size_t n;
};

struct series_list {
    struct series_row *rows; /* by metric name */
    size_t n;
};

struct log_row {
    int64_t attempt;  /* 0 when nothing was kept yet */
    const char *text; /* never NULL */
    bool truncated;
};

struct file_row {
    const char *path;
    int64_t size; /* bytes */
    const char *sha256;
};

struct file_list {
    struct file_row *rows; /* by path */
    size_t n;
};

struct dataset_file_row {
    const char *role; /* table, features, targets */
    const char *sha256;
    int64_t size;
};

struct dataset_row {
    const char *name;
    const char *format; /* csv, npy, … */
    const char *task;   /* classification, regression, language_modeling */
    const char *input;  /* table, image, tokens */
    const char *target; /* JSON: a string or a whole number; NULL */
    int64_t n_rows, n_features, n_outputs;
    const char *classes;                   /* JSON list of strings; NULL but for classification */
    const char *options, *image, *columns; /* JSON; NULL */
    const char *sha256;
    struct dataset_file_row files[3];
    size_t n_files;
    const char *description;
    int64_t created_ms;
    /* In a claim, when the name holds other content than when the sweep was made: what it was; else
     * NULL. */
    const char *expected_sha256;
    int64_t expected_rows, expected_features;
};

struct dataset_page {
    struct dataset_row *rows;
    size_t n;
    const char *next_cursor;
};

#define RUNNER_HELD_MAX 8192 /* attempts of one runner: what a heartbeat can list in 1 MiB */

/* Names one attempt: what a runner says that it runs. */
struct attempt_ref {
    const char *sweep; /* id */
    int64_t number;
    int64_t attempt;
};

/* A runner is told to stop an attempt (the only action there is). */
struct directive_row {
    struct attempt_ref ref;
    const char *reason; /* never NULL: "the sweep was cancelled", "attempt 2 replaced it", … */
};

struct directive_list {
    struct directive_row *rows;
    size_t n;
};

struct runner_row {
    const char *name;
    const char *state; /* live, lost, left */
    const char *host;
    const char *version;
    int64_t slots;
    const char *gpus; /* JSON list of strings */
    int64_t running;  /* attempts it holds */
    int64_t used;     /* slots that they take: a group takes one */
    int64_t epoch;
    int64_t registered_ms, seen_ms;
};

struct runner_page {
    struct runner_row *rows;
    size_t n;
    const char *next_cursor;
};

/* A trial handed to a runner. */
struct claimed_row {
    const char *sweep; /* id */
    int64_t number, attempt, seed;
    const char *params;    /* JSON */
    const char **inactive; /* names of parameters that are not active here */
    size_t n_inactive;
    const char *trial; /* JSON: the section `trial` of the document, templates as they are */
    const char *metric;
    bool maximize;
    int64_t gpus;
    const struct dataset_row *dataset; /* NULL for a command */
    struct file_list files;            /* of its checkpoint folder */
    int64_t timeout_ms;                /* 0: none */
    int64_t grace_ms;
    const char *group; /* NULL: it runs alone; the three below are of its group */
    const char *shape;
    int64_t bytes_per_member, max_members;
};

struct claim_list {
    struct claimed_row *rows;
    size_t n;
    bool is_preparing; /* n is 0 because a suggestion is being computed: try again when ready */
    bool awaits_ends;  /* a sweep that learns gave nothing, until what is ending has ended */
    int64_t sweep_key; /* of a fit that may get more later: what asks_pending() wants to know; 0 */
};

/* A trial handed to a client that runs it itself. */
struct suggestion_row {
    int64_t number, attempt, seed;
    const char *params;    /* JSON */
    const char **inactive; /* names of parameters that are not active here */
    size_t n_inactive;
    trial_origin origin;
    const char *reason; /* JSON: trial_row.suggestion */
    int64_t lease_until_ms;
};

struct suggestion_list {
    struct suggestion_row *rows; /* by number */
    size_t n;
    sweep_state state; /* of the sweep */
    bool done;         /* the sweep is over: there will be no more */
    bool is_preparing; /* not all of them could be had because suggestions are being computed */
    int64_t sweep_key; /* what asks_pending() wants to know */
};

/* The trials that no other one beats in every objective. */
struct pareto_row {
    struct trial_row *rows; /* feasible and completed, by number */
    size_t n;
    const char **metrics; /* names of the objectives, the document's order */
    bool *maximize;
    size_t n_metrics;
    bool has_reference; /* the two below; false without a completed feasible trial */
    double *reference;  /* n_metrics, in the metrics' own units */
    double hypervolume; /* between the front and the reference */
};

/* Shares of the variance of an objective. NaN: not known. */
struct importance_param {
    const char *name;
    double first, first_low, first_high; /* alone */
    double total, total_low, total_high; /* with its interactions */
    double top;          /* share of what tells the best tenth of the trials from all */
    bool is_conditional; /* the shares are those where it is active */
};

struct importance_row {
    const char *metric; /* the objective's name */
    int64_t trials;     /* that it was computed from */
    bool is_stale;      /* a newer one is being computed */
    const char *method;
    double r2; /* of the model, left-out trials predicted; NaN: none was fitted */
    struct importance_param *params; /* most important first; none when there is a reason */
    size_t n;
    const char *reason; /* why there are none; NULL */
};

struct event_row {
    int64_t id;
    const char *type; /* sweep.created, sweep.changed, trial.changed, trial.measured,
                         ensemble.ready, runner.changed */
    int64_t time_ms;
    const char *sweep; /* id, or NULL */
    bool has_number;
    int64_t number;
    const char *state;
    int64_t attempt; /* 0: none */
    bool has_value;
    double value;
    const char *reason;
    const char *runner;
};

struct event_list {
    struct event_row *rows;
    size_t n;
    int64_t last_id; /* pass it as `after` next; unchanged when nothing is new */
};

typedef enum token_role { ROLE_VIEWER, ROLE_USER, ROLE_RUNNER, ROLE_ADMIN } token_role;
#define TOKEN_ROLES 4

struct token_row {
    const char *id;
    token_role role;
    const char *name;
    int64_t created_ms, expires_ms, last_used_ms;
};

struct token_page {
    struct token_row *rows;
    size_t n;
    const char *next_cursor;
};

/* Who makes a request: the id of its token, and what it may do. */
struct principal {
    char id[40];
    token_role role;
    int64_t left_ms; /* until the token runs out; INT64_MAX: it does not */
};

#endif
