/* What a fleet of runners is: which engine starts its jobs, what each job has, and how its runners
 * reach the server. Every text that goes into a script or a manifest is checked here. */
#ifndef ASSAY_CLI_FLEET_FLEET_SPEC_H
#define ASSAY_CLI_FLEET_FLEET_SPEC_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"

typedef enum fleet_engine { FLEET_SLURM, FLEET_KUBERNETES, FLEET_SSH } fleet_engine;
extern const char *const fleet_engine_words[]; /* NULL-terminated, in the enum's order */

#define FLEET_HOSTS_MAX 256
#define FLEET_UNITS_MAX 1000 /* jobs of one fleet */

/* Texts are views of their owner: argv, or the tree of fleet_spec_parse(). NULL: not given. */
struct fleet_spec {
    int64_t engine;         /* fleet_engine */
    const char *name;       /* [a-z0-9-], at most 40: a part of the names of jobs and runners */
    const char *server;     /* URL, as runners reach it */
    const char *token_file; /* of a runner's token. Slurm: nodes read it; else: this machine */
    const char *program;    /* assay-runner there; NULL: it is in the PATH, or in the image */
    const char *work;       /* folder for the work folders of runners */
    int64_t slots;          /* of each runner */
    int64_t cpus, gpus;     /* of each runner; 0: not said */
    int64_t memory_bytes;   /* the same */
    int64_t ranks;          /* runners of a job that start together; 1: each is a job */
    int64_t time_ms;        /* limit of a job; 0: that of the partition, or none */
    int64_t idle_exit_ms;   /* 0: never */
    const char *partition, *account, *qos, *constraint, *logs;     /* Slurm */
    const char *image, *namespace, *context, *pull_secret, *queue; /* Kubernetes */
    const char *hosts[FLEET_HOSTS_MAX];                            /* ssh */
    size_t n_hosts;
};

/* AS_E_USAGE names the option at fault, what was found, and what was expected. */
AS_MUST_CHECK as_status fleet_spec_check(const struct fleet_spec *s, struct as_err *err);

/* The same as JSON, and back; what was not given is not in it. *ret of the first is owned by the
 * caller; the texts of the second are views of `tree`. AS_E_INVAL: an unknown field, or one of
 * another type; it is not checked otherwise. */
AS_MUST_CHECK as_status fleet_spec_json(const struct fleet_spec *s, json_t **ret,
                                        struct as_err *err);
AS_MUST_CHECK as_status fleet_spec_parse(const json_t *tree, struct fleet_spec *ret,
                                         struct as_err *err);

#endif
