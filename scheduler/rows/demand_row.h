/* What sweeps wait for, and what live runners have left. */
#ifndef ASSAY_SCHEDULER_ROWS_DEMAND_ROW_H
#define ASSAY_SCHEDULER_ROWS_DEMAND_ROW_H

#include <stdbool.h>
#include <stdint.h>

/* A sweep that could hand out trials now, or whose elastic gangs lack ranks. One whose trials have
 * ranks of their own is there once for each number of ranks. */
struct demand_sweep {
    int64_t key;
    int64_t room;       /* trials that it may hand out now */
    int64_t group;      /* most of them in one slot; 1: each has its own */
    int64_t ranks;      /* slots of one trial */
    int64_t kept;       /* slots that are kept free for its gang that gathers */
    int64_t missing;    /* ranks that its running elastic gangs lack */
    int64_t gpus, cpus; /* of each slot */
    int64_t memory_bytes;
    bool is_gang;      /* its slots are ranks, which only some runners take */
    bool is_exclusive; /* nothing else runs on the machine of its trial */
    int64_t since_ms;  /* when it, or what it may hand out, changed last */
};

/* A live runner. */
struct demand_runner {
    int64_t slots, slots_used; /* the slots that are kept free for a gang are used */
    int64_t gpus, gpus_used;   /* without those that are set aside */
    int64_t cpus, cpus_used;
    int64_t memory_bytes, memory_used;
    const char *machine; /* NULL: it did not say */
    bool shares;         /* its cores and memory are those of its machine */
    bool takes_seats;
    bool is_shut; /* a trial has the machine to itself */
};

#endif
