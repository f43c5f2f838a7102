/* Runners, the attempts that they hold, and the directives for them. Conventions: "Rows" in
 * scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_RUNNER_ROW_H
#define ASSAY_SCHEDULER_ROWS_RUNNER_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNNER_CPUS_MAX 4096
#define RUNNER_MEMORY_MAX (INT64_C(1) << 52) /* bytes */
#define RUNNER_JOB_MAX 200
#define RUNNER_HELD_MAX 8192 /* attempts of one runner: a heartbeat of 1 MiB can list so many */

/* Names one attempt that a runner reports as running. */
struct attempt_ref {
    const char *sweep; /* id */
    int64_t number;
    int64_t attempt;
};

/* What a runner says about the process of an attempt that it holds. */
typedef enum run_phase { RUN_PREPARING, RUN_RUNNING, RUN_ENDED } run_phase;
extern const char *const run_phase_words[]; /* NULL-terminated, in the enum's order */

#define RUN_MAX_MS INT64_C(1000000000000) /* 31 years */

struct attempt_said {
    struct attempt_ref ref;
    run_phase phase;
    int64_t ran_ms; /* how long the process has run or did run, by the runner's monotonic clock; 0
                       while it is prepared */
};

/* What an instruction asks for. */
typedef enum directive_action {
    DIRECTIVE_STOP,  /* the attempt is not current: write nothing more */
    DIRECTIVE_PRUNE, /* early stopping: end it as pruned, or … */
    DIRECTIVE_PAUSE  /* … as paused, with its checkpoints */
} directive_action;
extern const char *const directive_action_words[]; /* NULL-terminated, in the enum's order */

/* An instruction to whoever runs an attempt, to end it. */
struct directive_row {
    struct attempt_ref ref;
    const char *reason; /* never NULL: "the sweep was cancelled", "attempt 2 replaced it", … */
    bool is_rank;       /* of a gang: then only the rank in `seat` is to stop */
    int64_t seat;
    directive_action action;
};

struct directive_list {
    struct directive_row *rows;
    size_t n;
    bool drain; /* the runner itself is to hand its attempts back, and to leave */
};

struct runner_row {
    const char *name;
    const char *state; /* live, lost, left */
    const char *host;
    const char *version;
    int64_t slots;
    const char *gpus;               /* JSON list of strings */
    const char *gpu_faults;         /* JSON list of {gpu, reason}: GPUs that are set aside */
    int64_t running;                /* attempts that it holds */
    int64_t used;                   /* slots that they take; a group takes one */
    int64_t cpus, memory_bytes;     /* what it has; 0: it did not say */
    int64_t cpus_used, memory_used; /* what its attempts need of them; a group needs it once */
    bool is_draining;               /* it is to leave, and was or will be told so */
    const char *machine;            /* equal for runners of one machine; NULL: it did not say */
    const char *job;                /* that it belongs to, "slurm/1234_7"; NULL: it did not say */
    const char *fleet;              /* the same */
    const char *walls;              /* JSON list of words: what stands around its trials; NULL */
    int64_t epoch;
    int64_t registered_ms, seen_ms;
};

struct runner_page {
    struct runner_row *rows;
    size_t n;
    const char *next_cursor;
};

#endif
