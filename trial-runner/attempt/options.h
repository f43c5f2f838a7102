/* The options of assay-runner: command line and environment. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_OPTIONS_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/process/confinement.h"
#include "trial-runner/process/gpus.h"
#include "trial-runner/process/machine.h"

#define OPTIONS_MAX_SLOTS 1024
#define OPTIONS_MAX_GROUP 64

struct options {
    char *ca_file;      /* owned; absolute; NULL: the authorities of the system */
    char *rank_address; /* owned; numeric; NULL: the address of the way to the server */
    char *server, *token, *name, *work, *cache, *trainer; /* owned; work and cache are absolute */
    char *secret; /* owned; of the work folder (identity.h); NULL until it was read */
    int64_t slots;
    int64_t group;              /* most members of a group; 1: no groups */
    int64_t group_memory;       /* bytes that one group may use; 0: not known */
    int64_t cache_max_bytes;    /* 0: no limit */
    int64_t log_max_bytes;      /* of the whole output of an attempt; 0: it is not kept */
    int64_t ahead_ms;           /* shorter trials are claimed ahead (agent/ahead.c); 0: none are */
    int64_t idle_exit_ms;       /* 0: never */
    int64_t began_ns, until_ns; /* monotonic: when it started, and when its time ends; 0: never */
    char *job, *fleet;          /* owned; the job and the fleet that it belongs to; NULL: none */
    struct gpu_list gpus;       /* to hand out */
    struct machine machine;     /* cpus and memory_bytes: what trials may use */
    bool shares_machine;        /* these are the whole machine's: neither was given */
    bool no_affinity;           /* trials run on any core */
    struct confinement_limits trial_limits;
    struct confinement *confinement; /* borrowed; of all its trials; NULL until it was opened */
    log_level level;
    bool die_with_parent;
    bool help, version; /* if set, nothing else is */
};

void options_done(struct options *o);

/* Read the command line and the environment; find the host's name, its GPUs (gpus.h) and the
 * trainer. o must be zeroed. AS_E_INVAL names the option; AS_E_NOT_FOUND and AS_E_IO are for the
 * token's file. */
AS_MUST_CHECK as_status options_parse(struct options *o, int argc, char **argv, struct as_err *err);

void options_help(void); /* on stdout */

#endif
