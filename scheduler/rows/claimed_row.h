/* A trial handed to a runner. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_CLAIMED_ROW_H
#define ASSAY_SCHEDULER_ROWS_CLAIMED_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/rows/dataset_row.h"
#include "scheduler/rows/file_row.h"

struct claimed_row {
    int64_t sweep_key;
    const char *sweep; /* id */
    int64_t number, attempt, seed;
    const char *params;    /* JSON */
    const char **inactive; /* names of parameters that are inactive in this trial */
    size_t n_inactive;
    const char *trial; /* JSON: the section `trial` of the document, templates unchanged */
    const char *metric;
    bool maximize;
    int64_t gpus;
    int64_t cpus;                      /* 0: not said */
    const struct dataset_row *dataset; /* NULL for a command */
    struct file_list files;            /* the files of its checkpoint folder */
    int64_t keep_every, keep_until;    /* what is in that folder at multiples of the first step,
                                          below the second, is kept for forks; 0: nothing is */
    const char *may_differ; /* JSON: fields of trial.train in which a checkpoint's document may
                               differ from the trial's; NULL: none */
    int64_t timeout_ms;     /* 0: none */
    int64_t grace_ms;
    bool early_stopping; /* the sweep has it */
    bool gives_ahead;    /* the sweep's next trial may be claimed while this one runs */
    const char *group;   /* NULL: it runs alone; the three below describe its group */
    const char *shape;
    int64_t bytes_per_member, max_members;
    bool is_rank; /* one rank of a gang; the four below describe it */
    int64_t seat, ranks, min_ranks;
    bool elastic;
    const char *launch; /* all, first */
    const char *token;  /* what its process may show to the API (services/attempt_tokens.h) */
};

#endif
