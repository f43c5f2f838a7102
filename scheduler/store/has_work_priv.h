/* When a sweep has something to hand out. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_HAS_WORK_PRIV_H
#define ASSAY_SCHEDULER_STORE_HAS_WORK_PRIV_H

/* `s` is the alias of the table with a point, or "". */
#define HAS_WORK_OF(s)                                                                             \
    s "state = 'running' and (" s "n_queued > 0 or " s "n_total < " s "planned) and (" s           \
      "max_concurrent is null or " s "n_running < " s "max_concurrent) and (" s                    \
      "max_steps is null or steps_room(" s "key) > 0)"
#define HAS_WORK HAS_WORK_OF("")

/* How many trials it may hand out now. Valid only where HAS_WORK holds. */
#define ROOM_OF(s)                                                                                 \
    "least(" s "n_queued + " s "planned - " s "n_total, " s "max_concurrent - " s                  \
    "n_running, case when " s "max_steps is not null then steps_room(" s "key) end)"

#define ROOM ROOM_OF("")

/* May trials of the sweep be claimed before there is a slot for them (decision 7019)? Not where
 * that changes what is suggested or which trials run, and not where a trial that waits keeps more
 * than a place from others. A trial that is lost while it waits uses a restart, so there must be
 * some. */
#define GIVES_AHEAD_OF(s)                                                                          \
    "not (" s "learns or " s "gang or " s "exclusive) and " s "gpus = 0 and " s "cpus = 0 and " s  \
    "memory_bytes = 0 and " s "max_group is null and " s "rungs is null and " s                    \
    "max_concurrent is null and " s "max_steps is null and " s "max_restarts > 0"

/* How many trials the sweep may give so now: afterwards at least as many are left as run or wait,
 * one for each slot that may come free meanwhile, so that none waits while a slot is idle. */
#define AHEAD_ROOM_OF(s)                                                                           \
    "case when " GIVES_AHEAD_OF(s) " then greatest(0, (" s "n_queued + " s "planned - " s          \
                                   "n_total - " s "n_running) / 2) else 0 end"

/* With how many ranks the sweep's next trial runs: the one that a claim takes first
 * (ASSIGNMENT_QUEUE). 0: each trial has its own number, and the next one is not made yet. */
#define RANKS_NEXT_OF(s)                                                                           \
    "case when " s "ranks_by is null then " s                                                      \
    "ranks else coalesce((select (next_trial.params ->> " s                                        \
    "ranks_by)::int from trial next_trial where next_trial.sweep_key = " s                         \
    "key and next_trial.state = 'queued' order by next_trial.number limit 1), 0) end"

/* The fewest with which it may begin. */
#define RANKS_LEAST_OF(s)                                                                          \
    "case when " s "shrinks then least(" s                                                         \
    "min_ranks, " RANKS_NEXT_OF(s) ") else " RANKS_NEXT_OF(s) " end"

/* Could the live runners hold the ranks of the next trial of the sweep s, if nothing else ran? */
#define COULD_GATHER "seats_of_runners(s.gpus, s.cpus, s.memory_bytes) >= " RANKS_LEAST_OF("s.")

#endif
